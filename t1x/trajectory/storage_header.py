"""What a file of trials says of itself, sealed by a checksum."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from t1x.text.visible import legible

FORMAT = 3
"""Of the rows; another one is refused."""
KEY = b"t1x"
"""Of the header among a Parquet file's metadata."""


class TrialFileError(ValueError):
    """A file of trials that can't be read. What it quotes of the file has no effect in a terminal."""

    def __init__(self, said: str) -> None:
        super().__init__(legible(said))


@dataclass(frozen=True, slots=True)
class Header:
    """Of one file."""

    identity: Mapping[str, str]
    """Whose trials these are; what the writer was given."""
    routing: bool
    """Whether routing was kept; else every record has 0 layers."""
    trials: Annotated[int, Field(ge=0)]
    digest: str
    """SHA-256 of the checksums of all rows, in order."""

    def sealed(self) -> bytes:
        """As it's written, with the format and the version that writes it."""
        return _sealed(_Writer(format=FORMAT, t1x=version("t1x")), self)


class _Writer(BaseModel, strict=True):
    """What a header of any format has."""

    format: int
    t1x: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+!_-]{1,64}$")]


_HEADER = TypeAdapter(Header)


def unsealed(path: Path, sealed: bytes | None) -> Header:
    """The header of a file. Raises `TrialFileError`, also where there is none."""
    if sealed is None:
        raise TrialFileError(f"{path} isn't a file of trials that t1x wrote; remove it from there")
    try:
        writer = _Writer.model_validate_json(sealed)
        if writer.format != FORMAT:
            raise TrialFileError(
                f"{path} has format {writer.format} (t1x {writer.t1x} wrote it), this t1x ({version('t1x')}) reads {FORMAT}; "
                f"read it with that version"
            )
        header = _HEADER.validate_json(sealed, strict=True)
    except ValidationError as error:
        raise damaged(path, "what it says of itself can't be read") from error
    if sealed != _sealed(writer, header):
        raise damaged(path, "what it says of itself has changed")
    return header


def damaged(path: Path, what: str) -> TrialFileError:
    """To be raised for a file that isn't what was written."""
    return TrialFileError(f"{path} is damaged or cut off: {what}; use another file, or restore it from a copy")


def _sealed(writer: _Writer, header: Header) -> bytes:
    content = {**writer.model_dump(), **asdict(header)}
    return json.dumps({**content, "checksum": hashlib.sha256(json.dumps(content).encode()).hexdigest()}).encode()
