"""Every recorded row is consumed once forward and, where gradients flow, once backward, whatever else is in flight."""

from contextlib import nullcontext
from functools import lru_cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from promises import promise
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from t1x.model.qwen3_moe import Qwen3Moe
from t1x.model.replay import RoutingReplay
from t1x.model.replayable_router import ReplayableRouter, recomputation
from t1x.model.router import RouterMode
from t1x.model.transformer import MoeTransformer

torch.set_num_threads(1)

EXPERTS, LAYERS, K = 5, 2, 2
LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@lru_cache(maxsize=2)
def shared(recompute: bool) -> MoeTransformer:
    return network(recompute)


def network(recompute: bool = True) -> MoeTransformer:
    config = Qwen3Moe(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=4,
        num_experts=EXPERTS,
        num_experts_per_tok=K,
        moe_intermediate_size=6,
        router_init_std=0.5,
        embedding_init_std=1.0,
    )
    model = config.build(seed=0)
    model.model.recompute_activations(recompute)
    return model


def drawn(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Token ids [n] and a record [n, layers, k]."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 30, (n,), generator=random)
    return ids, torch.rand(n, LAYERS, EXPERTS, generator=random).argsort(-1)[..., :K].to(torch.uint8)


def loss(model: MoeTransformer, ids: Tensor, lengths: list[int]) -> Tensor:
    return model.logits(model(ids, lengths=lengths).hidden).square().sum()


def gradients(model: MoeTransformer) -> list[Tensor]:
    found = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    return found


@pytest.mark.ci
@promise
@given(st.lists(LENGTHS, min_size=1, max_size=4), st.booleans(), st.data())
def test_each_pass_in_flight_has_the_gradient_that_it_has_alone(batches: list[list[int]], free: bool, data: st.DataObject) -> None:
    """To the bit, in any order of backward passes, with and without recomputation; the last pass may route freely."""
    plain, recomputing = shared(False), shared(True)
    drawn_batches = [(*drawn(sum(lengths), seed), lengths) for seed, lengths in enumerate(batches)]
    order = data.draw(st.permutations(range(len(batches))))
    alone, losses, passes = [], [], []
    for at, (ids, record, lengths) in enumerate(drawn_batches):
        is_free = free and at == len(batches) - 1
        replay = None if is_free else RoutingReplay(plain, record)
        with replay or nullcontext():
            one = loss(plain, ids, lengths)
        one.backward()
        if replay is not None:
            replay.finish()
        alone.append((one.item(), gradients(plain)))
        passes.append(None if is_free else RoutingReplay(recomputing, record))
        with passes[-1] or nullcontext():
            losses.append(loss(recomputing, ids, lengths))
    for at in order:
        losses[at].backward()
        if passes[at] is not None:
            passes[at].finish()
        assert losses[at].item() == alone[at][0]
        for found, expected in zip(gradients(recomputing), alone[at][1], strict=True):
            assert torch.equal(found, expected)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_pass_may_not_be_run_twice_or_by_fewer_or_more_tokens(recompute: bool) -> None:
    model, (ids, record) = network(recompute), drawn(6)
    replay = RoutingReplay(model, record)
    with replay:
        model(ids, lengths=[6])
    with pytest.raises(RuntimeError, match="layer 0 asked for 6 rows, 0 of 6 were left"), replay:
        model(ids, lengths=[6])
    with pytest.raises(RuntimeError, match="layer 0 asked for 6 rows, 5 of 5 were left"), RoutingReplay(model, record[:5]):
        model(ids, lengths=[6])
    with pytest.raises(RuntimeError, match="forward pass consumed too few rows, 5 of 6 in layer 0, 5 of 6 in layer 1"):  # noqa: SIM117
        with RoutingReplay(model, record):
            model(ids[:5], lengths=[5])
    with pytest.raises(RuntimeError, match="forward pass consumed too few rows, 0 of 6 in layer 0"):
        RoutingReplay(model, record).finish()
    assert torch.equal(model(ids, lengths=[6]).routed_experts, network()(ids, lengths=[6]).routed_experts), "free again"


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
def test_a_pass_keeps_its_record_when_the_caller_fills_the_buffer_anew(recompute: bool, dtype: torch.dtype) -> None:
    model, (ids, record) = network(recompute), drawn(7)
    with RoutingReplay(model, record):
        one = loss(model, ids, [7])
    one.backward()
    due, buffer = gradients(model), record.to(dtype)
    replay = RoutingReplay(model, buffer)
    with replay:
        one = loss(model, ids, [7])
    buffer.copy_(drawn(7, seed=1)[1])
    one.backward()
    replay.finish()
    for mine, its in zip(gradients(model), due, strict=True):
        assert torch.equal(mine, its)


def test_a_pass_keeps_a_record_that_is_laid_out_as_it_needs_it() -> None:
    """Of one layer and int64, so that nothing has to be converted."""
    layer, buffer = network().model.layers[0].moe, drawn(6)[1][:, :1].long()
    record, replay = buffer.clone(), RoutingReplay(layer, buffer)
    buffer.copy_(drawn(6, seed=1)[1][:, :1])
    assert not torch.equal(buffer, record)
    with replay:
        assert torch.equal(layer(torch.randn(6, 8)).experts, record[:, 0])


def test_a_pass_that_is_entered_within_itself_is_refused_and_leaves_routers_free() -> None:
    model, (ids, record) = network(), drawn(7)
    free, replay = model(ids, lengths=[7]).routed_experts, RoutingReplay(model, record, RouterMode.REPLAY_NO_GRAD)
    assert not torch.equal(free, record)
    with pytest.raises(RuntimeError, match="its pass is running already"), replay, replay:
        pass
    assert torch.is_grad_enabled()
    assert torch.equal(model(ids, lengths=[7]).routed_experts, free)


def test_a_layer_may_take_its_rows_in_parts() -> None:
    layer, (_, record) = network().model.layers[0].moe, drawn(6)
    x = torch.randn(6, 8)
    with RoutingReplay(layer, record[:, :1]):
        whole = layer(x).hidden
    with RoutingReplay(layer, record[:, :1]):
        torch.testing.assert_close(torch.cat([layer(x[:2]).hidden, layer(x[2:]).hidden]), whole)


@pytest.mark.parametrize("recompute", [False, True])
def test_a_pass_needs_its_backward_pass_once(recompute: bool) -> None:
    model, (ids, record) = network(recompute), drawn(6)
    replay = RoutingReplay(model, record)
    with replay:
        total = loss(model, ids, [6])
    with pytest.raises(RuntimeError, match="backward pass consumed too few rows, 0 of 6 in layer 0, 0 of 6 in layer 1"):
        replay.finish()
    total.backward(retain_graph=True)
    replay.finish()
    with pytest.raises(RuntimeError, match="twice"):
        total.backward()
    without = RoutingReplay(model, record, RouterMode.REPLAY_NO_GRAD)
    with without:
        loss(model, ids, [6])
    without.finish()


def test_another_networks_routers_take_no_rows() -> None:
    """The critic never replays, even where it runs within the actor's pass."""
    actor, critic, (ids, record) = network(), network().config.build_value(seed=1), drawn(6)
    with pytest.raises(RuntimeError, match="router of another network"), RoutingReplay(actor, record):
        critic(ids, lengths=[6])


def test_a_router_that_is_put_in_place_of_another_replays() -> None:
    model, (ids, record) = network(), drawn(6)
    for _ in range(2):
        replay = RoutingReplay(model, record)
        with replay:
            loss(model, ids, [6]).backward()
        replay.finish()
        name, router = next(each for each in model.named_modules() if isinstance(each[1], ReplayableRouter))
        model.set_submodule(name, ReplayableRouter(router.wrapped, router.k, router.normalize))


def two_in_flight(monkeypatch: pytest.MonkeyPatch, contexts: object, lengths: tuple[int, int]) -> None:
    """Two passes whose recomputation gets the wrong `context_fn`."""
    model = network()
    monkeypatch.setattr("t1x.model.transformer.recomputation", contexts)
    passes, losses = [], []
    for seed, n in enumerate(lengths):
        ids, record = drawn(n, seed)
        passes.append(RoutingReplay(model, record))
        with passes[-1]:
            losses.append(loss(model, ids, [n]))
    for replay, total in zip(passes, losses, strict=True):
        total.backward()
        replay.finish()


def test_a_recomputation_that_gets_another_passs_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor that all passes share, so that the first backward pass takes the rows of the last forward pass."""
    made = []

    def swapped() -> tuple:
        """Each layer of one pass recomputes by that of the other; both are of equal length, so that nothing but the rows tells."""
        made.append(recomputation())
        at = len(made) - 1
        return made[at][0], Late(made, (at + LAYERS) % (2 * LAYERS))

    with pytest.raises(RuntimeError, match=r"layers \[0, 1\] were recomputed with experts that aren't those of the record"):
        two_in_flight(monkeypatch, swapped, (6, 6))
    made.clear()
    with pytest.raises(RuntimeError, match="a recomputation asked for 4 rows of layer 1, due were 6 of layer 1"):
        two_in_flight(monkeypatch, swapped, (4, 6))


class Late:
    """A context that is looked up when it is entered."""

    def __init__(self, made: list, at: int) -> None:
        self.made, self.at = made, at

    def __enter__(self) -> None:
        self.made[self.at][1].__enter__()

    def __exit__(self, *error: object) -> None:
        self.made[self.at][1].__exit__(*error)


def test_a_recomputation_without_a_context_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It routes freely."""
    with pytest.raises(RuntimeError, match="recomputed with experts that aren't those of the record"):
        two_in_flight(monkeypatch, lambda: (nullcontext(), nullcontext()), (6, 6))


def test_a_free_recomputation_stays_free_within_a_replay() -> None:
    free, replaying, (ids, record) = network(), network(), drawn(6)
    total = loss(free, ids, [6])
    with RoutingReplay(replaying, record):
        replaying(ids, lengths=[6])
        total.backward()
    found = gradients(free)
    loss(free, ids, [6]).backward()
    for one, expected in zip(found, gradients(free), strict=True):
        assert torch.equal(one, expected)


def test_a_part_of_several_layers_and_of_none() -> None:
    """Whatever is recomputed as one, in its order; what isn't is kept."""
    routers = torch.nn.ModuleList(ReplayableRouter(torch.nn.Linear(8, EXPERTS), K, True) for _ in range(3))
    _, record = drawn(4)
    record = torch.cat([record, record[:, :1]], 1)
    x = torch.randn(4, 8, requires_grad=True)

    def two(x: Tensor) -> Tensor:
        return sum(router(x + at).weights.cumprod(-1).sum() for at, router in enumerate(routers[:2]))

    def run(recompute: bool) -> list[Tensor]:
        replay = RoutingReplay(routers, record)
        with replay:
            part = checkpoint(two, x, use_reentrant=False, context_fn=recomputation) if recompute else two(x)
            total = part + routers[2](x).weights.cumprod(-1).sum()
        routers.zero_grad()
        x.grad = None
        total.backward()
        replay.finish()
        return [x.grad, *(parameter.grad for parameter in routers.parameters())]

    for kept, recomputed in zip(run(False), run(True), strict=True):
        assert kept.abs().max() > 0
        assert torch.equal(kept, recomputed)
