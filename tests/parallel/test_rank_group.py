"""Processes that compute together: errors, deaths and ends."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from child import child
from hypothesis import given
from hypothesis import strategies as st

from t1x.parallel import rank_group
from t1x.parallel.plan import TorchPlan
from t1x.parallel.rank_group import RankGroup
from t1x.parallel.ranks import Ranks


class Work:
    """What the ranks of these tests do."""

    def __init__(self, ranks, factor):
        self.ranks, self.factor = ranks, factor

    def pid(self):
        return os.getpid()

    def total(self):
        parameter = torch.nn.Parameter(torch.zeros(3))
        if self.ranks.rank == 1:
            parameter.grad = torch.tensor([1.0, 2.0, 3.0]) * self.factor
        self.ranks.add_up([parameter])
        gathered = self.ranks.gathered(f"rank {self.ranks.rank}")
        return parameter.grad.tolist(), self.ranks.filled(np.eye(2)[self.ranks.rank]).tolist(), gathered

    def refuse(self):
        raise ValueError("such a batch can't be")

    def fail_in_one(self):
        if self.ranks.rank == 1:
            raise KeyError("nowhere")
        self.total()

    def sleep(self, seconds):
        time.sleep(seconds)


@pytest.fixture
def start():
    made = []

    def start(**plan):
        made.append(RankGroup(TorchPlan(data=2, **plan), 1, Work, 10.0))
        return made[-1]

    yield start
    for group in made:
        group.close()


def alive(pids):
    """Those that run; what has ended but wasn't waited for doesn't."""
    states = {pid: Path(f"/proc/{pid}/stat") for pid in pids}
    return [pid for pid, stat in states.items() if stat.exists() and stat.read_text().rsplit(") ", 1)[1][0] != "Z"]


def wait_for_end(pids):
    until = time.monotonic() + 10
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    return alive(pids)


def test_ranks_share_sums_and_end_with_close(start):
    group = start()
    assert group.call("total") == ([10.0, 20.0, 30.0], [1.0, 1.0], ["rank 0", "rank 1"])
    assert group.call("pid") == group.pids[0]
    with pytest.raises(ValueError, match=r"^such a batch can't be$"):
        group.call("refuse")
    assert not alive(group.pids)
    with pytest.raises(RuntimeError, match="have ended"):
        group.call("total")


def test_an_error_in_one_rank_reaches_the_caller_with_its_traceback_while_the_other_waits(start):
    group = start()
    with pytest.raises(RuntimeError, match=r"(?s)training rank 1 of 2 failed:.*in fail_in_one.*KeyError: 'nowhere'"):
        group.call("fail_in_one")
    assert not alive(group.pids)


def test_a_rank_that_dies_is_noticed_while_the_other_waits_for_it(start):
    group = start()
    threading.Timer(0.3, os.kill, (group.pids[1], signal.SIGKILL)).start()
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match="training rank 1 of 2 was ended by SIGKILL"):
        group.call("sleep", 60)
    assert time.monotonic() - begun < 10
    assert not alive(group.pids)


def test_a_rank_that_hangs_is_found_by_a_deadline(start, monkeypatch):
    monkeypatch.setattr(rank_group, "PATIENCE", 0.2)
    group = start(collective_deadline=1.0)
    os.kill(group.pids[1], signal.SIGSTOP)
    with pytest.raises(RuntimeError, match=r"training rank 0 of 2 failed:"):
        group.call("total")
    assert not alive(group.pids)
    group = start()
    group._deadline = 0.2
    with pytest.raises(RuntimeError, match=r"ranks \[0, 1\] didn't answer within 0.2 s \(control_deadline\)"):
        group.call("sleep", 60, control=True)
    assert not alive(group.pids)


def test_no_rank_outlives_a_parent_that_is_killed():
    program = (
        "from t1x.parallel.plan import TorchPlan; from t1x.parallel.rank_group import RankGroup; import time\n"
        "group = RankGroup(TorchPlan(data=2), 1, print); print(*group.pids, flush=True); time.sleep(60)"
    )
    with child([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(alive(pids)) == 2
    assert not wait_for_end(pids)


@given(st.lists(st.integers(1, 500), max_size=30), st.integers(1, 6))
def test_shares_are_all_samples_once_and_no_rank_has_more_than_one_sample_too_much(lengths, size):
    lengths, indices = np.array(lengths, dtype=np.int64), np.arange(len(lengths))
    shares = Ranks(size=size).shares(lengths, indices)
    assert sorted(np.concatenate(shares)) == list(indices)
    loads = [lengths[share].sum() for share in shares]
    if len(lengths):
        assert max(loads) - min(loads) <= lengths.max()
