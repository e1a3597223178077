"""Qwen3.5-MoE, as a component: the architecture of the report's policy."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from t1x.config import Role
from t1x.config.requirements import worker
from t1x.model.qwen3_moe import Model, Scale, Size


class Qwen3_5Moe(Model):
    """Qwen3.5-MoE: three layers of gated linear attention (Gated DeltaNet) to one of gated softmax attention, each with routed
    experts and a shared one. Fields and defaults are those of Hugging Face's `Qwen3_5MoeTextConfig`; no projection has a bias, the
    output head is a matrix of its own. Its picture encoder is left out."""

    routed: ClassVar[bool] = True

    vocab_size: Size = 248_320
    max_position_embeddings: Size = 262_144
    hidden_size: Size
    """Width of the residual stream."""
    full_attention_interval: Size = 4
    """Every how many layers one has softmax attention; the others are recurrent."""
    num_key_value_heads: Size = 2
    """Key and value heads of softmax attention; divides the query heads."""
    head_dim: Size = 256
    """Width of one head of softmax attention."""
    partial_rotary_factor: Annotated[float, Role.SCALE, Field(gt=0, le=1)] = 0.25
    """Share of a head's width that RoPE rotates."""
    linear_num_key_heads: Size = 16
    """Key (and query) heads of linear attention."""
    linear_num_value_heads: Size = 32
    """Value heads of linear attention, a multiple of its key heads."""
    linear_key_head_dim: Size = 128
    """Width of one of its key heads."""
    linear_value_head_dim: Size = 128
    """Width of one of its value heads."""
    linear_conv_kernel_dim: Size = 4
    """Tokens that its short convolution sees."""
    num_experts: Annotated[int, Role.SCALE, Field(gt=0, le=65_536)] = 256
    """Routed experts a layer."""
    num_experts_per_tok: Size = 8
    """Routed experts that a token uses (k)."""
    moe_intermediate_size: Size
    """Width of one routed expert."""
    shared_expert_intermediate_size: Size
    """Width of the expert that every token uses."""
    rope_theta: Scale = 10_000_000.0
    """Base of the rotary frequencies."""
    rms_norm_eps: Scale = 1e-6
    """Added to the mean square before its root."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        for whole, part in (("num_attention_heads", "num_key_value_heads"), ("linear_num_value_heads", "linear_num_key_heads")):
            if getattr(self, whole) % getattr(self, part):
                raise ValueError(f"{whole} ({getattr(self, whole)}) must be a multiple of {part} ({getattr(self, part)})")
        if self.num_experts_per_tok > self.num_experts:
            raise ValueError(f"num_experts_per_tok ({self.num_experts_per_tok}) exceeds num_experts ({self.num_experts})")
        return self

    @property
    def experts(self) -> int:
        return self.num_experts

    @property
    def expert_parameters(self) -> int:
        """Weights of the routed experts (P_e in Eq. 21)."""
        return self.num_hidden_layers * self.num_experts * 3 * self.hidden_size * self.moe_intermediate_size

    @property
    def dense_parameters(self) -> int:
        """All other weights (P_d in Eq. 21)."""
        softmax = self.num_hidden_layers // self.full_attention_interval
        router_and_shared = self.hidden_size * (self.num_experts + 3 * self.shared_expert_intermediate_size + 1)
        layer = router_and_shared + 2 * self.hidden_size
        mixing = softmax * self._softmax_attention + (self.num_hidden_layers - softmax) * self._linear_attention
        return self.num_hidden_layers * layer + mixing + (2 * self.vocab_size + 1) * self.hidden_size

    @property
    def _softmax_attention(self) -> int:
        """Weights of one softmax attention: queries with their gate, keys, values, output, norms of queries and keys."""
        query, key = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        return self.hidden_size * (2 * query + 2 * key + query) + 2 * self.head_dim

    @property
    def _linear_attention(self) -> int:
        """Weights of one linear attention: queries, keys, values, output and its gate, convolution, norm, and per value head two
        projections of its rates and two constants."""
        key = self.linear_num_key_heads * self.linear_key_head_dim
        value = self.linear_num_value_heads * self.linear_value_head_dim
        mixed = 2 * key + value
        projections = self.hidden_size * (mixed + 2 * value + 2 * self.linear_num_value_heads)
        return projections + mixed * self.linear_conv_kernel_dim + 2 * self.linear_num_value_heads + self.linear_value_head_dim

    def missing(self) -> list[str]:
        return worker(self)
