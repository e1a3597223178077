"""Training on many devices with Megatron-Core, as a component."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.config.requirements import package, worker
from t1x.model.qwen3_moe import Model
from t1x.parallel.plan import MegatronPlan
from t1x.training.trainer import Trainer


class MegatronTrainer(Trainer):
    """Megatron-Core 0.16 (report, section 6.1). Actor and critic take turns on the same devices; where the plan shards tensors,
    sequences are sharded with them, as experts need."""

    plan: Annotated[MegatronPlan, Role.PLACEMENT] = MegatronPlan()
    """How either network is spread over the devices."""
    layer_spec: Literal["transformer_engine", "local"] = "transformer_engine"
    """Whose layers are used: Transformer Engine's (report, section 6.1), which need CUDA, or Megatron's own in plain PyTorch."""
    precision: Literal["bf16", "fp32"] = "bf16"
    """Of weights and activations; the optimizer keeps weights in float32 (Eq. 21's 12 bytes a parameter)."""
    gradients: Literal["fp32", "bf16"] = "fp32"
    """In which gradients are accumulated and reduced (Eq. 21's 6 bytes a parameter are 2 of a weight and 4 of its gradient)."""
    distributed_optimizer: Annotated[bool, Role.PLACEMENT] = True
    """Whether the optimizer's state is shared out over the replicas of each weight (Eq. 21)."""
    recompute: Annotated[Literal["none", "selective", "full"], Role.PLACEMENT] = "full"
    """Activations that the backward pass computes again instead of keeping them (not stated in the report). With routing replay
    they are computed with the recorded experts."""
    offload: Annotated[bool, Role.PLACEMENT] = True
    """Whether a network leaves the devices while the other trains (report, section 4.5: forced, each then has to fit alone)."""
    retain_behaviour: bool = True
    """Whether the weights that sampled a batch are kept in host memory until it was used, so that the PPO denominator is theirs
    (report, section 12.2); without it, it is that of the newest weights."""
    tokens_per_microbatch: Annotated[int, Role.PLACEMENT, Field(ge=1)] = 84_000
    """Tokens of one forward pass over all context shards (T in Eq. 21; report, section 7.1: a wall of 84k). A longer sample is
    alone in its pass."""
    dispatcher: Annotated[Literal["alltoall", "allgather", "deepep"], Role.PLACEMENT] = "alltoall"
    """How tokens reach experts on other devices (not stated in the report for training)."""
    pinned_kernels: bool = True
    """Whether the recurrent operator's long-sequence algorithm is pinned, instead of being switched by length and mode, which would
    set trainer and sampler apart (report, section 7.2)."""
    collective_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 3600.0
    """Seconds for one operation of a process group that was made anew (report, section 7.3: 30 to 120 min)."""

    @model_validator(mode="after")
    def _layers_can(self) -> Self:
        if self.plan.context > 1 and self.layer_spec == "local":
            raise ValueError(
                f"plan.context = {self.plan.context} needs Transformer Engine's attention; set layer_spec to 'transformer_engine' "
                f"or context to 1"
            )
        return self

    @property
    def devices(self) -> int:
        return self.plan.devices

    def objection(self, model: Model) -> str:
        return self.plan.objection(model.num_hidden_layers, model.num_attention_heads, model.experts)

    def missing(self) -> list[str]:
        lines = package("megatron-core", ">=0.16.0rc0,<0.17")
        if self.layer_spec == "transformer_engine":
            lines += package("transformer-engine", ">=2.10")
        if self.dispatcher == "deepep":
            lines += package("deep-ep", ">=1.2")
        return [*lines, *worker(self)]
