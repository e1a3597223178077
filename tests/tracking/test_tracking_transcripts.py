"""Trials as a reader sees them."""

from dataclasses import replace

import pytest

from t1x.grading.report import VerifierReport, unusable
from t1x.rollout.records import Trial
from t1x.tasks.task import Task
from t1x.tracking.transcripts import transcript, write_transcripts
from t1x.trajectory.ending import EndedBy


def trial(name: str, reward: float | None, report: VerifierReport | None = None, messages=(), **fields) -> Trial:
    task = Task(name=name, instruction="", environment=(), tests=(), solution=())
    values = {"ended_by": EndedBy.DONE, "turns": (), "trajectories": ()} | fields
    return Trial(id=f"id-{name}", task=task, report=report, reward=reward, transcript=tuple(messages), **values)


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_everything_is_in_the_transcript_in_order():
    report = VerifierReport(assertions=(("sorted", True), ("no duplicates", False)), seconds=0.25)
    messages = [("user", "Sort a.txt."), ("assistant", "sort -o a.txt a.txt"), ("tool", "exit 0")]
    text = transcript(trial("sort_lines-7", 0.05, report, messages, timings={"agent": 1.5, "verify": 0.25}))
    wanted = [
        "sort_lines-7",
        "reward 0.050",
        "ended by `done`",
        "agent 1.50 s",
        "**user**",
        "Sort a.txt.",
        "**assistant**",
        "sort -o a.txt a.txt",
    ]
    wanted += ["**tool**", "exit 0", "1 of 2 assertions hold", "✓ sorted", "✗ no duplicates"]
    places = [text.index(each) for each in wanted]
    assert places == sorted(places)


def test_text_cannot_leave_its_block_or_disturb_the_terminal():
    text = transcript(trial("t", 0.0, messages=[("tool", "```\n# heading\n````\n\x1b[31mred\x9b\r\n\ttab")]))
    block = text.split("**tool**\n\n")[1].split("\n\n**verifier**")[0]
    assert block.splitlines()[0] == block.splitlines()[-1] == "`````"
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
    assert "^[[31mred" in text
    assert "\ttab" in text


def test_an_empty_output_is_told_from_a_missing_one():
    text = transcript(trial("t", 0.0, messages=[("assistant", ""), ("tool", "")]))
    assert "**assistant**\n\n```\n\n```\n\n**tool**\n\n```\n(no output)\n```" in text


def test_invalid_trial_says_why():
    text = transcript(trial("t", None, ended_by=EndedBy.SANDBOX_ERROR, error="bwrap: gone"))
    assert "reward none" in text
    assert "bwrap: gone" in text
    assert "Not run." in text
    broken = transcript(trial("t", None, VerifierReport(assertions=(), cause="truncated", detail="line 3")))
    assert "`truncated`" in broken
    assert "line 3" in broken


def test_what_was_paid_without_a_record_is_marked():
    report = VerifierReport(assertions=(), cause="truncated", detail="line 3", outcome=True)
    text = transcript(trial("t", 0.2, report))
    assert "reward 0.200 (**fallback**: paid without a usable record) · ended by" in text
    assert "No usable report: `truncated`. The judge attests b = 1." in text
    unpaid = transcript(trial("t", None, replace(report, outcome=None), ended_by=EndedBy.VERIFIER_ERROR))
    assert "fallback" not in unpaid
    assert "attests" not in unpaid


def test_what_held_before_the_agent_acted_is_marked():
    report = VerifierReport(
        (("made", True), ("sorted", True), ("left", False)), outcome=False, baseline=frozenset({"made", "left"})
    )
    text = transcript(trial("t", 0.05, report))
    assert "2 of 3 assertions hold (0.00 s). The judge attests b = 0." in text
    assert "- ✓ made (held before the agent acted)\n- ✓ sorted\n- ✗ left (held before the agent acted)\n" in text
    assert "fallback" not in text


def test_best_and_worst_without_repeats(tmp_path):
    trials = [trial(f"t{i}", reward) for i, reward in enumerate([0.1, 0.4, None, 0.0, 0.3, 0.2])]
    path = tmp_path / "new" / "transcripts.md"
    write_transcripts(path, trials, count=2)
    text = path.read_text()
    assert [h.split()[1] for h in headings(text)] == ["Transcripts", "Best", "t1", "t4", "Worst", "t3", "t0"]
    assert "\n# Best 2 by reward\n" in text
    assert "\n# Worst 2 by reward\n" in text
    assert "6 trials, 5 with a reward, mean reward 0.200" in text
    write_transcripts(path, trials, "the batch of step 3", count=2)
    assert "6 trials of the batch of step 3, 5 with a reward" in path.read_text()
    write_transcripts(path, trials[:4], count=2)
    assert [h.split()[1] for h in headings(path.read_text())] == ["Transcripts", "Best", "t1", "t0", "Worst", "t3"]


def test_invalid_trials_are_counted_and_one_of_each_cause_is_shown(tmp_path):
    detail = "Traceback\n" * 9
    broken = [
        trial(
            f"v{i}", None, unusable("missing", detail), ended_by=EndedBy.VERIFIER_ERROR, error=f"missing: {detail}", messages=said
        )
        for i, said in enumerate([[("user", "Sort.")], [], []])
    ]
    refused = [trial(f"s{i}", None, ended_by=EndedBy.SANDBOX_ERROR, error=f"no room on disk {i} for s{i}") for i in range(2)]
    graded = [trial(f"t{i}", i / 10) for i in range(10)]
    write_transcripts(tmp_path / "t.md", [*refused, *graded, *broken, trial("c", None, ended_by=EndedBy.CANCELLED)], count=1)
    text = (tmp_path / "t.md").read_text()
    assert "16 trials, 10 with a reward, mean reward 0.450, 5 invalid." in text
    assert "\n3 × verifier_error: missing: Traceback Trace" in text
    assert "\n2 × sandbox_error: no room on disk 0 for s0\n" in text
    shown = [h.split()[1].rstrip(",") for h in headings(text)]
    assert shown == ["Transcripts", "Invalid", "v0", "s0", "Best", "t9", "Worst", "t0"]
    assert f"```\n{detail}```" in text
    assert "Sort." in text


def test_no_graded_trial(tmp_path):
    write_transcripts(tmp_path / "t.md", [trial("t", None, ended_by=EndedBy.CANCELLED)])
    assert "1 trials, 0 with a reward. Ended by: `cancelled` 1." in (tmp_path / "t.md").read_text()


def test_count_below_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        write_transcripts(tmp_path / "t.md", [], count=0)
