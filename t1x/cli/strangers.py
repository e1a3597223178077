"""What lies among a run's stored trials and isn't one of their files."""

from pathlib import Path

import typer

from t1x.text.visible import legible
from t1x.trajectory.storage_folder import strangers


def note_strangers(run: Path) -> None:
    """Says which files of a run's folder `trajectories` nobody reads."""
    for path in strangers(run):
        typer.echo(f"note: {legible(str(path))} isn't named as a batch or an evaluation is, so it isn't read", err=True)
