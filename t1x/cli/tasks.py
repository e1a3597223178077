"""`t1x tasks`: the tasks of an experiment."""

from pathlib import Path
from typing import Annotated

import typer

from t1x.cli.options import AUTO, HELP, File, Settings, SiteName

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Work with the tasks of an experiment.", context_settings=HELP)


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
      t1x tasks export experiments/quickstart.gin tasks/ --count 20
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
