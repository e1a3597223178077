"""What every experiment that runs a policy has in common."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, model_validator

from t1x.campaign.runtime import InlineRuntime, Runtime
from t1x.campaign.start import Start
from t1x.campaign.stored_trajectories import StoredTrajectories
from t1x.campaign.suite import Suite
from t1x.config import Origins, Role, Root, Smoke
from t1x.config.requirements import gpus
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Engine
from t1x.grading.reward import Reward
from t1x.harness.harness import Harness
from t1x.harness.shell import ShellHarness
from t1x.model.qwen3_moe import Model
from t1x.model.routing_layout import RoutingLayout
from t1x.sandbox.local import BubblewrapSandbox
from t1x.sandbox.protocol import Sandbox
from t1x.text.bundled import BundledTokenizer
from t1x.text.tokenizer import Tokenizer
from t1x.tracking.mlflow_tracking import MLflowTracking
from t1x.tracking.protocol import Tracking
from t1x.trajectory.stitcher import Stitcher, TokenStitcher

if TYPE_CHECKING:
    from t1x.campaign.record import Run
    from t1x.campaign.resume import Resume


class Experiment(Root):
    """What campaigns and evaluations share: a binding of `Experiment.field` holds for whichever of them a file describes."""

    shared: ClassVar[bool] = True

    model: Annotated[Model, Role.SCALE]
    """The policy's architecture."""
    start: Start
    """The policy's first weights."""
    reward: Reward
    """What a trial is worth."""
    suites: tuple[Suite, ...] = ()
    """What the policy is evaluated on."""
    seed: Annotated[int, Role.SEED] = 0
    """Of the run's own random streams: first weights, sampling, orders. Pools and demonstrations have their own."""
    stitcher: Stitcher = TokenStitcher()
    """How the turns of a trial become training samples."""
    harness: Annotated[Harness, Role.SCALE] = ShellHarness()
    """The agent loop around the policy: which dialogue a model of this size can hold."""
    tokenizer: Annotated[Tokenizer, Role.SCALE] = BundledTokenizer()
    """What the policy reads and writes."""
    agent_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds that an agent has for a trial (report: 3600); what the task says where None."""
    verifier_deadline: Annotated[float | None, Role.SCALE, Field(gt=0)] = None
    """Seconds that a task's verifier has (report: 900); what the task says where None."""
    engine: Annotated[Engine, Role.PLACEMENT] = EmbeddedEngine()
    """What samples from the policy."""
    sandbox: Annotated[Sandbox, Role.PLACEMENT] = BubblewrapSandbox()
    """Where the agent's commands run."""
    runtime: Annotated[Runtime, Role.PLACEMENT] = InlineRuntime()
    """Which processes the parts live in."""
    concurrency: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 64
    """Trials, and so sandboxes, alive at a time."""
    threads: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """PyTorch threads of this process: small models are fastest with 1, and sandboxes need the other cores."""
    tracking: Annotated[Tracking, Role.PLACEMENT] = MLflowTracking()
    """Where metrics and artifacts are kept."""
    trajectories: Annotated[StoredTrajectories, Role.PLACEMENT] = StoredTrajectories()
    """Which trials are kept to look at, and for how long."""
    runs: Annotated[Path, Role.PLACEMENT] = Path("runs")
    """Folder that gets one folder a run."""
    name: Annotated[str, Role.PLACEMENT, Field(pattern=r"^[\w.-]*$")] = ""
    """What its run is called; the file's name where empty."""
    deterministic: Annotated[bool, Role.SCALE] = False
    """Whether a run's results depend on nothing but configuration and seed, to the bit: not on the clock, on which trials run side
    by side or on where it was interrupted. Sampling is slower then, and agents see a clock that stands still."""
    smoke: Annotated[bool, Role.PLACEMENT, Smoke(True)] = False
    """Whether sizes were cut to those of one tiny step (`t1x run --smoke`)."""

    @model_validator(mode="after")
    def _policy_fits(self) -> Self:
        if self.engine.context_length is None:
            held, field = f"model {type(self.model).__name__} takes", "max_position_embeddings"
        else:
            held, field = f"engine {type(self.engine).__name__} holds", "context_length"
        for harness in self._harnesses():
            if harness.context_tokens > self.context_length:
                raise ValueError(
                    f"harness {type(harness).__name__} lets a trial grow to {harness.context_tokens} tokens, but {held} "
                    f"{self.context_length}; lower context_tokens or raise {field}"
                )
        if self.context_length > self.model.max_position_embeddings:
            raise ValueError(
                f"engine {type(self.engine).__name__} holds {self.engine.context_length} tokens, but model "
                f"{type(self.model).__name__} takes {self.model.max_position_embeddings}; lower context_length or raise "
                f"max_position_embeddings"
            )
        if (ids := self.tokenizer.vocab_size) != (sampled := self.model.vocab_size):
            tokenizer, model = type(self.tokenizer).__name__, type(self.model).__name__
            raise ValueError(
                f"tokenizer {tokenizer} takes {ids} ids, but model {model} may sample {sampled}; set {tokenizer}.vocab_size to the "
                f"model's, {sampled} (ids that the tokenizer hasn't stand for nothing), or {model}.vocab_size to {ids}"
            )
        return self

    @model_validator(mode="after")
    def _stitcher_fits(self) -> Self:
        for harness in self._harnesses():
            if self.stitcher.exact and not harness.exact:
                raise ValueError(
                    f"stitcher {type(self.stitcher).__name__} takes only prompts that continue the ids of the turn before, but "
                    f"harness {type(harness).__name__} encodes its history anew or summarizes it; use @TokenStitcher(), or "
                    f"@ShellHarness()"
                )
        return self

    @model_validator(mode="after")
    def _machines_fit(self) -> Self:
        if reason := self.engine.objection(self.model):
            raise ValueError(f"engine {type(self.engine).__name__} and model {type(self.model).__name__}: {reason}")
        if reason := self.runtime.objection(self.engine.devices, self.training_devices, self.concurrency):
            raise ValueError(f"runtime {type(self.runtime).__name__}: {reason}")
        return self

    @model_validator(mode="after")
    def _suites_have_names(self) -> Self:
        names = [suite.name for suite in self.suites]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two suites are named {min(twice)!r}; metrics are kept by name, so give each its own")
        return self

    @model_validator(mode="after")
    def _deadlines_fit(self) -> Self:
        if reason := self.sandbox.objection(self.agent_deadline or 0.0, self.verifier_deadline or 0.0):
            raise ValueError(f"sandbox {type(self.sandbox).__name__} and the trial's deadlines: {reason}")
        return self

    @model_validator(mode="after")
    def _deterministic_throughout(self) -> Self:
        if not self.deterministic:
            return self
        for part, component, reason in (
            ("engine", self.engine, self.engine.indeterminism(self.concurrency)),
            ("sandbox", self.sandbox, self.sandbox.indeterminism()),
        ):
            if reason:
                raise ValueError(f"deterministic is set, but {part} {type(component).__name__}: {reason}")
        return self

    def _harnesses(self) -> list[Harness]:
        """Its own and those of its suites."""
        own = (each.harness for suite in self.suites for each in suite.passes())
        return [self.harness, *(harness for harness in own if harness is not None)]

    def missing(self) -> list[str]:
        lacks = gpus(self.runtime.devices(self.engine.devices, self.training_devices))
        return [*lacks, *(self.sandbox.missing_deterministic() if self.deterministic else [])]

    @property
    def training_devices(self) -> int:
        """Accelerators that training takes."""
        return 0

    @property
    def routing_layout(self) -> RoutingLayout | None:
        """What the engine's routing records must be; None where it returns none."""
        return self.model.routing_layout if self.engine.returns_routing else None

    @property
    def context_length(self) -> int:
        """Tokens of a prompt and its completion that the engine holds."""
        return self.engine.context_length or self.model.max_position_embeddings

    def run(self, file: Path | None = None, origins: Origins | None = None, resume: "Resume | None" = None) -> "Run":
        from t1x.campaign.run import run_experiment

        return run_experiment(self, file, origins, resume)
