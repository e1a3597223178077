"""`t1x runs`: what a runs folder holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from t1x.cli.options import HELP, RUNS, WIDTH, RunNames, RunsFolder

if TYPE_CHECKING:
    from t1x.campaign.record import Run

app = typer.Typer(rich_markup_mode=None, help="List, stop and remove runs.", context_settings=HELP, invoke_without_command=True)


@app.callback()
def _runs(context: typer.Context, runs: RunsFolder = RUNS) -> None:
    """List, stop and remove runs; without a command, list them.

    \b
    Examples:
      t1x runs
      t1x runs --runs runs/smoke
      t1x runs stop quickstart-1a2b3c4d-0
      t1x runs rm quickstart-1a2b3c4d-0.2
    """
    if context.invoked_subcommand is None:
        _list(runs)


@app.command(name="list")
def list_(runs: RunsFolder = RUNS) -> None:
    """List runs, the newest first: how each stands, how far it is, how much disk it takes, its last score.

    \b
    Examples:
      t1x runs list
      t1x runs list --runs runs/smoke
    """
    _list(runs)


@app.command()
def stop(
    wanted: RunNames,
    runs: RunsFolder = RUNS,
    wait: Annotated[float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait until it has ended.")] = 120.0,
) -> None:
    """Stop runs in order: each closes its sandboxes, its tracking and its record, and is waited for.

    \b
    Examples:
      t1x runs stop quickstart-1a2b3c4d-0
      t1x runs stop quickstart --wait 600
    """
    from rich.console import Console

    from t1x.campaign.find_run import find_run
    from t1x.campaign.stopping import stop_run

    found = [find_run(name, runs) for name in dict.fromkeys(wanted)]
    console = Console()
    late = []
    for run in found:
        with console.status(f"{run.folder.name}: asked to end, waiting"):
            ended = stop_run(run, wait)
        if ended is None:
            late.append(run)
            typer.echo(f"{run.folder.name}: still ending after {wait:g} s; `kill -9 {run.pid}` would end it at once")
        else:
            typer.echo(f"{run.folder.name}: {ended.status}{_how_far(ended)}")
    if late:
        raise typer.Exit(1)


@app.command()
def rm(
    wanted: RunNames,
    runs: RunsFolder = RUNS,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Remove runs: their folders with all weights, and the runs in their tracking store.

    One that is running, or that a running one starts from, is not removed.

    \b
    Examples:
      t1x runs rm quickstart-1a2b3c4d-0
      t1x runs rm quickstart-1a2b3c4d-0 quickstart-1a2b3c4d-0.2 --yes
    """
    from t1x.campaign.disk import disk_use
    from t1x.campaign.find_run import find_run
    from t1x.campaign.removal import check_removable, remove_run
    from t1x.campaign.wording import size

    found = list({run.folder.resolve(): run for run in (find_run(name, runs) for name in wanted)}.values())
    check_removable(found)
    freed = sum(disk_use(run.folder) for run in found)
    for run in found:
        typer.echo(f"{run.folder.name}: {run.status}{_how_far(run)}, {size(disk_use(run.folder))}")
    if not yes:
        typer.confirm(f"Remove {len(found)} run{'s' if len(found) > 1 else ''} with all weights ({size(freed)})?", abort=True)
    for run in found:
        if note := remove_run(run):
            typer.echo(f"note: {note}", err=True)
    typer.echo(f"removed; {size(freed)} freed")


def _list(folder: Path) -> None:
    from rich.console import Console

    from t1x.campaign.record import runs
    from t1x.campaign.standing import standing
    from t1x.cli.runs_table import runs_table

    if not folder.is_dir():
        raise ValueError(f"there is no runs folder {folder}; --runs names another")
    found = [standing(run) for run in runs(folder)]
    if found:
        Console(width=max(Console().width, WIDTH)).print(runs_table(found))
    else:
        typer.echo(f"no runs in {folder}")


def _how_far(run: "Run") -> str:
    from t1x.campaign.standing import steps_made

    return "" if run.steps is None else f" after {steps_made(run.folder)} of {run.steps} steps"
