"""`t1x grid`: ablation grids."""

from typing import TYPE_CHECKING, Annotated

import typer

from t1x.cli.options import AUTO, HELP, File, Settings, SiteName, print_notes

if TYPE_CHECKING:
    from t1x.campaign.resolve_cells import Cells

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run and compare ablation grids.", context_settings=HELP)

Smoke = Annotated[bool, typer.Option("--smoke", help="One tiny step of each cell, kept in the runs folder's `smoke`.")]


@app.command()
def run(
    file: File,
    site: SiteName = AUTO,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which cells there are, how they stand and how long they may take.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="AXIS=LEVEL",
            help="Only cells with this level (or seed=1). Repeatable: either of one axis, all of several axes.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="Cells that run at a time.")] = 1,
    set: Settings = None,
    smoke: Smoke = False,
) -> None:
    """Run the cells of a grid that haven't finished yet.

    A --set changes every cell, one of Grid the grid. The exit code is 0 where every cell has finished and 1 where one failed.

    \b
    Examples:
      t1x grid run experiments/grids/reward.gin --dry-run
      t1x grid run experiments/grids/reward.gin --jobs 2
      t1x grid run experiments/grids/reward.gin --only reward=binary --only seed=0
    """
    cells = _resolve(file, site, set or [], smoke)
    from rich.console import Console

    from t1x.campaign.cells import select
    from t1x.campaign.grid_plan import plan

    wanted = select([each.cell for each in cells.experiments], cells.grid, only or ())
    planned = plan(cells, [each for each in cells.experiments if each.cell in wanted])
    console = Console()
    if dry_run:
        from t1x.cli.grid_table import dry_run_tables, dry_run_text

        for table in dry_run_tables(planned):
            console.print(table)
        console.print(dry_run_text(cells, planned, jobs), highlight=False, soft_wrap=True)
        return
    from t1x.campaign.grid_run import run_grid

    failures = run_grid(cells, planned, jobs, console)
    if failures:
        console.print(f"{len(failures)} of {len(planned.cells)} cells failed; run the same command again to retry them:")
        for failure in failures:
            console.print(f"  {failure.name}: {failure.reason}; {failure.log}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)


@app.command()
def report(file: File, site: SiteName = AUTO, set: Settings = None, smoke: Smoke = False) -> None:
    """Write what a grid says so far: a table for readers, the same as CSV, and a figure.

    \b
    Examples:
      t1x grid report experiments/grids/reward.gin
    """
    cells = _resolve(file, site, set or [], smoke)
    from t1x.campaign.grid_report import how_many, write_grid_report
    from t1x.campaign.grid_tables import newest

    written, said = write_grid_report(cells), how_many(newest(cells))
    if not written:
        said += f"; run `t1x grid run {file}{' --smoke' if smoke else ''}`"
        if not smoke and cells.has_smoke_test:
            said += "; there is a smoke test of it: add --smoke to see what that says"
    for line in (said, *written):
        typer.echo(line)


def _resolve(file: str, site: str, settings: list[str], smoke: bool) -> "Cells":
    from t1x.campaign.grid import Grid
    from t1x.campaign.resolve_cells import of_grid, resolve_cells
    from t1x.config import load

    resolved = load(file, set=[text for text in settings if of_grid(text)])
    if not isinstance(resolved.root, Grid):
        from t1x.config.names import with_article

        raise ValueError(
            f"{file} describes {with_article(type(resolved.root).__name__)}, not a Grid; `t1x run` runs one experiment"
        )
    cells = resolve_cells(resolved, site=site, set=[text for text in settings if not of_grid(text)], smoke=smoke)
    print_notes((*resolved.notes, *cells.notes))
    return cells
