"""Making, copying, moving and removing files and folders."""

from t1x.tasks.assertions import absent, content, directory, file, listing
from t1x.tasks.families.family import Instance, Scene, text


def create_file(s: Scene) -> Instance:
    f, (w,) = s.file(), s.words(1)
    return Instance(
        s.say(f"create {f} with the word {w}", f"write {w} into {f}", f"put the word {w} in a new file {f}"),
        (f"echo {w} > {f}",),
        (file(f), content(f, text(w))),
    )


def make_folder(s: Scene) -> Instance:
    d, f = s.folder(), s.file()
    return Instance(
        s.say(f"make a directory {d} holding an empty file {f}", f"create an empty file {f} inside a new folder {d}"),
        (f"mkdir {d}", f"touch {d}/{f}"),
        (directory(d), file(f"{d}/{f}")),
    )


def copy_into(s: Scene) -> Instance:
    f, d, lines = s.file(), s.folder(), text(*s.words(2))
    return Instance(
        s.say(f"copy {f} into a new directory {d}", f"make a folder {d} and copy {f} there"),
        (f"mkdir {d}", f"cp {f} {d}/{f}"),
        (directory(d), content(f"{d}/{f}", lines)),
        {f: lines},
    )


def back_up(s: Scene) -> Instance:
    f, g, lines = s.file(), s.file(".bak"), text(*s.words(2))
    return Instance(
        s.say(f"back up {f} as {g}", f"copy {f} to {g}"),
        (f"cp {f} {g}",),
        (file(g), content(g, lines)),
        {f: lines},
    )


def rename(s: Scene) -> Instance:
    f, g, lines = s.file(), s.file(), text(*s.words(2))
    return Instance(
        s.say(f"rename {f} to {g}", f"change the name of {f} to {g}"),
        (f"mv {f} {g}",),
        (content(g, lines), absent(f)),
        {f: lines},
        careless=(f"cp {f} {g}",),
    )


def move_into(s: Scene) -> Instance:
    f, d, lines = s.file(), s.folder(), text(*s.words(2))
    return Instance(
        s.say(f"move {f} into a new directory {d}", f"make a folder {d} and move {f} there"),
        (f"mkdir {d}", f"mv {f} {d}/{f}"),
        (directory(d), content(f"{d}/{f}", lines), absent(f)),
        {f: lines},
        careless=(f"mkdir {d}", f"cp {f} {d}/{f}"),
    )


def delete(s: Scene) -> Instance:
    d, (f, *others) = s.folder(), s.files(3)
    return Instance(
        s.say(f"delete {f} from the directory {d}", f"remove the file {f} in {d}"),
        (f"rm {d}/{f}",),
        (absent(f"{d}/{f}"), listing(d, others)),
        {f"{d}/{name}": "x\n" for name in (f, *others)},
    )


def make_directory(s: Scene) -> Instance:
    d = s.folder()
    return Instance(
        s.say(f"make a directory {d}", f"create a new folder {d}"),
        (f"mkdir {d}",),
        (directory(d), listing(d, [])),
    )


def make_empty_file(s: Scene) -> Instance:
    f = s.file()
    return Instance(
        s.say(f"create an empty file {f}", f"make a new file {f} with nothing in it"),
        (f"touch {f}",),
        (file(f), content(f, "")),
    )
