"""Figures: the numbers that are drawn, and that a picture comes out."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread

from t1x.tracking.figures import Evaluation, learning_curve, moving_average, study_curve

STEPS = [1, 2, 3, 4]


@pytest.fixture
def drawn(monkeypatch) -> list[Figure]:
    """The figures that were saved."""
    saved: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kwargs: (saved.append(self), save(self, *args, **kwargs))[1])
    return saved


@given(st.lists(st.none() | st.floats(-1e3, 1e3), max_size=12), st.integers(1, 6))
def test_moving_average_is_the_mean_of_the_last_known_values(values, window):
    padded = [np.nan] * (window - 1) + [np.nan if value is None else value for value in values]
    windows = np.lib.stride_tricks.sliding_window_view(np.array(padded), window) if values else np.empty((0, window))
    expected = [row[~np.isnan(row)].mean() if not np.isnan(row).all() else np.nan for row in windows]
    np.testing.assert_allclose(moving_average(values, window), expected, rtol=1e-9, atol=1e-9)


def test_window_below_one_is_refused():
    with pytest.raises(ValueError, match="window of at least 1, not 0"):
        moving_average([1.0], 0)


def test_learning_curve_draws_points_averages_error_bars_and_levels(tmp_path, drawn):
    path = tmp_path / "report" / "learning_curve.png"
    learning_curve(
        path,
        STEPS,
        {"training": [0.0, 0.5, None, 1.0], "reward": [0.1, 0.2, 0.3, 0.4]},
        2,
        evaluations={
            "held-out": [Evaluation(None, 0.01, 0.005), Evaluation(0, 0.2, 0.05), Evaluation(4, 0.6, 0.05)],
        },
        axes={
            "training": "resolved (share)",
            "held-out": "resolved (share)",
            "reward": "reward (P/20)",
        },
        title="seed 0",
    )
    image = imread(path)
    assert image.shape[0] > 800
    assert image.shape[1] > 800
    resolved, reward = drawn[0].axes
    assert [axis.get_ylabel() for axis in drawn[0].axes] == ["resolved (share)", "reward (P/20)"]
    assert reward.get_xlabel() == "training step (dots: one step; lines: mean of the last 2)"
    lines = [list(line.get_ydata()) for line in resolved.lines]
    assert any(np.array_equal(line, [0.0, 0.5, math.nan, 1.0], equal_nan=True) for line in lines), "raw points"
    assert [0.0, 0.25, 0.5, 1.0] in lines, "moving average"
    assert [0.2, 0.6] in lines, "evaluations"
    assert [0.01, 0.01] in lines, "level"
    (bars,) = (bar for bar in resolved.containers)
    low_high = [segment[:, 1].tolist() for segment in bars[2][0].get_segments()]
    np.testing.assert_allclose(low_high, [[0.15, 0.25], [0.55, 0.65]])
    assert sorted(text.get_text() for text in resolved.get_legend().get_texts()) == ["held-out", "training", "untrained"]
    assert reward.get_legend() is None


def curve_of(tmp_path: Path, drawn: list[Figure], *args, **kwargs) -> list[Axes]:
    learning_curve(tmp_path / "f.png", *args, **kwargs)
    return drawn[-1].axes


def test_rates_of_zero_are_drawn_on_an_axis_that_a_share_can_have(tmp_path, drawn):
    nothing = {"held-out": [Evaluation(step, 0.0, 0.0) for step in (None, 0, 4)]}
    axes = {"training": "rate", "held-out": "rate"}
    rate, reward = curve_of(
        tmp_path, drawn, STEPS, {"training": [0.0] * 4, "reward": [0.0] * 4}, 2, evaluations=nothing, axes=axes, rates=["rate"]
    )
    assert rate.get_ylim() == (-0.02, 0.1)
    bottom, top = reward.get_ylim()
    assert bottom < 0 < top
    assert top - bottom > 0.01
    (rate,) = curve_of(tmp_path, drawn, STEPS, {"rate": [0.5, 0.6, 0.7, 0.8]}, 2, rates=["rate"])
    assert rate.get_ylim()[0] == -0.02
    assert 0.8 < rate.get_ylim()[1] < 1


def test_a_panel_without_a_value_says_why(tmp_path, drawn):
    axes = curve_of(
        tmp_path, drawn, STEPS, {"critic": [None] * 4, "reward": [0.1] * 4}, 2, undefined={"critic": "returns didn't vary"}
    )
    assert [[text.get_text() for text in panel.texts] for panel in axes] == [["returns didn't vary"], []]


def lines_of(panel: Axes) -> list[str]:
    return [line.get_linestyle() for line in panel.lines if line.get_linestyle() != "None" and len(line.get_xdata()) > 0]


def test_two_points_are_not_joined_by_a_line(tmp_path, drawn):
    points = [Evaluation(step, 0.1 * step, 0.01) for step in STEPS]
    two, three = (curve_of(tmp_path, drawn, STEPS, {}, 2, evaluations={"e": points[:count]})[0] for count in (2, 3))
    assert "--" not in lines_of(two)
    assert "--" in lines_of(three)
    assert lines_of(curve_of(tmp_path, drawn, STEPS[:2], {"reward": [0.1, 0.2]}, 2)[0]) == []
    assert lines_of(curve_of(tmp_path, drawn, STEPS[:3], {"reward": [0.1, 0.2, 0.3]}, 2)[0]) == ["-"]


def test_series_of_another_length_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(ValueError, match="reward has 2 values for 4 steps"):
        learning_curve(tmp_path / "f.png", STEPS, {"reward": [1.0, 2.0]}, 2)
    assert list(tmp_path.iterdir()) == []


def test_study_curve_compares_runs_of_different_lengths(tmp_path, drawn):
    study_curve(tmp_path / "ev.png", {"warm": (STEPS, [0.1, 0.2, 0.3, 0.4]), "cold": (STEPS[:2], [None, -0.2])}, 1, title="t")
    (panel,) = drawn[0].axes
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["warm", "cold"]
    assert [0.1, 0.2, 0.3, 0.4] in [list(line.get_ydata()) for line in panel.lines]
    assert (tmp_path / "ev.png").stat().st_size > 10_000


def test_tracking_specs_and_figures_load_without_mlflow_and_matplotlib():
    code = (
        "import sys, t1x.tracking.mlflow_tracking, t1x.tracking.figures, t1x.tracking.transcripts\n"
        "print([name for name in ('mlflow', 'matplotlib', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path("/"))
    assert done.stdout.strip() == "[]"
