"""The trainer: what computes over batches and updates the networks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from t1x.config import Component, Role
from t1x.model.qwen3_moe import Model
from t1x.model.router import RouterMode
from t1x.parallel.plan import TorchPlan
from t1x.training.algorithm import Algorithm, TokenVector
from t1x.training.batch import Batch

if TYPE_CHECKING:
    from t1x.model.transformer import MoeTransformer
    from t1x.model.value import ValueModel


class TrainerWorker(Protocol):
    """A living trainer. A step calls `values`, `log_probs`, `update_critic`, `update_actor` in this order: the critic's values
    anchor the advantages before it is updated, and the behaviour log-probabilities are of the weights that sampled. What an
    algorithm has no use for isn't called. Every result is over the whole batch, however the work is spread."""

    version: int
    """Policy version of the actor's weights. Whoever updates them sets it to the next one then."""

    def values(self, batch: Batch) -> TokenVector:
        """V_old: the critic's value of each loss token, read one position before it. Free routing."""

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        """o: log-probabilities at each sample's temperature, no gradient, of the weights of the version that sampled each loss
        token: the actor's own where that is `version` (bit-equal then to what `update_actor` computes first), else retained ones;
        where the algorithm is `decoupled` the actor's own for all. Raises `ValueError` for a version that isn't there."""

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        """Minimises Eq. 17; returns `critic/*`."""

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector | None, mode: RouterMode
    ) -> dict[str, float]:
        """Minimises the algorithm's objective; returns `actor/*` and, where there are behaviour log-probabilities,
        `mismatch/*`."""

    def retain(self) -> None:
        """Keeps a copy of the actor's weights as those of `version` (host memory)."""

    def release(self, older_than: int) -> None:
        """Forgets retained weights of versions below this one."""

    def weights(self) -> dict[str, Any]:
        """The actor's weights by Hugging Face name, to be published or saved; may be views, so whoever keeps them across an update
        copies them."""

    def critic_weights(self) -> dict[str, Any] | None:
        """The critic's, alike; None where there is none."""

    def load_weights(self, actor: Mapping[str, Any], critic: Mapping[str, Any] | None) -> None:
        """Takes over both networks' weights by Hugging Face name. Raises `ValueError` for those of another model."""

    def state_dict(self) -> dict[str, Any]:
        """All beside the networks' weights that is needed to go on bit for bit, in nested dicts and lists of tensors and plain
        values: optimizers and their counts, retained weights, version. Copies, so that it may be written later."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from there; the state is of the same networks and algorithm."""

    def close(self) -> None:
        """Ends processes and frees memory."""


class Trainer(Component):
    """What trains the networks."""

    load_balancing: Annotated[float, Field(ge=0)] = 0.0
    """Coefficient of a loss that spreads tokens over experts (report: 0, section 4.4)."""

    @property
    def devices(self) -> int:
        """Accelerators that it takes."""
        return 0

    def objection(self, model: Model) -> str:
        """Why it can't train this model and what to set; empty where it can."""
        return ""

    def build(
        self, actor: "MoeTransformer", critic: "ValueModel | None", algorithm: Algorithm, steps: int | None = None
    ) -> TrainerWorker:
        """The living trainer of these networks; `critic` is None where the algorithm has none. `steps` is how many rollout batches
        the run trains on in all, for learning rates that end with it: times epochs and mini-batches they are the optimizer's. The
        steps of a critic's warm-up are its optimizer's first."""
        raise NotImplementedError


class TorchTrainer(Trainer):
    """Plain PyTorch; gradients accumulate over micro-batches and ranks."""

    plan: TorchPlan = TorchPlan()
    """How many ranks share a batch, on what, and whether they shard the networks."""
    load_balancing: Annotated[float, Field(ge=0, le=0)] = 0.0
    """It has no such loss."""
    tokens_per_microbatch: Annotated[int, Field(ge=1), Role.PLACEMENT] = 1024
    """Tokens of one forward pass; bounds memory, changes no result. A longer sample is alone in its pass."""
    recompute: Annotated[bool, Role.PLACEMENT] = False
    """Whether backward passes compute activations again, layer by layer, instead of keeping them: about a third more time for the
    memory of one layer's activations. Changes no result."""

    @property
    def devices(self) -> int:
        return self.plan.devices

    def build(
        self, actor: "MoeTransformer", critic: "ValueModel | None", algorithm: Algorithm, steps: int | None = None
    ) -> TrainerWorker:
        if self.plan.data > 1:
            from t1x.training.data_parallel import DataParallelTrainer

            return DataParallelTrainer(self, algorithm, actor, critic, steps)
        from t1x.parallel.ranks import Ranks
        from t1x.training.torch_trainer import TorchTrainerWorker

        return TorchTrainerWorker(self, algorithm, actor, critic, steps, Ranks(device=self.plan.device))
