"""A Dockerfile as instructions: parser directives, comments and continuation lines as in Docker's own parser (BuildKit's)."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t1x.tasks.dockerfile_words import ESCAPE, split_words

_DIRECTIVE = re.compile(r"#\s*(escape|syntax|check)\s*=\s*(.+?)\s*", re.IGNORECASE)
_HEREDOC = re.compile(r"\d*<<-?[^<]+")
_SHOWN = 100
"""Characters of an instruction that a message shows."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    name: str
    """In capitals."""
    rest: str
    """Its arguments as they stand, continuation lines joined."""
    place: str
    """`.../Dockerfile:3: COPY`, for messages."""
    escape: str
    """The escape character of the file."""

    def error(self, why: str) -> ValueError:
        """What is wrong with it, with file, line and text."""
        shown = self.rest if len(self.rest) <= _SHOWN else self.rest[:_SHOWN] + "…"
        return ValueError(f"{self.place} {shown}".rstrip() + f": {why}")

    def flags(self) -> tuple[list[tuple[str, str]], str]:
        """The (name, value) of its `--name=value`, and the arguments after them."""
        found, rest = [], self.rest
        while rest.startswith("--"):
            flag, *after = rest.split(maxsplit=1)
            rest = "".join(after)
            if flag == "--":
                break
            name, _, value = flag.removeprefix("--").partition("=")
            found.append((name, value))
        return found, rest

    def strings(self, rest: str) -> list[str] | None:
        """The JSON form `["a", "b"]`; None where it isn't JSON. Raises `ValueError` for a list of something else, and for what
        hides more lines: a heredoc."""
        if rest.startswith("["):
            try:
                values = json.loads(rest)
            except ValueError:
                values = None
            if values is not None:
                if not all(isinstance(value, str) for value in values):
                    raise self.error("the JSON form is a list of strings only")
                return values
        if any(_HEREDOC.fullmatch(word) for word in split_words(rest, self.escape)):
            raise self.error("heredocs are not understood; put the text into a file beside the Dockerfile and COPY it")
        return None


def read_instructions(dockerfile: Path) -> Iterator[Instruction]:
    """Raises `ValueError` naming file and line."""
    try:
        text = dockerfile.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{dockerfile}: not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ValueError(f"{dockerfile}: can't be read ({error.strerror})") from None
    before, nul, _ = text.partition("\0")
    if nul:
        where = f"{dockerfile}:{before.count(chr(10)) + 1}"
        raise ValueError(f"{where}: a NUL character, which neither commands nor names can hold; remove it")
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    escape, directives = _directives(dockerfile, lines)
    first, joined = 0, ""
    for number, line in enumerate(lines[directives:], directives + 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not first:
            first, line = number, line.lstrip()
        # an escape character that is escaped itself continues nothing
        part, continued = re.subn(rf"(?<!{re.escape(escape)}){re.escape(escape)}[ \t]*$", "", line)
        joined += part
        if not continued:
            if joined.strip():
                yield _instruction(dockerfile, first, joined, escape)
            first, joined = 0, ""
    if first:
        raise ValueError(f"{dockerfile}:{first}: the last line ends with {_named(escape)}; end the instruction")


def _instruction(dockerfile: Path, line: int, text: str, escape: str) -> Instruction:
    name, *rest = text.split(maxsplit=1)
    return Instruction(name.upper(), "".join(rest).strip(), f"{dockerfile}:{line}: {name.upper()}", escape)


def _directives(dockerfile: Path, lines: list[str]) -> tuple[str, int]:
    """The escape character, and how many lines of directives the file begins with."""
    seen: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _DIRECTIVE.fullmatch(line)
        if match is None:
            break
        name = match[1].lower()
        if name in seen:
            raise ValueError(f"{dockerfile}:{number}: `# {name}=` stands there twice; keep one")
        seen[name] = match[2]
        if name == "escape" and match[2] not in (ESCAPE, "`"):
            raise ValueError(f"{dockerfile}:{number}: the escape character is {ESCAPE} or `, not {match[2]!r}")
    return seen.get("escape", ESCAPE), len(seen)


def _named(escape: str) -> str:
    return "a backslash" if escape == ESCAPE else "a backtick"
