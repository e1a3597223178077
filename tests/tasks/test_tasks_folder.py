import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from t1x.tasks.export import export_pool
from t1x.tasks.folder import FolderPool
from t1x.tasks.solve_script import read_script, write_script
from t1x.tasks.synthetic import SyntheticPool
from t1x.tasks.task import Run, SubGoal, Task, TaskFile


class Tasks(list):
    """A pool of the given tasks."""


def minimal(folder):
    """A sound task folder."""
    for name, text in {
        "task.toml": 'version = "1.0"\n[metadata]\nauthor = "x"\ndifficulty = "easy"\n[agent]\ntimeout_sec = 60\n',
        "instruction.md": "\nDo it.\n\n",
        "environment/Dockerfile": "FROM debian\nWORKDIR /app\n",
        "tests/test.sh": "exit 1\n",
    }.items():
        write(folder, name, text)
    return folder


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def read(tmp_path):
    pool = FolderPool(path=tmp_path).build()
    return [pool[i] for i in range(len(pool))]


def unchecked(pool, count):
    """The first tasks, but for the baseline: what a check finds isn't part of a task's folder."""
    return [replace(pool[i], baseline=None) for i in range(count)]


@pytest.mark.parametrize("split", ["train", "held_out_families"])
def test_exported_pool_reads_back_to_equal_tasks(split, tmp_path):
    pool = SyntheticPool(split=split, size=60).build()
    assert export_pool(pool, tmp_path / "out") == 60
    assert read(tmp_path / "out") == unchecked(pool, 60)


def test_awkward_task_survives_the_round_trip(tmp_path):
    files = (TaskFile("a b/ü.bin", bytes(range(256)), 0o600), TaskFile("run", b"", 0o755))
    solution = (SubGoal("one", ("  cat x ", "# note"), ("echo # no",)), SubGoal("empty", ()), SubGoal("two", ("rm 'é'",)))
    tests = (TaskFile("deep/data", b"\0"), TaskFile("test.sh", b"exit 0", 0o700))
    awkward = Task(
        "t.1", 'Say "hi" \\ ünd 漢\n\nthen stop', files, tests, solution, ('"q"', "ü"), "very hard", 3, "/srv/w", 12.5, 7.0
    )
    script = Task(
        "t.2",
        "x",
        (),
        (TaskFile("test.sh", b"", 0o644),),
        (SubGoal("solution", ("#!/bin/bash\nfor i in 1 2; do\n  echo $i\ndone\n",)),),
    )
    export_pool(Tasks([awkward, script]), tmp_path / "out")
    assert read(tmp_path / "out") == [awkward, script]


def test_environment_verifier_and_deadlines_survive_the_round_trip(tmp_path):
    steps = (
        TaskFile("a", b"1"),
        Run("cat a > b", "/app", (("A", "x y"),)),
        TaskFile("a", b"2"),
        Run("x \\", "/app/c", (("A", "x y"),)),
    )
    tests = {"pytest": TaskFile("test_it.py", b""), "script": TaskFile("test.sh", b""), "harbor": TaskFile("test.sh", b"")}
    tasks = [
        Task(
            mode,
            "x",
            steps,
            (file,),
            (),
            variables=(("A", "x y"), ("B", "$A")),
            verifier=mode,
            build_timeout=1.5,
            verifier_timeout=2.5,
        )
        for mode, file in sorted(tests.items())
    ]
    export_pool(Tasks(tasks), tmp_path / "out")
    assert read(tmp_path / "out") == sorted(tasks, key=lambda task: task.name)


MODES = {
    "test.sh": "script",
    "test.sh verify.py": "script",
    "test.sh test_more.py": "script",
    "test.sh test_outputs.py": "pytest",
    "test_outputs.py": "pytest",
    "deep/test_x.py": "pytest",
}


@pytest.mark.parametrize("tests", MODES)
def test_how_tests_are_run_where_the_task_does_not_say(tests, tmp_path):
    folder = minimal(tmp_path / "one")
    (folder / "tests" / "test.sh").unlink()
    for name in tests.split():
        write(folder, f"tests/{name}", "")
    (task,) = read(tmp_path)
    assert task.verifier == MODES[tests]


def test_harbors_other_settings_are_read_over(tmp_path):
    folder = minimal(tmp_path / "one")
    settings = (
        'docker_image = "x"\ncpus = 2\nmemory_mb = 9\nstorage_mb = 9\ngpus = 0\nallow_internet = true\nbuild_timeout_sec = 30'
    )
    write(folder, "task.toml", f'[environment]\n{settings}\n[verifier]\nmode = "harbor"\nenv = {{ A = "1" }}\n')
    (task,) = read(tmp_path)
    assert task.build_timeout == 30
    assert task.verifier == "harbor"


def test_exported_solution_runs_as_it_stands(grade, shell, tmp_path):
    pool = SyntheticPool(split="train", seed=2, size=5).build()
    export_pool(pool, tmp_path / "out", 5)
    for i in range(5):
        work = tmp_path / f"work{i}"
        shell((), pool[i], work)
        subprocess.run(
            ["bash", tmp_path / "out" / pool[i].name / "solution" / "solve.sh"], cwd=work, check=True, stdout=subprocess.DEVNULL
        )
        assert grade(pool[i], work)[0] == 0


def test_export_of_the_first_tasks_only(tmp_path):
    pool = SyntheticPool(split="train", size=10).build()
    assert export_pool(pool, tmp_path / "out", 4) == 4
    assert read(tmp_path / "out") == unchecked(pool, 4)


def test_export_refuses_a_bad_target(tmp_path):
    pool = SyntheticPool(split="train", size=2).build()
    write(tmp_path, "full/mine.txt", "x")
    with pytest.raises(ValueError, match=r"full: not empty; export into a new folder"):
        export_pool(pool, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(ValueError, match=r"mine\.txt.*can't be written"):
        export_pool(pool, tmp_path / "full" / "mine.txt")
    with pytest.raises(ValueError, match="3 tasks can't be exported from a pool of 2"):
        export_pool(pool, tmp_path / "new", 3)
    with pytest.raises(ValueError, match="can't be written"):
        export_pool(pool, tmp_path / "full" / "mine.txt" / "below")
    assert not (tmp_path / "new").exists()


def test_export_refuses_an_unwritable_target():
    with pytest.raises(ValueError, match=r"/proc/out: can't be written .*choose a folder you may write to"):
        export_pool(SyntheticPool(split="train", size=1).build(), Path("/proc/out"))


def test_export_refuses_what_a_folder_cannot_hold(tmp_path):
    test = (TaskFile("test.sh", b""),)
    with pytest.raises(ValueError, match=r"'\.\./x' can't be the name of a folder"):
        export_pool(Tasks([Task("../x", "x", (), test, ())]), tmp_path / "a")
    with pytest.raises(ValueError, match=r"task t: 'a\\nb' doesn't fit on one line"):
        export_pool(Tasks([Task("t", "x", (), test, (SubGoal("f", ("a\nb",)),))]), tmp_path / "b")


def test_foreign_task_is_read(tmp_path):
    folder = minimal(tmp_path / "one")
    write(folder, "solution/solve.sh", "#!/bin/bash\nset -e\ntouch f\n")
    write(folder, "environment/input.txt", "x\n")
    write(
        folder,
        "environment/Dockerfile",
        "# a base\nFROM ubuntu:24.04 AS base\n\nworkdir /srv\nWORKDIR here\nCOPY\t\\\n  input.txt .\n",
    )
    write(tmp_path, "README.md", "not a task")
    (tmp_path / ".git").mkdir()
    (task,) = read(tmp_path)
    assert task == Task(
        name="one",
        instruction="Do it.",
        environment=(TaskFile("input.txt", b"x\n"),),
        tests=(TaskFile("test.sh", b"exit 1\n"),),
        solution=(SubGoal("solution", ("#!/bin/bash\nset -e\ntouch f\n",)),),
        difficulty="easy",
        workdir="/srv/here",
        agent_timeout=60.0,
    )


COPIES = {
    "COPY a.txt /app/": {"a.txt"},
    "COPY a.txt /app": {"a.txt"},
    "COPY a.txt b.txt": {"b.txt"},
    "COPY d .": {"x", "sub/y"},
    "COPY d/ /app/e": {"e/x", "e/sub/y"},
    "COPY d/sub a.txt e/": {"e/y", "e/a.txt"},
    "COPY d e\nCOPY a.txt e": {"e/x", "e/sub/y", "e/a.txt"},
    "COPY . .": {"a.txt", "d/x", "d/sub/y", "Dockerfile"},
    "COPY /a.txt .": {"a.txt"},
    "COPY *.txt e": {"e"},
    "COPY *.t?t missing* e/": {"e/a.txt"},
    "COPY * e/": {"e/a.txt", "e/Dockerfile", "e/x", "e/sub/y"},
    "COPY d/*/[x-z] ./": {"y"},
    "COPY [^d]* ./": {"a.txt", "Dockerfile"},
    'COPY ["a.txt", "b c"]': {"b c"},
    'ENV D=d E="/app/q r"\nCOPY $D/sub ${E}': {"q r/y"},
    "RUN true\nCOPY a.txt .\nWORKDIR x\nCOPY d/x ..\nWORKDIR ..": {"a.txt", "x"},
    "COPY --chmod=755 a.txt .": {"a.txt"},
    "WORKDIR e\nWORKDIR ..\nCOPY a.txt e": {"e/a.txt"},
}


@pytest.mark.parametrize("lines", COPIES)
def test_copy_does_what_docker_does(lines, tmp_path):
    folder = minimal(tmp_path / "one")
    for name in ("a.txt", "d/x", "d/sub/y"):
        write(folder, f"environment/{name}", name)
    write(folder, "environment/Dockerfile", f"FROM debian\nWORKDIR /app\n{lines}\n")
    (task,) = read(tmp_path)
    assert {step.path for step in task.environment if isinstance(step, TaskFile)} == COPIES[lines]


MALFORMED = {
    "no toml": (lambda f: (f / "task.toml").unlink(), r"one/task\.toml: missing; "),
    "bad toml": (lambda f: write(f, "task.toml", "a = \n"), r"one/task\.toml: not valid TOML: .*line 1"),
    "toml in latin-1": (lambda f: write(f, "task.toml", b'a = "\xe9"'), r"one/task\.toml: not UTF-8 .* save it as UTF-8"),
    "timeout": (lambda f: write(f, "task.toml", "[agent]\ntimeout_sec = -1"), r"one/task\.toml: agent\.timeout_sec = -1"),
    "assertions": (lambda f: write(f, "task.toml", "[metadata]\nassertions = 'x'"), r"one/task\.toml: metadata\.assertions = 'x'"),
    "no instruction": (lambda f: (f / "instruction.md").unlink(), r"one/instruction\.md: missing; write there"),
    "empty instruction": (lambda f: write(f, "instruction.md", " \n"), r"one/instruction\.md: empty; write there"),
    "binary instruction": (lambda f: write(f, "instruction.md", b"\xff"), r"one/instruction\.md: not UTF-8"),
    "instruction is a folder": (
        lambda f: ((f / "instruction.md").unlink(), (f / "instruction.md").mkdir()),
        r"one/instruction\.md: can't be read",
    ),
    "no tests": (lambda f: (f / "tests/test.sh").unlink(), r"one/tests/test\.sh: missing; a task needs a verifier"),
    "no pytest": (
        lambda f: write(f, "task.toml", "[verifier]\nmode = 'pytest'"),
        r"one/tests: no test_\*\.py, though \[verifier\] mode is",
    ),
    "mode": (lambda f: write(f, "task.toml", "[verifier]\nmode = 'x'"), r"one/task\.toml: verifier\.mode = 'x'"),
    "gpus": (lambda f: write(f, "task.toml", "[environment]\ngpus = 1"), r"one/task\.toml: environment\.gpus = 1"),
    "relative workdir": (
        lambda f: write(f, "task.toml", "[environment]\nworkdir = 'app'"),
        r"one/task\.toml: environment\.workdir: 'app': not an absolute path",
    ),
    "reserved workdir": (
        lambda f: write(f, "task.toml", "[environment]\nworkdir = '/opt'"),
        r"one/task\.toml: environment\.workdir: work folder /opt: it lies in or around what stays read-only",
    ),
    "link in tests": (lambda f: (f / "tests/l").symlink_to("/etc/passwd"), r"one/tests/l: a task holds only regular files"),
    "fifo in environment": (lambda f: os.mkfifo(f / "environment/p"), r"one/environment/p: a task holds only regular files"),
    "binary solution": (lambda f: write(f, "solution/solve.sh", b"\xff"), r"one/solution/solve\.sh: not UTF-8"),
    "no Dockerfile": (lambda f: (f / "environment/Dockerfile").unlink(), r"one/environment/Dockerfile: missing; write one"),
    "binary Dockerfile": (lambda f: write(f, "environment/Dockerfile", b"\xff"), r"one/environment/Dockerfile: not UTF-8"),
    "NUL in Dockerfile": (lambda f: write(f, "environment/Dockerfile", b"FROM debian\nRUN a\0"), r"Dockerfile:2: a NUL character"),
    ".dockerignore": (
        lambda f: write(f, "environment/.dockerignore", "x"),
        r"environment/\.dockerignore: not understood; remove it",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_task_names_folder_and_file(case, tmp_path):
    damage, message = MALFORMED[case]
    damage(minimal(tmp_path / "one"))
    minimal(tmp_path / "two")
    with pytest.raises(ValueError, match=message):
        FolderPool(path=tmp_path).build()


REFUSED = {
    "FROM debian\n\n# c\nFROM debian\nWORKDIR /app": r"Dockerfile:4: FROM debian: only one stage",
    "FROM alpine:3\nWORKDIR /app": r"Dockerfile:1: FROM alpine:3: .*bash, coreutils and python3.*debian, ubuntu, python",
    "FROM docker.io/python/node:debian\nWORKDIR /app": r"Dockerfile:1: FROM docker.io/python/node:debian: local sandboxes",
    "FROM debian bookworm": r"Dockerfile:1: FROM debian bookworm: understood is FROM image",
    "FROM debian": r"Dockerfile: no WORKDIR; add one",
    "WORKDIR /app": r"Dockerfile:1: WORKDIR /app: FROM comes first",
    "# nothing": r"Dockerfile: no FROM; add one",
    "FROM debian\nWORKDIR": r"Dockerfile:2: WORKDIR: needs a folder",
    "FROM debian\nWORKDIR /app/$X": r"Dockerfile:2: WORKDIR /app/\$X: \$X is set by no ENV before.*\$\{X:-default\}",
    "FROM debian\nWORKDIR /app\nCOPY --chown=1 a.txt .": r"Dockerfile:3: COPY --chown=1 a\.txt \.: --chown is not understood",
    "FROM debian\nWORKDIR /app\nCOPY --from=b a.txt .": r"Dockerfile:3: COPY --from=b a\.txt \.: --from is not understood",
    "FROM debian\nWORKDIR /app\nCOPY --chmod=u+x a.txt .": r"Dockerfile:3: COPY .*: --chmod takes an octal mode",
    "FROM debian\nWORKDIR /app\nCOPY <<E a.txt\nx\nE": r"Dockerfile:3: COPY <<E a\.txt: heredocs are not understood",
    "FROM debian\nWORKDIR /app\nCOPY [1]": r"Dockerfile:3: COPY \[1\]: the JSON form is a list of strings",
    "FROM debian\nWORKDIR /app\nCOPY *.md .": r"Dockerfile:3: COPY \*\.md \.: nothing in the environment folder matches",
    "FROM debian\nWORKDIR /app\nCOPY a.txt": r"Dockerfile:3: COPY a\.txt: needs sources and a destination",
    "FROM debian\nWORKDIR /app\nCOPY a.txt Dockerfile x": r"Dockerfile:3: COPY .*: copies 2 files or folders; end the destination",
    "FROM debian\nWORKDIR /app\nCOPY b.txt .": r"Dockerfile:3: COPY b\.txt \.: b\.txt is not in the environment folder",
    "FROM debian\nWORKDIR /app\nCOPY ../task.toml .": r"Dockerfile:3: COPY .*: \.\./task\.toml is not in the environment",
    "FROM debian\nWORKDIR /app\nCOPY a.txt /etc/a.txt": r"Dockerfile:3: COPY .*: /etc/a\.txt lies outside the work folder /app",
    "FROM debian\nWORKDIR /app\nCOPY a.txt \\": r"Dockerfile:3: the last line ends with a backslash",
    "FROM debian\nWORKDIR /app\nRUN": r"Dockerfile:3: RUN: needs a command",
    "FROM debian\nWORKDIR /app\nRUN --mount=type=cache,target=/c x": r"Dockerfile:3: RUN --mount.* x: --mount is not understood",
    "FROM debian\nWORKDIR /app\nRUN --network=none x": r"Dockerfile:3: RUN --network=none x: --network is not understood",
    "FROM debian\nWORKDIR /app\nRUN cat >f <<'E'\nx\nE": r"Dockerfile:3: RUN cat >f <<'E': heredocs are not understood",
    "FROM debian\nWORKDIR /src\nRUN x\nWORKDIR /app": r"Dockerfile:3: RUN x: runs in /src, outside the work folder /app",
    "FROM debian\nWORKDIR /": r"environment/Dockerfile: work folder /: it lies in or around",
    "FROM debian\nWORKDIR /tests/x": r"environment/Dockerfile: work folder /tests/x: it lies in or around",
    "FROM debian\nENV X": r"Dockerfile:2: ENV X: needs NAME=value",
    "FROM debian\nENV X=1 Y": r"Dockerfile:2: ENV X=1 Y: Y has no =; quote",
    "FROM debian\nENV a.b=1": r"Dockerfile:2: ENV a\.b=1: 'a\.b' can't be the name",
    "FROM debian\nENV X='1": r"Dockerfile:2: ENV X='1: a `'` is missing",
    'FROM debian\nENV X="1': r'Dockerfile:2: ENV X="1: a `"` is missing',
    "FROM debian\nENV X=${Y:-1": r"Dockerfile:2: ENV X=\$\{Y:-1: `\}` is missing",
    "FROM debian\nENV X=${Y#a}": r"Dockerfile:2: ENV X=\$\{Y#a\}: of \$\{Y…\} are understood",
    'FROM debian\nENV X="${Y:?must be there}"': r"Dockerfile:2: ENV .*: Y: must be there",
    "FROM debian\nENV X=a$$": r"Dockerfile:2: ENV X=a\$\$: \$\$ is nothing that ENV can set",
    "FROM debian\nWORKDIR /app\n\nWORKDRI /b": r"Dockerfile:4: WORKDRI /b: no instruction of that name; is it misspelt",
    "# escape=x\nFROM debian": r"Dockerfile:1: the escape character is",
    "# escape=`\n# escape=`\nFROM debian": r"Dockerfile:2: `# escape=` stands there twice",
}
REFUSED |= {
    f"FROM debian\nWORKDIR /app\n{name} x": rf"Dockerfile:3: {name} x: {name} is not followed: \w"
    for name in (
        *("ADD", "ARG", "CMD", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "LABEL"),
        *("MAINTAINER", "ONBUILD", "SHELL", "STOPSIGNAL", "USER", "VOLUME"),
    )
}


@pytest.mark.parametrize("text", REFUSED)
def test_other_instructions_are_refused_by_name_and_line(text, tmp_path):
    folder = minimal(tmp_path / "one")
    write(folder, "environment/a.txt", "x")
    write(folder, "environment/Dockerfile", text + "\n")
    with pytest.raises(ValueError, match=REFUSED[text]):
        FolderPool(path=tmp_path).build()


def test_folder_without_tasks(tmp_path):
    with pytest.raises(ValueError, match="holds no task; each task is a folder of its own"):
        FolderPool(path=tmp_path).build()
    with pytest.raises(ValueError, match="nowhere: no such folder"):
        FolderPool(path=tmp_path / "nowhere").build()


def test_a_task_is_no_pool(tmp_path):
    pool = tmp_path / "pool"
    pool.mkdir()
    with pytest.raises(ValueError, match=rf"one: this is a task; give the folder above it, {pool}"):
        FolderPool(path=minimal(pool / "one")).build()
    with pytest.raises(ValueError, match="holds no task"):
        FolderPool(path=tmp_path).build()


def test_solve_script_is_readable():
    solution = (SubGoal("rename", ("mv a b",), ("cp a b",)), SubGoal("count", ("cat a", "wc -l < a > b")))
    script = write_script(solution)
    assert script == "#!/bin/bash\n# sub-goal: rename\n# careless: cp a b\nmv a b\n# sub-goal: count\ncat a\nwc -l < a > b\n"
    assert read_script(script) == solution
