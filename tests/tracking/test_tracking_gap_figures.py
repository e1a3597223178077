"""Figures of the gap: what is drawn, looked up in the figure itself."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from t1x.tracking.gap_figures import DODGE, LEAST, flip_curves, gap_histograms


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that is saved."""
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *args, **more: (figures.append(figure), save(figure, *args, **more))[1])
    return figures


def labels(figure: Figure, panel: int = 0) -> list[str]:
    return [text.get_text() for text in figure.axes[panel].get_legend().get_texts()]


def test_a_histogram_holds_every_gap(drawn: list[Figure], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    panels = {
        "float32": {"a": np.zeros(7), "b": np.append(10.0 ** random.uniform(-7, 1, 99), 0.0)},
        "bfloat16": {"a": np.full(3, 1e-15), "b": np.array([50.0])},
    }
    gap_histograms(tmp_path / "gap.png", panels, "title")
    assert (tmp_path / "gap.png").read_bytes().startswith(b"\x89PNG")
    for index, cells in enumerate(panels.values()):
        axes = drawn[0].axes[index]
        assert labels(drawn[0], index) == list(cells)
        for patch, values in zip(axes.patches, cells.values(), strict=True):
            assert patch.get_data().values.sum() == pytest.approx(1), len(values)  # type: ignore[attr-defined]
        assert axes.get_xscale() == axes.get_yscale() == "log"


def test_a_histogram_of_nothing_but_zeros(drawn: list[Figure], tmp_path: Path) -> None:
    gap_histograms(tmp_path / "gap.png", {"float32": {"a": np.zeros(4)}})
    edges = drawn[0].axes[0].patches[0].get_data().edges  # type: ignore[attr-defined]
    assert edges[0] >= LEAST
    assert np.diff(edges).min() > 0


def test_curves_show_bins_in_which_nothing_flips_too(drawn: list[Figure], tmp_path: Path) -> None:
    bins = [(0.01, 0.2, 0.02), (0.1, 0.05, None), (1.0, 0.0, 0.0)]
    flip_curves(tmp_path / "flips.png", {"float32": [(at, 0.0, 0.0) for at, _, _ in bins], "bfloat16": bins})
    axes = drawn[0].axes[0]
    assert labels(drawn[0]) == ["float32 engine", "bfloat16 engine"]
    other, line = (container[0] for container in axes.containers)
    np.testing.assert_allclose(line.get_ydata(), [share for _, share, _ in bins])
    np.testing.assert_allclose(line.get_xdata() / [at for at, _, _ in bins], np.sqrt(DODGE))
    np.testing.assert_allclose(other.get_xdata() * line.get_xdata(), [at**2 for at, _, _ in bins], err_msg="one on either side")
    bars = axes.containers[1][2][0].get_segments()  # type: ignore[index]
    assert [len(bar) for bar in bars] == [2, 0, 2], "none where nobody knows an error"
    assert np.diff(bars[0][:, 1]).item() == pytest.approx(2 * 0.02), "± a standard error, as in the table"
