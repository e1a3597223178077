"""The commands. Each is thin: it loads, calls one function of a room, and prints."""

import os
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from t1x import __version__
from t1x.cli import audit, evaluate, gap, grid, runs, tasks, trajectory
from t1x.cli.options import AUTO, HELP, File, Files, Settings, SiteName, print_notes, print_site

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
app.add_typer(tasks.app, name="tasks")
app.add_typer(grid.app, name="grid")
app.add_typer(runs.app, name="runs")
app.add_typer(trajectory.app, name="trajectory")
app.command(name="eval")(evaluate.evaluate)
app.command()(gap.gap)
app.command()(audit.audit)


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
      t1x diff mine.gin experiments/quickstart.gin
      t1x list reward
    """
    sys.path.append(os.getcwd())  # a Gin `import` may name a module of the user's project


@app.command()
def run(
    file: File,
    site: SiteName = AUTO,
    set: Settings = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="One tiny step, kept in the runs folder's `smoke`.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with its run that was interrupted, where there is one.")] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="With --resume: go on although the experiment has changed.")
    ] = False,
) -> None:
    """Run an experiment, and first the campaigns that it starts from.

    \b
    Examples:
      t1x run experiments/quickstart.gin
      t1x run experiments/quickstart.gin --site laptop --smoke
      t1x run experiments/quickstart.gin --set 'Campaign.seed = 1' --set 'Campaign.steps = 4'
      t1x run experiments/quickstart.gin --resume
    """
    from t1x import api

    if allow_changes and not resume:
        raise ValueError("--allow-changes belongs to --resume; without it a run begins anew, whatever was run before")

    resolved = api.load(file, site=site, set=set or (), smoke=smoke)
    print_notes(resolved.notes)
    from t1x.campaign.grid import Grid

    if isinstance(resolved.root, Grid):
        raise ValueError(f"{file} describes a Grid; `t1x grid run {file}` runs it")
    print_site(resolved.root.site, chosen=site != AUTO)
    api.run(resolved, resume=resume, allow_changes=allow_changes)


class Format(StrEnum):
    """How `t1x show` prints."""

    TEXT = "text"
    GIN = "gin"
    JSON = "json"


@app.command()
def show(
    file: File,
    site: SiteName = AUTO,
    set: Settings = None,
    origins: Annotated[bool, typer.Option("--origins", help="Add where each value was set.")] = False,
    format: Annotated[
        Format, typer.Option("--format", help="text for readers; gin loads back to the same; json is described by `t1x schema`.")
    ] = Format.TEXT,
) -> None:
    """Print an experiment fully resolved.

    \b
    Examples:
      t1x show experiments/quickstart.gin
      t1x show experiments/quickstart.gin --origins --set 'Campaign.batch = 32'
      t1x show experiments/quickstart.gin --format gin > resolved.gin
    """
    from t1x.config import dump, load

    if origins and format is Format.JSON:
        raise ValueError("JSON has no room for origins; use --format text or --format gin")
    resolved = load(file, site=site, set=set or ())
    print_notes(resolved.notes)
    if format is Format.TEXT:
        from t1x.cli.tree import tree

        typer.echo(tree(resolved, origins))
    elif format is Format.GIN:
        typer.echo(dump(resolved.root, resolved.origins if origins else None), nl=False)
    else:
        from t1x.config.mapping import to_mapping

        _print_json(to_mapping(resolved.root))


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A Gin file, FILE@SITE, or the folder of a run.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.", show_default=False)],
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Print where two experiments differ, and where each value was set.

    The exit code is that of diff: 0 for the same tree, 1 for differences, 2 for a mistake. --site and --set hold for both sides.

    \b
    Examples:
      t1x diff mine.gin experiments/quickstart.gin
      t1x diff experiments/quickstart.gin@laptop experiments/quickstart.gin@cluster
      t1x diff mine.gin runs/mine-1a2b3c4d-0
    """
    from t1x.cli.differences import differences
    from t1x.cli.target import load_target
    from t1x.config.diff import diff

    left, right = (load_target(target, site, set or ()) for target in (a, b))
    for notes in (left.notes, right.notes):
        print_notes(notes)
    found = diff((left.root, left.origins), (right.root, right.origins))
    typer.echo(differences(left, right, found))
    if found:
        raise typer.Exit(1)


@app.command()
def check(files: Files, site: SiteName = AUTO, set: Settings = None) -> None:
    """Report what is wrong in Gin files, in those of the campaigns that they start from, and with tokenizers that they name.

    \b
    Examples:
      t1x check experiments/quickstart.gin
      t1x check experiments/*.gin --site cluster
    """
    from t1x.campaign.identity import resolve_starts
    from t1x.campaign.usable import check_usable
    from t1x.config import load

    wrong = False
    for file in files:
        try:
            resolved = load(file, site=site, set=set or ())
            check_usable(resolved.root, resolved.origins, resolve_starts(resolved.root, resolved.origins))
        except (ValueError, OSError) as error:
            wrong = True
            typer.echo(f"{file}: {error}", err=True)
        else:
            print_notes(resolved.notes)
            typer.echo(f"{file}: ok" + (f" (site {resolved.root.site})" if resolved.root.site else ""))
    if wrong:
        raise typer.Exit(2)


@app.command(name="list")
def list_(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A kind, a component, or `sites`.", show_default=False)] = None,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import", metavar="MODULE", help="A module whose components are listed too. Repeatable.", show_default=False
        ),
    ] = None,
) -> None:
    """List kinds, their components, a component's fields, or sites.

    \b
    Examples:
      t1x list
      t1x list reward
      t1x list TestCountReward
      t1x list sites
      t1x list Reward --import my_rewards
    """
    from t1x.cli.catalog import catalog
    from t1x.config import discover
    from t1x.config.discover import import_components

    discover()
    for module in imports or ():
        import_components(module)
    typer.echo(catalog(name))


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A kind or a component; every root without it.", show_default=False)
    ] = None,
) -> None:
    """Print the JSON Schema of what `t1x show --format json` prints.

    \b
    Examples:
      t1x schema > t1x.schema.json
      t1x schema PPO
    """
    from t1x.config import discover
    from t1x.config.schema import schema

    discover()
    _print_json(schema(name))


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Gin file that doesn't exist yet.", show_default=False)],
    base: Annotated[
        str | None, typer.Option("--from", metavar="EXPERIMENT", help="An experiment that it includes.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="FOLDER", help="A Qwen3-MoE in Hugging Face layout that it starts from.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a commented experiment to start from.

    \b
    Examples:
      t1x new mine.gin
      t1x new mine.gin --from experiments/quickstart.gin
      t1x new mine.gin --checkpoint models/my-qwen3-moe
    """
    from t1x.cli.new import write_experiment

    write_experiment(file, base, checkpoint)
    name = shlex.quote(str(file))
    typer.echo(f"{name} written. Next:\n  t1x show {name}\n  t1x run {name} --smoke\n  t1x run {name}")


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
