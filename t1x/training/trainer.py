"""The trainer: what computes over batches and updates the networks."""

from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import Field

from t1x.config import Component, Role
from t1x.model.qwen3_moe import Model
from t1x.model.router import RouterMode
from t1x.training.algorithm import Algorithm, TokenVector
from t1x.training.batch import Batch

if TYPE_CHECKING:
    from t1x.model.transformer import MoeTransformer
    from t1x.model.value import ValueModel


class TrainerWorker(Protocol):
    """A living trainer. A step calls `values`, `log_probs`, `update_critic`, `update_actor` in this order: the critic's values
    anchor the advantages before it is updated, and the behaviour log-probabilities are of the weights that sampled. Where the
    algorithm has no critic, `values` and `update_critic` aren't called."""

    def values(self, batch: Batch) -> TokenVector:
        """V_old: the critic's value of each loss token, read one position before it. Free routing."""

    def log_probs(self, batch: Batch, mode: RouterMode) -> TokenVector:
        """o: the actor's log-probabilities at each sample's temperature, no gradient. Bit-equal to what `update_actor` computes
        first for the same batch and weights."""

    def update_critic(self, batch: Batch, old_values: TokenVector, returns: TokenVector) -> dict[str, float]:
        """Minimises Eq. 17; returns `critic/*`."""

    def update_actor(
        self, batch: Batch, advantages: TokenVector, behaviour_logprobs: TokenVector, mode: RouterMode
    ) -> dict[str, float]:
        """Minimises Eq. 18; returns `actor/*` and `mismatch/*`."""

    def weights(self) -> dict[str, Any]:
        """The actor's weights by Hugging Face name, to be published or saved; views, so whoever keeps them across an update copies
        them."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that `load_state_dict` needs to go on bit for bit: networks, optimizers, step counts."""

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


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

    def build(self, actor: "MoeTransformer", critic: "ValueModel | None", algorithm: Algorithm) -> TrainerWorker:
        """The living trainer of these networks; `critic` is None where the algorithm has none."""
        raise NotImplementedError


class TorchTrainer(Trainer):
    """One process, plain PyTorch; gradients accumulate over micro-batches."""

    load_balancing: Annotated[float, Field(ge=0, le=0)] = 0.0
    """It has no such loss."""
    tokens_per_microbatch: Annotated[int, Field(ge=1), Role.PLACEMENT] = 1024
    """Padded tokens of one forward pass; bounds memory and padding, changes no result. A longer sample is alone in its pass."""

    def build(self, actor: "MoeTransformer", critic: "ValueModel | None", algorithm: Algorithm) -> TrainerWorker:
        from t1x.training.torch_trainer import TorchTrainerWorker

        return TorchTrainerWorker(self, algorithm, actor, critic)
