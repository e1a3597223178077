import math

import numpy as np
import pytest
import torch

from t1x.training.surrogate import clipped_surrogate, clipped_value_error, kl_estimates, outside_clip, token_logprobs


def softmax(row):
    weights = [math.exp(x - max(row)) for x in row]
    return [w / sum(weights) for w in weights]


@pytest.fixture
def numbers():
    random = np.random.default_rng(0)
    return {
        "logits": random.normal(scale=2, size=(40, 7)),
        "targets": random.integers(0, 7, 40),
        "temperatures": random.uniform(0.5, 2.0, 40),
        "behaviour": random.normal(-1.5, 0.4, 40),
        "advantages": random.normal(size=40),
        "values": random.normal(size=40),
        "old_values": random.normal(size=40),
        "returns": random.normal(size=40),
    }


def tensors(numbers, *names):
    return [torch.tensor(numbers[name]) for name in names]


def slow_logprob(numbers, j):
    return math.log(softmax([z / numbers["temperatures"][j] for z in numbers["logits"][j]])[numbers["targets"][j]])


def test_logprobs_and_entropy_are_those_of_the_tempered_softmax(numbers):
    logprobs, entropy = token_logprobs(*tensors(numbers, "logits", "targets", "temperatures"))
    for j in range(40):
        assert logprobs[j].item() == pytest.approx(slow_logprob(numbers, j), abs=1e-9)
        p = softmax([z / numbers["temperatures"][j] for z in numbers["logits"][j]])
        assert entropy[j].item() == pytest.approx(-sum(x * math.log(x) for x in p), abs=1e-9)


def test_clipped_surrogate_is_eq_18(numbers):
    ratio = np.exp(np.array([slow_logprob(numbers, j) for j in range(40)]) - numbers["behaviour"])
    loss = clipped_surrogate(torch.tensor(ratio), torch.tensor(numbers["advantages"]), 0.2, 0.2)
    for j in range(40):
        r, a = ratio[j], numbers["advantages"][j]
        assert loss[j].item() == pytest.approx(-min(r * a, min(max(r, 0.8), 1.2) * a), abs=1e-12)
    assert (outside_clip(torch.tensor(ratio), 0.2, 0.2).numpy() == [abs(r - 1) > 0.2 for r in ratio]).all()
    assert 0 < outside_clip(torch.tensor(ratio), 0.2, 0.2).mean() < 1


def test_clipped_value_error_is_eq_17(numbers):
    error = clipped_value_error(*tensors(numbers, "values", "old_values", "returns"), 0.2)
    for j in range(40):
        v, old, r = (numbers[name][j] for name in ("values", "old_values", "returns"))
        v_clip = old + min(max(v - old, -0.2), 0.2)
        assert error[j].item() == pytest.approx(max((v - r) ** 2, (v_clip - r) ** 2), abs=1e-12)


def test_kl_estimates_are_unbiased_and_k3_is_never_negative():
    """Weighted by the behaviour's probabilities over a whole vocabulary they are KL(behaviour ‖ current)."""
    random = np.random.default_rng(1)
    behaviour, current = random.dirichlet(np.ones(9)), random.dirichlet(np.ones(9))
    estimates = {name: each.numpy() for name, each in kl_estimates(torch.tensor(np.log(current / behaviour))).items()}
    divergence = sum(b * math.log(b / c) for b, c in zip(behaviour, current, strict=True))
    assert set(estimates) == {"kl", "kl_k1"}
    assert (estimates["kl"] >= 0).all()
    assert (estimates["kl_k1"] < 0).any()
    for estimate in estimates.values():
        assert (behaviour * estimate).sum() == pytest.approx(divergence, abs=1e-12)


def finite_difference(function, x, epsilon=1e-6):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += epsilon
        down[index] -= epsilon
        gradient[index] = (function(torch.tensor(up)).item() - function(torch.tensor(down)).item()) / (2 * epsilon)
    return gradient


def test_policy_gradient_equals_finite_differences(numbers):
    targets, temperatures, behaviour, advantages = tensors(numbers, "targets", "temperatures", "behaviour", "advantages")

    def loss(logits):
        ratio = (token_logprobs(logits, targets, temperatures)[0] - behaviour).exp()
        return clipped_surrogate(ratio, advantages, 0.2, 0.2).sum()

    logits = torch.tensor(numbers["logits"], requires_grad=True)
    loss(logits).backward()
    np.testing.assert_allclose(logits.grad.numpy(), finite_difference(loss, numbers["logits"]), atol=1e-7)


def test_value_gradient_equals_finite_differences(numbers):
    old_values, returns = tensors(numbers, "old_values", "returns")

    def loss(values):
        return clipped_value_error(values, old_values, returns, 0.2).sum()

    values = torch.tensor(numbers["values"], requires_grad=True)
    loss(values).backward()
    np.testing.assert_allclose(values.grad.numpy(), finite_difference(loss, numbers["values"]), atol=1e-7)


def test_no_gradient_pushes_further_where_the_clip_binds():
    ratio = torch.tensor([1.3, 0.7, 1.3, 0.7], requires_grad=True)
    clipped_surrogate(ratio, torch.tensor([1.0, -1.0, -1.0, 1.0]), 0.2, 0.2).sum().backward()
    assert ratio.grad.tolist() == [0.0, 0.0, 1.0, -1.0]
