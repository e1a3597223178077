"""Harbor's way to tell a verdict: `test.sh` leaves reward.json or reward.txt, and maybe a CTRF report beside it.

Weaker than the other modes: whatever `test.sh` runs in its own process can write these files, and so can code of the agent that it
imports or runs unconfined.
"""

import json
import math
import os
import stat
from dataclasses import replace
from pathlib import Path

from t1x.grading.ctrf import read_ctrf
from t1x.grading.report import VerifierReport, unusable

REWARDS = ("reward.json", "reward.txt")
"""Files with a reward; the first goes before the other."""
_MAX_BYTES = 1 << 16


class _BadReward(ValueError):
    pass


def read_harbor(folder: Path, assertions: int | None) -> VerifierReport:
    """The verdict in the folder: reward.json goes before reward.txt, b is whether the reward is 1 or more, and ctrf.json has the
    assertions. `assertions` is how many the pool knows of."""
    try:
        name, reward = _reward(folder)
    except FileNotFoundError:
        return unusable("missing", "test.sh wrote neither reward.json nor reward.txt")
    except _BadReward as error:
        return unusable("bad_reward", str(error))
    report = replace(read_ctrf(folder / "ctrf.json", assertions), outcome=reward >= 1)
    if report.cause is None and report.outcome and report.passed < report.total:
        detail = f"the reward is {reward:g}, but only {report.passed} of {report.total} assertions pass"
        return unusable("summary_mismatch", detail)
    if not report.outcome:
        told = f"{name} holds {reward:g}, and only 1 or more means that the task is solved"
        return replace(report, detail="; ".join(filter(None, [told, report.detail])))
    return report


def _reward(folder: Path) -> tuple[str, float]:
    """(file, what it holds)."""
    json_file, text_file = REWARDS
    try:
        text = _text(folder / json_file)
    except FileNotFoundError:
        text = _text(folder / text_file)
        try:
            return text_file, _finite(float(text), text_file)
        except ValueError as error:
            raise _BadReward(f"reward.txt holds {text[:40]!r}, not a number") from error
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BadReward(f"reward.json isn't JSON: {error}") from None
    if isinstance(value, dict):
        if "reward" not in value:
            raise _BadReward("reward.json has no 'reward'")
        value = value["reward"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _BadReward(f"the reward in reward.json is a {type(value).__name__}, not a number")
    return json_file, _finite(value, json_file)


def _finite(value: float, name: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _BadReward(f"the reward in {name} is {number}")
    return number


def _text(path: Path) -> str:
    """Raises `FileNotFoundError`, `_BadReward`; only a regular file is ever opened."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise _BadReward(f"{path.name} isn't a regular file")
    if status.st_size > _MAX_BYTES:
        raise _BadReward(f"{path.name} has {status.st_size} bytes")
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _BadReward(f"{path.name} can't be read: {error}") from None
