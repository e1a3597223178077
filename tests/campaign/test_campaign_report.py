"""What a reader of a finished or interrupted campaign is told."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from t1x.campaign.evaluate import Score
from t1x.campaign.loop import Outcome
from t1x.campaign.report import summary, write_report
from t1x.campaign.suite import PoolSuite
from t1x.tasks.synthetic import SyntheticPool


def score(step: int | None, rate: float, mode: str = "greedy") -> Score:
    return Score(step, "held_out", mode, {"valid": 40.0, "resolved_rate": rate, "resolved_rate_se": 0.05})


def shown(outcome: Outcome) -> list[list[str]]:
    """The words of each line of the summary."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(summary(outcome))
    return [line.replace("│", " ").replace("┃", " ").split() for line in capture.get().splitlines()]


def test_the_summary_has_untrained_start_and_last_step() -> None:
    scores = [score(None, 0.01), score(0, 0.4), score(1, 0.5), score(2, 0.6), score(2, 0.55, "sampled")]
    lines = shown(Outcome(scores=scores, steps={1: {}, 2: {}}))
    assert ["suite", "mode", "tasks", "untrained", "start", "step", "2"] in lines
    assert ["held_out", "greedy", "40", "0.010", "±", "0.050", "0.400", "±", "0.050", "0.600", "±", "0.050"] in lines
    assert ["held_out", "T", "=", "1", "40", "0.550", "±", "0.050"] in lines


def test_the_summary_of_a_campaign_without_steps() -> None:
    assert ["suite", "mode", "tasks", "untrained", "start"] in shown(Outcome(scores=[score(None, 0), score(0, 0.4)]))


def test_scores_are_kept_under_the_policys_name(tmp_path: Path) -> None:
    written = write_report(tmp_path, Outcome(scores=[score(None, 0), score(0, 0.4), score(3, 0.5)]), "title")
    assert written == [tmp_path / "scores.json"]
    assert [row["policy"] for row in json.loads(written[0].read_text())] == ["untrained", "start", "step 3"]


def test_the_figure_keeps_a_panel_for_a_critic_that_has_nothing_to_explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    steps = {step: {"rollout/reward_mean": 0.0, "rollout/resolved_rate": 0.0} for step in (1, 2, 3)}
    write_report(tmp_path, Outcome(scores=[score(None, 0.0), score(0, 0.0), score(3, 0.0)], steps=steps), "title")
    (panel,) = (panel for panel in drawn[0].axes if panel.get_ylabel() == "critic's explained variance")
    assert [text.get_text() for text in panel.texts] == ["not defined: returns didn't vary"]
    (rates,) = (panel for panel in drawn[0].axes if panel.get_ylabel().startswith("resolved rate"))
    assert rates.get_ylim() == (-0.02, 0.1)


@pytest.mark.parametrize(("every", "due"), [(0, [0, 7]), (3, [0, 3, 6, 7])])
def test_suites_are_run_at_the_start_every_so_often_and_at_the_last_step(every: int, due: list[int]) -> None:
    suite = PoolSuite(name="x", pool=SyntheticPool(split="train", size=1), every=every)
    assert [step for step in range(8) if suite.due(step, 7)] == due
