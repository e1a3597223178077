"""What a policy is evaluated on."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Component, Role, Smoke
from t1x.engine.protocol import Decoding
from t1x.harness.harness import Harness
from t1x.tasks.pool import Pool

Measure = Literal["resolved_rate", "partial_credit"]
"""Share of tasks that are resolved, or mean share P/T of a task's assertions that hold."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One way in which a suite's tasks are run."""

    mode: str
    """Its name in random streams and in `scores.json`."""
    label: str
    """How a reader calls it."""
    decoding: Decoding
    tasks: int | None = None
    """How many, the pool's first ones; all where None."""
    attempts: int = 1
    """At each task."""
    measure: Measure = "resolved_rate"
    """What it is judged by; the other is logged too."""
    harness: Harness | None = None
    """The experiment's where None."""
    ending: str = ""
    """Of its metrics' names."""


class Suite(Component):
    """Held-out tasks and how often they are run, with random streams of its own, so that evaluating never changes training."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    """Metrics are named `eval/<name>/…`."""
    pool: Pool
    """Where its tasks come from; the first ones are taken."""
    every: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Training steps between evaluations; 0 for none. The untrained policy, the start and the last step are always evaluated."""

    def due(self, step: int, last: int) -> bool:
        """Whether it is run after training step `step` of `last`; 0 is the start."""
        return step in (0, last) or bool(self.every and step % self.every == 0)

    def passes(self) -> tuple[Pass, ...]:
        """How its tasks are run, in order; modes and endings differ."""
        raise NotImplementedError


class PoolSuite(Suite):
    """One attempt at each task, greedily, at temperature 1, or both."""

    greedy: Annotated[int, Role.SCALE, Field(ge=0), Smoke(2)] = 0
    """Tasks run at temperature 0; 0 leaves that out."""
    sampled: Annotated[int, Role.SCALE, Field(ge=0), Smoke(2)] = 0
    """Tasks run at temperature 1; 0 leaves that out."""

    def passes(self) -> tuple[Pass, ...]:
        both = (
            Pass("greedy", "greedy", Decoding(0.0), self.greedy, ending="_greedy"),
            Pass("sampled", "T = 1", Decoding(1.0), self.sampled),
        )
        return tuple(each for each in both if each.tasks)


class BenchmarkSuite(Suite):
    """A benchmark under its own decoding: several attempts at each task, whose mean is the task's score (report, section 6.1)."""

    attempts: Annotated[int, Field(ge=1), Smoke(1)] = 3
    """At each task (report: 3)."""
    tasks: Annotated[int | None, Role.SCALE, Field(ge=1), Smoke(2)] = None
    """How many of the pool's tasks, the first ones; all where None."""
    temperature: Annotated[float, Field(ge=0)] = 0.1
    """Sampling temperature (report: 0.1); 0 is greedy."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Of what `top_k` leaves, only the most probable tokens that make up this share are sampled (report: 0.95); 1 is off."""
    top_k: Annotated[int, Field(ge=0)] = 20
    """Only so many most probable tokens are sampled (report: 20); 0 is off."""
    measure: Measure = "resolved_rate"
    """What it is judged by: the share of tasks resolved, or the mean reward with continuous partial credit, P/T of a task's
    assertions (report: resolved_rate on Terminal-Bench 2.1 and Hard, partial_credit on the long-horizon one)."""
    harness: Annotated[Harness | None, Role.SCALE] = None
    """The agent loop that it is run in, where evaluation has other limits than training; the experiment's where None."""

    @model_validator(mode="after")
    def _measure_is_reported(self) -> Self:
        if self.measure == "partial_credit" and not self.pool.per_assertion:
            raise ValueError(
                f"suite {self.name}: partial_credit needs a record of each assertion, but pool {type(self.pool).__name__} reports "
                f"only pass or fail; set measure to 'resolved_rate' or use another pool"
            )
        return self

    def passes(self) -> tuple[Pass, ...]:
        decoding = Decoding(self.temperature, self.top_p, self.top_k)
        label = f"T = {self.temperature:g}" + (f", {self.attempts} attempts" if self.attempts > 1 else "")
        return (Pass("benchmark", label, decoding, self.tasks, self.attempts, self.measure, self.harness),)
