"""Which network is the policy (and, with a scalar head, the critic)."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, model_validator

from t1x.config import Component, Role
from t1x.model.routing_layout import RoutingLayout

if TYPE_CHECKING:
    from t1x.model.transformer import MoeTransformer
    from t1x.model.value import ValueModel

Size = Annotated[int, Role.SCALE, Field(gt=0)]
Scale = Annotated[float, Role.SCALE, Field(gt=0)]


class Model(Component):
    """An architecture and its initial weights."""

    routed: ClassVar[bool] = False
    """Whether it has routed experts, which replay needs."""
    initial: ClassVar[frozenset[str]] = frozenset()
    """Fields that matter before the first weights only."""

    vocab_size: Size
    """Token ids are below it."""
    max_position_embeddings: Size = 4096
    """Longest sequence, tokens."""
    num_hidden_layers: Size
    """Decoder layers."""
    num_attention_heads: Size
    """Query heads."""

    @property
    def experts(self) -> int:
        """Routed experts a layer; 0 where it has none."""
        return 0

    @property
    def routing_layout(self) -> RoutingLayout | None:
        """How records of its experts look; None where it has none."""
        return None

    @property
    def longest_sample(self) -> int:
        """Ids of the longest sample that it can be trained on: the last one is predicted, never read."""
        return self.max_position_embeddings + 1

    def differences(self, wanted: "Model") -> list[str]:
        """What keeps weights of this model from being those of the wanted one: other sizes, or the same ones computed in another
        way."""
        apart = {*wanted.initial, "max_position_embeddings"}
        has, wants = self.model_dump(exclude=apart), wanted.model_dump(exclude=apart)
        return [f"{name} = {has.get(name)} (the experiment has {value})" for name, value in wants.items() if has.get(name) != value]

    def build(self, seed: int) -> "MoeTransformer":
        """A policy with fresh weights (float32) drawn from `seed`."""
        raise NotImplementedError

    def build_value(self, seed: int) -> "ValueModel":
        """A critic with a fresh backbone drawn from `seed` and a zero head."""
        raise NotImplementedError


class Qwen3Moe(Model):
    """Qwen3-MoE: RoPE, QK-norm, grouped-query attention, RMSNorm, SwiGLU experts, softmax top-k router. Fields are those of Hugging
    Face's `Qwen3MoeConfig`; every layer is sparse, projections have no bias."""

    routed: ClassVar[bool] = True
    initial: ClassVar[frozenset[str]] = frozenset({"linear_init_gain", "embedding_init_std", "router_init_std"})

    hidden_size: Size
    """Width of the residual stream."""
    num_key_value_heads: Size
    """Key and value heads; divides the query heads."""
    head_dim: Size
    """Width of one head; even, for RoPE."""
    num_experts: Annotated[int, Role.SCALE, Field(gt=0, le=65_536)]
    """Experts a layer; a routing record holds one byte an expert up to 256, two beyond."""
    num_experts_per_tok: Size
    """Experts a token uses (k)."""
    moe_intermediate_size: Size
    """Width of one expert."""
    norm_topk_prob: Annotated[bool, Role.SCALE] = True
    """Whether the weights of a token's k experts sum to 1."""
    rope_theta: Scale = 10_000.0
    """Base of the rotary frequencies."""
    rms_norm_eps: Scale = 1e-6
    """Added to the mean square before its root."""
    tie_word_embeddings: Annotated[bool, Role.SCALE] = False
    """Whether the output head is the embedding matrix."""
    linear_init_gain: Scale = 1.0
    """Linear weights start with standard deviation gain / √fan_in, those that write to the residual stream with 1/√(2·layers) of
    it."""
    embedding_init_std: Scale = 0.1
    """Standard deviation of initial embeddings (with QK-norm, 0.1 learns much faster than the usual 0.02 at small sizes)."""
    router_init_std: Scale = 0.02
    """Standard deviation of initial router weights: small, so that routing starts balanced."""

    @property
    def experts(self) -> int:
        return self.num_experts

    @property
    def routing_layout(self) -> RoutingLayout:
        return RoutingLayout(self.num_hidden_layers, self.num_experts_per_tok, self.num_experts)

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads ({self.num_attention_heads}) must be a multiple of "
                f"num_key_value_heads ({self.num_key_value_heads})"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim ({self.head_dim}) must be even: RoPE rotates pairs")
        if self.num_experts_per_tok > self.num_experts:
            raise ValueError(f"num_experts_per_tok ({self.num_experts_per_tok}) exceeds num_experts ({self.num_experts})")
        return self

    def build(self, seed: int) -> "MoeTransformer":
        from t1x.model.transformer import MoeTransformer

        model = MoeTransformer(self)
        model.reset_parameters(seed)
        return model

    def build_value(self, seed: int) -> "ValueModel":
        from t1x.model.value import ValueModel

        model = ValueModel(self)
        model.model.reset_parameters(seed)
        return model
