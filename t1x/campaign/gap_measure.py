"""Measuring the gap: the same sampled ids through engines of several precisions, stitched in several ways, against the trainer's
pass with and without replay.

Invariants:
- whatever is compared is of the same sampled ids; an engine is only asked what it makes of them;
- engines are deterministic, so that what is measured depends on weights and ids alone.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from t1x.campaign.gap import Cell, Estimate, Gap, ratio
from t1x.campaign.margin import Flags, Margins
from t1x.campaign.margin_pass import free_pass
from t1x.campaign.progress import ProgressReport
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Completion, Decoding, EngineWorker, Sampling
from t1x.model.checkpoint import to_hf
from t1x.model.router import RouterMode
from t1x.model.transformer import MoeTransformer
from t1x.text.canonical import noncanonical
from t1x.text.tokenizer import ChatTokenizer
from t1x.training.batch import Batch
from t1x.training.trainer import TrainerWorker
from t1x.trajectory.cut import fitted
from t1x.trajectory.records import Trajectory, Turn
from t1x.trajectory.stitcher import Stitcher

Dtype = Literal["float32", "bfloat16"]
DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16")
"""What the embedded engine computes in."""
MODES = (RouterMode.FREE, RouterMode.REPLAY_NO_GRAD)
Trials = Mapping[str, Sequence[Turn]]
"""Trial ids to their turns, in order."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of it, all over the same t trials."""

    cells: Mapping[Cell, Gap]
    margins: Mapping[str, Margins]
    """By the engine's precision; of the first stitcher's trajectories. Empty for a model that uses all its experts."""
    entropy: Estimate
    """Of the policy at its loss tokens, nats."""
    noncanonical: Estimate
    """Share of sampled ids that aren't how the tokenizer encodes the text that they spell."""
    affected: Estimate
    """Share of sampled ids at which, or before which in their trial, such an id stands: those that an encoding anew can change."""
    lost: Mapping[str, int]
    """By stitcher: loss tokens that are left out, since encoding anew moved them beyond what the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What measures."""

    policy: MoeTransformer
    trainer: TrainerWorker
    """Of the same weights, at version 0."""
    tokenizer: ChatTokenizer
    stitchers: Sequence[Stitcher]
    concurrency: int
    """Trials that an engine serves at a time."""
    progress: ProgressReport

    async def measure(self, trials: Trials) -> Measured:
        """All cells. Raises `ValueError` where nothing was sampled, `StitchingError` where turns can't be stitched."""
        if not any(len(turn.completion.ids) for turns in trials.values() for turn in turns):
            raise ValueError(f"{len(trials)} trials without a sampled token; there is no gap to measure")
        cells, margins, entropy = dict[Cell, Gap](), dict[str, Margins](), None
        lost: dict[str, int] = {}
        for dtype in DTYPES:
            forced = dict(zip(trials, await self._forced(trials, dtype), strict=True))
            for index, stitcher in enumerate(self.stitchers):
                batch, lost[type(stitcher).__name__] = await asyncio.to_thread(self._stitched, forced, stitcher)
                counts = np.bincount(batch.trials, batch.counts, len(trials)).astype(np.int64)
                gaps = [np.abs(logprobs - batch.sampler_logprobs) for logprobs in await self._passes(batch, dtype, stitcher)]
                for mode, gap in zip(MODES, gaps, strict=True):
                    cells[Cell(dtype, mode, type(stitcher).__name__)] = Gap(gap, counts)
                if index == 0:
                    free = await asyncio.to_thread(free_pass, self.policy, batch)
                    entropy = Gap(free.entropies, counts).estimate
                    if free.margins is not None:
                        margins[dtype] = free.of(batch, gaps[MODES.index(RouterMode.FREE)])
        assert entropy is not None
        return Measured(cells, margins, entropy, *self._splits(trials), lost)

    async def _forced(self, trials: Trials, dtype: Dtype) -> list[list[Turn]]:
        engine = EmbeddedEngine(dtype=dtype, max_sessions=self.concurrency).build(
            self.policy.config, to_hf(self.policy), deterministic=True
        )
        try:
            with self.progress.phase(f"sampled ids through a {dtype} engine", len(trials)) as phase:
                return await force(trials, engine, self.tokenizer.stop_ids, self.concurrency, phase.advance)
        finally:
            await engine.close()

    def _stitched(self, trials: Trials, stitcher: Stitcher) -> tuple[Batch, int]:
        """The samples of all trials, and how many of their loss tokens are beyond what the model takes."""
        model = self.policy.config
        trajectories, which, lost = list[Trajectory](), list[int](), 0
        for index, (trial, turns) in enumerate(trials.items()):
            stitched = stitcher.stitch(trial, turns, self.tokenizer, model.routing_layout)
            found, beyond = fitted(stitched, model.longest_sample)
            lost += beyond
            trajectories += found
            which += [index] * len(found)
        return Batch(trajectories, np.zeros(len(trials)), np.array(which, np.int64), seed=0), lost

    async def _passes(self, batch: Batch, dtype: str, stitcher: Stitcher) -> list[npt.NDArray[np.float64]]:
        found = []
        with self.progress.phase(f"trainer's passes ({dtype}, {type(stitcher).__name__})", len(MODES)) as phase:
            for mode in MODES:
                found.append(await asyncio.to_thread(self.trainer.log_probs, batch, mode))
                phase.advance()
        return found

    def _splits(self, trials: Trials) -> tuple[Estimate, Estimate]:
        flags: list[Flags] = []
        for turns in trials.values():
            of_turns = [noncanonical(self.tokenizer, turn.completion.ids) for turn in turns]
            flags.append(np.concatenate(of_turns) if of_turns else np.zeros(0, np.bool_))
        counts = np.array([len(each) for each in flags])
        split = np.array([each.sum() for each in flags], np.float64)
        behind = np.array([np.logical_or.accumulate(each).sum() for each in flags], np.float64)
        return ratio(split, counts), ratio(behind, counts)


async def force(
    trials: Trials,
    engine: EngineWorker,
    stop_ids: tuple[int, ...],
    concurrency: int,
    on_trial: Callable[[], None] = lambda: None,
) -> list[list[Turn]]:
    """The turns as this engine would have sampled them: their ids, with its own log-probabilities and experts. Trials are served
    side by side, each turn after the one before. Raises `ValueError` for the first turn that it can't take."""
    slots = asyncio.Semaphore(concurrency)

    async def one(trial: str, turns: Sequence[Turn]) -> list[Turn]:
        forced = []
        async with slots:
            for turn in turns:
                try:
                    forced.append(replace(turn, completion=await _forced(turn, engine, stop_ids, trial)))
                except ValueError as error:
                    raise ValueError(
                        f"trial {trial}, turn {turn.index} can't go through this policy: {error}. Choose trials that this policy's "
                        f"model and tokenizer can have sampled"
                    ) from error
            await engine.release(trial)
        on_trial()
        return forced

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(trial, turns)) for trial, turns in trials.items()]
    except ExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in tasks]


async def _forced(turn: Turn, engine: EngineWorker, stop_ids: tuple[int, ...], trial: str) -> Completion:
    """Of a turn that sampled nothing, the prompt's last id is forced behind the others: the engine then answers with the rows that
    its prompt has, as later turns expect of its session."""
    done, prompt = turn.completion, turn.prompt_ids
    ids = done.ids
    if not len(ids):
        prompt, ids = prompt[:-1], prompt[-1:]
    if not len(prompt):  # a single id, which has no row
        return done
    said = await engine.generate(prompt, Sampling(Decoding(turn.temperature), len(ids), stop_ids, 0, ids), trial)
    n = len(done.ids)
    return replace(
        said, ids=said.ids[:n], logprobs=said.logprobs[:n], finish_reason=said.finish_reason if n else done.finish_reason
    )
