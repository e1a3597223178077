"""Which devices hold and compute what of a network in training (report, section 7: a plan Π)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from t1x.config import Component, Role

Degree = Annotated[int, Role.PLACEMENT, Field(ge=1)]


class ShardingPlan(Component):
    """How a network is spread over devices in training."""

    @property
    def devices(self) -> int:
        """Devices in all (G)."""
        raise NotImplementedError


class TorchPlan(ShardingPlan):
    """Ranks that share a batch, processes on this machine; with one, everything is in the process that trains."""

    data: Degree = 1
    """δ: ranks, each with a share of every optimizer step's samples. Gradients are summed, so it changes no result."""
    fully_sharded: Annotated[bool, Role.PLACEMENT] = False
    """Whether weights, gradients and optimizer state are sharded over the ranks (FSDP2), rather than replicated."""
    device: Annotated[Literal["cpu", "cuda"], Role.PLACEMENT] = "cpu"
    """What ranks compute on: `cpu` (they talk by gloo) or `cuda`, a GPU each (NCCL)."""
    control_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 120.0
    """Seconds for one control operation, such as the start of the ranks (not stated in the report)."""
    collective_deadline: Annotated[float, Role.PLACEMENT, Field(gt=0)] = 1800.0
    """Seconds that ranks wait for the slowest in one collective operation (report, section 7.3: 30 to 120 minutes)."""

    @property
    def devices(self) -> int:
        return self.data if self.device == "cuda" else 0

    @model_validator(mode="after")
    def _something_to_shard_over(self) -> Self:
        if self.fully_sharded and self.data == 1:
            raise ValueError("fully_sharded = True shards over ranks, but data = 1; raise data or set fully_sharded to False")
        return self


class MegatronPlan(ShardingPlan):
    """Degrees of Megatron's five ways to divide a network and its batch. Actor and critic take turns on the same devices, each with
    this plan."""

    tensor: Degree = 1
    """τ: shards of every dense matrix. Beyond 2 it gains nothing for recurrent blocks, which aren't sharded by it (report, section
    7.1)."""
    pipeline: Degree = 1
    """ρ: consecutive groups of layers."""
    context: Degree = 1
    """κ: shards of every sequence. The lever on activations and logits: the report's 84k tokens need 4 (section 7.1)."""
    data: Degree = 1
    """δ: replicas that share a batch (report: 2, section 7.5)."""
    expert: Degree = 1
    """η: shards of a layer's experts, over τκδ. As large as possible: less of it costs weights and gradients and saves no optimizer
    state (report, section 7.1)."""
    expert_tensor: Degree = 1
    """Shards of every expert's matrices (not stated in the report)."""
    granularity: Degree = 128
    """ν: a context shard's packed tokens are padded to a multiple of τν (report, section 12.3; its value isn't stated)."""

    @property
    def devices(self) -> int:
        return self.tensor * self.pipeline * self.context * self.data

    @model_validator(mode="after")
    def _experts_fit(self) -> Self:
        stage = self.tensor * self.context * self.data
        if stage % (self.expert * self.expert_tensor):
            raise ValueError(
                f"expert ({self.expert}) × expert_tensor ({self.expert_tensor}) must divide the {stage} devices of a pipeline "
                f"stage, tensor ({self.tensor}) × context ({self.context}) × data ({self.data})"
            )
        return self

    def objection(self, layers: int, heads: int, experts: int) -> str:
        """Why it doesn't fit a network with so many layers, query heads and experts a layer, and what to set; empty where it
        does."""
        if layers % self.pipeline:
            return f"pipeline = {self.pipeline} must divide its {layers} layers"
        if heads % self.tensor:
            return f"tensor = {self.tensor} must divide its {heads} query heads"
        if not experts and self.expert * self.expert_tensor > 1:
            return f"expert = {self.expert} and expert_tensor = {self.expert_tensor} must be 1, it has no experts"
        if experts % self.expert:
            return f"expert = {self.expert} must divide its {experts} experts a layer"
        if experts and self.tensor > 1 and self.expert * self.expert_tensor == 1:
            return (
                f"tensor = {self.tensor} with expert = 1 and expert_tensor = 1 trains wrong weights, since Megatron doesn't reduce "
                f"those of experts over tensor shards; set expert or expert_tensor to {self.tensor}"
            )
        return ""
