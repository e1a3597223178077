"""`t1x audit`: is what a run trained on what its turns captured?"""

from typing import Annotated

import typer

from t1x.cli.options import NARROW, RUNS, RunName, RunsFolder, Step, SuiteName
from t1x.trajectory.audit_finding import WORST


def audit(
    wanted: RunName,
    step: Step = None,
    suite: SuiteName = None,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", min=0, max=WORST, help="How many of the worst findings are shown.")
    ] = 5,
    runs: RunsFolder = RUNS,
) -> None:
    """Audit the stored trials of a run: is what it trained on what its turns captured?

    Own-turn fidelity is the share of loss tokens whose id, log-probability, routing row and version are what their own turn
    captured; context fidelity the share whose prefix is what the engine consumed. The worst differences are shown side by side.

    Nothing is trained on the trials of evaluations, and they aren't in it; --suite audits those of one suite instead.

    The exit code is 1 where something differs that a faithful stitcher leaves as it was captured.

    \b
    Examples:
      t1x audit quickstart-1a2b3c4d-0
      t1x audit runs/quickstart-1a2b3c4d-0 --step 30 --examples 20
      t1x audit quickstart-1a2b3c4d-0 --step warmup-0
      t1x audit quickstart-1a2b3c4d-0 --suite held_out
    """
    from rich.console import Console

    from t1x.campaign.experiment import Experiment
    from t1x.campaign.find_run import find_run
    from t1x.campaign.progress import ProgressReport
    from t1x.campaign.run_audit import batch_audits
    from t1x.cli.audit_tables import examples_of, summary
    from t1x.cli.strangers import note_strangers
    from t1x.config import load
    from t1x.config.requirements import missing
    from t1x.text.visible import legible
    from t1x.trajectory.audit import Audit
    from t1x.trajectory.storage_search import suites_of

    run = find_run(wanted, runs)
    note_strangers(run.folder)
    batches = batch_audits(run, step, suite)
    experiment = load(run.folder / "config.gin").root
    assert isinstance(experiment, Experiment), "runs are of experiments"
    console = Console(width=max(NARROW, Console().width))
    audits = []
    with ProgressReport(console) as report, report.phase("auditing", sum(batch.trials for batch in batches)) as phase:
        for batch in batches:
            total = Audit()
            for found in batch.audits(experiment.stitcher.droppable):
                total += found
                phase.advance(batch.file.name)
            audits.append(total)
    whole = sum(audits, Audit())
    faithful = experiment.stitcher.faithful
    typer.echo(f"audit of {legible(str(run.folder.resolve()))}")
    for part in summary(batches, audits, type(experiment.stitcher).__name__, faithful):
        console.print(part, highlight=False, crop=False)
    if suite is None and (evaluated := suites_of(run.folder)):
        console.print(
            f"trials of evaluations aren't in it, as nothing is trained on them; --suite: {', '.join(evaluated)}", highlight=False
        )
    if examples and whole.findings:
        tokenizer = None if missing(experiment.tokenizer) else experiment.tokenizer.build()
        for part in examples_of(whole.findings[:examples], tokenizer):
            console.print(part, highlight=False)
    if whole.violations and faithful:
        raise typer.Exit(1)
