"""COPY: which files of the environment folder end up where, by Docker's rules."""

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath

from t1x.tasks.dockerfile_lines import Instruction
from t1x.tasks.task import TaskFile

_FLAGS = {
    "from": "there is one stage only; COPY from the environment folder",
    "chown": "every file is the agent's; leave it out",
}
"""Flag -> what to do instead."""


def copied(
    copy: Instruction, folder: str, context: Mapping[str, TaskFile], folders: Collection[str], expand: Callable[[str], str]
) -> Iterator[TaskFile]:
    """The files that one COPY puts into the image, with absolute paths. `folder` is the WORKDIR by then, `context` the files of the
    environment folder by path, `folders` what is known to be a folder in the image. Raises `ValueError`."""
    flags, rest = copy.flags()
    mode = _mode(copy, flags)
    *sources, destination = [expand(word) for word in copy.strings(rest) or rest.split()] or [""]
    if not sources:
        raise copy.error("needs sources and a destination")
    found = [path for source in sources for path in _found(copy, source, context)]
    if not found:
        raise copy.error("nothing in the environment folder matches")
    target = absolute(folder, destination)
    is_folder = posixpath.basename(destination) in ("", ".", "..")
    if len(found) > 1 and not is_folder:
        raise copy.error(f"copies {len(found)} files or folders; end the destination with /")
    for path in found:
        if path in context:
            name = posixpath.basename(path) if is_folder or target in folders else ""
            yield _file(context[path], posixpath.join(target, name).rstrip("/"), mode)
        else:
            prefix = path and path + "/"
            for member in context.values():
                if member.path.startswith(prefix):
                    yield _file(member, posixpath.join(target, member.path.removeprefix(prefix)), mode)


def absolute(folder: str, path: str) -> str:
    """A path seen from a folder, without `.` and `..`."""
    return "/" + posixpath.normpath(posixpath.join(folder, path)).lstrip("/")


def _file(file: TaskFile, path: str, mode: int | None) -> TaskFile:
    return TaskFile(path, file.content, file.mode if mode is None else mode)


def _mode(copy: Instruction, flags: list[tuple[str, str]]) -> int | None:
    mode = None
    for name, value in flags:
        if name != "chmod":
            raise copy.error(f"--{name} is not understood: {_FLAGS.get(name, 'leave it out')}")
        if not re.fullmatch(r"[0-7]{3,4}", value):
            raise copy.error("--chmod takes an octal mode, such as --chmod=755")
        mode = int(value, 8)
    return mode


def _found(copy: Instruction, source: str, context: Mapping[str, TaskFile]) -> list[str]:
    """The files and folders that a source stands for; "" is the environment folder itself."""
    path = absolute("/", source)[1:]
    known = {str(parent) for file in context for parent in PurePosixPath(file).parents if parent.name} | set(context)
    if re.search(r"[*?[]", path):
        pattern = _pattern(copy, path)
        return sorted(name for name in known if pattern.fullmatch(name))
    if path and path not in known:
        raise copy.error(f"{source} is not in the environment folder, or is empty; put it there")
    return [path]


def _pattern(copy: Instruction, path: str) -> re.Pattern[str]:
    """A pattern of Go's `filepath.Match`: `*` and `?` stay within one name, `[a-z]` and `[^a-z]` are one character."""
    translated = ""
    for part in re.findall(r"\\.|\[\^?(?:\\.|[^\]\\])+\]|.", path):
        if part in ("*", "?"):
            translated += "[^/]*" if part == "*" else "[^/]"
        elif part.startswith("[") and len(part) > 1:
            inside = re.sub(r"\\(.)|([\[&~|])", lambda found: re.escape(found[1] or found[2]), part[1:-1])
            translated += f"[{inside}]"
        else:
            translated += re.escape(part.removeprefix("\\") or part)
    try:
        return re.compile(translated, re.DOTALL)
    except re.error:
        raise copy.error(f"{path} is no pattern") from None
