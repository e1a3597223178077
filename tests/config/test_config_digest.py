"""What digests cover, and smoke sizes."""

import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from place_toys import PlaceBench, PlaceCrate, PlaceMill, PlaceRun

from t1x.config import ConfigError
from t1x.config.digest import run_digest, study_digest
from t1x.config.mapping import plain
from t1x.config.smoke import shrink

BASE = PlaceRun(goods=PlaceCrate())

crates = st.builds(PlaceCrate, label=st.sampled_from("ab"), size=st.integers(1, 9), where=st.sampled_from([Path("x"), Path("y")]))
runs = st.builds(
    PlaceRun,
    goods=crates,
    method=st.sampled_from("ab"),
    batch=st.integers(1, 4),
    limit=st.none() | st.integers(0, 3),
    seed=st.integers(0, 2),
    machine=st.just(PlaceMill()) | st.builds(PlaceBench, cores=st.integers(1, 2)),
    more=st.dictionaries(st.sampled_from("ab"), crates, max_size=2),
)


def changed(**fields) -> PlaceRun:
    return BASE.model_copy(update=fields)


@pytest.mark.parametrize(
    ("other", "study", "run"),
    [
        (changed(), True, True),
        (changed(method="fast"), False, False),
        (changed(goods=PlaceCrate(label="pears")), False, False),
        (changed(more={"a": PlaceCrate()}), False, False),
        (changed(batch=4), True, False),
        (changed(goods=PlaceCrate(size=3)), True, False),
        (changed(seed=1), True, False),
        (changed(goods=PlaceCrate(where=Path("elsewhere"))), True, True),
        (changed(machine=PlaceBench(cores=4)), True, True),
        (changed(machine=PlaceBench(precision="half")), True, False),
        (changed(site="hut"), True, True),
    ],
)
def test_what_each_digest_covers(other: PlaceRun, study: bool, run: bool) -> None:
    assert (study_digest(other) == study_digest(BASE)) is study
    assert (run_digest(other) == run_digest(BASE)) is run


def covered(root: PlaceRun) -> tuple:
    """The slow, obvious version: everything of a run that the run's digest covers."""

    def crate(one: PlaceCrate) -> tuple:
        return one.label, one.size

    more = tuple((key, crate(root.more[key])) for key in sorted(root.more))
    return crate(root.goods), root.method, root.batch, root.limit, root.seed, root.machine.precision, more


@given(runs, runs)
def test_run_digests_are_equal_where_what_they_cover_is(one: PlaceRun, other: PlaceRun) -> None:
    assert (run_digest(one) == run_digest(other)) == (covered(one) == covered(other))


@given(runs)
def test_smoke_sizes_are_at_most_what_they_were(root: PlaceRun) -> None:
    small = shrink(root)
    assert small.batch == min(root.batch, 2)
    assert small.limit == (1 if root.limit is None else min(root.limit, 1))
    assert small.goods.size == min(root.goods.size, 3)
    assert {key: crate.size for key, crate in small.more.items()} == {key: min(crate.size, 3) for key, crate in root.more.items()}
    assert study_digest(small) == study_digest(root)
    assert (small.method, small.seed, small.machine) == (root.method, root.seed, root.machine)


def test_sizes_that_do_not_fit_when_cut_are_refused() -> None:
    class PlaceStrict(PlaceRun):
        """Needs a batch of 3 or more."""

        def model_post_init(self, context: object) -> None:
            if self.batch < 3:
                raise ValueError("batch must be 3 or more")

    with pytest.raises(ConfigError, match="PlaceStrict can't be cut to a smoke test: batch must be 3 or more"):
        shrink(PlaceStrict(goods=PlaceCrate()))


def test_a_set_has_one_digest() -> None:
    code = "from t1x.config.mapping import plain; print(plain(frozenset({'plums', 'pears', 'figs', 'dates'})))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in "123"
    }
    assert texts == {"['dates', 'figs', 'pears', 'plums']\n"}


@pytest.mark.parametrize("value", [datetime(2020, 1, 1), Decimal("1.5"), int])
def test_what_no_experiment_can_hold_is_said(value: object) -> None:
    with pytest.raises(ValueError, match=f"is a {type(value).__name__}, which an experiment can't hold; declare the field"):
        plain(value)
