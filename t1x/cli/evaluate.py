"""`t1x eval`: weights that are there already, on suites."""

from typing import Annotated

import typer

from t1x.cli.options import AUTO, RUNS, Checkpoint, EvaluationSettings, Like, RunsFolder, SiteName, print_site


def evaluate(
    checkpoint: Checkpoint,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            "--suite", metavar="SUITE", help="A suite of the run's experiment, or a Gin file. Repeatable.", show_default=False
        ),
    ] = None,
    like: Like = None,
    runs: RunsFolder = RUNS,
    site: SiteName = AUTO,
    set: EvaluationSettings = None,
) -> None:
    """Evaluate weights on suites, with the settings of the run that they are of.

    It's a run of its own, beside the one that it evaluates.

    \b
    Examples:
      t1x eval quickstart-1a2b3c4d-0 --suite held_out
      t1x eval runs/quickstart-1a2b3c4d-0/checkpoints/step-30 --suite registry/suites/tb21.gin
      t1x eval runs/quickstart-1a2b3c4d-0 --suite held_out --set 'Evaluation.seed = 1'
      t1x eval my-policy/ --like experiments/quickstart.gin --suite held_out
    """
    from t1x import api
    from t1x.campaign.checkpoint_evaluation import evaluation_of

    evaluation = evaluation_of(checkpoint, suite or (), like=like, site=site, set=set or (), runs=runs)
    print_site(evaluation.site, chosen=True)
    api.run(evaluation)
