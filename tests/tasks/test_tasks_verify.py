import io
import json
import os
import subprocess
import sys
import tarfile
import time

import pytest

from t1x.tasks import assertions as a
from t1x.tasks.synthetic import verifier
from t1x.tasks.task import Task, TaskFile


def task_of(*asserted):
    tests = (TaskFile("assertions.json", a.to_json(asserted)), TaskFile("verify.py", verifier()))
    return Task("t", "x", (), tests, ())


def tar_of(*names):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


RIGHT_AND_WRONG = {
    "file": (a.file("f"), lambda w: (w / "f").touch(), lambda w: (w / "f").mkdir()),
    "absent": (a.absent("f"), lambda w: None, lambda w: (w / "f").symlink_to("nowhere")),
    "directory": (a.directory("d"), lambda w: (w / "d").mkdir(), lambda w: (w / "d").touch()),
    "listing": (a.listing("d", ["y", "x"]), lambda w: fill(w / "d", "x", "y"), lambda w: fill(w / "d", "x", "y", "z")),
    "content": (a.content("f", "é\n"), lambda w: (w / "f").write_text("é\n"), lambda w: (w / "f").write_text("é")),
    "contains": (a.contains("f", "b"), lambda w: (w / "f").write_text("abc"), lambda w: (w / "f").write_bytes(b"\xffac")),
    "line_count": (a.line_count("f", 2), lambda w: (w / "f").write_text("a\nb\n"), lambda w: (w / "f").write_text("a\nb")),
    "mode": (a.mode("f", "640"), lambda w: touch(w / "f", 0o640), lambda w: touch(w / "f", 0o644)),
    "link": (a.link("l"), lambda w: (w / "l").symlink_to("f"), lambda w: (w / "l").touch()),
    "link_target": (a.link_target("l", "f"), lambda w: (w / "l").symlink_to("f"), lambda w: (w / "l").symlink_to("./f")),
    "tar_members": (
        a.tar_members("t", ["d/x"]),
        lambda w: (w / "t").write_bytes(tar_of("./d/x")),
        lambda w: (w / "t").write_bytes(tar_of()),
    ),
    "tar_garbage": (a.tar_members("t", ["x"]), lambda w: (w / "t").write_bytes(tar_of("x")), lambda w: (w / "t").write_text("no")),
    "output": (a.output("s", "hi\n"), lambda w: (w / "s").write_text("echo hi"), lambda w: (w / "s").write_text("echo ho")),
}


def fill(folder, *names):
    folder.mkdir()
    for name in names:
        (folder / name).touch()


def touch(path, mode):
    path.touch()
    path.chmod(mode)


@pytest.mark.parametrize("case", RIGHT_AND_WRONG)
def test_each_kind_holds_and_fails(case, grade, tmp_path):
    asserted, right, wrong = RIGHT_AND_WRONG[case]
    for name, prepare, code in (("right", right, 0), ("wrong", wrong, 1)):
        folder = tmp_path / name
        folder.mkdir()
        prepare(folder)
        assert grade(task_of(asserted), folder) == (code, {asserted.name: code == 0}), name


def test_no_symbolic_link_is_followed(grade, work, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("secret\n")
    (work / "f").symlink_to(outside / "f")
    (work / "d").symlink_to(outside)
    asserted = (a.content("f", "secret\n"), a.content("d/f", "secret\n"), a.directory("d"), a.listing("d", ["f"]), a.file("d/f"))
    code, passed = grade(task_of(*asserted), work)
    assert code == 1
    assert not any(passed.values())


def test_nothing_but_regular_files_is_read(grade, work):
    os.mkfifo(work / "f")
    (work / "big").write_bytes(b"x" * (1 << 21))
    asserted = (a.content("f", ""), a.line_count("f", 0), a.output("f", ""), a.contains("big", "x"), a.tar_members("f", []))
    begin = time.monotonic()
    code, passed = grade(task_of(*asserted), work)
    assert code == 1
    assert not any(passed.values())
    assert time.monotonic() - begin < 20


def test_an_archive_that_leads_back_to_itself_ends(grade, work):
    tarinfo, pax = tarfile.TarInfo("x"), tarfile.TarInfo("p")
    size = b"14 size=-1536\n"  # three blocks back: to the header of this very record
    pax.type, pax.size = tarfile.XHDTYPE, len(size)
    member = tarinfo.tobuf(tarfile.USTAR_FORMAT)
    (work / "t").write_bytes(member + pax.tobuf(tarfile.USTAR_FORMAT) + size.ljust(512, b"\0") + member + bytes(1024))
    assert grade(task_of(a.tar_members("t", ["x"])), work) == (1, {"tar_members t": False})


def test_a_script_can_neither_write_nor_hang_nor_flood(grade, work):
    (work / "victim").write_text("kept\n")
    (work / "writes").write_text("echo changed >> victim; echo x > fresh; echo hi\n")
    (work / "hangs").write_text("echo hi; sleep 60\n")
    (work / "floods").write_text("while true; do echo hi; done\n")
    asserted = (a.output("writes", "hi\n"), a.output("floods", "hi\n"), a.content("victim", "kept\n"), a.output("hangs", "hi\n"))
    begin = time.monotonic()
    code, passed = grade(task_of(*asserted), work)
    assert time.monotonic() - begin < 15
    assert code == 1
    assert passed["content victim"]
    assert not passed["output floods"]
    assert (work / "victim").read_text() == "kept\n"
    assert not (work / "fresh").exists() or (work / "fresh").stat().st_size == 0


def test_report_appears_whole_and_replaces_what_lay_there(work, tmp_path):
    (tmp_path / "assertions.json").write_bytes(a.to_json([a.file("f")]))
    (tmp_path / "verify.py").write_bytes(verifier())
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "ctrf.json").symlink_to(victim)
    (tmp_path / "reward.txt").symlink_to(victim)
    argv = [sys.executable, "-I", "-S", "-B", tmp_path / "verify.py", work, tmp_path / "ctrf.json"]
    assert subprocess.run(argv, check=False).returncode == 1
    assert victim.read_text() == "kept"
    assert json.loads((tmp_path / "ctrf.json").read_bytes())["results"]["tool"]["name"] == "t1x"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["assertions.json", "verify.py", "ctrf.json", "reward.txt", "victim", "work"]
    )


def test_removed_work_folder_fails_every_assertion(grade, tmp_path):
    code, passed = grade(task_of(a.absent("f"), a.file("g")), tmp_path / "gone")
    assert (code, passed) == (1, {"absent f": False, "file g": False})


def test_names_are_escaped(grade, work):
    names = ['"quoted\\', "tab\tnew\nline", "né 漢 😀"]
    code, passed = grade(task_of(*(a.absent(name) for name in names)), work)
    assert code == 0
    assert list(passed) == [f"absent {name}" for name in names]


def test_start_up_imports_little(work, tmp_path):
    (tmp_path / "assertions.json").write_bytes(a.to_json([a.file("f"), a.content("f", "x")]))
    (tmp_path / "verify.py").write_bytes(verifier())
    argv = [sys.executable, "-I", "-S", "-B", "-X", "importtime", tmp_path / "verify.py", work, tmp_path / "ctrf.json"]
    imported = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False).stderr
    modules = {line.rsplit("|", 1)[1].strip() for line in imported.splitlines() if "|" in line}
    assert "stat" in modules
    assert not modules & {"json", "re", "subprocess", "tarfile", "typing", "shutil", "ctypes"}
