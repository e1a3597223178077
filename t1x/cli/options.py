"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

HELP = {"help_option_names": ["-h", "--help"]}

File = Annotated[str, typer.Argument(metavar="FILE", help="A Gin file, e.g. experiments/quickstart.gin.", show_default=False)]
Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Gin files.", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="GIN",
        help="A binding that wins over file and site, e.g. 'Campaign.seed = 1'. Repeatable.",
        show_default=False,
    ),
]
EvaluationSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="GIN",
        help="A binding that wins over the run's settings, e.g. 'Evaluation.seed = 1'. Repeatable.",
        show_default=False,
    ),
]
_RUN = typer.Argument(metavar="RUN", help="A run's folder, its name or how that begins, or its MLflow id.", show_default=False)
RunName = Annotated[str, _RUN]
RunNames = Annotated[list[str], _RUN]
RunsFolder = Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="The runs folder.")]
RUNS = Path("runs")
Checkpoint = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="A run (folder, name, MLflow id), whose newest weights are meant; a checkpoint's folder; or a policy's.",
        show_default=False,
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like", metavar="FILE", help="An experiment whose settings are used instead of the run's own.", show_default=False
    ),
]
Step = Annotated[
    str | None,
    typer.Option("--step", metavar="STEP", help="A batch of the run: a training step, or warmup-0 and so on.", show_default=False),
]
SuiteName = Annotated[
    str | None,
    typer.Option(
        "--suite",
        metavar="NAME",
        help="Trials of this suite's evaluations instead of training's; --step is then the one that made the policy, 0 for the "
        "start, or untrained.",
        show_default=False,
    ),
]
SiteName = Annotated[
    str,
    typer.Option(
        "--site",
        metavar="NAME",
        help="Where it runs (`t1x list sites`); without it laptop where there's no GPU, else cluster.",
        show_default=False,
    ),
]
WIDTH = 130
"""Columns that a table takes at least: names are to be copied, and a narrow terminal wraps a line by itself."""
NARROW = 80
"""Columns within which all of a table of short names and numbers fits."""
AUTO = "auto"
"""The site that loading chooses itself (`t1x.config.site.AUTO`; not imported, so that --help is instant)."""


def print_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def print_site(site: str | None, chosen: bool) -> None:
    """Which site it is, and why where nobody has chosen it."""
    from t1x.config.requirements import gpus_here

    if site is None or chosen:
        typer.echo(f"site {site or 'none'}")
    else:
        typer.echo(f"site {site} ({'a' if gpus_here() else 'no'} GPU here; --site NAME for another)")
