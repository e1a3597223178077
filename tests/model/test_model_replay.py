"""Routing replay: the selection from the record, all else from the live logits."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from t1x.model.moe import DENSE_TOKENS, MoeLayer
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import RoutingReplay
from t1x.model.router import RouterMode
from t1x.model.transformer import ModelOutput

torch.set_num_threads(1)


def spec(normalize: bool = True) -> Qwen3Moe:
    return Qwen3Moe(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_experts=5,
        num_experts_per_tok=2,
        moe_intermediate_size=12,
        norm_topk_prob=normalize,
        max_position_embeddings=64,
        router_init_std=0.5,
        embedding_init_std=1.0,
    )


def replayed(model: nn.Module, ids: Tensor, record: Tensor, mode: RouterMode = RouterMode.REPLAY_WITH_GRAD, **how) -> ModelOutput:
    """A forward pass."""
    with RoutingReplay(model, record, mode):
        return model(ids, **how)


def any_record(*shape: int) -> Tensor:
    """Distinct random experts in random order."""
    return torch.rand(*shape, 5, generator=torch.Generator().manual_seed(4)).argsort(-1)[..., :2]


def one_token_at_a_time(layer: MoeLayer, x: Tensor, record: Tensor, normalize: bool) -> Tensor:
    rows = []
    for token, experts in zip(x, record.tolist(), strict=True):
        logits = layer.router.wrapped.weight @ token
        shares = logits.exp() / logits.exp().sum()
        total = sum(shares[e] for e in experts) if normalize else 1.0
        row = torch.zeros_like(token)
        for e in experts:
            gate, up = layer.gate_up[e][:12] @ token, layer.gate_up[e][12:] @ token
            row = row + shares[e] / total * (layer.down[e].T @ (gate * torch.sigmoid(gate) * up))
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("normalize", [True, False])
def test_forced_experts_output_and_gradients(normalize: bool) -> None:
    layer = spec(normalize).build(seed=0).model.layers[0].moe
    record, weights = any_record(30), torch.randn(30, 16, generator=torch.Generator().manual_seed(1))
    results = []
    for compute in (
        lambda x: replayed(layer, x, record[:, None]).hidden,
        lambda x: one_token_at_a_time(layer, x, record, normalize),
    ):
        layer.zero_grad()
        x = torch.randn(30, 16, generator=torch.Generator().manual_seed(2), requires_grad=True)
        out = compute(x)
        (out * weights).sum().backward()
        gradients = [p.grad for p in layer.parameters()]
        assert all(gradient is not None for gradient in gradients), "the router's too"
        results.append([out, x.grad, *(gradient.clone() for gradient in gradients)])
    assert results[1][2].abs().max() > 1e-2, "the router's gradient"
    for found, reference in zip(*results, strict=True):
        torch.testing.assert_close(found, reference, atol=1e-5, rtol=1e-5)
    with torch.inference_mode():
        assert len(x) <= DENSE_TOKENS[x.dtype]
        torch.testing.assert_close(replayed(layer, x, record[:, None]).hidden, results[1][0], atol=1e-5, rtol=1e-5)


def test_replaying_a_free_pass_repeats_it() -> None:
    model, ids = spec().build(seed=0), torch.randint(0, 50, (3, 11), generator=torch.Generator().manual_seed(3))
    free = model(ids)
    again = replayed(model, ids, free.routed_experts.to(torch.uint8))
    assert torch.equal(again.hidden, free.hidden)


def test_passes_with_and_without_gradient_give_the_same_bits() -> None:
    """Else the version skew of a synchronous step would not be exactly 0."""
    model, ids, record = spec().build(seed=0), torch.randint(0, 50, (3, 11)), any_record(3, 11, 2)
    keep = torch.rand(3, 11) < 0.5
    with_gradient = replayed(model, ids, record, keep=keep)
    without = replayed(model, ids, record, RouterMode.REPLAY_NO_GRAD, keep=keep)
    assert torch.equal(model.logits(with_gradient.hidden), model.logits(without.hidden))


def test_replay_without_gradient_has_none() -> None:
    model, ids = spec().build(seed=0), torch.zeros(1, 4, dtype=torch.long)
    output = replayed(model, ids, any_record(1, 4, 2), RouterMode.REPLAY_NO_GRAD)
    assert not output.hidden.requires_grad
    assert torch.is_grad_enabled()


def test_padding_never_touches_a_sequence_and_keep_selects() -> None:
    model, ids = spec().build(seed=0), torch.randint(0, 50, (2, 12), generator=torch.Generator().manual_seed(3))
    record = any_record(2, 12, 2)
    alone = replayed(model, ids[1:, :7], record[1:, :7])
    padded_ids, padded_record = ids.clone(), record.clone()
    padded_ids[1, 7:], padded_record[1, 7:] = 0, torch.tensor([3, 4])
    keep = torch.zeros(2, 12, dtype=torch.bool)
    keep[0, 2] = keep[1, [0, 6]] = True
    padded = replayed(model, padded_ids, padded_record)
    torch.testing.assert_close(padded.hidden[1, :7], alone.hidden[0], atol=1e-6, rtol=1e-5)
    kept = replayed(model, padded_ids, padded_record, keep=keep)
    assert kept.hidden.shape == (3, 16)
    torch.testing.assert_close(kept.hidden, padded.hidden[keep], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("lengths", [[7, 7, 3, 1, 1], [1, 12, 4], [5]])
@pytest.mark.parametrize("replay", [False, True])
def test_packed_sequences_are_each_alone(lengths: list[int], replay: bool) -> None:
    model, n = spec().build(seed=0), sum(lengths)
    ids, record = torch.randint(0, 50, (n,), generator=torch.Generator().manual_seed(3)), any_record(1, n, 2)[0]
    keep = torch.rand(n, generator=torch.Generator().manual_seed(4)) < 0.5
    keep[0] = True

    def run(part: slice, **packed: list[int]) -> torch.Tensor:
        with RoutingReplay(model, record[part]) if replay else nullcontext():
            output = model(ids[part], keep=keep[part], **({"lengths": [part.stop - part.start]} | packed))
        assert output.routed_experts.shape == (part.stop - part.start, 2, 2)
        return output.hidden

    gradients = []
    ends = np.cumsum(lengths).tolist()
    alone = torch.cat([run(slice(end - length, end)) for length, end in zip(lengths, ends, strict=True)])
    for hidden in (alone, run(slice(0, n), lengths=lengths)):
        torch.testing.assert_close(hidden, alone, atol=1e-6, rtol=1e-5)
        model.zero_grad()
        hidden.square().sum().backward()
        gradients.append([parameter.grad for parameter in model.model.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], atol=2e-5, rtol=1e-4)


def test_records_of_another_shape_or_type_are_refused() -> None:
    model = spec().build(seed=0)
    for record in (any_record(6, 3), any_record(6, 2)[..., :1], any_record(6, 2)[0], any_record(6, 2).float()):
        with pytest.raises(ValueError, match=r"integers of shape \[tokens, layers, k\] = \[tokens, 2, 2\], got"):
            RoutingReplay(model, record)


def test_a_sequence_may_not_be_longer_than_the_model_allows() -> None:
    with pytest.raises(ValueError, match="exceed max_position_embeddings"):
        spec().build(seed=0)(torch.zeros(1, 65, dtype=torch.long))
