"""`t1x tasks`: the tasks of an experiment, or of a folder."""

from pathlib import Path
from typing import Annotated

import typer

from t1x.cli.options import AUTO, HELP, File, Settings, SiteName

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, context_settings=HELP)


@app.callback()
def _tasks() -> None:
    """Export, check, count and compare tasks.

    \b
    Examples:
      t1x tasks export experiments/quickstart.gin my-tasks/ --count 20
      t1x tasks check my-tasks/
      t1x tasks stats my-tasks/
      t1x tasks overlap my-tasks/ registry/suites/tb21.gin
    """


PoolName = Annotated[
    str,
    typer.Argument(metavar="POOL", help="A folder of tasks, or an experiment: its training pool is meant.", show_default=False),
]
OfSuite = Annotated[
    str | None, typer.Option("--suite", metavar="NAME", help="This suite of the experiment instead.", show_default=False)
]


@app.command()
def export(
    file: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new or empty folder.", show_default=False)],
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="How many tasks; all of the pool without it.", show_default=False)
    ] = None,
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Write the tasks of an experiment's training pool as folders in Harbor layout.

    \b
    Examples:
      t1x tasks export experiments/quickstart.gin my-tasks/ --count 20
    """
    from t1x.config import load

    resolved = load(file, site=site, set=set or ())
    pool = getattr(resolved.root, "pool", None)
    if pool is None:
        from t1x.config.names import with_article

        raise ValueError(f"{file} describes {with_article(type(resolved.root).__name__)}, which has no pool of tasks")
    from t1x.tasks.export import export_pool

    written = export_pool(pool.build(), out, count)
    typer.echo(f"{written} tasks written to {out}")


@app.command()
def check(
    pool: PoolName,
    suite: OfSuite = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, metavar="N", help="Runs of each reference solution.")] = 3,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Tasks that run at a time; one a core without it.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The manifest; in the pool's folder without it.", show_default=False),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run also what was checked before and hasn't changed.")] = False,
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Run every task of a pool, untouched and with its reference solution, and name what is wrong.

    What is found is kept as it comes: the same command goes on after an interruption, and later runs only what has changed. The
    exit code is 0 where nothing was found, 1 where something was, 2 for a mistake.

    \b
    Examples:
      t1x tasks check my-tasks/
      t1x tasks check experiments/quickstart.gin
      t1x tasks check experiments/quickstart.gin --suite held_out --repeats 1
      t1x tasks check my-tasks/ --fresh --jobs 8 --out checked.json
    """
    from t1x.cli.pool_target import pool_target
    from t1x.cli.tasks_check import check_pool

    if check_pool(pool_target(pool, suite, site, set or ()), repeats, jobs, out, fresh):
        raise typer.Exit(1)


@app.command()
def stats(
    pool: PoolName,
    suite: OfSuite = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE.png", help="Draw it as well (.png, .pdf or .svg).", show_default=False)
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--manifest", metavar="FILE", help="Of `t1x tasks check`; the pool's own without it.", show_default=False),
    ] = None,
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Count what a pool has: assertions a task (and with them S of a dense reward), kinds of work, lengths, durations.

    Durations, baselines and assertions that tasks don't declare come from the manifest of `t1x tasks check`.

    \b
    Examples:
      t1x tasks stats experiments/quickstart.gin
      t1x tasks stats my-tasks/ --figure my-tasks.png
    """
    from rich.console import Console

    from t1x.cli.pool_target import pool_target
    from t1x.cli.tasks_stats import require_figure, statistics_tables
    from t1x.curation.statistics import statistics

    if figure is not None:
        require_figure(figure)
    target = pool_target(pool, suite, site, set or ())
    found = statistics(target.pool, manifest or target.manifest)
    console = Console()
    for table in statistics_tables(found):
        console.print(table)
    if figure is not None:
        from t1x.tracking.pool_figure import pool_figure

        pool_figure(figure, found, title=target.label)
        typer.echo(f"figure: {figure}")


@app.command()
def overlap(
    pool: PoolName,
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE", help="Held-out tasks: a folder, a suite of the experiment, or a Gin file.", show_default=False
        ),
    ],
    named: Annotated[
        str | None, typer.Option("--suite", metavar="NAME", help="Which suite of SUITE's Gin file.", show_default=False)
    ] = None,
    threshold: Annotated[float, typer.Option("--threshold", min=0.1, max=1, help="Likeness from which a pair is named.")] = 0.5,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Rows that are printed.")] = 20,
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Find tasks of a pool that are nearly tasks of a held-out suite, by instruction, tests and solution.

    Likeness is the Jaccard index of shingles (one and two words in a row), each weighted by how few tasks have it; numbers and the
    names of files count as equal. The exit code is 0 where no pair reaches the threshold, 1 where one does, 2 for a mistake.

    \b
    Examples:
      t1x tasks overlap my-tasks/ held-out-tasks/
      t1x tasks overlap experiments/dense_t1_15k.gin registry/suites/tb21.gin
      t1x tasks overlap experiments/quickstart.gin new_families --threshold 0.7
    """
    from t1x.cli.pool_target import pool_target, suite_target
    from t1x.cli.tasks_overlap import compare_pools

    target = pool_target(pool, None, site, set or ())
    if compare_pools(target, suite_target(suite, target.experiment, named, site), threshold, most):
        raise typer.Exit(1)
