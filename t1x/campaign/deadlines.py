"""The deadlines that an experiment sets for the tasks of whatever pool it uses."""

import dataclasses

from t1x.campaign.experiment import Experiment
from t1x.tasks.task import Task


def with_deadlines(task: Task, experiment: Experiment) -> Task:
    """The task under the experiment's deadlines, where it has any."""
    return dataclasses.replace(
        task,
        agent_timeout=experiment.agent_deadline or task.agent_timeout,
        verifier_timeout=experiment.verifier_deadline or task.verifier_timeout,
    )
