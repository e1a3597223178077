"""A rollout batch, as training sees it.

Invariants:
- a sample whose streams disagree in length is refused, never padded or cut;
- whatever is computed over a batch is a flat vector over its loss tokens, [M], sample-major and in position order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import RoutingLayout
from t1x.rollout.records import Trial
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.invariants import stitched_rows
from t1x.trajectory.records import Trajectory
from t1x.trajectory.routing import record_flaw


@dataclass(frozen=True)
class Batch:
    """n samples (chunks of trials), checked when made. Raises `ValueError` naming the sample that is unsound."""

    trajectories: Sequence[Trajectory]
    rewards: npt.NDArray[np.float64]
    """[t]: of each trial, in the order of launching, also of those without a sample; so the trials of a group stand together."""
    trials: npt.NDArray[np.int64]
    """[n]: index of the trial that a sample is a chunk of; chunks of one trial stand in the order they were sampled."""
    seed: int
    """Of the random order in which updates visit the samples."""
    cut_off: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """[t]: whether the trial was ended by a limit, not by its agent; none was where it's left out."""

    @classmethod
    def of(cls, trials: Sequence[Trial], seed: int) -> Self:
        """Every trajectory with a loss token of some trials that have rewards."""
        chunks = [(chunk, index) for index, trial in enumerate(trials) for chunk in trial.trajectories if chunk.loss_mask.any()]
        which = np.array([index for _, index in chunks], dtype=np.int64)
        rewards = np.array([trial.reward for trial in trials], dtype=np.float64)
        cut_off = np.array([trial.ended_by is not EndedBy.DONE for trial in trials], dtype=np.bool_)
        return cls([trajectory for trajectory, _ in chunks], rewards, which, seed, cut_off)

    def __post_init__(self) -> None:
        object.__setattr__(self, "trajectories", tuple(self.trajectories))
        object.__setattr__(self, "rewards", np.asarray(self.rewards, dtype=np.float64))
        object.__setattr__(self, "trials", np.asarray(self.trials, dtype=np.int64))
        if len(self.cut_off) == 0:
            object.__setattr__(self, "cut_off", np.zeros(self.rewards.shape, dtype=np.bool_))
        if not self.trajectories:
            raise ValueError("a batch needs at least one sample")
        n = len(self.trajectories)
        if self.trials.shape != (n,) or self.rewards.ndim != 1:
            raise ValueError(f"{n} samples, but rewards have shape {self.rewards.shape} and trials {self.trials.shape}")
        if not ((self.trials >= 0) & (self.trials < len(self.rewards))).all():
            raise ValueError(
                f"samples of trials {self.trials.min()} to {self.trials.max()}, but there are {len(self.rewards)} rewards"
            )
        if self.cut_off.shape != self.rewards.shape:
            raise ValueError(f"{len(self.rewards)} rewards, but it's said of {len(self.cut_off)} trials whether they were cut off")
        for index, trajectory in enumerate(self.trajectories):
            if flaw := _flaw(trajectory, like=self.trajectories[0]):
                raise ValueError(f"sample {index}: {flaw}")
        if not np.isfinite(self.rewards).all():
            raise ValueError(f"trial {int(np.argmin(np.isfinite(self.rewards)))}: the reward is not finite")

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """[n]: loss tokens of each sample, at least 1."""
        return np.array([np.count_nonzero(trajectory.loss_mask) for trajectory in self.trajectories], dtype=np.int64)

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """[n]: where each sample's loss tokens begin in a flat vector."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """[n]: positions that are read, one fewer than token ids."""
        return np.array([len(trajectory.token_ids) - 1 for trajectory in self.trajectories], dtype=np.int64)

    @property
    def loss_tokens(self) -> int:
        """M."""
        return int(self.counts.sum())

    @cached_property
    def sampler_logprobs(self) -> npt.NDArray[np.float32]:
        """[M]: q, the sampler's log-probabilities."""
        return np.concatenate([trajectory.logprobs[trajectory.loss_mask] for trajectory in self.trajectories])

    @cached_property
    def versions(self) -> npt.NDArray[np.int64]:
        """[M]: the policy version that sampled each loss token."""
        return np.concatenate([_versions(trajectory)[trajectory.loss_mask] for trajectory in self.trajectories])

    def require_records(self, layout: RoutingLayout) -> None:
        """Raises `ValueError` naming sample, row and layer unless all routing rows can be replayed by a model of this layout. They
        are looked at once, however many passes replay them."""
        if layout not in self._replayable_by:
            for index, trajectory in enumerate(self.trajectories):
                if flaw := record_flaw(trajectory.routed_experts, layout):
                    raise ValueError(f"sample {index}: {flaw}")
            self._replayable_by.add(layout)

    @cached_property
    def _replayable_by(self) -> set[RoutingLayout]:
        return set()

    def minibatches(self, parts: int, epoch: int) -> list[npt.NDArray[np.int64]]:
        """Sample indices of each optimizer step of one pass: a seeded permutation cut into at most `parts` near-equal parts, the
        same whenever it is asked for."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.trajectories))
        return [np.sort(part) for part in np.array_split(order, min(parts, len(order)))]


def _flaw(trajectory: Trajectory, like: Trajectory) -> str:
    """What makes a sample unfit for training, "" where nothing does. `like` is a sample of the same batch."""
    if flaw := stitched_rows(trajectory):
        return flaw
    mask, rows = trajectory.loss_mask, trajectory.routed_experts.shape
    if rows[1:] != like.routed_experts.shape[1:]:
        return f"routing rows of shape {rows[1:]}, but {like.routed_experts.shape[1:]} in sample 0"
    if not mask.any():
        return "no token carries loss; leave it out of the batch"
    if mask[0]:
        return "its first token carries loss, but nothing precedes it"
    if not np.isfinite(trajectory.logprobs).all():
        return "a log-probability is not finite"
    if trajectory.logprobs[~mask].any():
        return "a log-probability differs from 0 where the mask is false"
    if (_versions(trajectory)[mask] < 0).any():
        return "a loss token is of no policy version"
    if not trajectory.temperature > 0:
        return f"sampled at temperature {trajectory.temperature}; training needs one above 0"
    return ""


def _versions(trajectory: Trajectory) -> npt.NDArray[np.int64]:
    """[N]: the policy version of each position; -1 where it has none."""
    versions = np.full(len(trajectory.token_ids), -1, dtype=np.int64)
    for span in trajectory.versions:
        versions[span.start : span.stop] = span.version
    return versions
