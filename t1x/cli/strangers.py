"""What lies among a run's stored trials and isn't one of their files."""

from pathlib import Path

import typer

from t1x.text.visible import legible
from t1x.trajectory.storage_folder import strangers


def note_strangers(run: Path) -> None:
    """Says what in a run's folder `trajectories` nobody reads, and why."""
    for path, why in strangers(run).items():
        typer.echo(f"note: {legible(str(path))} {why}, so it isn't read", err=True)
