"""Rollout batches that come back from disk as they were."""

from dataclasses import MISSING, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from checkpoints import same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t1x.campaign.state_tree import load_tree, save_tree
from t1x.campaign.stored_batch import batch_from_tree, batch_tree
from t1x.training.batch import Batch
from t1x.trajectory.records import Boundary, Trajectory, VersionSpan


def sample(random: np.random.Generator, layers: int, k: int) -> Trajectory:
    n = int(random.integers(2, 9))
    mask = random.random(n) < 0.5
    mask[0], mask[1] = False, True
    cuts = np.unique([0, *random.integers(0, n, 2), n])
    return Trajectory(
        token_ids=random.integers(0, 2**31 - 1, n, dtype=np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, -random.exponential(1, n), 0).astype(np.float32),
        routed_experts=random.integers(0, 256, (n - 1, layers, k)).astype(np.uint8),
        versions=tuple(VersionSpan(int(a), int(b), int(random.integers(2**40))) for a, b in pairwise(cuts)),
        boundaries=tuple(list(Boundary)[code] for code in random.integers(0, len(Boundary), random.integers(0, 4))),
        temperature=float(random.random() + 0.1),
    )


def batch(seed: int, samples: int, trials: int, layers: int = 2, k: int = 2) -> Batch:
    """Nothing in it is a default."""
    random = np.random.default_rng(seed)
    cut_off = random.random(trials) < 0.5
    cut_off[0] = True
    return Batch(
        trajectories=[sample(random, layers, k) for _ in range(samples)],
        rewards=random.normal(size=trials),
        trials=np.sort(random.integers(0, trials, samples)),
        seed=int(random.integers(2**62)) * 2**62 + seed,
        cut_off=cut_off,
    )


def contents(record: Any) -> dict[str, Any]:
    """Every field, whatever there are."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def same_batch(one: Batch, other: Batch) -> bool:
    first, second = contents(one), contents(other)
    pairs = zip(first.pop("trajectories"), second.pop("trajectories"), strict=True)
    return same(first, second) and all(same(contents(a), contents(b)) for a, b in pairs)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 1000), samples=st.integers(1, 6), trials=st.integers(1, 6), layers=st.integers(0, 2), k=st.integers(1, 2)
)
def test_a_batch_comes_back_to_the_bit(tmp_path_factory, seed: int, samples: int, trials: int, layers: int, k: int) -> None:
    folder, made = tmp_path_factory.mktemp("batch"), batch(seed, samples, trials, layers, k)
    save_tree(folder, batch_tree(made))
    assert same_batch(batch_from_tree(load_tree(folder)), made)


def test_every_field_of_a_batch_counts() -> None:
    """The batch above has no field at its default, so that a new one that isn't stored is found."""
    made = batch(0, 3, 3)
    bare = Batch(made.trajectories, made.rewards, made.trials, made.seed)
    for field in fields(Batch):
        if field.default is not MISSING or field.default_factory is not MISSING:
            assert not same_batch(made, replace(made, **{field.name: getattr(bare, field.name)})), field.name


def test_what_is_read_is_read_only() -> None:
    read = batch_from_tree(batch_tree(batch(1, 2, 2)))
    assert not any(array.flags.writeable for array in (read.trajectories[1].token_ids, read.trajectories[1].routed_experts))


def test_a_stored_batch_is_compact(tmp_path: Path) -> None:
    """A few arrays, however many samples: what they hold, and some bytes each beside."""
    made = batch(2, 500, 500)
    save_tree(tmp_path, batch_tree(made))
    held = sum(array.nbytes for each in made.trajectories for array in contents(each).values() if isinstance(array, np.ndarray))
    spans = sum(len(each.versions) for each in made.trajectories) * 24
    per_sample = 9 * 8 + 1 + 8  # lengths, temperature, trial, boundaries; a trial's reward and flag
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < held + spans + 500 * per_sample + 3000
