"""What a file of trials says of itself, sealed by a checksum."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

FORMAT = 1
"""Of the rows; another one is refused."""
KEY = b"t1x"
"""Of the header among a Parquet file's metadata."""


class TrialFileError(ValueError):
    """A file of trials that can't be read."""


@dataclass(frozen=True, slots=True)
class Header:
    """Of one file."""

    identity: Mapping[str, str]
    """Whose trials these are; what the writer was given."""
    routing: bool
    """Whether routing was kept; else every record has 0 layers."""
    trials: int
    digest: str
    """SHA-256 of the checksums of all rows, in order."""

    def sealed(self) -> bytes:
        """As it's written, with the format and the version that writes it."""
        return _sealed({"format": FORMAT, "t1x": version("t1x"), **asdict(self)})


def unsealed(path: Path, sealed: bytes | None) -> Header:
    """The header of a file. Raises `TrialFileError`, also where there is none."""
    if sealed is None:
        raise TrialFileError(f"{path} isn't a file of trials that t1x wrote; remove it from there")
    try:
        content: dict[str, Any] = json.loads(sealed)
        if content["format"] != FORMAT:
            raise TrialFileError(
                f"{path} has format {content['format']} (t1x {content['t1x']} wrote it), this t1x ({version('t1x')}) reads "
                f"{FORMAT}; read it with that version"
            )
        header = Header(content["identity"], content["routing"], content["trials"], content["digest"])
        del content["checksum"]
    except (UnicodeDecodeError, json.JSONDecodeError, LookupError, AttributeError, TypeError) as error:
        raise damaged(path, "what it says of itself can't be read") from error
    if sealed != _sealed(content):
        raise damaged(path, "what it says of itself has changed")
    return header


def damaged(path: Path, what: str) -> TrialFileError:
    """To be raised for a file that isn't what was written."""
    return TrialFileError(f"{path} is damaged or cut off: {what}; use another file, or restore it from a copy")


def _sealed(content: Mapping[str, Any]) -> bytes:
    return json.dumps({**content, "checksum": hashlib.sha256(json.dumps(content).encode()).hexdigest()}).encode()
