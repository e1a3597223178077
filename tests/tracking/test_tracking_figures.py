"""Figures: the numbers that are drawn, and that a picture comes out."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
            "held-out": [Evaluation(0, 0.2, 0.05), Evaluation(4, 0.6, 0.05)],
            "untrained": [Evaluation(None, 0.01, 0.005)],
        },
        axes={
            "training": "resolved (share)",
            "held-out": "resolved (share)",
            "untrained": "resolved (share)",
            "reward": "reward (P/20)",
        },
        title="seed 0",
    )
    image = imread(path)
    assert image.shape[0] > 800
    assert image.shape[1] > 800
    resolved, reward = drawn[0].axes
    assert [axis.get_ylabel() for axis in drawn[0].axes] == ["resolved (share)", "reward (P/20)"]
    assert reward.get_xlabel() == "training step (dots: one step; lines: mean of the last 2; dotted: untrained)"
    lines = [list(line.get_ydata()) for line in resolved.lines]
    assert any(np.array_equal(line, [0.0, 0.5, math.nan, 1.0], equal_nan=True) for line in lines), "raw points"
    assert [0.0, 0.25, 0.5, 1.0] in lines, "moving average"
    assert [0.2, 0.6] in lines, "evaluations"
    assert [0.01, 0.01] in lines, "level"
    (bars,) = (bar for bar in resolved.containers)
    low_high = [segment[:, 1].tolist() for segment in bars[2][0].get_segments()]
    np.testing.assert_allclose(low_high, [[0.15, 0.25], [0.55, 0.65]])
    assert {text.get_text() for text in resolved.get_legend().get_texts()} == {"training", "held-out", "untrained"}


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
