"""What a checkpoint holds, in its `manifest.json`: every file with its size and checksum.

Invariant: a folder is a sound checkpoint only if its manifest is as it was written and each file in it too.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from t1x.model.durable import replace_text

MANIFEST = "manifest.json"
FORMAT = 1
Kind = Literal["weights", "full"]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a checkpoint."""

    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint holds."""

    format: int
    t1x: str
    """Version that wrote it."""
    name: str
    index: int
    """Grows from one checkpoint of a run to the next."""
    kind: Kind
    """`full`: all that going on needs; `weights`: networks alone."""
    files: dict[str, StoredFile]
    """By path within the checkpoint."""

    @property
    def networks(self) -> set[str]:
        """The networks that it holds, by the folder of their files."""
        return {path.partition("/")[0] for path in self.files if path.endswith("/config.json")}


_ADAPTER = TypeAdapter(Manifest)


def describe(folder: Path, name: str, index: int, kind: Kind) -> Manifest:
    """The manifest of the files in a folder."""
    files = {path.relative_to(folder).as_posix(): _stored(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    return Manifest(FORMAT, version("t1x"), name, index, kind, files)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Puts a manifest into its folder, in place of the one before, all or nothing."""
    replace_text(folder / MANIFEST, _text(manifest))


def read_manifest(folder: Path) -> Manifest:
    """A folder's manifest. Raises `ValueError`, naming no folder, where it has none that is as it was written."""
    try:
        text = (folder / MANIFEST).read_bytes().decode()
        content = json.loads(text)
        content.pop("checksum")
        if content["format"] != FORMAT:
            raise ValueError(f"{MANIFEST} has format {content['format']}, this t1x ({version('t1x')}) reads {FORMAT}")
        manifest = _ADAPTER.validate_python(content)
    except FileNotFoundError:
        raise ValueError(f"{MANIFEST} is missing") from None
    except OSError as error:
        raise ValueError(f"{MANIFEST} can't be read ({error.strerror})") from error
    except (UnicodeDecodeError, json.JSONDecodeError, ValidationError, LookupError, AttributeError, TypeError) as error:
        raise ValueError(f"{MANIFEST} isn't one that was written whole") from error
    if text != _text(manifest):
        raise ValueError(f"{MANIFEST} has changed since it was written")
    return manifest


def verify(folder: Path, parts: Iterable[str] | None = None) -> list[str]:
    """What is wrong with a checkpoint, a line each; empty where it's sound. Of `parts` (`policy`, `critic`, `state`) alone where
    these are given. Reads every byte of it."""
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        return [str(error)]
    wanted = None if parts is None else set(parts)
    chosen = {path: stored for path, stored in manifest.files.items() if wanted is None or path.partition("/")[0] in wanted}
    absent = sorted((wanted or set()) - {path.partition("/")[0] for path in chosen})
    return [f"it holds no {part}" for part in absent] + [
        flaw for path, file in chosen.items() if (flaw := _flaw(folder, path, file))
    ]


def require_sound_network(folder: Path) -> None:
    """Raises `ValueError` where a network's folder belongs to a checkpoint (which has a manifest) and isn't what was written."""
    if (folder.parent / MANIFEST).is_file() and (wrong := verify(folder.parent, [folder.name])):
        raise ValueError(f"checkpoint {folder.parent} is damaged: {'; '.join(wrong)}; use another checkpoint")


def _flaw(folder: Path, path: str, stored: StoredFile) -> str:
    try:
        found = _stored(folder / path, stored.size)
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} can't be read ({error.strerror})"
    if found.size != stored.size:
        return f"{path} has {found.size} bytes, {stored.size} were written"
    return "" if found == stored else f"{path} has changed since it was written"


def _stored(path: Path, size: int | None = None) -> StoredFile:
    """A file as it is now; without a checksum where it hasn't this size."""
    with path.open("rb") as file:
        now = path.stat().st_size
        return StoredFile(now, hashlib.file_digest(file, "sha256").hexdigest() if size in (None, now) else "")


def _text(manifest: Manifest) -> str:
    content = asdict(manifest)
    checksum = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return json.dumps({**content, "checksum": checksum}, indent=1) + "\n"
