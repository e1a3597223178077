"""What watches a campaign while it trains.

Invariant: what is said at a step is a function of the metrics of steps up to it, so a resumed campaign says the same, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from t1x.campaign.guard_rules import RULES
from t1x.config import Component, Role

History = Mapping[int, Mapping[str, float]]
"""Training step to its metrics."""


@dataclass(frozen=True, slots=True)
class GuardWarning:
    """Something that a reader should look at."""

    name: str
    """The rule's, e.g. `reward_collapse`; logged as `guard/<name>`."""
    text: str
    """What was seen, and which metrics and settings to look at."""


class Monitor(Component):
    """What watches a campaign while it trains: it says what to look at, and stops what learns nothing."""

    def stop(self, history: History, causes: str = "") -> str | None:
        """Why the campaign is to stop after the newest step, or None. `causes` says why that step's trials weren't usable."""
        raise NotImplementedError

    def warnings(self, history: History, step: int) -> list[GuardWarning]:
        """What is true after a step and wasn't after the one before it."""
        raise NotImplementedError

    def metrics(self, history: History, step: int) -> dict[str, float]:
        """`guard/<name>` for each rule that has something to watch: 1 where its warning is true after the step, else 0."""
        raise NotImplementedError


class Guards(Monitor):
    """Rules on the metrics of training steps. Most compare means over the `window` last steps with those over the first ones, so
    they say nothing in the first 2 × `window` steps. 0 turns a rule off; none of them changes a result."""

    empty_steps: Annotated[int, Role.PLACEMENT, Field(ge=0)] = 3
    """Steps in a row without a usable trial after which the campaign stops."""
    window: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 5
    """Steps that are averaged: single batches swing."""
    reward_collapse: Annotated[float, Role.PLACEMENT, Field(ge=0, lt=1)] = 0.5
    """Warns where the mean reward is below this share of its best window's, if that is positive."""
    entropy_collapse: Annotated[float, Role.PLACEMENT, Field(ge=0, lt=1)] = 0.1
    """Warns where the policy's entropy is below this share of that of the first steps."""
    entropy_explosion: Annotated[float, Role.PLACEMENT, Field(ge=0)] = 3.0
    """Warns where the policy's entropy is above this many times that of the first steps."""
    clip_fraction: Annotated[float, Role.PLACEMENT, Field(ge=0, le=1)] = 0.3
    """Warns where more than this share of tokens is outside the clip range."""
    ratio: Annotated[float, Role.PLACEMENT, Field(ge=0)] = 3.0
    """Warns where the importance ratio's 99 % quantile is above this."""
    gap_growth: Annotated[float, Role.PLACEMENT, Field(ge=0)] = 2.0
    """Warns where sampler and trainer differ more than this many times as much as in the first steps, from 0.001 nats a token on
    (report, section 4.4: 0.013 with routing replay, 0.021 without)."""
    turn_growth: Annotated[float, Role.PLACEMENT, Field(ge=0)] = 2.0
    """Warns where trials have more than this many times the turns of the first steps."""
    explained_variance: Annotated[int, Role.PLACEMENT, Field(ge=0)] = 10
    """Warns where the critic's explained variance was negative in so many steps that have one, in a row."""
    fallback_share: Annotated[float, Role.PLACEMENT, Field(ge=0, lt=1)] = 0.5
    """Warns where more than this share of a batch was paid without a usable record."""

    def stop(self, history: History, causes: str = "") -> str | None:
        last = sorted(history)[-self.empty_steps :] if self.empty_steps else []
        if len(last) < max(self.empty_steps, 1) or any(history[step].get("rollout/usable", 1.0) > 0 for step in last):
            return None
        counted = {
            name: int(sum(history[step].get(f"rollout/{name}", 0.0) for step in last))
            for name in ("launched", "admitted", "invalid", "cancelled", "late")
        }
        steps = f"steps {last[0]} to {last[-1]}" if len(last) > 1 else f"step {last[0]}"
        return (
            f"nothing to learn from in {steps}: of {counted.pop('launched')} trials none had a learning signal ("
            f"{', '.join(f'{number} {name}' for name, number in counted.items() if number or name == 'admitted')})"
            + (f"; the last ones: {causes}" if causes else "")
            + "; see log.jsonl and the transcripts in the run's report; Guards.empty_steps says how many such steps are borne"
        )

    def warnings(self, history: History, step: int) -> list[GuardWarning]:
        said = self._said(history, step)
        before = self._said(history, max((each for each in history if each < step), default=step - 1))
        return [GuardWarning(name, text) for name, text in said.items() if text is not None and before.get(name) is None]

    def metrics(self, history: History, step: int) -> dict[str, float]:
        return {f"guard/{name}": float(text is not None) for name, text in self._said(history, step).items()}

    def _said(self, history: History, step: int) -> dict[str, str | None]:
        """What each rule says after a step; rules that are off or whose metric isn't there are left out."""
        steps = [each for each in sorted(history) if each <= step]
        said: dict[str, str | None] = {}
        for name, rule in RULES.items():
            values = [history[each][rule.metric] for each in steps if rule.metric in history[each]]
            if values and (limit := getattr(self, name)):
                text = rule.says(values, limit, self.window)
                last = next(history[each] for each in reversed(steps) if rule.metric in history[each])
                said[name] = text and text + _counted(last, rule.counts)
        return said


def _counted(metrics: Mapping[str, float], prefix: str) -> str:
    """`; causes: 5 × missing, 1 × timeout`, by what metrics with this prefix count; empty without one."""
    counts = {name.removeprefix(prefix): number for name, number in metrics.items() if prefix and name.startswith(prefix)}
    listed = ", ".join(f"{counts[name]:.0f} × {name}" for name in sorted(counts, key=lambda name: (-counts[name], name)))
    return f"; causes: {listed}" if listed else ""
