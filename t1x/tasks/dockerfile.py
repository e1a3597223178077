"""The part of a task's Dockerfile that a sandbox without Docker can follow: FROM, WORKDIR, COPY, ENV and RUN.

FROM is read and left alone: the sandbox brings its own root. What is made must end up in the work folder, the last WORKDIR.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from t1x.tasks.disk import read_files
from t1x.tasks.dockerfile_copy import absolute, copied
from t1x.tasks.dockerfile_lines import Instruction, read_instructions
from t1x.tasks.dockerfile_words import expand, split_words
from t1x.tasks.task import Run, TaskFile
from t1x.tasks.work_folder import work_folder

_BASES = ("debian", "ubuntu", "python")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""`$PATH` in images of Debian, Ubuntu and Python."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_REFUSED = {
    "ADD": "use COPY, and RUN to unpack an archive",
    "ARG": "nothing is passed to a build; set it with ENV",
    "CMD": "the agent's shell is what is started; leave it out",
    "ENTRYPOINT": "the agent's shell is what is started; leave it out",
    "EXPOSE": "sandboxes have no network between them; leave it out",
    "HEALTHCHECK": "nothing runs that could be checked; leave it out",
    "LABEL": "write it into task.toml under [metadata]",
    "MAINTAINER": "write it into task.toml under [metadata]",
    "ONBUILD": "write what it holds as an instruction of its own, or leave it out",
    "SHELL": "RUN is for /bin/sh; call another shell in it: RUN bash -c '…'",
    "STOPSIGNAL": "sandboxes are killed; leave it out",
    "USER": "all commands are run by the sandbox's one user, who isn't root; leave it out",
    "VOLUME": "nothing outlives a sandbox; make the folder in the work folder with RUN mkdir",
}
"""Instruction -> what to do instead."""


class Environment(NamedTuple):
    """What an `environment/` folder says; the fields are those of `Task`."""

    workdir: str
    steps: tuple[TaskFile | Run, ...]
    variables: tuple[tuple[str, str], ...]


def environment(folder: Path, workdir: str | None = None) -> Environment:
    """Reads such a folder; `workdir` stands for a last WORKDIR. Raises `ValueError` naming file, line and
    instruction."""
    dockerfile = folder / "Dockerfile"
    if not dockerfile.is_file():
        raise ValueError(f"{dockerfile}: missing; write one with FROM, WORKDIR and, for files, COPY")
    if (folder / ".dockerignore").exists():
        raise ValueError(f"{folder / '.dockerignore'}: not understood; remove it and name in COPY what the task needs")
    build = _Build({file.path: file for file in read_files(folder)})
    for instruction in read_instructions(dockerfile):
        build.follow(instruction)
    if not build.based:
        raise ValueError(f"{dockerfile}: no FROM; add one")
    if workdir is None and not build.workdir:
        raise ValueError(f"{dockerfile}: no WORKDIR; add one")
    try:
        place = work_folder(workdir or build.workdir)
    except ValueError as error:
        said = dockerfile if workdir is None else f"{folder.parent / 'task.toml'}: environment.workdir"
        raise ValueError(f"{said}: {error}") from None
    return build.seen_from(place)


class _Build:
    """Follows instructions one by one."""

    def __init__(self, context: dict[str, TaskFile]) -> None:
        self.based = False
        self.workdir = ""
        self._context = context
        self._variables: dict[str, str] = {}
        self._steps: list[tuple[Instruction, TaskFile | Run]] = []
        """With absolute paths; a WORKDIR is an empty command in its folder."""

    def follow(self, instruction: Instruction) -> None:
        if instruction.name == "FROM":
            self._from(instruction)
        elif instruction.name in _REFUSED:
            raise instruction.error(f"{instruction.name} is not followed: {_REFUSED[instruction.name]}")
        elif not self.based:
            raise instruction.error("FROM comes first")
        elif instruction.name == "WORKDIR":
            self._workdir(instruction)
        elif instruction.name == "COPY":
            self._steps += [(instruction, file) for file in self._copy(instruction)]
        elif instruction.name == "ENV":
            self._variables |= dict(self._env(instruction))
        elif instruction.name == "RUN":
            self._steps.append((instruction, self._run(instruction, self._command(instruction))))
        else:
            raise instruction.error("no instruction of that name; is it misspelt?")

    def seen_from(self, workdir: str) -> Environment:
        """Raises `ValueError` for what lies outside of the work folder."""
        inside = workdir.rstrip("/") + "/"
        steps: list[TaskFile | Run] = []
        files: dict[str, TaskFile] = {}  # those since the last command
        for instruction, step in self._steps:
            if isinstance(step, TaskFile):
                if not step.path.startswith(inside):
                    raise instruction.error(f"{step.path} lies outside the work folder {workdir}; copy it there")
                files[step.path] = replace(step, path=step.path.removeprefix(inside))
                continue
            if instruction.name == "WORKDIR" and (not step.folder.startswith(inside) or self._fills(step.folder)):
                continue
            if not f"{step.folder}/".startswith(inside) and step.folder != "/":
                raise instruction.error(
                    f"runs in {step.folder}, outside the work folder {workdir}; let WORKDIR {workdir} come first"
                )
            steps += [*_by_path(files), step]
            files = {}
        return Environment(workdir, (*steps, *_by_path(files)), tuple(sorted(self._variables.items())))

    def _fills(self, folder: str) -> bool:
        """Whether some file or command makes this folder."""
        made = [step.path if isinstance(step, TaskFile) else f"{step.folder}/" for by, step in self._steps if by.name != "WORKDIR"]
        return any(path.startswith(folder + "/") for path in made)

    def _from(self, instruction: Instruction) -> None:
        if self.based:
            raise instruction.error("only one stage is followed; write the Dockerfile with one FROM")
        flags, rest = instruction.flags()
        if any(name != "platform" for name, _ in flags) or not re.fullmatch(r"\S+(\s+AS\s+\S+)?", rest, re.IGNORECASE):
            raise instruction.error("understood is FROM image [AS name]")
        image = rest.split()[0].partition("@")[0].rpartition("/")[2].partition(":")[0]
        if not any(base in image for base in _BASES):
            raise instruction.error(
                "local sandboxes bring this machine's own Debian-like system with bash, coreutils and python3; "
                f"base the task on an image of {', '.join(_BASES)}"
            )
        self.based = True

    def _workdir(self, instruction: Instruction) -> None:
        path = self._expand(instruction, instruction.rest)
        if not path:
            raise instruction.error("needs a folder")
        self.workdir = absolute(self.workdir or "/", path)
        self._steps.append((instruction, self._run(instruction, ":")))

    def _copy(self, instruction: Instruction) -> Iterator[TaskFile]:
        folders = {"/", *(step.folder for _, step in self._steps if isinstance(step, Run))}
        inner = [step.path for _, step in self._steps if isinstance(step, TaskFile)] + list(folders)
        folders |= {str(parent) for path in inner for parent in PurePosixPath(path).parents}
        return copied(instruction, self.workdir or "/", self._context, folders, lambda word: self._expand(instruction, word))

    def _env(self, instruction: Instruction) -> Iterator[tuple[str, str]]:
        words = split_words(instruction.rest, instruction.escape)
        if words and "=" not in words[0]:
            words = ["=".join(instruction.rest.split(maxsplit=1))]
        if not words or "=" not in words[0]:
            raise instruction.error("needs NAME=value")
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                raise instruction.error(f'{word} has no =; quote a value that holds blanks: NAME="a b"')
            if not _VARIABLE.fullmatch(name):
                raise instruction.error(f"{name!r} can't be the name of a variable in a shell; use letters, digits and _")
            yield name, self._expand(instruction, value)

    def _command(self, instruction: Instruction) -> str:
        flags, rest = instruction.flags()
        if flags:
            raise instruction.error(f"--{flags[0][0]} is not understood; leave it out")
        words = instruction.strings(rest)
        if not (rest if words is None else words):
            raise instruction.error("needs a command")
        if words is None:
            return rest
        return words[2] if words[:2] == ["/bin/sh", "-c"] and len(words) == 3 else shlex.join(words)

    def _run(self, instruction: Instruction, command: str) -> Run:
        return Run(command, self.workdir or "/", tuple(sorted(self._variables.items())), instruction.place)

    def _expand(self, instruction: Instruction, word: str) -> str:
        try:
            return expand(word, {"PATH": _PATH} | self._variables, instruction.escape)
        except ValueError as error:
            raise instruction.error(str(error)) from None


def _by_path(files: Mapping[str, TaskFile]) -> list[TaskFile]:
    return [files[path] for path in sorted(files)]
