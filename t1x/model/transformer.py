"""The decoder of Qwen3-MoE, for training passes and for the engine."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from t1x.model.attention import Attend, Attention, RotaryTable
from t1x.model.moe import MoeLayer, Routed
from t1x.model.norm import RMSNorm
from t1x.model.replayable_router import recomputation

if TYPE_CHECKING:
    from t1x.model.qwen3_moe import Qwen3Moe


class ModelOutput(NamedTuple):
    """What one pass gives."""

    hidden: Tensor
    """Final-normed hidden state, [*shape of token_ids, D], or [M, D] for the kept positions only."""
    routed_experts: Tensor
    """[*shape of token_ids, layers, k] int64: the experts used at each position."""
    router_logits: tuple[Tensor, ...]
    """One [positions, E] float32 a layer."""


class DecoderLayer(nn.Module):
    """Attention and experts, each after its norm and added to the residual stream."""

    recompute = False
    """Whether the backward pass computes what is within the layer again, from the layer's input, instead of keeping it."""

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        self.input_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.attention = Attention(config)
        self.post_attention_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.moe = MoeLayer(config)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend, layer: int) -> Routed:
        """x [N, D] to the same."""
        if not (self.recompute and torch.is_grad_enabled()):
            return self._compute(x, rotary, attend, layer)
        routed: Routed = checkpoint(
            self._compute, x, rotary, attend, layer, use_reentrant=False, preserve_rng_state=False, context_fn=recomputation
        )
        return routed

    def _compute(self, x: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend, layer: int) -> Routed:
        x = x + self.attention(self.input_norm(x), rotary, attend, layer)
        mixed: Routed = self.moe(self.post_attention_norm(x))
        return mixed._replace(hidden=x + mixed.hidden)


class Decoder(nn.Module):
    """Embedding, decoder layers and final norm: what policy and critic share."""

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary = RotaryTable(config)

    def recompute_activations(self, on: bool) -> None:
        """Whether layers keep only their inputs for the backward pass (Chen et al. 2016). Changes no result."""
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            layer.recompute = on

    def reset_parameters(self, seed: int) -> None:
        """Draws the initial weights; see the `*_init_*` fields of the component."""
        config, random = self.config, torch.Generator().manual_seed(seed)
        residual = 1 / math.sqrt(2 * config.num_hidden_layers)

        def draw(weight: Tensor, std: float) -> None:
            nn.init.normal_(weight, 0.0, std, generator=random)

        draw(self.embed_tokens.weight, config.embedding_init_std)
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            attention, moe = layer.attention, layer.moe
            draw(attention.qkv.weight, config.linear_init_gain / math.sqrt(config.hidden_size))
            draw(attention.output.weight, residual * config.linear_init_gain / math.sqrt(attention.output.in_features))
            draw(moe.router.get_parameter("wrapped.weight"), config.router_init_std)
            draw(moe.gate_up, config.linear_init_gain / math.sqrt(config.hidden_size))
            draw(moe.down, residual * config.linear_init_gain / math.sqrt(config.moe_intermediate_size))

    def forward(
        self,
        token_ids: Tensor,
        *,
        lengths: Sequence[int] | None = None,
        keep: Tensor | None = None,
    ) -> ModelOutput:
        """One pass over sequences, each attending to itself alone.

        `token_ids` int64: [N], sequences of the given `lengths` one after the other, or [B, T], equally long ones (right-padded,
        since attention is causal: what stands after a sequence's end never touches it). Experts are those of the record where a
        `RoutingReplay` runs. `keep`, bool of token_ids' shape: positions whose hidden state is wanted. Raises `ValueError` for a
        longer sequence than the model's.
        """
        config, shape = self.config, token_ids.shape
        lengths = [shape[1]] * shape[0] if lengths is None else lengths
        assert sum(lengths) == token_ids.numel(), "the lengths are of these tokens"
        if max(lengths) > config.max_position_embeddings:
            raise ValueError(
                f"sequences of {max(lengths)} tokens exceed max_position_embeddings ({config.max_position_embeddings})"
            )
        positions = torch.cat([torch.arange(length, device=token_ids.device) for length in lengths])
        hidden, experts, logits = self.run(token_ids.flatten(), positions, _within(lengths))
        hidden = self.norm(hidden.view(*shape, -1) if keep is None else hidden[keep.flatten()])
        return ModelOutput(hidden, torch.stack(experts, 1).view(*shape, len(self.layers), -1), tuple(logits))

    def run(self, token_ids: Tensor, positions: Tensor, attend: Attend) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Tokens [N] at positions [N] through all layers: hidden states [N, D] before the final norm, and each layer's experts [N,
        k] and router logits [N, E]."""
        x = self.embed_tokens(token_ids)
        cos, sin = self.rotary(positions)
        rotary = cos.to(x.dtype), sin.to(x.dtype)
        experts, logits = [], []
        for index, layer in enumerate(self.layers):
            routed = layer(x, rotary, attend, index)
            x = routed.hidden
            experts.append(routed.experts)
            logits.append(routed.logits)
        return x, experts, logits


def _within(lengths: Sequence[int]) -> Attend:
    """Causal attention of each sequence within itself: one call for neighbours of equal length, so nothing is padded."""
    runs = [(length, len(list(run))) for length, run in groupby(lengths)]

    def attend(_layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        sizes = [length * count for length, count in runs]
        attended = []
        for (length, _), *parts in zip(runs, q.split(sizes), k.split(sizes), v.split(sizes), strict=True):
            q_run, k_run, v_run = (part.unflatten(0, (-1, length)).transpose(1, 2) for part in parts)
            out = F.scaled_dot_product_attention(q_run, k_run, v_run, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
            attended.append(out.transpose(1, 2).flatten(0, 1))
        return torch.cat(attended)

    return attend


class MoeTransformer(nn.Module):
    """The policy: a decoder and its output head."""

    def __init__(self, config: "Qwen3Moe") -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = None if config.tie_word_embeddings else nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def reset_parameters(self, seed: int) -> None:
        """Draws the initial weights."""
        self.model.reset_parameters(seed)
        if self.lm_head is not None:
            std = self.config.linear_init_gain / math.sqrt(self.config.hidden_size)
            nn.init.normal_(self.lm_head.weight, 0.0, std, generator=torch.Generator().manual_seed(seed + 1))

    def forward(
        self,
        token_ids: Tensor,
        *,
        lengths: Sequence[int] | None = None,
        keep: Tensor | None = None,
    ) -> ModelOutput:
        """See `Decoder.forward`."""
        output: ModelOutput = self.model(token_ids, lengths=lengths, keep=keep)
        return output

    def logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [..., vocab] of final-normed hidden states [..., D]."""
        head = self.model.embed_tokens if self.lm_head is None else self.lm_head
        return F.linear(hidden, head.weight).float()
