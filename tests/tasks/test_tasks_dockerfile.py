from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t1x.tasks.disk import write_files
from t1x.tasks.dockerfile import environment
from t1x.tasks.dockerfile_lines import read_instructions
from t1x.tasks.dockerfile_write import write_environment
from t1x.tasks.task import Run, Task, TaskFile

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of python:3.11-slim-bookworm and its kin
BLANKS = ["", "  ", "# note", "\t# FROM x \\", "#"]


def lines_of(content: bytes) -> list[tuple[str, str, str]]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "Dockerfile")
        path.write_bytes(content)
        return [(each.name, each.rest, each.place.removeprefix(f"{path}:")) for each in read_instructions(path)]


def made(text: str, *files: TaskFile):
    with TemporaryDirectory() as folder:
        write_files([*files, TaskFile("Dockerfile", text.encode())], Path(folder))
        return environment(Path(folder))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["RUN", "run", "Env", "COPY"]),
            st.lists(
                st.text(st.sampled_from("ab #'\"="), min_size=1, max_size=4).map(lambda text: f"x{text}y"), min_size=1, max_size=4
            ),
            st.lists(st.sampled_from(BLANKS), max_size=2),
            st.sampled_from(["", "  "]),
        ),
        max_size=4,
    ),
    st.sampled_from(["\\", "`"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_lines_are_joined_wherever_they_are_broken(instructions, escape, end, mark):
    lines = ["# syntax=docker/dockerfile:1", f"# Escape = {escape}"]
    expected = []
    for name, parts, blanks, indent in instructions:
        lines += blanks
        expected.append((name.upper(), "".join(parts), f"{len(lines) + 1}: {name.upper()}"))
        *broken, last = parts
        first = f"{indent}{name} "
        for part in broken:
            lines += [f"{first}{part}{escape}{indent}", *blanks]
            first = ""
        lines.append(first + last)
    assert lines_of(("\ufeff" * mark + end.join(lines) + end).encode()) == expected


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("RUN a \\\n  b", "a   b"),
        ("RUN a\\\n\n# c\n\nb", "ab"),
        ("RUN \\\n a", "a"),
        ("\\\nRUN a", "a"),
        ("RUN a \\\\\nRUN b", "a \\\\"),  # an escaped backslash continues nothing
        ("# c\n# escape=`\nRUN a \\\n b", "a  b"),  # after another comment a directive is a comment
        ("\n# escape=`\nRUN a \\\n b", "a  b"),
        ("# escape=`\nRUN a \\", "a \\"),
        ("RUN echo # a", "echo # a"),
        ("RUN a\x0cb\x85c\u2028d", "a\x0cb\x85c\u2028d"),  # lines end at a line feed only
    ],
)
def test_lines_as_docker_reads_them(text, rest):
    assert lines_of(text.encode())[0][:2] == ("RUN", rest)


def test_steps_in_order_with_the_variables_set_by_then():
    text = """
        FROM python:3.11-slim AS base
        RUN echo $A > /srv/first
        ENV A=1 B="two words" C='$A'
        ENV A=${A}x D=$A E=${F:-$B}
        WORKDIR /srv
        COPY a.txt b.txt ./
        COPY b.txt a.txt
        RUN sort a.txt \\
            # a comment
            | uniq > $A
        ENV OLD  a  'b'
        WORKDIR $A
        COPY --chmod=700 a.txt ..
        RUN ["echo", "$A", "it's"]
        ENV PATH=/srv/bin:$PATH
        WORKDIR ..
    """
    files = (TaskFile("a.txt", b"a"), TaskFile("b.txt", b"b"))
    workdir, steps, variables = made(text, *files)
    early = (("A", "1x"), ("B", "two words"), ("C", "$A"), ("D", "1"), ("E", "two words"))
    late = tuple(sorted([*early, ("OLD", "a  b")]))
    assert workdir == "/srv"
    assert variables == tuple(sorted([*late, ("PATH", f"/srv/bin:{PATH}")]))
    assert steps == (
        Run("echo $A > /srv/first", "/"),
        TaskFile("a.txt", b"b"),
        TaskFile("b.txt", b"b"),
        Run("sort a.txt             | uniq > $A", "/srv", early),
        TaskFile("a.txt", b"a", 0o700),
        Run("echo '$A' 'it'\"'\"'s'", "/srv/1x", late),
    )
    places = [step.place.partition("Dockerfile:")[2] for step in steps if isinstance(step, Run)]
    assert places == ["3: RUN", "9: RUN", "15: RUN"]


def test_a_folder_that_only_workdir_names_is_made():
    workdir, steps, _ = made("FROM debian\nWORKDIR /app/empty\nWORKDIR /app/full\nCOPY Dockerfile .\nWORKDIR /other\nWORKDIR /app")
    assert workdir == "/app"
    assert [(step.command, step.folder) if isinstance(step, Run) else step.path for step in steps] == [
        (":", "/app/empty"),
        "full/Dockerfile",
    ]


def test_workdir_of_task_toml_comes_last(tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM debian\nWORKDIR /app\nCOPY Dockerfile sub/\n")
    workdir, steps, _ = environment(tmp_path, "/app/sub/")
    assert workdir == "/app/sub"
    assert [step.path for step in steps if isinstance(step, TaskFile)] == ["Dockerfile"]


@pytest.mark.parametrize(
    "image",
    [
        "debian",
        "ubuntu:24.04",
        "python:3.11-slim",
        "debian@sha256:0",
        "localhost:5000/a/ubuntu-22-04:x",
        "docker.io/library/python",
    ],
)
def test_bases_like_the_sandbox(image):
    assert made(f"FROM --platform=linux/amd64 {image} as base\nWORKDIR /app")[0] == "/app"


NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,3}", fullmatch=True)
LINES = st.text(st.characters(exclude_characters="\n\0", exclude_categories=("Cs",)), max_size=8)
PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=5).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 200
)
RELATIVE = st.lists(PARTS, min_size=1, max_size=2).map("/".join)


@st.composite
def tasks(draw):
    """Tasks as a Dockerfile gives them: files in the order of their paths, variables that are set once and stay."""
    workdir = draw(st.sampled_from(["/app", "/a b/'c'", '/"$x"\\', "/été"]))
    variables: dict[str, str] = {}
    steps: list[TaskFile | Run] = []
    files: dict[str, TaskFile] = {}
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            path = draw(RELATIVE)
            if not any(PurePosixPath(path).is_relative_to(other) or PurePosixPath(other).is_relative_to(path) for other in files):
                files[path] = TaskFile(path, draw(st.binary(max_size=4)), draw(st.sampled_from([0o644, 0o755, 0o600])))
            continue
        steps += [files.pop(path) for path in sorted(files)]
        variables |= draw(st.dictionaries(NAMES, LINES, max_size=2))
        folder = draw(
            st.sampled_from(["/", workdir]) | RELATIVE.filter(lambda path: "\n" not in path).map(lambda path: f"{workdir}/{path}")
        )
        command = draw(
            st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12) | st.sampled_from(HARD)
        )
        steps.append(Run(command, folder, tuple(sorted(variables.items()))))
    steps += [files.pop(path) for path in sorted(files)]
    variables |= draw(st.dictionaries(NAMES, LINES, max_size=2))
    return Task("t", "x", tuple(steps), (), (), workdir=workdir, variables=tuple(sorted(variables.items())))


HARD = ["", "echo a \\", "cat <<E\nx\nE", "[ -f x ]", '["a"]', "--mount=x y", " # a", "a \\\\", "echo $A \\`", "\ufeff"]


@settings(max_examples=150, deadline=None)
@given(tasks())
def test_written_environments_read_back_to_the_same(task):
    with TemporaryDirectory() as folder:
        try:
            write_files(write_environment(task), Path(folder))
        except OSError:
            return  # two names that this file system holds for one
        assert environment(Path(folder)) == (task.workdir, task.environment, task.variables)


def test_what_a_dockerfile_cannot_say_is_refused():
    unset = Task("t", "x", (Run("a", "/app", (("A", "1"), ("B", "2"))),), (), (), variables=(("B", "2"),))
    with pytest.raises(ValueError, match="can't unset A; set it from there on"):
        write_environment(unset)
    with pytest.raises(ValueError, match="doesn't fit on one line"):
        write_environment(Task("t", "x", (), (), (), variables=(("A", "1\n2"),)))
