"""`t1x gap`: the log-probability gap between engine and trainer."""

from pathlib import Path
from typing import Annotated

import typer

from t1x.cli.options import AUTO, NARROW, RUNS, Checkpoint, Like, RunsFolder, Settings, SiteName, Step, print_site


def gap(
    checkpoint: Checkpoint,
    step: Step = None,
    trajectories: Annotated[
        Path | None,
        typer.Option(
            "--trajectories",
            metavar="FILE",
            help="A file of stored trials instead of a batch of the run.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Take the first N stored trials only.", show_default=False)
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", metavar="N", min=1, help="Run N new trials in sandboxes instead of taking stored ones.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER", help="Write gap.json, gap.png and margin.png into this folder.", show_default=False
        ),
    ] = None,
    like: Like = None,
    runs: RunsFolder = RUNS,
    site: SiteName = AUTO,
    set: Settings = None,
) -> None:
    """Measure the gap |o - q| between what samples and what is trained.

    Every sampled id of the trials is put through an engine in float32 and one in bfloat16, its trials are stitched with their ids
    kept (TITO) and encoded anew, and the trainer computes its log-probabilities with its own experts and with the engine's (R3). So
    all cells are of the same ids, and differences are paired. It also tells which experts flip and how well the router's margin
    foretells that.

    Taken are the newest stored trials that the weights sampled, in training or in an evaluation at its temperature. Where a run's
    newest weights have none, it's the newest trials whose sampler is kept, with its weights; a checkpoint that is named is
    measured on the trials of others then.

    \b
    Examples:
      t1x gap quickstart-1a2b3c4d-0
      t1x gap runs/quickstart-1a2b3c4d-0 --step 12 --limit 64
      t1x gap runs/quickstart-1a2b3c4d-0/checkpoints/step-30 --sample 300 --out gap
      t1x gap my-policy/ --like experiments/quickstart.gin --sample 100
    """
    if sample is not None and (step or trajectories or limit):
        raise ValueError("--sample runs new trials; --step, --trajectories and --limit choose stored ones, so leave either out")
    if step and trajectories:
        raise ValueError("--step names a batch of the run and --trajectories another file; leave either out")
    from t1x.campaign.gap import GAPS, MARGINS, NUMBERS

    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out {out}: that isn't a folder")
    if out is not None and (there := [out / name for name in (NUMBERS, GAPS, MARGINS) if (out / name).exists()]):
        raise ValueError(f"{there[0]} exists; remove it or name another folder")
    from rich.console import Console
    from rich.text import Text

    from t1x.campaign.checkpoint_evaluation import find_weights

    find_weights(checkpoint, runs)  # what is wrong with a name is said before what takes long is imported
    from t1x.campaign.gap_report import measure_gap
    from t1x.campaign.gap_source import gap_source
    from t1x.cli.gap_tables import gap_tables

    console = Console(width=max(NARROW, Console().width))
    source = gap_source(checkpoint, like=like, site=site, set=set or (), runs=runs, sandboxes=sample is not None)
    print_site(source.campaign.site, chosen=True)
    report = measure_gap(source, console, step=step, file=trajectories, limit=limit, sample=sample)
    if out is not None:
        report.write(out)
    for each in gap_tables(report):
        console.print(each, highlight=False, soft_wrap=isinstance(each, Text) and bool(each.no_wrap))
    if out is not None:
        console.print(f"\nnumbers and figures: {out}", highlight=False, soft_wrap=True)
