"""Replay against transformers' networks whose own routers are patched to take the same experts, by code of this file."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import MixtralConfig, MixtralForCausalLM, Qwen3MoeForCausalLM

from t1x.model.checkpoint import save_pretrained
from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import RoutingReplay
from t1x.model.replayable_router import ReplayableRouter, recomputation

torch.set_num_threads(1)

SHAPES = [
    pytest.param({"hidden_size": 16, "num_experts": 5, "num_experts_per_tok": 2, "num_hidden_layers": 2}, id="2of5"),
    pytest.param({"hidden_size": 24, "num_experts": 8, "num_experts_per_tok": 1, "num_hidden_layers": 3}, id="1of8"),
    pytest.param({"hidden_size": 24, "num_experts": 12, "num_experts_per_tok": 8, "num_hidden_layers": 2}, id="8of12"),
    pytest.param({"hidden_size": 16, "num_experts": 300, "num_experts_per_tok": 4, "num_hidden_layers": 1}, id="4of300"),
]
LENGTHS = [[20, 20], [7, 7, 13, 1], [33]]


def drawn(n: int, layers: int, experts: int, k: int) -> tuple[Tensor, Tensor]:
    """Token ids [n] and k distinct experts a layer in random order."""
    random = torch.Generator().manual_seed(3)
    record = torch.rand(n, layers, experts, generator=random).argsort(-1)[..., :k]
    return torch.randint(0, 50, (n,), generator=random), record.to(torch.uint8 if experts <= 256 else torch.uint16)


def force(gates: list[nn.Module], record: Tensor, normalize: bool) -> None:
    """Makes transformers' routers choose the experts of a record [n, layers, k]."""
    for layer, gate in enumerate(gates):

        def forced(x: Tensor, gate: nn.Module = gate, layer: int = layer) -> tuple[Tensor, Tensor, Tensor]:
            experts = record[:, layer].long()
            logits = F.linear(x, gate.weight)
            scores = logits.softmax(-1).gather(1, experts)
            return logits, scores / scores.sum(-1, keepdim=True) if normalize else scores, experts

        gate.forward = forced


def surprise(logits: Tensor, ids: Tensor) -> Tensor:
    """Of each sequence's tokens after the first; a sequence of one has none."""
    return F.cross_entropy(logits[:-1], ids[1:], reduction="sum") if len(ids) > 1 else logits.sum() * 0


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_forced_experts_give_transformers_logits_and_gradients(shape: dict, normalize: bool, lengths: list, tmp_path: Path) -> None:
    """Ours packed and with activations recomputed, theirs one sequence at a time."""
    sizes = {"vocab_size": 50, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "moe_intermediate_size": 12}
    model = Qwen3Moe(**sizes, **shape, norm_topk_prob=normalize, router_init_std=0.5, embedding_init_std=1.0).build(seed=0)
    save_pretrained(model, tmp_path / "model")
    theirs = Qwen3MoeForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    gates = [layer.mlp.gate for layer in theirs.model.layers]
    ids, record = drawn(sum(lengths), len(gates), shape["num_experts"], shape["num_experts_per_tok"])
    model.model.recompute_activations(True)
    replay = RoutingReplay(model, record)
    with replay:
        output = model(ids, lengths=lengths)
    assert torch.equal(output.routed_experts, record.long())
    total = 0
    for part, rows, logits in zip(
        ids.split(lengths), record.split(lengths), model.logits(output.hidden).split(lengths), strict=True
    ):
        force(gates, rows, normalize)
        expected = theirs(part[None]).logits[0]
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
        total = total + surprise(logits, part) / len(ids)
        (surprise(expected, part) / len(ids)).backward()
    total.backward()
    replay.finish()
    for ours, other in zip(model.model.layers, theirs.model.layers, strict=True):
        found = ours.moe.router.wrapped.weight.grad
        torch.testing.assert_close(found, other.mlp.gate.weight.grad, atol=1e-5, rtol=0)
        if not normalize or shape["num_experts_per_tok"] > 1:
            assert found.abs().max() > 2e-4
        torch.testing.assert_close(ours.attention.output.weight.grad, other.self_attn.o_proj.weight.grad, atol=1e-5, rtol=0)


def mixtral(wrapped: bool) -> MixtralForCausalLM:
    """A network of another make: its own attention, experts, router and checkpointing."""
    torch.manual_seed(0)
    config = MixtralConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=12,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=6,
        num_experts_per_tok=2,
        initializer_range=0.4,
    )
    network = MixtralForCausalLM(config).train()
    for layer in network.model.layers if wrapped else ():
        layer.mlp.gate = ReplayableRouter(layer.mlp.gate, k=2, normalize=True)
    return network


def test_a_network_of_another_make_replays_once_its_routers_are_wrapped() -> None:
    """Two padded batches in flight, with transformers' own checkpointing; the first one's backward pass comes last."""
    reference, network = mixtral(wrapped=False), mixtral(wrapped=True)
    network.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": recomputation})
    ids, _ = drawn(48, 3, 6, 2)
    free = network(ids.view(2, 24)).logits
    torch.testing.assert_close(free, reference(ids.view(2, 24)).logits, atol=1e-5, rtol=1e-5)
    passes, totals = [], []
    for seed, length in enumerate((11, 13)):
        ids, record = drawn(2 * length, 3, 6, 2)
        ids, record = ids.roll(seed).view(2, length), record.roll(seed, 0)
        passes.append(RoutingReplay(network, record.view(2, length, 3, 2)))
        with passes[-1]:
            logits = network(ids).logits
        force([layer.mlp.gate for layer in reference.model.layers], record, normalize=True)
        expected = reference(ids).logits
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        totals.append(surprise(logits.flatten(0, 1), ids.flatten()) / ids.numel())
        (surprise(expected.flatten(0, 1), ids.flatten()) / ids.numel()).backward()
    for at in (1, 0):
        totals[at].backward()
        passes[at].finish()
    for ours, theirs in zip(network.model.layers, reference.model.layers, strict=True):
        torch.testing.assert_close(ours.mlp.gate.wrapped.weight.grad, theirs.mlp.gate.weight.grad, atol=1e-5, rtol=1e-4)
        assert theirs.mlp.gate.weight.grad.abs().max() > 1e-3


def test_checkpointing_of_another_make_without_the_context_is_found() -> None:
    network = mixtral(wrapped=True)
    network.gradient_checkpointing_enable({"use_reentrant": False})
    ids, record = drawn(12, 3, 6, 2)
    replay = RoutingReplay(network, record)
    with replay:
        total = network(ids[None]).logits.square().sum()
    total.backward()
    with pytest.raises(RuntimeError, match=r"layers \[0, 1, 2\] were recomputed with experts that aren't those of the record"):
        replay.finish()
