"""Why trials have no reward: grouped, since one fault of a pool or a host breaks many of them."""

import re
from collections.abc import Iterable, Mapping

from t1x.rollout.records import Trial

_OWN = re.compile(r"\S*[\d/]\S*")
"""Words with a number or a place, in which messages with the same cause differ."""
_PRINTED = "; it printed: "
"""Before what a command of the task printed."""
_LENGTH = 240
"""Characters of a cause in a line."""


def by_cause(trials: Iterable[Trial]) -> Mapping[str, list[Trial]]:
    """The trials by what ended them, most frequent first, each under the first one's reason in one short line:
    `verifier_error: timeout: 900 s`. An unusable report is told by its cause, the rest by the message but for names and numbers."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.ended_by, _kind(trial)), []).append(trial)
    ordered = sorted(groups.values(), key=len, reverse=True)
    said: dict[str, list[Trial]] = {}
    for group in ordered:
        said.setdefault(_line(group[0]), []).extend(group)
    return said


def _kind(trial: Trial) -> str:
    if trial.report is not None and trial.report.cause is not None:
        return trial.report.cause
    first = trial.error.partition(_PRINTED)[0].strip().partition("\n")[0]
    return _OWN.sub("", first.replace(trial.task.name, ""))


def _line(trial: Trial) -> str:
    first = "".join(char if char.isprintable() else " " for char in trial.error.partition(_PRINTED)[0])
    said = f"{trial.ended_by}: {' '.join(first.split())}".removesuffix(": ")
    return said if len(said) <= _LENGTH else f"{said[: _LENGTH // 2]} … {said[-_LENGTH // 2 :]}"
