"""Trials that come to what a test wants."""

import numpy as np

from t1x.engine.protocol import Completion
from t1x.grading.report import VerifierReport
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Trajectory, Turn


def make_trial(
    trial_id, *, passed=0, total=4, turns=1, ended_by=EndedBy.DONE, task="t", families=(), difficulty="easy", tokens=5, **more
):
    completion = Completion(np.ones(1, np.int32), np.zeros(1, np.float32), np.zeros((1, 0, 0), np.uint8), 0, "stop", 0)
    trajectory = Trajectory(
        token_ids=np.ones(tokens, np.int32),
        loss_mask=np.arange(tokens) >= tokens - turns,
        logprobs=np.zeros(tokens, np.float32),
        routed_experts=np.zeros((tokens - 1, 0, 0), np.uint8),
        versions=(),
        boundaries=(),
        temperature=1.0,
    )
    report = VerifierReport(tuple((f"a{i}", i < passed) for i in range(total)))
    return Trial(
        id=trial_id,
        task=Task(task, "", (), (), (), families, difficulty),
        turns=tuple(Turn(i, np.ones(1, np.int32), completion, 1.0) for i in range(turns)),
        ended_by=ended_by,
        report=report if ended_by.counts else None,
        reward=passed / 20 if ended_by.counts else None,
        trajectories=(trajectory,) if ended_by.counts else (),
        transcript=(),
        **more,
    )
