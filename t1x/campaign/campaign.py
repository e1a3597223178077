"""The root of a training experiment."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from t1x.campaign.start import Start
from t1x.campaign.suite import PoolSuite
from t1x.config import Role, Root
from t1x.engine.embedded import EmbeddedEngine
from t1x.engine.protocol import Engine
from t1x.grading.reward import Reward
from t1x.harness.harness import Harness
from t1x.harness.shell import ShellHarness
from t1x.model.qwen3_moe import Model
from t1x.model.router import FreeRouting, Router, RouterMode
from t1x.rollout.scheduler import Scheduler, WaitAll
from t1x.sandbox.local import BubblewrapSandbox
from t1x.sandbox.protocol import Sandbox
from t1x.tasks.pool import Pool
from t1x.text.bundled import BundledTokenizer
from t1x.text.tokenizer import Tokenizer
from t1x.tracking.mlflow_tracking import MLflowTracking
from t1x.tracking.protocol import Tracking
from t1x.training.algorithm import Algorithm
from t1x.training.trainer import Trainer
from t1x.trajectory.stitcher import Stitcher, TokenStitcher


class Campaign(Root):
    """Reinforcement learning of one policy on one pool of tasks, evaluated before, during and after it."""

    model: Model
    """The policy's architecture; the critic is the same with a scalar head."""
    start: Start
    """The policy's first weights; the critic starts from them too."""
    pool: Pool
    """Training tasks; each epoch walks through them in a seeded order of its own."""
    reward: Reward
    """What a trial is worth."""
    algorithm: Algorithm
    """How rewards become gradients."""
    trainer: Trainer
    """What trains actor and critic."""
    steps: Annotated[int, Role.SCALE, Field(ge=0)]
    """Training steps; each is one rollout batch. 0 stops after the start's evaluation."""
    batch: Annotated[int, Role.SCALE, Field(ge=1)]
    """Trials that make a batch (report: 512)."""
    critic_warmup: Annotated[int, Role.SCALE, Field(ge=0)] = 0
    """Rollout batches that update only the critic before the first step."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Sampling temperature of training rollouts; the trainer applies the same."""
    seed: int = 0
    """Of the run's own random streams: first weights, sampling, orders. Pools and demonstrations have their own."""
    scheduler: Scheduler = WaitAll()
    """Which of the launched trials make the batch."""
    router: Router = FreeRouting()
    """Where the experts of the actor's passes come from."""
    stitcher: Stitcher = TokenStitcher()
    """How the turns of a trial become training samples."""
    harness: Harness = ShellHarness()
    """The agent loop around the policy."""
    tokenizer: Tokenizer = BundledTokenizer()
    """What the policy reads and writes."""
    suites: tuple[PoolSuite, ...] = ()
    """What the policy is evaluated on."""
    engine: Annotated[Engine, Role.PLACEMENT] = EmbeddedEngine()
    """What samples from the policy."""
    sandbox: Annotated[Sandbox, Role.PLACEMENT] = BubblewrapSandbox()
    """Where the agent's commands run."""
    concurrency: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 64
    """Trials, and so sandboxes, alive at a time."""
    threads: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 1
    """PyTorch threads of this process: small models are fastest with 1, and sandboxes need the other cores."""
    tracking: Annotated[Tracking, Role.PLACEMENT] = MLflowTracking()
    """Where metrics and artifacts are kept."""
    runs: Annotated[Path, Role.PLACEMENT] = Path("runs")
    """Folder that gets one folder a run."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.reward.dense and not self.pool.per_assertion:
            raise ValueError(
                f"reward {type(self.reward).__name__} needs a record of each assertion, but pool "
                f"{type(self.pool).__name__} reports only pass or fail; use @BinaryReward() or another pool"
            )
        replays = RouterMode.FREE not in (self.router.behaviour, self.router.update)
        if replays and not self.engine.returns_routing:
            raise ValueError(
                f"router {type(self.router).__name__} replays the sampler's experts, but engine "
                f"{type(self.engine).__name__} doesn't return them; use @FreeRouting() or another engine"
            )
        if self.harness.context_tokens > self.engine.context_length:
            raise ValueError(
                f"harness {type(self.harness).__name__} lets a trial grow to {self.harness.context_tokens} tokens, but engine "
                f"{type(self.engine).__name__} holds {self.engine.context_length}; lower context_tokens or raise context_length"
            )
        if self.engine.context_length > self.model.max_position_embeddings:
            raise ValueError(
                f"engine {type(self.engine).__name__} holds {self.engine.context_length} tokens, but model "
                f"{type(self.model).__name__} takes {self.model.max_position_embeddings}; lower context_length or raise "
                f"max_position_embeddings"
            )
        if self.tokenizer.vocab_size > self.model.vocab_size:
            raise ValueError(
                f"tokenizer {type(self.tokenizer).__name__} has {self.tokenizer.vocab_size} ids, but model "
                f"{type(self.model).__name__} knows {self.model.vocab_size}; set vocab_size to {self.tokenizer.vocab_size} or more"
            )
        names = [suite.name for suite in self.suites]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two suites are named {min(twice)!r}; metrics are kept by name, so give each its own")
        return self
