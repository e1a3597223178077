"""The part of a task's Dockerfile that a sandbox without Docker can follow: FROM, WORKDIR and COPY.

FROM is read and left alone: the sandbox brings its own root. COPY must end up in the work folder, the last WORKDIR.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from t1x.tasks.disk import read_files
from t1x.tasks.task import TaskFile


def environment(folder: Path) -> tuple[str, tuple[TaskFile, ...]]:
    """(work folder, the files in it) of an `environment/` folder. Raises `ValueError` naming file, line and instruction."""
    dockerfile = folder / "Dockerfile"
    if not dockerfile.is_file():
        raise ValueError(f"{dockerfile}: missing; write one with FROM, WORKDIR and, for files, COPY")
    if (folder / ".dockerignore").exists():
        raise ValueError(f"{folder / '.dockerignore'}: not understood; remove it and name in COPY what the task needs")
    context = {file.path: file for file in read_files(folder)}
    copied: dict[str, TaskFile] = {}
    places: dict[str, str] = {}
    workdir, based = "", False
    for number, instruction, rest in _instructions(dockerfile):
        place = f"{dockerfile}:{number}: {instruction}"
        if instruction == "FROM" and not based:
            based = True
        elif instruction == "WORKDIR" and (workdir or rest.startswith("/")) and "$" not in rest:
            workdir = posixpath.normpath(posixpath.join(workdir, rest))
        elif instruction == "COPY":
            for file in _copy(place, rest, workdir, context, copied):
                copied[file.path] = file
                places[file.path] = place
        else:
            raise ValueError(f"{place} {rest}: understood are one FROM, WORKDIR with a plain absolute path, and COPY")
    if not based or not workdir:
        raise ValueError(f"{dockerfile}: no {'WORKDIR' if based else 'FROM'}; add one")
    outside = next((path for path in copied if not path.startswith(workdir.rstrip("/") + "/")), None)
    if outside is not None:
        raise ValueError(f"{places[outside]}: {outside} lies outside the work folder {workdir}; copy it there")
    inside = [TaskFile(posixpath.relpath(file.path, workdir), file.content, file.mode) for file in copied.values()]
    return workdir, tuple(sorted(inside, key=lambda file: file.path))


def _instructions(dockerfile: Path) -> Iterator[tuple[int, str, str]]:
    """(line number, instruction, its arguments), continuation lines joined."""
    try:
        lines = dockerfile.read_bytes().decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{dockerfile}: not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    first, joined = 0, ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        first = first if joined else number
        joined += line.strip()
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        instruction, *rest = joined.split(maxsplit=1)
        yield first, instruction.upper(), "".join(rest)
        joined = ""
    if joined:
        raise ValueError(f"{dockerfile}:{first}: the last line ends with a backslash; end the instruction")


def _copy(place: str, rest: str, workdir: str, context: dict[str, TaskFile], copied: dict[str, TaskFile]) -> Iterator[TaskFile]:
    """The files that one COPY puts into the image, with absolute paths."""
    if re.search(r"^\[|(^|\s)--|[$*?\"']", rest):
        raise ValueError(f"{place} {rest}: options, variables, quotes and wildcards are not understood; name files and folders")
    *sources, destination = rest.split()
    if not sources or not (workdir or destination.startswith("/")):
        raise ValueError(f"{place} {rest}: needs sources and a destination; a relative destination comes after WORKDIR")
    target = posixpath.normpath(posixpath.join(workdir or "/", destination))
    folders = {workdir, *(str(parent) for path in copied for parent in PurePosixPath(path).parents)}
    into_folder = destination.endswith("/") or len(sources) > 1 or target in folders
    for source in sources:
        path = posixpath.normpath(source.lstrip("/"))
        prefix = "" if path == "." else path + "/"
        if path in context:
            file = context[path]
            to = posixpath.join(target, posixpath.basename(path)) if into_folder else target
            yield TaskFile(to, file.content, file.mode)
            continue
        members = [file for name, file in context.items() if name.startswith(prefix)]
        if not members:
            raise ValueError(f"{place}: {source} is not in the environment folder, or is empty; put it there")
        for file in members:
            yield TaskFile(posixpath.join(target, file.path[len(prefix) :]), file.content, file.mode)
