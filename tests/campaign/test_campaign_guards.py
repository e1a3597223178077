from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t1x.campaign.guard_rules import RULES
from t1x.campaign.guards import Guards
from t1x.config import Role

METRICS = sorted({rule.metric for rule in RULES.values()})


def history(**series: Sequence[float]) -> dict[int, dict[str, float]]:
    """Steps from 1 on with these metrics, whose `/` is written `__`; a None isn't there."""
    steps = range(1, 1 + max(map(len, series.values())))
    named = {name.replace("__", "/"): values for name, values in series.items()}
    return {
        step: {name: values[step - 1] for name, values in named.items() if step <= len(values) and values[step - 1] is not None}
        for step in steps
    }


def said(guards: Guards, seen: Mapping[int, Mapping[str, float]]) -> list[tuple[int, str]]:
    """(step, rule) of everything that a campaign with these metrics is told as it goes."""
    return [(step, each.name) for step in seen for each in guards.warnings(seen, step)]


def test_steps_without_a_usable_trial_stop_a_campaign() -> None:
    counts = {"rollout__launched": [8] * 5, "rollout__admitted": [8, 8, 2, 0, 0], "rollout__invalid": [0, 0, 6, 8, 7]}
    seen = history(rollout__usable=[0, 3, 0, 0, 0], rollout__cancelled=[0, 0, 0, 0, 1], **counts)
    guards = Guards(empty_steps=3)
    so_far = [guards.stop({step: seen[step] for step in range(1, last + 1)}) for last in range(6)]
    assert so_far[:5] == [None] * 5, "not empty, or not often enough"
    assert so_far[5] is not None
    text = guards.stop(seen, "7 × sandbox_error: no room (task a-1)")
    assert text is not None
    assert text.startswith("nothing to learn from in steps 3 to 5: of 24 trials none had a learning signal ")
    assert "(2 admitted, 21 invalid, 1 cancelled); the last ones: 7 × sandbox_error: no room (task a-1); " in text
    assert "Guards.empty_steps" in text
    assert Guards(empty_steps=0).stop(seen) is None
    assert (Guards(empty_steps=1).stop(seen) or "").startswith("nothing to learn from in step 5:")


def test_steps_that_do_not_count_usable_trials_are_not_empty() -> None:
    assert Guards().stop({1: {}, 2: {}, 3: {}}) is None


@pytest.mark.parametrize(
    ("name", "metric", "values", "step"),
    [
        # windows of 2 steps; the limit is crossed by the mean of the two last ones
        ("reward_collapse", "rollout/reward_mean", [0.1, 0.1, 0.4, 0.4, 0.3, 0.15, 0.1, 0.1], 7),  # 0.125 < 0.4 / 2 ≤ 0.225
        ("entropy_collapse", "actor/entropy", [1.0, 1.0, 0.5, 0.2, 0.1, 0.05], 6),  # 0.075 < 0.1 ≤ 0.15
        ("entropy_explosion", "actor/entropy", [0.2, 0.2, 0.3, 0.5, 0.6, 0.7], 6),  # 0.65 > 0.6 ≥ 0.55
        ("clip_fraction", "actor/clip_fraction", [0.1, 0.2, 0.3, 0.5], 4),  # 0.4 > 0.3 ≥ 0.25
        ("ratio", "actor/ratio_p99", [1.5, 2.0, 3.0, 4.5], 4),  # 3.75 > 3 ≥ 2.5
        ("gap_growth", "mismatch/engine_gap", [0.01, 0.01, 0.012, 0.02, 0.03], 5),  # 0.025 > 0.02 ≥ 0.016
        ("turn_growth", "rollout/turns_mean", [4, 4, 4, 6, 8, 9], 6),  # 8.5 > 8 ≥ 7
        ("explained_variance", "critic/explained_variance", [0.1, -0.1, -0.2, -0.1, -0.1], 5),  # 4 steps in a row
    ],
)
def test_each_rule_is_said_once_where_it_is_crossed(name: str, metric: str, values: list[float], step: int) -> None:
    guards = Guards(window=2, explained_variance=4)
    seen = {at: {metric: value} for at, value in enumerate(values, start=1)}
    assert said(guards, seen) == [(step, name)]
    (warning,) = guards.warnings(seen, step)
    assert "ook at " in warning.text
    assert [guards.metrics(seen, at)[f"guard/{name}"] for at in seen] == [float(at >= step) for at in seen]
    off = Guards(**{"window": 2, "explained_variance": 4, name: 0})
    assert said(off, seen) == []
    assert f"guard/{name}" not in off.metrics(seen, step)


def test_what_comes_back_is_said_again() -> None:
    fractions = [0.4, 0.4, 0.0, 0.0, 0.5, 0.5]
    assert said(Guards(window=2), history(actor__clip_fraction=fractions)) == [(2, "clip_fraction"), (6, "clip_fraction")]


def test_a_reward_is_compared_with_its_best_window_not_with_the_first() -> None:
    rewards = [0.1] * 5 + [0.4] * 5 + [0.14] * 5
    assert said(Guards(), history(rollout__reward_mean=rewards)) == [(14, "reward_collapse")]  # (0.4 + 4 · 0.14) / 5 < 0.4 / 2
    assert said(Guards(), history(rollout__reward_mean=[-0.1] * 5 + [-4.0] * 10)) == [], "no share of what isn't positive"


def test_a_gap_of_rounding_may_grow() -> None:
    assert said(Guards(), history(mismatch__engine_gap=[1e-7] * 5 + [9e-4] * 10)) == []


def test_a_batch_that_is_mostly_paid_without_a_record_is_said_with_its_causes() -> None:
    """From the first one on, and not where half of it is."""
    shares = [0.8, 0.5, 0.0]
    causes = {"rollout__unusable__timeout": [1, 0, 0], "rollout__unusable__missing": [5, 3, 0]}
    seen = history(rollout__fallback_share=shares, **causes)
    assert said(Guards(), seen) == [(1, "fallback_share")]
    (warning,) = Guards().warnings(seen, 1)
    assert warning.text.startswith("80% of the trials of a batch were paid without a usable record")
    assert "`t1x tasks check`" in warning.text
    assert warning.text.endswith("; causes: 5 × missing, 1 × timeout")
    assert said(Guards(fallback_share=0.4), seen) == [(1, "fallback_share")]
    assert said(Guards(fallback_share=0), seen) == []


def test_a_later_step_changes_nothing_that_was_said() -> None:
    """As for a campaign that is resumed from step 6: the history goes on, what was said stays."""
    values = [0.1, 0.1, 0.4, 0.4, 0.3, 0.15, 0.1, 0.1]
    seen = history(rollout__reward_mean=values)
    for step in seen:
        assert Guards(window=2).warnings(seen, step) == Guards(window=2).warnings(history(rollout__reward_mean=values[:step]), step)


def test_steps_without_a_metric_are_passed_over() -> None:
    """No update was made in steps 3 and 5: nothing is said twice there, and nothing is forgotten."""
    seen = history(actor__clip_fraction=[0.4, 0.4, None, 0.4, None, 0.4], rollout__usable=[8, 8, 0, 8, 0, 8])
    assert said(Guards(window=2), seen) == [(2, "clip_fraction")]
    assert Guards().metrics({1: {}}, 1) == {}
    assert Guards().warnings({}, 1) == []


@given(
    st.lists(st.sampled_from(METRICS), unique=True),
    st.floats(0, 0.3, allow_subnormal=False),
    st.integers(1, 40),
    st.integers(1, 6),
)
def test_nothing_is_said_where_nothing_changes(metrics: list[str], value: float, steps: int, window: int) -> None:
    """Of any value that isn't wrong in itself."""
    seen = {step: dict.fromkeys(metrics, value) for step in range(1, steps + 1)}
    assert said(Guards(window=window), seen) == []


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30), st.integers(1, 4))
def test_a_rule_is_said_exactly_where_its_metric_rises(values: list[float], window: int) -> None:
    seen = history(**{metric.replace("/", "__"): values for metric in METRICS})
    guards = Guards(window=window, explained_variance=2)
    logged = {name: [guards.metrics(seen, step)[f"guard/{name}"] for step in seen] for name in RULES}
    rises = {(step + 1, name) for name, line in logged.items() for step in np.flatnonzero(np.diff([0.0, *line]) > 0)}
    assert set(said(guards, seen)) == rises


def test_no_guard_is_part_of_what_is_studied() -> None:
    assert {Guards.role(field) for field in Guards.model_fields} == {Role.PLACEMENT}
    assert RULES.keys() <= Guards.model_fields.keys()
