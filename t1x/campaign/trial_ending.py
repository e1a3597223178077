"""How a stored trial ended."""

from pathlib import Path

from t1x.harness.records import EndedBy
from t1x.trajectory.storage_header import TrialFileError


def ending(path: Path, trial: str, said: str) -> EndedBy:
    """What its file says of it, as what it means. Raises `TrialFileError` where no trial ends so."""
    if said not in set(EndedBy):
        raise TrialFileError(
            f"{path} has a trial {trial!r} that ended by {said!r}, but trials end by {', '.join(EndedBy)}; another program or a "
            f"newer t1x wrote it, so read it with that, or remove it from there"
        )
    return EndedBy(said)
