"""What a grid's report says, from the records of its runs."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from grid_runs import grid, ran, scored, write_grid
from matplotlib.figure import Figure

from t1x.campaign.grid_report import write_grid_report
from t1x.campaign.grid_tables import Table, measures, newest, tabulate
from t1x.campaign.record import Status
from t1x.campaign.resolve_cells import Cells, resolve_cells
from t1x.cli import main
from t1x.config import ConfigError, load

RATES = {
    "reward=dense,r3=on": (0.50, 0.60),
    "reward=dense,r3=off": (0.30, 0.50),
    "reward=binary,r3=on": (0.40, 0.46),
    "reward=binary,r3=off": (0.20, 0.30),
}


def full(tmp_path: Path, seeds: int = 2) -> Cells:
    cells = grid(tmp_path, f"Grid.seeds = {tuple(range(seeds))}")
    for each in cells.experiments:
        ran(cells, each, scores=scored(RATES[each.cell.combination][each.cell.seed]))
    return cells


def table(cells: Cells) -> Table:
    return tabulate(cells.grid, newest(cells), ("held_out", "resolved_rate"))


def test_means_differences_and_effects_over_two_seeds(tmp_path: Path) -> None:
    found = table(full(tmp_path))
    rates = {name: np.array(values) for name, values in RATES.items()}
    baseline = rates["reward=dense,r3=on"]
    for row in found.rows:
        values = rates[",".join(f"{axis}={level}" for axis, level in row.levels)]
        assert row.value is not None
        assert (row.value.mean, row.value.error) == pytest.approx((values.mean(), values.std(ddof=1) / 2**0.5))
        if values is baseline:
            assert row.difference is None
        else:
            less = values - baseline
            assert row.difference is not None
            assert (row.difference.mean, row.difference.error) == pytest.approx((less.mean(), less.std(ddof=1) / 2**0.5))
    binary, off = found.effects
    by_seed = (rates["reward=binary,r3=on"] - baseline + rates["reward=binary,r3=off"] - rates["reward=dense,r3=off"]) / 2
    assert binary.value is not None
    assert (binary.axis, binary.level, binary.baseline, binary.pairs, binary.due) == ("reward", "binary", "dense", 4, 4)
    assert (binary.value.mean, binary.value.error) == pytest.approx((by_seed.mean(), by_seed.std(ddof=1) / 2**0.5))
    assert (off.axis, off.level) == ("r3", "off")


GAPS = {"on": (0.006, 0.008), "off": (0.011, 0.015)}
"""Of each seed, by the level of r3: the mean over its steps."""


def with_gaps(tmp_path: Path, seeds: int, *metrics: str) -> Cells:
    """A grid whose runs logged the gap at two steps, and at a third that has none."""
    cells = grid(tmp_path, f"Grid.seeds = {tuple(range(seeds))}", f"Grid.metrics = {metrics}")
    for each in cells.experiments:
        gap = GAPS[dict(each.cell.levels)["r3"]][each.cell.seed]
        steps: list[dict[str, float | None]] = [
            {"mismatch/engine_gap": gap - 0.002},
            {"mismatch/engine_gap": gap + 0.002},
            {"mismatch/engine_gap": None},
            {"warmup/mismatch/engine_gap": 9.0},
        ]
        lines = [json.dumps({"step": step, "time": 0.0, "metrics": metrics}) for step, metrics in enumerate(steps)]
        (ran(cells, each, scores=scored(0.5)).folder / "log.jsonl").write_text("\n".join([*lines, ""]))
    return cells


def test_training_metrics_are_compared_by_their_means_over_steps(tmp_path: Path) -> None:
    cells = with_gaps(tmp_path, 2, "mismatch/engine_gap")
    found = newest(cells)
    assert measures(cells.grid, found)[:2] == [("", "mismatch/engine_gap"), ("held_out", "resolved_rate")]
    gaps = tabulate(cells.grid, found, ("", "mismatch/engine_gap"))
    on, off = (np.array(values) for values in GAPS.values())
    for row in gaps.rows:
        values = GAPS[dict(row.levels)["r3"]]
        assert row.value is not None
        assert (row.value.mean, row.value.error) == pytest.approx((np.mean(values), np.std(values, ddof=1) / 2**0.5))
    reward, r3 = gaps.effects
    assert reward.value is not None
    assert r3.value is not None
    assert reward.value.mean == pytest.approx(0)
    assert (r3.value.mean, r3.value.error) == pytest.approx(((off - on).mean(), (off - on).std(ddof=1) / 2**0.5))
    markdown, table, _ = write_grid_report(cells)
    assert "## mismatch/engine_gap, mean over training steps" in markdown.read_text()
    assert "| r3 | off | on | +0.0060 ± 0.0010 | 2 | 4 of 4 |" in markdown.read_text()
    with table.open() as file:
        first = next(csv.DictReader(file))
    assert (first["suite"], first["measure"], first["stderr_over"]) == ("", "mismatch/engine_gap", "seeds")
    assert float(first["mean"]) == pytest.approx(0.007)


def test_a_training_metric_of_one_seed_has_no_error(tmp_path: Path) -> None:
    markdown = write_grid_report(with_gaps(tmp_path, 1, "mismatch/engine_gap"))[0].read_text()
    assert "| dense | off | 1 of 1 | 0.0110 ± ? (one seed) | +0.00500 ± ? (one seed) |" in markdown


def test_a_training_metric_that_no_run_has_is_told(tmp_path: Path) -> None:
    markdown = write_grid_report(with_gaps(tmp_path, 1, "mismatch/enginegap"))[0].read_text()
    assert "No run that has finished has this metric; did you mean 'mismatch/engine_gap'?" in markdown
    assert "| dense | on | 0 of 1 (1 without it) | missing | (baseline) |" in markdown
    with pytest.raises(ConfigError, match=r"metrics names '\.\./gap'"):
        grid(tmp_path, "Grid.metrics = ('../gap',)")


def test_what_has_not_finished_is_missing(tmp_path: Path) -> None:
    cells = grid(tmp_path, "Grid.seeds = (0, 1)")
    done, other, failed = cells.experiments[0], cells.experiments[2], cells.experiments[4]
    ran(cells, done, scores=scored(0.5))
    ran(cells, other, scores=scored(0.3))
    ran(cells, failed, Status.FAILED, scores=scored(0.9))
    rows = table(cells).rows
    assert [row.missing for row in rows] == ["1 new", "1 new", "1 failed, 1 new", "2 new"]
    assert rows[2].value is None
    assert rows[1].difference is not None
    assert rows[1].difference.over == "tasks"
    markdown = write_grid_report(cells)[0].read_text()
    assert "2 of 8 cells have finished." in markdown
    assert "| dense | on | 1 of 2 (1 new) | 0.500 ± 0.050 (tasks) | (baseline) |" in markdown
    assert "| dense | off | 1 of 2 (1 new) | 0.300 ± 0.050 (tasks) | -0.200 ± 0.071 (tasks) |" in markdown
    assert "| binary | on | 0 of 2 (1 failed, 1 new) | missing | missing |" in markdown
    assert "| reward | binary | dense | missing | 0 | 0 of 4 |" in markdown
    assert "0.9" not in markdown


def test_the_newest_finished_run_of_a_cell_counts(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    each = cells.experiments[0]
    ran(cells, each, started=1, scores=scored(0.1))
    ran(cells, each, started=2, scores=scored(0.2))
    ran(cells, each, Status.KILLED, started=3)
    value = table(cells).rows[0].value
    assert value is not None
    assert value.mean == 0.2


def test_the_csv_has_a_line_for_each_combination_in_each_measure(tmp_path: Path) -> None:
    cells = full(tmp_path)
    with write_grid_report(cells)[1].open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["measure"], row["reward"], row["r3"]) for row in rows[:5]] == [
        ("resolved_rate", "dense", "on"),
        ("resolved_rate", "dense", "off"),
        ("resolved_rate", "binary", "on"),
        ("resolved_rate", "binary", "off"),
        ("partial_credit", "dense", "on"),
    ]
    assert float(rows[1]["mean"]) == pytest.approx(0.4)
    assert float(rows[1]["difference_mean"]) == pytest.approx(-0.15)
    assert (rows[1]["stderr_over"], rows[1]["seeds"], rows[1]["seeds_due"], rows[1]["missing"]) == ("seeds", "2", "2", "")
    assert rows[0]["difference_mean"] == ""


def test_an_error_over_a_single_task_is_not_known(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0], scores=scored(0.5, None))
    assert "| 0.500 ± ? (tasks) |" in write_grid_report(cells)[0].read_text()


def test_the_figure_has_a_dot_with_its_error_for_each_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    cells = grid(tmp_path)
    for each in cells.experiments[:3]:
        ran(cells, each, scores=scored(RATES[each.cell.combination][0]))
    write_grid_report(cells)
    (panel,) = drawn[0].axes
    assert [label.get_text() for label in panel.get_yticklabels()] == [
        "reward dense, r3 on",
        "reward dense, r3 off",
        "reward binary, r3 on",
        "reward binary, r3 off",
    ]
    bars = [container.lines[0] for container in panel.containers]
    assert [bar.get_xdata()[0] for bar in bars] == [0.5, 0.3, 0.4]
    colours = [bar.get_color() for bar in bars]
    assert colours[0] == colours[1] != colours[2]
    assert [text.get_text() for text in panel.texts] == ["missing"]
    assert panel.get_xlabel() == "held_out: resolved rate (bars: standard error over tasks)"


def test_a_report_before_anything_has_finished(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0], Status.FAILED)
    assert write_grid_report(cells) == []
    assert not cells.folder.exists()
    assert measures(cells.grid, newest(cells)) == []


def test_a_report_of_cells_that_have_no_suites(tmp_path: Path) -> None:
    cells = grid(tmp_path)
    ran(cells, cells.experiments[0])
    written = write_grid_report(cells)
    assert [path.name for path in written] == ["grid.md", "grid.csv"]
    assert "1 of 4 cells have finished. None of them has measured anything." in written[0].read_text()


def report_of(file: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["grid", "report", str(file)]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_command_says_how_many_have_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_grid(tmp_path)
    cells = resolve_cells(load(file), site="laptop")
    nothing = f"0 of 4 cells have finished; run `t1x grid run {file}`"
    assert report_of(file, capsys) == [nothing]
    assert not (tmp_path / "runs").exists()
    (resolve_cells(load(file), site="laptop", smoke=True).folder / "cells").mkdir(parents=True)
    assert report_of(file, capsys) == [f"{nothing}; there is a smoke test of it: add --smoke to see what that says"]
    for each in cells.experiments[:3]:
        ran(cells, each, scores=scored(0.5))
    assert report_of(file, capsys) == [
        "3 of 4 cells have finished",
        *(str(cells.folder / "report" / name) for name in ("grid.md", "grid.csv", "grid.png")),
    ]
