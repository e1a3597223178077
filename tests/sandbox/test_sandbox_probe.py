"""A host that can't isolate gets one clear message."""

import asyncio
import os
import shutil

import pytest
from pydantic import ValidationError

from t1x.sandbox import bubblewrap, run_folder
from t1x.sandbox.isolation import Launch, Limits
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.sandbox.probe import probe, require_confined
from t1x.sandbox.protocol import SandboxError

GOOD = "      1000          0          1\nCapEff:\t0000000000000000\nlo\n1\n"


def failing(stderr: str) -> Launch:
    return Launch(("/bin/sh", "-c", 'echo "$1" >&2; exit 1', "sh", stderr), {})


def test_without_bubblewrap_the_message_says_how_to_get_it(sandboxes, tmp_path, monkeypatch):
    (tmp_path / "bash").symlink_to(str(shutil.which("bash")))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ValueError, match=r"lacks: `apt-get install bubblewrap`, or choose `@ProcessSandbox\(\)`, which isolates nothing"
    ):
        BubblewrapSandbox(root=sandboxes).build()


@pytest.mark.parametrize(
    ("stderr", "advice"),
    [
        ("bwrap: No permissions to create new namespace", "--security-opt seccomp=unconfined"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: Can't find source path /x: Permission denied", "set `root` to a folder that anyone may enter"),
        ("bwrap: Unknown option --as-pid-1", "0.4 or newer"),
    ],
)
def test_a_failing_bubblewrap_is_explained(stderr, advice, monkeypatch):
    monkeypatch.setattr("t1x.sandbox.probe._read", lambda path: None)
    with pytest.raises(ValueError, match="doesn't work on this machine") as raised:
        probe(failing(stderr))
    assert stderr in str(raised.value)
    assert advice in str(raised.value)
    assert "@ProcessSandbox()" in str(raised.value)


@pytest.mark.skipif(not bubblewrap._has_option("--disable-userns"), reason="needs bubblewrap 0.8")
@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"/etc/apparmor.d/bwrap-userns-restrict": "profile"}, "`apparmor_parser -R /etc/apparmor.d/bwrap-userns-restrict`"),
        ({"/proc/sys/user/max_user_namespaces": "3"}, "3 user namespaces are allowed.*`sysctl -w user.max_user_namespaces=15000`"),
        ({}, "--security-opt seccomp=unconfined"),
    ],
)
def test_a_bubblewrap_that_does_not_work_inside_itself_is_explained(settings, advice, sandboxes, monkeypatch):
    monkeypatch.setattr("t1x.sandbox.probe._read", lambda path: settings.get(str(path)))
    monkeypatch.setattr(bubblewrap, "_CONFINED", (*bubblewrap._CONFINED, "--disable-userns"))
    with pytest.raises(ValueError, match=f"not inside itself.*{advice}.*@ProcessSandbox"):
        BubblewrapSandbox(root=sandboxes).build()


SLOW = pytest.mark.ci
"""bash waits for 15 seconds before it gives up to fork."""


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(Limits(2048, 1, 256), marks=SLOW),
        Limits(2048, 2, 256),
        pytest.param(Limits(2048, 3, 256), marks=SLOW),
        Limits(2, 256, 256),
    ],
    ids=str,
)
def test_limits_of_the_machine_that_are_too_low_are_not_taken_for_another_fault(limits, sandboxes, monkeypatch):
    """Settings can't be so low, but what the machine allows can."""
    monkeypatch.setattr("t1x.sandbox.local_build._limits", lambda spec: limits)
    with pytest.raises(ValueError, match=r"too few processes or too little memory.*raise `processes` or `memory`") as raised:
        BubblewrapSandbox(root=sandboxes).build()
    assert "ProcessSandbox" not in str(raised.value)
    assert os.listdir(sandboxes) == []


@pytest.mark.parametrize("sandbox", [BubblewrapSandbox, ProcessSandbox])
def test_limits_in_which_no_sandbox_works_are_refused(sandbox):
    for field, least in (("processes", 16), ("memory", 64)):
        assert sandbox(**{field: least})
        with pytest.raises(ValidationError, match=f"{field}\n.*greater than or equal to {least}"):
            sandbox(**{field: least - 1})


def test_the_lowest_limits_are_enough(bubblewrap):
    shown, judged = bubblewrap.run_all("echo a | cat", "python3 -c 'print(1)'", processes=16, memory=64)
    assert (shown.output, judged.output) == ("a\n", "1\n")


def test_a_probe_that_was_killed_is_tried_again(tmp_path):
    once = f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; kill -9 $$; }}; printf '%s' '{GOOD}'"
    probe(Launch(("/bin/sh", "-c", once), {}))
    assert (tmp_path / "again").exists()
    with pytest.raises(ValueError, match=r"doesn't work on this machine \(exit status -9\)"):
        probe(Launch(("/bin/sh", "-c", "kill -9 $$"), {}))


def test_forbidding_sysctls_are_named(monkeypatch):
    settings = {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1", "/proc/sys/user/max_user_namespaces": "0"}
    monkeypatch.setattr("t1x.sandbox.probe._read", lambda path: settings.get(str(path)))
    with pytest.raises(ValueError, match="forbidden here") as raised:
        probe(failing("bwrap: setting up uid map: Permission denied"))
    assert "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`" in str(raised.value)
    assert "`sysctl -w user.max_user_namespaces=15000`" in str(raised.value)


def test_a_bubblewrap_that_confines_nothing_is_refused():
    require_confined(GOOD)
    for bad in (
        GOOD.replace("1000          0          1", "0          0 4294967295"),
        GOOD.replace("0000000000000000", "000001ffffffffff"),
        GOOD.replace("\n1\n", "\n3\n"),
        "",
    ):
        with pytest.raises(ValueError, match="doesn't confine"):
            require_confined(bad)


@pytest.mark.parametrize("sandbox", [BubblewrapSandbox, ProcessSandbox])
def test_a_root_that_can_not_be_used_is_named(tmp_path, sandbox):
    file = tmp_path / "file"
    file.write_text("")
    for root in (file, file / "below"):
        with pytest.raises(ValueError, match=rf"{root}: Not a directory.*`root`"):
            run_folder.RunFolder(root, kill_marked=False)
        line = f"folder {root} for sandboxes ({file} isn't a folder; set {sandbox.__name__}.root to another)"
        assert line in sandbox(root=root).missing()
    assert not any("sandboxes" in line for line in sandbox(root=tmp_path / "not" / "yet").missing())
    assert not (tmp_path / "not").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_root_in_a_folder_of_somebody_else_is_named():
    (line,) = ProcessSandbox(root="/t1x/sandboxes").missing()
    assert "(/ can't be written by this user; set ProcessSandbox.root" in line


def test_a_root_that_is_not_there_is_made(sandboxes):
    before = os.umask(0o077)
    try:
        asyncio.run(BubblewrapSandbox(root=sandboxes / "a" / "b").build().close())
    finally:
        os.umask(before)
    assert os.listdir(sandboxes / "a" / "b") == []
    (sandboxes / "a" / "b").rmdir()
    (sandboxes / "a").rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts sandboxes as somebody else")
def test_a_root_that_the_sandbox_user_can_not_enter_is_explained(sandboxes):
    closed = sandboxes / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ValueError, match="set `root` to a folder that anyone may enter"):
        BubblewrapSandbox(root=closed).build()
    assert os.listdir(closed) == []
    closed.rmdir()


def test_process_sandbox_warns_that_it_isolates_nothing(sandboxes):
    async def run():
        with pytest.warns(UserWarning, match="isolates nothing"):
            host = ProcessSandbox(root=sandboxes).build()
        await host.close()

    asyncio.run(run())


@pytest.mark.promise("isolation")
def test_a_sandbox_that_does_not_start_is_a_sandbox_error(rig):
    async def run(host):
        lease = await host.create(rig.task)
        await lease.stop()
        with pytest.raises(SandboxError, match="Can't find source path"):
            await lease.run_fresh(("/bin/true",), read_only={rig.root / "none": "/tests"}, writable={}, timeout=20)
        (run_folder,) = rig.root.iterdir()
        shutil.rmtree(run_folder / "etc")
        with pytest.raises(SandboxError, match=r"didn't start.*etc"):
            await host.create(rig.task)

    rig.on_host(run)
