from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.training.fine_tuning import Supervised
from t1x.training.optimizer import Adam
from t1x.training.supervised import balance_loss, epochs


@pytest.fixture
def demonstrations(make_trajectory):
    random = np.random.default_rng(0)
    return [make_trajectory(random, turns=2) for _ in range(6)]


def spec(**changes):
    return Supervised(
        **{"optimizer": Adam(lr=1e-2, warmup_steps=5, decay_to=0.1, weight_decay=0.0), "steps": 200, "batch": 4} | changes
    )


def test_fit_learns_a_handful_of_demonstrations_by_heart(config, demonstrations):
    model = config.build(seed=0)
    seen = []
    losses = spec().fit(model, demonstrations, lambda step, loss: seen.append((step, loss)))
    assert losses[0] == pytest.approx(np.log(config.vocab_size), abs=1.5)
    assert np.mean(losses[-10:]) < 0.05
    assert seen == list(enumerate(losses))


def test_the_loss_is_the_mean_negative_logprob_of_loss_tokens(config, demonstrations):
    model = config.build(seed=0)
    total, count = 0.0, 0
    with torch.no_grad():
        for demonstration in demonstrations:
            ids = torch.tensor(demonstration.token_ids).long()
            logprobs = model.logits(model(ids[None]).hidden)[0].log_softmax(-1)
            for j in range(1, len(ids)):
                if demonstration.loss_mask[j]:
                    total, count = total - logprobs[j - 1, ids[j]].item(), count + 1
    losses = spec(steps=1, batch=6).fit(model, demonstrations)
    assert losses == pytest.approx([total / count], abs=1e-5)


def test_tokens_without_loss_are_never_predicted(config, demonstrations):
    """Ids that only observations hold lose probability, however often they stand in the context."""
    masked = [replace(d, token_ids=np.where(d.loss_mask, d.token_ids % 50, 60).astype(np.int32)) for d in demonstrations]
    model = config.build(seed=0)
    spec().fit(model, masked)
    with torch.no_grad():
        for demonstration in masked:
            p = model.logits(model(torch.tensor(demonstration.token_ids).long()[None]).hidden)[0].softmax(-1)
            assert p[:-1][demonstration.loss_mask[1:], 60].max() < 1e-2


def test_the_order_follows_the_seed(config, demonstrations):
    runs = [spec(steps=3, seed=seed).fit(config.build(seed=0), demonstrations) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 1000))
def test_an_epoch_visits_each_demonstration_at_most_once_and_leaves_out_less_than_a_batch(count, size, seed):
    random = np.random.default_rng(seed)
    batches = epochs(random.integers(2, 60, count), size, random)
    per_epoch = count // min(size, count)
    for _ in range(2):
        epoch = np.concatenate([next(batches) for _ in range(per_epoch)])
        assert len(set(epoch)) == len(epoch) == per_epoch * min(size, count)


def test_no_demonstration_is_left_out_for_its_length():
    """Six demonstrations in batches of four: over many epochs each is seen about equally often."""
    batches = epochs(np.array([2, 5, 9, 20, 40, 80]), 4, np.random.default_rng(0))
    seen = np.bincount(np.concatenate([next(batches) for _ in range(300)]), minlength=6)
    assert seen.min() > 0.8 * seen.mean()


def test_demonstrations_without_loss_are_refused(config, demonstrations):
    silent = replace(demonstrations[0], loss_mask=np.zeros_like(demonstrations[0].loss_mask))
    for wrong in ([], [*demonstrations, silent]):
        with pytest.raises(ValueError, match="carries loss"):
            spec().fit(config.build(seed=0), wrong)


def test_balance_loss_is_the_switch_transformers(config):
    random = np.random.default_rng(0)
    model = config.build(seed=0)
    lengths = [7, 4, 2]
    ids = torch.tensor(random.integers(0, config.vocab_size, 13))
    expected = []
    for layer in range(config.num_hidden_layers):
        share, probability = np.zeros(config.num_experts), np.zeros(config.num_experts)
        for sample in ids.split(lengths):
            alone = model(sample[None])
            for j in range(len(sample)):
                p = alone.router_logits[layer].softmax(-1)[j].detach().numpy()
                probability += p / 13
                for expert in alone.routed_experts[0, j, layer].tolist():
                    share[expert] += 1 / (13 * config.num_experts_per_tok)
        expected.append(config.num_experts * (share * probability).sum())
    assert balance_loss(model(ids, lengths=lengths)).item() == pytest.approx(np.mean(expected), abs=1e-5)


def test_balance_loss_keeps_experts_in_use(config, demonstrations):
    """Trained with and without: the busiest expert's share is lower with it."""

    def busiest(balance):
        model = config.build(seed=0)
        spec(steps=60, balance=balance).fit(model, demonstrations)
        used = model(torch.tensor(np.concatenate([d.token_ids for d in demonstrations])).long()[None]).routed_experts[0]
        return np.mean(
            [
                np.bincount(used[:, layer].flatten(), minlength=config.num_experts).max() / used[:, layer].numel()
                for layer in range(2)
            ]
        )

    assert busiest(1.0) < busiest(0.0)
