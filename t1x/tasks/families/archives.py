"""Packing and unpacking tar archives."""

import io
import tarfile
from collections.abc import Mapping

from t1x.tasks.assertions import content, file, tar_members
from t1x.tasks.families.family import Instance, Scene, text


def tar(files: Mapping[str, str]) -> bytes:
    """An uncompressed archive whose bytes depend on nothing but its files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.USTAR_FORMAT) as archive:
        for path, body in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(body.encode())
            archive.addfile(member, io.BytesIO(body.encode()))
    return buffer.getvalue().rstrip(b"\0") + bytes(1536)


def pack(s: Scene) -> Instance:
    d, archive, names = s.folder(), s.file(".tar"), s.files(2)
    paths = [f"{d}/{name}" for name in names]
    return Instance(
        s.say(f"pack the directory {d} into {archive}", f"archive {d} as {archive}"),
        (f"tar cf {archive} {d}",),
        (file(archive), tar_members(archive, paths)),
        dict.fromkeys(paths, "x\n"),
    )


def unpack(s: Scene) -> Instance:
    archive, (f, g), words = s.file(".tar"), s.files(2), s.words(2)
    bodies = {f: text(words[0]), g: text(words[1])}
    return Instance(
        s.say(f"unpack {archive}", f"extract the files of {archive}"),
        (f"tar xf {archive}",),
        tuple(content(path, body) for path, body in bodies.items()),
        {archive: tar(bodies)},
    )
