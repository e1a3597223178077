"""What is told of a cell's process that ended."""

import asyncio
from pathlib import Path

import pytest

from t1x.campaign.children import Ended, Job, run_all


@pytest.mark.parametrize(
    ("log", "code", "said"),
    [
        ("step 1\nerror: no disk\n\n", 2, "error: no disk"),
        (
            "ValueError: x is 3\nerror: this is a fault in t1x, not in what you gave it; its log is /tmp/f\n",
            1,
            "ValueError: x is 3",
        ),
        ("", 1, "exit code 1"),
        ("step 1\n", -9, "ended by SIGKILL, as the system does where memory runs out; the last it said: step 1"),
        ("", -11, "ended by SIGSEGV"),
    ],
)
def test_the_reason_of_a_failure_is_one_line(tmp_path: Path, log: str, code: int, said: str) -> None:
    job = Job("cell", tmp_path / "cell.gin")
    job.log.write_text(log)
    assert Ended(job, code, 1.0).reason == said


def test_every_job_is_run_whatever_becomes_of_the_others(tmp_path: Path) -> None:
    jobs = [Job(name, tmp_path / f"{name}.gin") for name in ("a", "b", "c")]
    jobs[1].config.write_text("Campaign.bach = 3\n")
    ends: list[Ended] = []
    asyncio.run(run_all(jobs, 2, ends.append))
    assert {each.job.name: each.code for each in ends} == {"a": 2, "b": 2, "c": 2}
    reasons = {each.job.name: each.reason for each in ends}
    assert reasons["a"].startswith(f"error: there is no file {tmp_path / 'a.gin'}")
    assert "bach" in jobs[1].log.read_text()
