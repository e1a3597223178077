"""What a reader of a finished or interrupted campaign is told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from t1x.campaign.outcome import Outcome, Score
from t1x.campaign.report import summary, write_report


def score(step: int | None, rate: float, mode: str = "greedy", label: str = "greedy") -> Score:
    metrics = {"valid": 120.0, "tasks": 40.0, "resolved_rate": rate, "resolved_rate_se": 0.05}
    return Score(step, "held_out", mode, "", label, "resolved_rate", metrics)


def partial(step: int | None, credit: float) -> Score:
    metrics = {"valid": 9.0, "tasks": 3.0, "partial_credit": credit, "partial_credit_se": 0.05, "resolved_rate": 0.0}
    return Score(step, "long", "benchmark", "", "T = 0.1, 3 attempts", "partial_credit", metrics)


def shown(outcome: Outcome) -> list[list[str]]:
    """The words of each line of the summary, which has no blanks at its end."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(summary(outcome))
    lines = capture.get().splitlines()
    assert lines == [line.rstrip() for line in lines]
    return [line.replace("│", " ").replace("┃", " ").split() for line in lines]


def test_the_summary_has_untrained_start_and_last_step() -> None:
    scores = [score(None, 0.01), score(0, 0.4), score(1, 0.5), score(2, 0.6), score(2, 0.55, "sampled", "T = 1")]
    lines = shown(Outcome(scores=scores, steps={1: {}, 2: {}}))
    assert ["suite", "mode", "tasks", "untrained", "start", "step", "2"] in lines
    assert ["held_out", "greedy", "40", "0.010", "±", "0.050", "0.400", "±", "0.050", "0.600", "±", "0.050"] in lines
    assert ["held_out", "T", "=", "1", "40", "0.550", "±", "0.050"] in lines


def test_the_summary_of_a_campaign_without_steps() -> None:
    assert ["suite", "mode", "tasks", "untrained", "start"] in shown(Outcome(scores=[score(None, 0), score(0, 0.4)]))


def test_a_suite_is_shown_by_its_own_measure() -> None:
    lines = shown(Outcome(scores=[score(0, 0.4), partial(0, 0.75)]))
    assert " ".join(lines[0]) == "Resolved rate or partial credit, mean ± standard error over tasks"
    assert ["held_out", "greedy", "40", "0.400", "±", "0.050"] in lines
    assert ["long", "T", "=", "0.1,", "3", "attempts,", "partial", "credit", "3", "0.750", "±", "0.050"] in lines
    assert " ".join(shown(Outcome(scores=[partial(0, 0.75)]))[0]).startswith("Partial credit, mean")


def test_pass_at_k_is_shown_for_as_many_attempts_as_there_are() -> None:
    more = {
        "pass_at_1": 0.4,
        "pass_at_1_se": 0.05,
        "pass_at_2": 0.5,
        "pass_at_2_se": 0.06,
        "pass_at_10": 0.7,
        "pass_at_10_se": 0.07,
    }
    benchmark = score(0, 0.4, "benchmark", "T = 0.1, 10 attempts")
    lines = shown(Outcome(scores=[replace(benchmark, metrics=benchmark.metrics | more)]))
    assert ["held_out", "T", "=", "0.1,", "10", "attempts", "40", "0.400", "±", "0.050"] in lines
    assert ["held_out", "T", "=", "0.1,", "10", "attempts,", "pass@10", "40", "0.700", "±", "0.070"] in lines
    assert len([line for line in lines if line[:1] == ["held_out"]]) == 2


def test_scores_are_kept_under_the_policys_name(tmp_path: Path) -> None:
    written = write_report(tmp_path, Outcome(scores=[score(None, 0), score(0, 0.4), score(3, 0.5)]), "title")
    assert written == [tmp_path / "scores.json"]
    assert [row["policy"] for row in json.loads(written[0].read_text())] == ["untrained", "start", "step 3"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures that were made, instead of their files."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    return figures


def test_the_figure_has_no_panel_for_a_critic_that_is_not_there(tmp_path: Path, drawn: list[Figure]) -> None:
    steps = {step: {"rollout/reward_mean": 0.0, "rollout/resolved_rate": 0.0} for step in (1, 2, 3)}
    write_report(tmp_path, Outcome(steps=steps), "title")
    assert [panel.get_ylabel().split(" (")[0] for panel in drawn[0].axes] == ["reward", "resolved rate"]


def test_the_figure_keeps_a_panel_for_a_critic_that_has_nothing_to_explain(tmp_path: Path, drawn: list[Figure]) -> None:
    steps = {step: {"rollout/reward_mean": 0.0, "rollout/resolved_rate": 0.0, "critic/loss": 0.0} for step in (1, 2, 3)}
    scores = [score(None, 0.0), score(0, 0.0), score(3, 0.0), partial(0, 0.0), partial(3, 0.0)]
    write_report(tmp_path, Outcome(scores=scores, steps=steps), "title")
    (panel,) = (panel for panel in drawn[0].axes if panel.get_ylabel() == "critic's explained variance")
    assert [text.get_text() for text in panel.texts] == ["not defined: returns didn't vary"]
    (rates,) = (panel for panel in drawn[0].axes if panel.get_ylabel().startswith("resolved rate"))
    assert rates.get_ylim() == (-0.02, 0.1)
    (credit,) = (panel for panel in drawn[0].axes if panel.get_ylabel().startswith("partial credit"))
    assert credit.get_ylim()[0] == -0.02
