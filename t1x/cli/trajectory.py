"""`t1x trajectory`: what a run's trials sampled and what was made of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from t1x.cli.options import HELP, NARROW, RUNS, RunName, RunsFolder, Step, SuiteName
from t1x.text.visible import legible

if TYPE_CHECKING:
    from t1x.campaign.experiment import Experiment
    from t1x.campaign.record import Run

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, context_settings=HELP)


@app.callback()
def _trajectory() -> None:
    """List and show the trials that a run has kept. An id like train-30-5 is one from `t1x trajectory list`.

    \b
    Examples:
      t1x trajectory list quickstart-1a2b3c4d-0
      t1x trajectory show quickstart-1a2b3c4d-0 train-30-5
    """


@app.command(name="list")
def list_(wanted: RunName, step: Step = None, suite: SuiteName = None, runs: RunsFolder = RUNS) -> None:
    """List the trials of a batch or of a suite's evaluation, the newest one where none is named.

    Numbers have gaps where more trials were begun than a batch takes: those that came too late were dropped. "loss/tokens" is how
    many of a trial's tokens carry loss, that is, were sampled.

    \b
    Examples:
      t1x trajectory list quickstart-1a2b3c4d-0
      t1x trajectory list quickstart-1a2b3c4d-0 --step 12
      t1x trajectory list quickstart-1a2b3c4d-0 --step warmup-0
      t1x trajectory list quickstart-1a2b3c4d-0 --suite held_out
      t1x trajectory list quickstart-1a2b3c4d-0 --suite held_out --step untrained
    """
    from rich.console import Console

    from t1x.campaign.find_run import find_run
    from t1x.campaign.run_trials import trials_of
    from t1x.cli.strangers import note_strangers
    from t1x.cli.trajectory_text import list_summary, list_table
    from t1x.trajectory.storage_reader import read_summaries
    from t1x.trajectory.storage_search import newest, of_step, suites_of, told

    run = find_run(wanted, runs)
    note_strangers(run.folder)
    kept = trials_of(run, suite=suite)
    files = newest(kept if step is None else of_step(kept, step))
    console = Console(width=max(Console().width, NARROW))
    baseline = _baseline(run)
    for file in files:
        found = read_summaries(file.path)
        console.print(list_table(found), crop=False)
        which = "" if step else ", the newest evaluation" if suite else ", the newest batch"
        console.print(f"{file.name}{which}: {list_summary(found, baseline)}\n", highlight=False)
    console.print(f"kept: {told(kept)}", highlight=False)
    if others := [each for each in suites_of(run.folder) if each != suite]:
        console.print(f"kept evaluations, which --suite lists: {', '.join(others)}", highlight=False)


@app.command()
def show(
    wanted: RunName,
    trial: Annotated[str, typer.Argument(metavar="ID", help="The trial, as `t1x trajectory list` has it.", show_default=False)],
    step: Step = None,
    suite: SuiteName = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write one page that needs nothing else to be read.", show_default=False),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="CHECKPOINT",
            help="Compare experts with those that these weights choose: a run (what sampled the trial, where that's kept), a "
            "checkpoint's folder, or a policy's.",
            show_default=False,
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All turns and tokens in the terminal, however many.")] = False,
    runs: RunsFolder = RUNS,
) -> None:
    """Show a trial turn by turn: what each prompt added, what was sampled, how likely each token was, and which experts agree.

    In the terminal a long trial is cut to an excerpt; a page has all of it, and the experts of each token. What the harness put in
    where the policy would have spoken (placeholder ids) stands in ⟦⟧. An id like train-30-5 is one from `t1x trajectory list`.

    \b
    Examples:
      t1x trajectory show quickstart-1a2b3c4d-0 train-30-5
      t1x trajectory show quickstart-1a2b3c4d-0 train-30-5 --html trial.html
      t1x trajectory show quickstart-1a2b3c4d-0 train-30-5 --policy quickstart-1a2b3c4d-0
      t1x trajectory show quickstart-1a2b3c4d-0 train-30-5 --policy runs/quickstart-1a2b3c4d-0/checkpoints/step-30
      t1x trajectory show quickstart-1a2b3c4d-0 demonstration-5 --step 12 --all
      t1x trajectory show quickstart-1a2b3c4d-0 eval-held_out-greedy-30-5
    """
    from rich.console import Console

    from t1x.campaign.find_run import find_run
    from t1x.campaign.run_trials import trial_of
    from t1x.cli.strangers import note_strangers
    from t1x.cli.trajectory_page import trial_page
    from t1x.cli.trajectory_text import trial_text
    from t1x.trajectory.shown import Chosen, shown
    from t1x.trajectory.storage_reader import read_trial

    if html is not None and html.exists():
        raise ValueError(f"{html} exists; remove it or name another file")
    if html is not None and not html.parent.is_dir():
        raise ValueError(f"--html {html}: there is no folder {html.parent}; make it or name a file elsewhere")
    run = find_run(wanted, runs)
    note_strangers(run.folder)
    file = trial_of(run, trial, step, suite, lambda text: typer.echo(f"note: {text}", err=True))
    stored = read_trial(file.path, trial)
    assert stored is not None, "the file has it"
    chosen = None
    if policy is not None:
        from t1x.campaign.policy_version import told_weights, weights_beside

        versions = None if file.step is None else {turn.completion.version for turn in stored.turns}
        weights, note = weights_beside(policy, runs, run, versions)
        from t1x.campaign.chosen_experts import chosen_experts

        chosen = Chosen(told_weights(weights), note, chosen_experts(weights.policy, stored))
    seen = shown(stored, _experiment(run).tokenizer.build(), chosen)
    batch = f"{run.folder.name}, {file.name}"
    if html is None:
        console = Console()
        console.print(trial_text(seen, batch, all_, coloured=console.color_system is not None and not console.no_color))
    else:
        html.write_text("".join(trial_page(seen, batch)), encoding="utf-8")
        typer.echo(f"{html} written")


def _baseline(run: "Run") -> str:
    """The name of a stitcher that isn't faithful; empty where it is. A list goes without where the experiment can't be read."""
    try:
        stitcher = _experiment(run).stitcher
    except (OSError, ValueError) as error:
        typer.echo(f"note: whether the run's stitcher is a baseline isn't known: {legible(str(error))}", err=True)
        return ""
    return "" if stitcher.faithful else type(stitcher).__name__


def _experiment(run: "Run") -> "Experiment":
    from t1x.campaign.experiment import Experiment
    from t1x.config import load

    root = load(run.folder / "config.gin").root
    assert isinstance(root, Experiment), "runs are of experiments"
    return root
