"""Pacing, caps and deadlines: first over an invented backend in virtual time, then with real sandboxes."""

import asyncio
import math
from dataclasses import dataclass, field

import pytest
import virtual_time
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.sandbox.leases import Leases, RemoteDeadlineError
from t1x.sandbox.local import BubblewrapSandbox
from t1x.sandbox.protocol import Sandbox, SandboxError
from t1x.tasks.task import Task

TASK = Task("t", "", (), (), ())
A_BIT = 1e-6


class Fake:
    """A sandbox that takes time to be destroyed."""

    exec = upload = download = stop = private_folder = run_fresh = None

    def __init__(self, host, id):
        self.host, self.id = host, id

    async def destroy(self):
        try:
            await asyncio.sleep(self.host.destroying)
        finally:
            self.host.leave(self.id)


@dataclass
class FakeHost:
    """A backend in which making a sandbox takes a second; keeps a diary."""

    making: float = 1.0
    destroying: float = 0.5
    fails: frozenset = frozenset()
    begun: list = field(default_factory=list)
    names: list = field(default_factory=list)
    there: set = field(default_factory=set)
    most: int = 0
    most_being_made: int = 0
    being_made: int = 0

    async def create(self, task):
        id = f"{len(self.begun)}"
        self.begun.append(asyncio.get_running_loop().time())
        self.names.append(task.name)
        self.there.add(id)
        self.being_made += 1
        self.most, self.most_being_made = max(self.most, len(self.there)), max(self.most_being_made, self.being_made)
        try:
            await asyncio.sleep(self.making)
            if task.name in self.fails:
                raise SandboxError("no room")
        except BaseException:
            self.leave(id)
            raise
        finally:
            self.being_made -= 1
        return Fake(self, id)

    def leave(self, id):
        self.there.remove(id)

    async def close(self):
        self.there.clear()


@dataclass(frozen=True)
class User:
    """Somebody who takes a sandbox, works in it and destroys it, unless cancelled before."""

    arrives: float
    works: float
    cancelled_after: float
    fails: bool


async def use(leases, name, user):
    await asyncio.sleep(user.arrives)
    lease = await leases.create(Task(name, "", (), (), ()))
    try:
        await asyncio.sleep(user.works)
    finally:
        await lease.destroy()


seconds = st.integers(0, 40).map(lambda quarter: quarter / 4)
users = st.builds(User, seconds, seconds, st.one_of(st.just(math.inf), seconds), st.booleans())
terms = st.builds(
    Sandbox,
    per_node=st.none() | st.integers(1, 4),
    create_concurrency=st.none() | st.integers(1, 3),
    creates_per_second=st.none() | st.sampled_from([0.5, 1.0, 4.0]),
    create_burst=st.integers(1, 4),
    setup_deadline=st.none() | st.sampled_from([0.75, 2.0]),
)


@settings(deadline=None)
@given(st.lists(users, min_size=1, max_size=14), terms)
def test_the_invariants_hold_whoever_comes_fails_or_is_cancelled(crowd, terms):
    host = FakeHost(fails=frozenset(f"u{i}" for i, user in enumerate(crowd) if user.fails))

    async def main():
        leases, loop = Leases(host, terms), asyncio.get_running_loop()
        with leases.counting() as counts:
            running = [asyncio.create_task(use(leases, f"u{i}", user)) for i, user in enumerate(crowd)]
            for task, user in zip(running, crowd, strict=True):
                if user.cancelled_after < math.inf:
                    loop.call_later(user.cancelled_after, task.cancel)
            outcomes = await asyncio.gather(*running, return_exceptions=True)
            await asyncio.sleep(2 * host.destroying)  # a second cancellation leaves the destruction to itself
        assert {type(outcome) for outcome in outcomes} <= {type(None), SandboxError, asyncio.CancelledError}
        assert (leases.living, host.there) == (0, set())
        assert counts.most == host.most
        assert len(counts.created) == len(counts.destroyed) == len(counts.waited)
        for _ in range(3 * (terms.per_node or 1)):  # every place is free again
            if terms.setup_deadline is None or terms.setup_deadline > host.making:
                await (await leases.create(TASK)).destroy()
        await leases.close()

    virtual_time.run(main())
    assert host.most <= (terms.per_node or math.inf)
    assert host.most_being_made <= (terms.create_concurrency or math.inf)
    if terms.creates_per_second is not None:
        for i, first in enumerate(host.begun):
            for j, last in enumerate(host.begun[i:], 1):
                assert j <= terms.create_burst + (last - first) * terms.creates_per_second + A_BIT


@pytest.mark.parametrize("terms", [{"per_node": 2}, {"create_concurrency": 1}, {"creates_per_second": 0.1, "create_burst": 1}])
def test_first_come_first_served(terms):
    host = FakeHost()

    async def main():
        leases = Leases(host, Sandbox(**terms))
        crowd = [User(arrives=i / 100, works=5.0, cancelled_after=math.inf, fails=False) for i in range(8)]
        await asyncio.gather(*(use(leases, f"u{i}", user) for i, user in enumerate(crowd)))

    virtual_time.run(main())
    assert host.names == [f"u{i}" for i in range(8)]


def test_a_latecomer_does_not_pass_who_waits_for_the_bucket():
    """It comes at the very moment at which there is a token again."""
    host = FakeHost()

    async def main():
        leases = Leases(host, Sandbox(creates_per_second=1.0, create_burst=1))
        crowd = [User(arrives, works=0.0, cancelled_after=math.inf, fails=False) for arrives in (0.0, 0.5, 1.0, 1.0)]
        await asyncio.gather(*(use(leases, f"u{i}", user) for i, user in enumerate(crowd)))

    virtual_time.run(main())
    assert host.names[:2] == ["u0", "u1"]


def test_the_bucket_lets_its_burst_through_and_then_keeps_the_rate():
    host = FakeHost(making=0.0)

    async def main():
        leases = Leases(host, Sandbox(creates_per_second=2.0, create_burst=3))
        await asyncio.gather(*(leases.create(TASK) for _ in range(7)))
        await asyncio.sleep(60)
        await asyncio.gather(*(leases.create(TASK) for _ in range(4)))

    virtual_time.run(main())
    later = host.begun[6] + 60
    assert host.begun == pytest.approx([0, 0, 0, 0.5, 1, 1.5, 2, later, later, later, later + 0.5])


def test_without_limits_nothing_waits():
    host = FakeHost()

    async def main():
        leases = Leases(host, Sandbox())
        with leases.counting() as counts:
            made = await asyncio.gather(*(leases.create(TASK) for _ in range(100)))
        assert {lease.ends_at for lease in made} == {None}
        assert (counts.most, leases.living) == (100, 100)
        await leases.close()
        assert leases.living == 0

    virtual_time.run(main())
    assert host.begun == [0.0] * 100


@pytest.mark.parametrize(
    ("terms", "kind", "message"),
    [
        ({"setup_deadline": 0.5}, SandboxError, r"task t: its sandbox wasn't made within setup_deadline \(0.5 s\)"),
        ({"setup_deadline": 0.5, "remote_deadline": 0.7}, SandboxError, "setup_deadline"),
        ({"remote_deadline": 0.5}, RemoteDeadlineError, r"within remote_deadline \(0.5 s\)"),
        ({"setup_deadline": 0.9, "remote_deadline": 0.5}, RemoteDeadlineError, "remote_deadline"),
    ],
)
def test_a_creation_has_a_deadline_and_what_was_half_made_is_gone(terms, kind, message):
    host = FakeHost()

    async def main():
        leases = Leases(host, Sandbox(**terms))
        with leases.counting() as counts:
            with pytest.raises(SandboxError, match=message) as caught:
                await leases.create(TASK)
            assert type(caught.value) is kind
        assert (leases.living, host.there, counts.failed, counts.created) == (0, set(), 1, [])

    virtual_time.run(main())


def test_waiting_for_a_place_is_no_part_of_any_deadline():
    host = FakeHost()

    async def main():
        leases = Leases(host, Sandbox(per_node=1, setup_deadline=1.5, remote_deadline=20.0))
        first = await leases.create(TASK)
        asyncio.get_running_loop().call_later(100, lambda: asyncio.ensure_future(first.destroy()))
        second = await leases.create(TASK)
        began = host.begun[1]
        assert began >= 100
        assert (first.ends_at, second.ends_at) == (20.0, began + 20.0)

    virtual_time.run(main())


def test_a_backends_own_timeout_is_not_taken_for_the_deadline():
    class Slow(FakeHost):
        async def create(self, task):
            raise TimeoutError("the provider's")

    async def main():
        leases = Leases(Slow(), Sandbox(setup_deadline=5.0))
        with pytest.raises(TimeoutError, match="the provider's"):
            await leases.create(TASK)
        assert leases.living == 0

    virtual_time.run(main())


def test_who_waits_when_all_is_closed_is_told():
    async def main():
        leases = Leases(FakeHost(), Sandbox(per_node=1))
        await leases.create(TASK)
        waiting = [asyncio.create_task(leases.create(TASK)) for _ in range(3)]
        await asyncio.sleep(1)
        await leases.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert {str(outcome) for outcome in outcomes} == {"no sandbox is created any more: the host is closed"}
        assert leases.living == 0

    virtual_time.run(main())


def test_a_place_is_held_until_the_sandbox_is_gone_even_if_nobody_waits_for_that():
    host = FakeHost(destroying=10.0)

    async def main():
        leases = Leases(host, Sandbox(per_node=1))
        lease = await leases.create(TASK)
        destroying = asyncio.create_task(lease.destroy())
        await asyncio.sleep(0.1)
        destroying.cancel()
        await leases.create(TASK)
        assert host.begun[1] >= 11
        assert host.most == 1

    virtual_time.run(main())


def test_counts_are_told_as_metrics():
    host = FakeHost(making=2.0, destroying=3.0, fails=frozenset({"bad"}))

    async def main():
        leases = Leases(host, Sandbox(per_node=1))
        kept = await leases.create(TASK)
        with leases.counting() as counts:
            waiting = asyncio.create_task(leases.create(TASK))
            await kept.destroy()
            await (await waiting).destroy()
            with pytest.raises(SandboxError, match="no room"):
                await leases.create(Task("bad", "", (), (), ()))
        return counts.metrics()

    metrics = virtual_time.run(main())
    assert (metrics["sandbox/created"], metrics["sandbox/failed"], metrics["time/sandbox_most_at_once"]) == (1, 1, 1)
    spans = {f"time/sandbox_{what}_p{p}" for what in ("wait", "pace", "create", "destroy") for p in (50, 95)}
    assert set(metrics) == {"sandbox/created", "sandbox/failed", "time/sandbox_most_at_once"} | spans


def test_real_sandboxes_wait_for_a_place(rig):
    async def run(leases):
        most = 0

        async def one():
            nonlocal most
            lease = await leases.create(rig.task)
            folders = [name for name in (next(rig.root.iterdir())).iterdir() if name.name.isdigit()]
            most = max(most, len(folders))
            await lease.exec("true", 60)
            await lease.destroy()

        with leases.counting() as counts:
            await asyncio.gather(*(one() for _ in range(12)))
        assert (len(counts.created), len(counts.destroyed), counts.most, leases.living) == (12, 12, 3, 0)
        assert sum(waited > 0.001 for waited in counts.waited) >= 9
        return most

    assert rig.on_host(run, per_node=3) == 3


def test_a_real_creation_that_takes_too_long_leaves_nothing(rig):
    async def run(leases):
        with pytest.raises(SandboxError, match=r"task hand-made: its sandbox wasn't made within setup_deadline \(1e-06 s\)"):
            await leases.create(rig.task)
        assert [name.name for name in (next(rig.root.iterdir())).iterdir() if name.name.isdigit()] == []
        return leases.living

    assert rig.on_host(run, setup_deadline=1e-6) == 0


def test_agents_deadlines_are_checked_against_the_remote_one():
    assert Sandbox().objection(1e9, 1e9) == ""
    assert BubblewrapSandbox(remote_deadline=100.0).objection(60.0, 40.0) == ""
    said = BubblewrapSandbox(remote_deadline=100.0).objection(60.0, 41.0)
    assert said.startswith(
        "agent_deadline (60 s) and verifier_deadline (41 s) take 101 s, but remote_deadline ends a trial after 100 s"
    )
    assert "setup_deadline (30 s), agent_deadline" in Sandbox(setup_deadline=30.0, remote_deadline=100.0).objection(60.0, 41.0)
    assert Sandbox(setup_deadline=101.0, remote_deadline=100.0).objection(0.0, 0.0).startswith("setup_deadline (101 s) takes 101 s")
