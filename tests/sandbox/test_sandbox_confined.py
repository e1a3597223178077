"""Fresh processes: what they are given, what they hand over, and how they run programs of the agent."""

import asyncio
import dataclasses
import os
import shutil
import stat

import pytest

from t1x.sandbox.isolation import CANDIDATE, RECORD
from t1x.sandbox.protocol import SandboxError
from t1x.sandbox.system import SystemFiles


def run(rig, script, timeout=20.0, **given):
    """Of a fresh process whose folder /tests holds a file `secret`, and whose report folder is /logs/verifier."""

    async def work(lease):
        await lease.stop()
        tests, logs = lease.private_folder(), lease.private_folder()
        (tests / "secret").write_text("the expectation\n")
        (tests / "run.sh").write_text(script)
        return await lease.run_fresh(
            ("/bin/bash", "/tests/run.sh"), read_only={tests: "/tests"}, writable={logs: "/logs/verifier"}, timeout=timeout, **given
        )

    return rig.on_lease(work)


def test_files_of_this_machine_are_there_and_stay_as_they_are(rig, tmp_path):
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "say").write_text("echo said /app\n")
    (tmp_path / "one").write_text("1\n")
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o700)  # whose folder it lies in, and who may read it, is no matter
    system = {tmp_path / "tool": "/opt/t1x/tool", tmp_path / "one": "/opt/t1x/one"}
    result = run(rig, "bash /opt/t1x/tool/say; cat /opt/t1x/one; echo x >>/opt/t1x/one; rm -r /opt/t1x/tool; true", system=system)
    assert result.output.startswith("said /app\n1\n")
    if "isolation" in rig.promises:
        assert result.output.count("Read-only file system") + result.output.count("Permission denied") == 2
        assert (tmp_path / "one").read_text() == "1\n"


def test_a_file_of_this_machine_that_isnt_there_is_an_error_of_the_sandbox(rig, tmp_path):
    with pytest.raises(SandboxError, match=r"none can't be handed in: No such file"):
        run(rig, "true", system={tmp_path / "none": "/opt/t1x/none"})


def test_what_anyone_can_read_is_used_where_it_lies_and_the_rest_is_fetched_once(sandboxes, tmp_path):
    system = SystemFiles(sandboxes / "system")
    system.fetch([tmp_path, tmp_path, sandboxes])
    assert system.place(sandboxes) == sandboxes
    if os.geteuid() != 0:
        assert system.place(tmp_path) == tmp_path
        return
    assert system.place(tmp_path) == sandboxes / "system" / tmp_path.relative_to("/")  # pytest's folders are root's own
    assert stat.S_IMODE(system.place(tmp_path).stat().st_mode) == 0o755
    shutil.rmtree(sandboxes / "system")


def test_variables(rig):
    result = run(rig, "echo $LEVEL $LANG", variables={"LEVEL": "3", "LANG": "C"})
    assert result.output == "3 C\n"


def test_the_record_is_apart_from_what_is_printed(rig):
    result = run(rig, f"echo shown; echo kept >&{RECORD}; echo more >&{RECORD}")
    assert (result.output, result.record) == ("shown\n", b"kept\nmore\n")


def test_a_record_is_kept_at_the_deadline_and_cut_after_8_mib(rig):
    result = run(rig, f"echo first >&{RECORD}; head -c 9M /dev/zero >&{RECORD}; echo done; sleep 60", timeout=3.0)
    assert (result.output, result.timed_out) == ("done\n", True)
    assert result.record.startswith(b"first\n")
    assert len(result.record) == 8 << 20


def test_a_record_can_not_be_taken_back(rig):
    """That of a pipe could: whoever holds its writing end opens it for reading by its number in /proc."""
    result = run(rig, f"echo flag >&{RECORD}; timeout 0.3 cat /proc/self/fd/{RECORD}; timeout 0.3 cat <&{RECORD}; true")
    assert result.record == b"flag\n"
    assert "flag" not in result.output


@pytest.mark.promise("isolation")
def test_a_program_of_the_agent_is_confined(rig):
    own = f"""
        pwd -P; cat /tmp/shared; ls -A /tests /logs /opt/t1x; ps -e -o args= | grep -c '[s]leep 987'
        grep -h Cap /proc/self/status | cut -f2 | uniq; [ -e /proc/self/fd/{RECORD} ] && echo has the record
        echo made >by-own; exit 3"""
    ours = f"""
        echo of the judge >/tmp/shared; sleep 987 &
        {CANDIDATE} /bin/bash -c "$OWN"; echo status $?; cat by-own; ps -e -o args= | grep -c '[s]leep 987'"""
    lines = run(rig, ours, variables={"OWN": own}).output.split("\n")
    seen = ["/app", "of the judge", "/logs:", "", "/opt/t1x:", "", "/tests:", "0", "0" * 16]
    assert lines == [*seen, "status 3", "made", "1", ""]


@pytest.mark.promise("isolation")
@pytest.mark.parametrize(
    "attack",
    {
        "signal its process group": "kill -9 0",
        "signal everyone": "kill -9 -1",
        "unmount what hides": "unshare -Urmp --fork bash -c 'umount -l /tests /proc; mount -t proc p /proc; cat /tests/*'",
        "look through /proc": "cat /proc/1/root/tests/secret /proc/*/root/tests/secret /proc/*/cwd/../tests/secret",
        "write to a descriptor of the judge": f"echo x >&{RECORD}; for i in $(seq 3 255); do echo forged >&$i; done",
        "mount again": "unshare -Urm mount -o remount,rw /; unshare -Urm mount --bind /app /tests",
    }.items(),
    ids=lambda item: item[0],
)
def test_nothing_of_its_judge_can_be_reached(rig, attack):
    ours = f"""
        {CANDIDATE} /bin/bash -c "$OWN
        cat /tests/secret" >seen 2>&1
        cat seen /tests/secret; echo judge alive >&{RECORD}"""
    result = run(rig, ours, variables={"OWN": attack[1]})
    assert result.record == b"judge alive\n"
    assert result.output.count("the expectation") == 1, result.output


@pytest.mark.promise("isolation")
def test_what_it_leaves_running_ends_with_it(rig):
    own = "setsid sh -c 'while :; do date >>beat; sleep 0.02; done' & sleep 0.3"
    ours = f'{CANDIDATE} /bin/bash -c "$OWN"; a=$(wc -l <beat); sleep 0.3; echo $a; wc -l <beat'
    first, second = map(int, run(rig, ours, variables={"OWN": own}).output.split())
    assert first == second > 0


@pytest.mark.promise("isolation")
def test_it_reaches_a_server_of_its_judge(rig):
    ours = f"""python3 -m http.server 8123 --bind 127.0.0.1 --directory /app >/dev/null 2>&1 &
        for i in $(seq 100); do (: </dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.05; done
        {CANDIDATE} python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8123/data/in.txt").read())'"""
    assert run(rig, ours).output == "b'one\\ntwo\\n'\n"


def test_in_deterministic_sandboxes_its_clock_stands_still_too(deterministic):
    sees = "date +%s; cat /proc/uptime /proc/loadavg; head -c 4 /dev/urandom | od -An -x"
    judge, own = (run(deterministic, f"{words} /bin/bash -c '{sees}'").output for words in ("", CANDIDATE))
    assert judge.startswith("1577836800\n1.00 1.00\n")
    assert own == judge


def test_a_work_folder_around_the_judges_tools_is_refused(rig):
    async def nothing(lease):
        await asyncio.sleep(0)

    for workdir in ("/opt", "/opt/t1x", "/opt/t1x/judge"):
        with pytest.raises(ValueError, match=f"work folder {workdir}"):
            rig.on_lease(nothing, dataclasses.replace(rig.task, workdir=workdir))
    rig.on_lease(nothing, dataclasses.replace(rig.task, workdir="/opt/job"))
