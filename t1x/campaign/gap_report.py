"""A measurement of the gap from weights to numbers, and what is kept of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from t1x.campaign.campaign import Campaign
from t1x.campaign.checkpoint_evaluation import Weights
from t1x.campaign.gap import EXPERTS, GAPS, MARGINS, NUMBERS, Estimate, Floats, effects
from t1x.campaign.gap_measure import DTYPES, Measured, Measurement, Trials
from t1x.campaign.gap_source import GapSource, Origin
from t1x.campaign.progress import ProgressReport
from t1x.campaign.until_done import until_done
from t1x.model.checkpoint import load_pretrained, require_same
from t1x.model.transformer import MoeTransformer
from t1x.tracking.gap_figures import flip_curves, gap_histograms
from t1x.tracking.signals import like_ctrl_c
from t1x.trajectory.stitcher import RetokenizingStitcher, TokenStitcher


@dataclass(frozen=True, slots=True)
class GapReport:
    """What was measured, and on what."""

    weights: str
    """The folder of the policy."""
    origin: Origin
    tokens: str
    """The stitcher that keeps token ids."""
    text: str
    """The one that encodes anew."""
    measured: Measured

    @property
    def effects(self) -> Mapping[str, Mapping[str, Estimate]]:
        """By the engine's precision: what each mechanism takes off the gap."""
        return {dtype: effects(self.measured.cells, dtype, self.tokens, self.text) for dtype in DTYPES}

    def numbers(self) -> dict[str, Any]:
        """All of it, for JSON, in the words of the table; gaps and entropy in nats a token, `stderr` null for a single trial."""
        measured = self.measured
        return {
            "weights": self.weights,
            "trials": self.origin.trials,
            "sampled_by": self.origin.sampled_by,
            "versions": list(self.origin.versions),
            "note": self.origin.note,
            "entropy": measured.entropy._asdict(),
            "noncanonical": measured.noncanonical._asdict(),
            "affected": measured.affected._asdict(),
            "lost": dict(measured.lost),
            "cells": [
                {
                    "engine": cell.dtype,
                    "stitcher": cell.stitcher,
                    "experts": EXPERTS[cell.mode],
                    **gap.estimate._asdict(),
                    "loss_tokens": int(gap.counts.sum()),
                }
                for cell, gap in measured.cells.items()
            ],
            "effects": {dtype: {name: each._asdict() for name, each in of.items()} for dtype, of in self.effects.items()},
            "margins": {
                dtype: {
                    "pairs": found.margins.size,
                    "flips": found.rate._asdict(),
                    "any_layer": found.any_layer._asdict(),
                    "auc": found.auc and found.auc._asdict(),
                    "perturbation": found.perturbation,
                    "gap_unflipped": found.gaps[0] and found.gaps[0]._asdict(),
                    "gap_flipped": found.gaps[1] and found.gaps[1]._asdict(),
                    "tenths": [each._asdict() | {"flips": each.flips._asdict()} for each in found.tenths],
                }
                for dtype, found in measured.margins.items()
            },
        }

    def write(self, folder: Path) -> None:
        """Writes the numbers and both figures into a folder, which is made where there is none."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NUMBERS).write_text(json.dumps(self.numbers(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        panels: dict[str, dict[str, Floats]] = {dtype: {} for dtype in DTYPES}
        for cell, gap in self.measured.cells.items():
            panels[cell.dtype][f"{cell.stitcher}, {EXPERTS[cell.mode]} experts"] = gap.distances
        gap_histograms(folder / GAPS, panels, self.origin.trials)
        if margins := self.measured.margins:
            curves = {dtype: [(bin.median, *bin.flips) for bin in found.steps] for dtype, found in margins.items()}
            flip_curves(folder / MARGINS, curves, self.origin.trials)


def measure_gap(
    source: GapSource,
    console: Console,
    *,
    step: str | None = None,
    file: Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
) -> GapReport:
    """Measures on stored trials, with what sampled them where that is kept (see `GapSource.stored`), or where `sample` is set on so
    many new ones. Raises `ValueError` for what the user can mend, `KeyboardInterrupt` after Ctrl-C, SIGTERM or SIGHUP."""
    torch.set_num_threads(source.campaign.threads)
    with like_ctrl_c(), ProgressReport(console) as progress:
        return until_done(_measure(source, progress, lambda: source.stored(step, file, limit, progress.say), sample))


async def _measure(
    source: GapSource, progress: ProgressReport, stored: Callable[[], tuple[Weights, Trials, Origin]], sample: int | None
) -> GapReport:
    campaign = source.campaign
    tokenizer = campaign.tokenizer.build()
    if sample is None:
        weights, trials, origin = stored()
        policy = _policy(weights, campaign)
    else:
        weights = source.weights
        policy = _policy(weights, campaign)
        trials, origin = await source.sampled(policy, tokenizer, sample, progress)
    tokens, text = campaign.stitcher if campaign.stitcher.faithful else TokenStitcher(), RetokenizingStitcher()
    critic = None if campaign.algorithm.critic is None else campaign.model.build_value(0)
    trainer = campaign.trainer.build(policy, critic, campaign.algorithm)
    try:
        measured = await Measurement(
            policy=policy,
            trainer=trainer,
            tokenizer=tokenizer,
            stitchers=(tokens, text),
            concurrency=campaign.concurrency,
            progress=progress,
        ).measure(trials)
    finally:
        trainer.close()
    return GapReport(str(weights.policy), origin, type(tokens).__name__, type(text).__name__, measured)


def _policy(weights: Weights, campaign: Campaign) -> MoeTransformer:
    policy = load_pretrained(weights.policy)
    require_same(policy.config, campaign.model, weights.policy)
    return policy
