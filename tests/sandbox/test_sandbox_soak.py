"""Many sandboxes at once and one after the other leave no folder, process, mount or descriptor."""

import asyncio
import os
import resource
from pathlib import Path

import pytest
from leftovers import descriptors, mounts_naming, processes_of

AT_ONCE, CYCLES, PER_SANDBOX = 256, 1000, 8
"""The last: descriptors of one sandbox, at most."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture
def nothing_left(rig):
    """Compares before with after, when the test has closed its host."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < AT_ONCE * PER_SANDBOX:
        pytest.skip(f"{AT_ONCE} sandboxes take up to {AT_ONCE * PER_SANDBOX} descriptors; this process may have {most}")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, AT_ONCE * PER_SANDBOX), most))
    before = descriptors()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    assert descriptors() == before
    assert os.listdir(rig.root) == []
    assert processes_of(rig.root) == []
    assert mounts_naming(rig.root) == []


def trial_folders(root: Path) -> list[str]:
    (run_folder,) = root.iterdir()
    return [name for name in os.listdir(run_folder) if name.removesuffix(".removed").isdigit()]


@pytest.mark.usefixtures("nothing_left")
def test_256_at_once(rig):
    async def one(leases, number, everyone):
        lease = await leases.create(rig.task)
        first = await lease.exec(f"sleep 3600 & echo {number}", 600)
        await everyone.wait()
        second = await lease.exec("cat data/in.txt", 600)
        await lease.stop()
        fresh = await lease.run_fresh(("/bin/cat", "data/in.txt"), read_only={}, writable={}, timeout=600)
        await lease.destroy()
        return first.output, second.output, fresh.output

    async def run(leases):
        everyone = asyncio.Barrier(AT_ONCE)
        outputs = await asyncio.gather(*(one(leases, number, everyone) for number in range(AT_ONCE)))
        assert outputs == [(f"{number}\n", "one\ntwo\n", "one\ntwo\n") for number in range(AT_ONCE)]
        assert leases.living == 0
        assert trial_folders(rig.root) == []

    rig.on_host(run)


@pytest.mark.usefixtures("nothing_left")
def test_1000_one_after_the_other(rig):
    """Descriptors don't add up on the way either."""

    async def run(leases):
        async def one(number):
            lease = await leases.create(rig.task)
            assert (await lease.exec(f"(sleep 3600 &); echo {number}", 600)).output == f"{number}\n"
            await lease.destroy()

        seen = []
        for start in range(0, CYCLES, 10):
            await asyncio.gather(*(one(number) for number in range(start, start + 10)))
            assert trial_folders(rig.root) == []
            seen.append(descriptors())
        assert seen[-1] == seen[10]

    rig.on_host(run)


@pytest.mark.usefixtures("nothing_left")
def test_a_host_that_is_closed_with_256_at_work(rig):
    async def run(leases):
        made = await asyncio.gather(*(leases.create(rig.task) for _ in range(AT_ONCE)))
        working = [asyncio.create_task(lease.exec("sleep 3600", 3600)) for lease in made]
        await asyncio.sleep(1)
        await leases.close()
        await asyncio.gather(*working, return_exceptions=True)
        assert leases.living == 0

    rig.on_host(run)
