"""Trials as Markdown, for readers."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from t1x.rollout.causes import by_cause
from t1x.rollout.records import Trial
from t1x.text.visible import visible

NO_OUTPUT = "(no output)"
"""Stands for a tool's empty message."""
CAUSES = 20
"""Causes of invalid trials of which one is shown each."""


def transcript(trial: Trial) -> str:
    """One trial: what it was worth and why, every message, every assertion."""
    reward = "none" if trial.reward is None else f"{trial.reward:.3f}"
    facts = [f"reward {reward}{_without_record(trial)}", f"ended by `{trial.ended_by}`", f"{len(trial.turns)} turns"]
    facts += [f"{phase} {seconds:.2f} s" for phase, seconds in trial.timings.items()]
    parts = [f"## {trial.task.name} (trial {trial.id})", " · ".join(facts)]
    if trial.error:
        parts.append(_fenced(trial.error))
    for role, text in trial.transcript:
        parts += [f"**{role}**", _fenced(text or NO_OUTPUT if role == "tool" else text)]
    parts += ["**verifier**", _assertions(trial)]
    return "\n\n".join(parts) + "\n"


def write_transcripts(path: Path, trials: Sequence[Trial], source: str = "", count: int = 3) -> None:
    """Writes the `count` best and the `count` worst of the trials that have a reward to one file, no trial twice, and one invalid
    trial of each cause, with what it was; `source` is where the trials are from ("the batch of step 3"). Raises `ValueError` unless
    `count` is at least 1."""
    if count < 1:
        raise ValueError(f"at least one trial must be shown, not {count}")
    graded = [(trial.reward, trial) for trial in trials if trial.reward is not None]
    ranked = [trial for _, trial in sorted(graded, key=lambda pair: (-pair[0], pair[1].id))]
    best = ranked[:count]
    worst = ranked[count:][::-1][:count]
    invalid = by_cause(trial for trial in trials if trial.ended_by.invalid)
    parts = ["# Transcripts", _summary(trials, ranked, source, invalid)]
    if invalid:
        parts += ["# Invalid, one of each cause", *(transcript(group[0]) for group in list(invalid.values())[:CAUSES])]
    for title, chosen in (("Best", best), ("Worst", worst)):
        if chosen:
            parts += [f"# {title} {len(chosen)} by reward", *(transcript(trial) for trial in chosen)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _summary(trials: Sequence[Trial], ranked: Sequence[Trial], source: str, invalid: Mapping[str, Sequence[Trial]]) -> str:
    ends = ", ".join(f"`{end}` {number}" for end, number in Counter(trial.ended_by for trial in trials).most_common())
    rewards = [trial.reward for trial in ranked if trial.reward is not None]
    mean = f", mean reward {math.fsum(rewards) / len(rewards):.3f}" if rewards else ""
    of = f" of {source}" if source else ""
    broken = f", {count} invalid" if (count := sum(map(len, invalid.values()))) else ""
    said = f"{len(trials)} trials{of}, {len(ranked)} with a reward{mean}{broken}. Ended by: {ends or 'nothing'}."
    causes = "\n".join(f"{len(group)} × {line}" for line, group in invalid.items())
    return f"{said}\n\n{_fenced(causes)}" if causes else said


def _without_record(trial: Trial) -> str:
    """The flag of a trial that was paid although its assertions aren't known."""
    paid = trial.reward is not None and trial.report is not None and trial.report.cause is not None
    return " (**fallback**: paid without a usable record)" if paid else ""


def _assertions(trial: Trial) -> str:
    report = trial.report
    if report is None:
        return "Not run."
    attested = "" if report.outcome is None else f" The judge attests b = {report.outcome:d}."
    if report.cause is not None:
        return f"No usable report: `{report.cause}`.{attested}\n\n{_fenced(report.detail)}"
    before = report.baseline or frozenset()
    mark = " (held before the agent acted)"
    lines = [f"- {'✓' if passed else '✗'} {visible(name)}{mark if name in before else ''}" for name, passed in report.assertions]
    return "\n".join([f"{report.passed} of {report.total} assertions hold ({report.seconds:.2f} s).{attested}", "", *lines])


def _fenced(text: str) -> str:
    """A code block that ends where it should, whatever the text holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{visible(text).rstrip()}\n{fence}"
