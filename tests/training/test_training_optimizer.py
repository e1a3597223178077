import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.training.optimizer import Adam


def test_schedule_warms_up_and_decays_linearly():
    adam = Adam(lr=2.0, warmup_steps=4, decay_to=0.5)
    assert [adam.lr_at(step) for step in range(6)] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0, 2.0])
    assert adam.lr_at(50, total_steps=100) == pytest.approx(1.5)
    assert adam.lr_at(100, total_steps=100) == pytest.approx(1.0)
    assert adam.lr_at(1, total_steps=10) == pytest.approx(2.0 * 0.5 * 0.95)


@settings(deadline=None)
@given(
    st.integers(0, 300), st.integers(1, 200), st.integers(0, 30), st.floats(0.01, 1.0), st.sampled_from(["linear", "cosine"])
)  # fmt: skip
def test_rates_are_the_schedules_factors(step, total, warmup, decay_to, decay):
    adam = Adam(lr=3.0, multiple=2.0, warmup_steps=warmup, decay_to=decay_to, decay=decay)
    expected = 6.0
    if step < warmup:
        expected *= (step + 1) / warmup
    share = step / total if step < total else 1.0
    if decay == "linear":
        expected *= decay_to * share + (1 - share)
    else:
        expected *= decay_to + (1 - decay_to) * math.cos(math.pi * share / 2) ** 2
    assert adam.lr_at(step, total) == pytest.approx(expected, abs=1e-12)
    assert adam.lr_at(step) == pytest.approx(6.0 * min(1.0, (step + 1) / max(warmup, 1)))


def test_the_multiple_scales_the_whole_schedule():
    """The report's rates are multiples of a canonical one."""
    shape = {"lr": 5e-7, "warmup_steps": 4, "decay_to": 0.5}
    actor, critic = Adam(multiple=2, **shape), Adam(multiple=30, **shape)
    assert (actor.lr_at(10), critic.lr_at(10)) == pytest.approx((1e-6, 1.5e-5))
    for step in (0, 2, 7):
        assert critic.lr_at(step, 10) == pytest.approx(30 * Adam(**shape).lr_at(step, 10))
    assert critic.build([torch.nn.Parameter(torch.ones(2))], total_steps=10).lr == pytest.approx(1.5e-5 / 4)


def test_decay_needs_a_run_of_known_length():
    with pytest.raises(ValueError, match="known length"):
        Adam(lr=1.0, decay_to=0.1).build([torch.nn.Parameter(torch.ones(2))])


def slow_adam(weights, gradients, spec, decayed, total):
    """Adam with decoupled decay (Loshchilov & Hutter, algorithm 2) after clipping by global norm, in float64."""
    weights = [w.copy() for w in weights]
    first, second = [[np.zeros_like(w) for w in weights] for _ in range(2)]
    b1, b2 = spec.betas
    for step, gradient in enumerate(gradients, start=1):
        norm = np.sqrt(sum((g**2).sum() for g in gradient))
        lr = spec.lr_at(step - 1, total)
        for i, g in enumerate(gradient):
            g = g * min(1.0, spec.clip_norm / norm)
            weights[i] *= 1 - lr * spec.weight_decay * decayed[i]
            first[i] = b1 * first[i] + (1 - b1) * g
            second[i] = b2 * second[i] + (1 - b2) * g**2
            weights[i] -= lr * (first[i] / (1 - b1**step)) / (np.sqrt(second[i] / (1 - b2**step)) + spec.eps)
    return weights


@pytest.mark.parametrize(("schedule", "total"), [({}, None), ({"decay_to": 0.2}, 5), ({"decay_to": 0.1, "decay": "cosine"}, 8)])
def test_steps_are_those_of_adam_with_decay_on_matrices_only(schedule, total):
    random = np.random.default_rng(0)
    shapes = [(5, 3), (4,)]
    spec = Adam(lr=0.05, warmup_steps=3, weight_decay=0.3, clip_norm=2.0, **schedule)
    start = [random.normal(size=shape) for shape in shapes]
    gradients = [[random.normal(scale=scale, size=shape) for shape in shapes] for scale in (0.1, 5.0, 1.0, 0.01, 2.0)]
    parameters = [torch.nn.Parameter(torch.tensor(w)) for w in start]
    optimizer = spec.build(parameters, total)
    for gradient in gradients:
        for parameter, g in zip(parameters, gradient, strict=True):
            parameter.grad = torch.tensor(g)
        norm = optimizer.step()
        assert norm == pytest.approx(np.sqrt(sum((g**2).sum() for g in gradient)), rel=1e-6)
    for parameter, expected in zip(parameters, slow_adam(start, gradients, spec, [True, False], total), strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_step_without_finite_gradients_changes_nothing_but_the_count(bad):
    parameter = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = Adam(lr=0.1, warmup_steps=2).build([parameter])
    parameter.grad = torch.ones(3, 2)
    optimizer.step()
    before, state = parameter.detach().clone(), optimizer.state_dict()["adam"]["state"][0]["exp_avg"].clone()
    parameter.grad = torch.full((3, 2), 1.0)
    parameter.grad[1, 1] = bad
    optimizer.step()
    assert torch.equal(parameter, before)
    assert torch.equal(optimizer.state_dict()["adam"]["state"][0]["exp_avg"], state)
    assert (optimizer.steps, optimizer.skipped) == (1, 1)
    assert parameter.grad is None


def take(optimizer, parameter, value):
    parameter.grad = torch.full_like(parameter, value)
    return optimizer.step()


def test_many_steps_in_a_row_without_finite_gradients_end_training():
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = Adam(lr=0.1, skip_limit=3).build([parameter])
    for value in (float("nan"), float("inf"), 1.0, float("nan"), float("nan")):
        take(optimizer, parameter, value)
    assert (optimizer.steps, optimizer.skipped, optimizer.skipped_in_a_row) == (1, 4, 2)
    with pytest.raises(ValueError, match=r"3 optimizer steps in a row weren't finite, after 1 that were; look at grad_norm"):
        take(optimizer, parameter, float("nan"))


def test_a_restored_optimizer_counts_on():
    parameter = torch.nn.Parameter(torch.ones(2))
    one, other = (Adam(lr=0.1, skip_limit=3).build([parameter]) for _ in range(2))
    for value in (1.0, float("nan"), float("nan")):
        take(one, parameter, value)
    other.load_state_dict(one.state_dict())
    assert (other.steps, other.skipped, other.skipped_in_a_row) == (1, 2, 2)
    with pytest.raises(ValueError, match="3 optimizer steps in a row"):
        take(other, parameter, float("nan"))
