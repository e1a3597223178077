"""Where the policy's first weights come from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from t1x.config import Component, Role
from t1x.model.qwen3_moe import Model
from t1x.tasks.demonstrations import Demonstrations
from t1x.tasks.pool import Pool
from t1x.training.fine_tuning import FineTuning

if TYPE_CHECKING:
    from t1x.campaign.assembly import Assembly
    from t1x.model.transformer import MoeTransformer


class Start(Component):
    """The weights that reinforcement learning starts from."""

    def check(self, model: Model) -> None:
        """Called before anything runs. Raises `ValueError` where `prepare` couldn't bring a policy of this model to the start."""

    async def prepare(self, assembly: "Assembly") -> None:
        """Brings the assembly's policy, which has fresh weights, to the start, in place."""
        raise NotImplementedError


class ScratchStart(Start):
    """The fresh weights themselves."""

    async def prepare(self, assembly: "Assembly") -> None:
        pass


class CheckpointStart(Start):
    """Weights of an earlier run; optimizers start fresh."""

    path: Annotated[Path, Role.PLACEMENT]
    """A folder with `config.json` and `model.safetensors` in Hugging Face layout, e.g. `runs/…/checkpoints/start/policy`."""

    def check(self, model: Model) -> None:
        self._policy(model)

    async def prepare(self, assembly: "Assembly") -> None:
        from t1x.model.checkpoint import load_hf, to_hf

        load_hf(assembly.policy, to_hf(self._policy(assembly.experiment.model)))

    def _policy(self, model: Model) -> "MoeTransformer":
        from t1x.model.checkpoint import load_pretrained, require_same

        policy = load_pretrained(self.path)
        require_same(policy.config, model, self.path)
        return policy


class SupervisedStart(Start):
    """Imitation of demonstrations that are recorded in real sandboxes."""

    pool: Pool
    """Tasks to demonstrate, each once; they need reference solutions."""
    demonstrations: Demonstrations
    """Which commands the demonstrator runs on a task."""
    fine_tuning: FineTuning
    """How the policy learns from them."""
    verified: Annotated[int, Role.SCALE, Field(ge=0)] = 200
    """Demonstrations that are also verified, the first ones, to say how good they are."""

    def check(self, model: Model) -> None:
        first = self.pool.build()[0]
        self.demonstrations.commands(first, self.demonstrations.rng(0))

    async def prepare(self, assembly: "Assembly") -> None:
        from t1x.campaign.imitation import imitate

        await imitate(self, assembly)
