"""The commands. Each is thin: it loads, calls one function of a room, and prints."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from t1x import __version__

HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
tasks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Work with the tasks of an experiment.", context_settings=HELP
)
app.add_typer(tasks, name="tasks")

File = Annotated[str, typer.Argument(metavar="FILE", help="A Gin file, e.g. experiments/quickstart.gin.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="GIN", help="A binding that wins over the file, e.g. 'Campaign.seed = 1'. Repeatable.", show_default=False
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"t1x {__version__}")
        raise typer.Exit


@app.callback()
def _t1x(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Declarative experiments for reinforcement learning of terminal agents.

    \b
    Examples:
      t1x run experiments/quickstart.gin
      t1x show experiments/quickstart.gin --origins
      t1x list Reward
    """
    sys.path.append(os.getcwd())  # a Gin `import` may name a module of the user's project


@app.command()
def run(file: File, set: Settings = None) -> None:
    """Run an experiment.

    \b
    Examples:
      t1x run experiments/quickstart.gin
      t1x run experiments/quickstart.gin --set 'Campaign.seed = 1' --set 'Campaign.steps = 4'
    """
    from t1x.config import load

    resolved = load(file, set=set or ())
    _print_notes(resolved.notes)
    from t1x.campaign.campaign import Campaign

    if not isinstance(resolved.root, Campaign):
        raise ValueError(f"{file} describes a {type(resolved.root).__name__}; what runs is a Campaign")
    from t1x.campaign.run import run_campaign

    run_campaign(resolved)


@app.command()
def show(
    file: File,
    origins: Annotated[bool, typer.Option("--origins", help="Add where each value was set, as a comment.")] = False,
    set: Settings = None,
) -> None:
    """Print an experiment fully resolved, as Gin text.

    \b
    Examples:
      t1x show experiments/quickstart.gin
      t1x show experiments/quickstart.gin --origins --set 'Campaign.batch = 32'
      t1x show experiments/quickstart.gin > resolved.gin
    """
    from t1x.config import dump, load

    resolved = load(file, set=set or ())
    _print_notes(resolved.notes)
    typer.echo(dump(resolved.root, resolved.origins if origins else None), nl=False)


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Gin files.", show_default=False)], set: Settings = None
) -> None:
    """Report everything that is wrong in Gin files.

    \b
    Examples:
      t1x check experiments/quickstart.gin
      t1x check experiments/*.gin
    """
    from t1x.config import load

    wrong = False
    for file in files:
        try:
            resolved = load(file, set=set or ())
        except (ValueError, OSError) as error:
            wrong = True
            typer.echo(f"{file}: {error}", err=True)
        else:
            _print_notes(resolved.notes)
            typer.echo(f"{file}: ok")
    if wrong:
        raise typer.Exit(2)


@app.command(name="list")
def list_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A kind or a component.", show_default=False)] = None,
) -> None:
    """List kinds, their components, or a component's fields.

    \b
    Examples:
      t1x list
      t1x list Reward
      t1x list TestCountReward
    """
    from t1x.cli.catalog import catalog
    from t1x.config import discover

    discover()
    typer.echo(catalog(name))


@tasks.command()
def export(
    file: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new or empty folder.", show_default=False)],
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="How many tasks; all of the pool without it.", show_default=False)
    ] = None,
    set: Settings = None,
) -> None:
    """Write the tasks of an experiment's training pool as folders in Harbor layout.

    \b
    Examples:
      t1x tasks export experiments/quickstart.gin tasks/ --count 20
    """
    from t1x.config import load

    resolved = load(file, set=set or ())
    pool = getattr(resolved.root, "pool", None)
    if pool is None:
        raise ValueError(f"{file} describes a {type(resolved.root).__name__}, which has no pool of tasks")
    from t1x.tasks.export import export_pool

    written = export_pool(pool.build(), out, count)
    typer.echo(f"{written} tasks written to {out}")


def _print_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)
