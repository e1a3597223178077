"""Where the first weights come from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from t1x.config import Component, Role, Smoke
from t1x.config.requirements import folder
from t1x.harness.harness import Harness
from t1x.model.qwen3_moe import Model
from t1x.tasks.demonstrations import Demonstrations
from t1x.tasks.pool import Pool
from t1x.text.tokenizer import ChatTokenizer
from t1x.training.fine_tuning import FineTuning

if TYPE_CHECKING:
    from t1x.campaign.assembly import Assembly, TrainingAssembly
    from t1x.model.value import ValueModel

LOOKED_AT = 64
"""Demonstrations that are looked at before the first evaluation; making all takes long, and they are alike."""


class Start(Component):
    """The weights that reinforcement learning starts from: the policy's, or the critic's."""

    @property
    def for_critic(self) -> bool:
        """Whether a critic can start from it."""
        return True

    def check(self, model: Model, critic: bool = False) -> None:
        """Called before anything runs. Raises `ValueError` where it couldn't bring a policy (or a critic) of this model to the
        start."""

    def check_harness(self, harness: Harness, tokenizer: ChatTokenizer) -> None:
        """Called before the policy is evaluated. Raises `ValueError` where it couldn't be prepared in this harness, as far as a
        quick look tells."""

    async def prepare(self, assembly: "Assembly") -> None:
        """Brings the assembly's policy, which has fresh weights, to the start, in place."""
        raise NotImplementedError

    def prepare_critic(self, critic: "ValueModel", assembly: "TrainingAssembly") -> None:
        """Brings a critic, which has a fresh backbone and a head of zeros, to the start, in place."""
        raise NotImplementedError


class ScratchStart(Start):
    """The fresh weights themselves; a critic's head is zero."""

    async def prepare(self, assembly: "Assembly") -> None:
        pass

    def prepare_critic(self, critic: "ValueModel", assembly: "TrainingAssembly") -> None:
        pass


class CheckpointStart(Start):
    """Weights in a folder; optimizers start fresh. A critic that starts from a policy's keeps its head of zeros."""

    path: Annotated[Path, Role.SCALE]
    """A folder with `config.json` and `model.safetensors` in Hugging Face layout, e.g. `runs/…/checkpoints/step-100/policy`; for
    a critic, that of a value model (`…/critic`) or of a policy. It stands for the weights in it: another folder is another run. One
    that belongs to a checkpoint is checked against its manifest."""

    def missing(self) -> list[str]:
        return folder(self.path, "CheckpointStart.path; it holds config.json and model.safetensors")

    def check(self, model: Model, critic: bool = False) -> None:
        from t1x.campaign.manifest import require_sound_network
        from t1x.model.starting import stored_critic, stored_policy

        require_sound_network(self.path)
        if critic:
            stored_critic(self.path, model)
        else:
            stored_policy(self.path, model)

    async def prepare(self, assembly: "Assembly") -> None:
        from t1x.model.starting import start_policy

        start_policy(assembly.policy, self.path)

    def prepare_critic(self, critic: "ValueModel", assembly: "TrainingAssembly") -> None:
        from t1x.model.starting import start_critic

        start_critic(critic, self.path)


class CampaignStart(Start):
    """The last weights of another campaign, which is run first where it hasn't been, once for all that start from it. A critic
    whose campaign has none takes the policy's decoder and keeps its head of zeros."""

    experiment: str
    """The campaign's file, as `include` names one, e.g. `experiments/critic_warmup_tmax_15k.gin`. It is resolved for the same site
    and run with its own seed."""

    async def prepare(self, assembly: "Assembly") -> None:
        from t1x.model.starting import start_policy

        start_policy(assembly.policy, assembly.starts[self.experiment] / "policy")

    def prepare_critic(self, critic: "ValueModel", assembly: "TrainingAssembly") -> None:
        from t1x.model.starting import start_critic

        weights = assembly.starts[self.experiment]
        start_critic(critic, weights / "critic" if (weights / "critic").is_dir() else weights / "policy")


class NamedStart(Start):
    """Weights that have a name of their own: what they are is what is studied, how they are come by is the site's."""

    name: str
    """Which weights, e.g. `qwen3-30b-a3b`."""
    source: Annotated[Start, Role.SCALE]
    """How they are come by on this site."""

    @property
    def for_critic(self) -> bool:
        return self.source.for_critic

    def check(self, model: Model, critic: bool = False) -> None:
        self.source.check(model, critic)

    def check_harness(self, harness: Harness, tokenizer: ChatTokenizer) -> None:
        self.source.check_harness(harness, tokenizer)

    async def prepare(self, assembly: "Assembly") -> None:
        await self.source.prepare(assembly)

    def prepare_critic(self, critic: "ValueModel", assembly: "TrainingAssembly") -> None:
        self.source.prepare_critic(critic, assembly)


class SupervisedStart(Start):
    """Imitation of demonstrations that are recorded in real sandboxes; for a policy only."""

    pool: Pool
    """Tasks to demonstrate, each once; they need reference solutions."""
    tasks: Annotated[int | None, Role.SCALE, Field(ge=1), Smoke(16)] = None
    """How many of them, the first ones; all where None."""
    demonstrations: Demonstrations
    """Which commands the demonstrator runs on a task."""
    fine_tuning: FineTuning
    """How the policy learns from them."""
    verified: Annotated[int, Role.SCALE, Field(ge=0), Smoke(2)] = 200
    """Demonstrations that are also verified, the first ones, to say how good they are."""

    @property
    def for_critic(self) -> bool:
        return False

    def check(self, model: Model, critic: bool = False) -> None:
        first = self.pool.build()[0]
        self.demonstrations.commands(first, self.demonstrations.rng(0))

    def check_harness(self, harness: Harness, tokenizer: ChatTokenizer) -> None:
        from t1x.campaign.assembly import first
        from t1x.rollout.demonstrate import scripted

        tasks = first(self.pool.build(), min(LOOKED_AT, self.tasks or LOOKED_AT))
        commands = [self.demonstrations.commands(task, self.demonstrations.rng(index)) for index, task in enumerate(tasks)]
        scripted(tasks, commands, harness, tokenizer)

    async def prepare(self, assembly: "Assembly") -> None:
        from t1x.campaign.imitation import imitate

        await imitate(self, assembly)
