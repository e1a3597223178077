"""Work whose last command needs what an earlier one printed: the instruction alone doesn't say it."""

from t1x.tasks.assertions import absent, content, directory, file, line_count, link, link_target, listing, mode
from t1x.tasks.families.family import Instance, Scene, text
from t1x.tasks.families.permissions import MODES


def move_found(s: Scene) -> Instance:
    d, (found, *others), g, words = s.folder(), s.files(3), s.file(), s.words(3)
    files = {f"{d}/{name}": text(word) for name, word in zip((found, *others), words, strict=True)}
    w = words[0]
    return Instance(
        s.say(
            f"find the file in {d} that contains {w} and rename it to {g}",
            f"in {d} the file holding the word {w} must be moved to {g}",
        ),
        (f"grep -l {w} {d}/*", f"mv {d}/{found} {g}"),
        (content(g, text(w)), absent(f"{d}/{found}"), listing(d, others)),
        files,
        careless=(f"grep -l {w} {d}/*", f"cp {d}/{found} {g}"),
    )


def delete_named(s: Scene) -> Instance:
    f, d, (named, *others) = s.file(), s.folder(), s.files(2)
    return Instance(
        s.say(f"delete the file named in {f}", f"read {f} and remove the file that it names"),
        (f"cat {f}", f"rm {d}/{named}"),
        (absent(f"{d}/{named}"), listing(d, others)),
        {f: text(f"{d}/{named}"), **{f"{d}/{name}": "x\n" for name in (named, *others)}},
    )


def move_only(s: Scene) -> Instance:
    d, f, e = s.folder(), s.file(), s.folder()
    return Instance(
        s.say(f"move the only file of {d} into a new directory {e}", f"make a folder {e} and move the single file in {d} there"),
        (f"ls {d}", f"mkdir {e}", f"mv {d}/{f} {e}/{f}"),
        (directory(e), listing(e, [f]), listing(d, [])),
        {f"{d}/{f}": "x\n"},
    )


def make_named(s: Scene) -> Instance:
    f, d, g = s.file(), s.folder(), s.file()
    return Instance(
        s.say(f"make the directory named in {f} with an empty file {g}", f"create {g} in a new folder with the name in {f}"),
        (f"cat {f}", f"mkdir {d}", f"touch {d}/{g}"),
        (directory(d), file(f"{d}/{g}")),
        {f: text(d)},
    )


def mode_named(s: Scene) -> Instance:
    f, g, bits = s.file(), s.file(".sh"), s.rng.choice(MODES)
    return Instance(
        s.say(f"give {g} the mode written in {f}", f"read {f} and set the permissions of {g} to it"),
        (f"cat {f}", f"chmod {bits} {g}"),
        (mode(g, bits),),
        {f: text(bits), g: text("echo hi")},
        careless=(f"chmod 755 {g}",) if bits != "755" else (),
    )


def copy_named(s: Scene) -> Instance:
    f, named, g, lines = s.file(), s.file(), s.file(".bak"), text(*s.words(2))
    return Instance(
        s.say(f"back up the file named in {f} as {g}", f"read {f} and copy the file that it names to {g}"),
        (f"cat {f}", f"cp {named} {g}"),
        (file(g), content(g, lines)),
        {f: text(named), named: lines},
    )


def link_named(s: Scene) -> Instance:
    f, named, g = s.file(), s.file(), s.file(".lnk")
    return Instance(
        s.say(f"make a symbolic link {g} to the file named in {f}", f"read {f} and link {g} to the file that it names"),
        (f"cat {f}", f"ln -s {named} {g}"),
        (link(g), link_target(g, named)),
        {f: text(named), named: "x\n"},
    )


def append_found(s: Scene) -> Instance:
    d, (found, other), (w, v, new) = s.folder(), s.files(2), s.words(3)
    return Instance(
        s.say(
            f"append the line {new} to the file in {d} that contains {w}", f"in {d} add {new} at the end of the file holding {w}"
        ),
        (f"grep -l {w} {d}/*", f"echo {new} >> {d}/{found}"),
        (line_count(f"{d}/{found}", 2), content(f"{d}/{found}", text(w, new))),
        {f"{d}/{found}": text(w), f"{d}/{other}": text(v)},
        careless=(f"grep -l {w} {d}/*", f"echo {new} > {d}/{found}"),
    )


def mode_of_only(s: Scene) -> Instance:
    d, f, bits = s.folder(), s.file(".sh"), s.rng.choice(MODES)
    return Instance(
        s.say(f"set the permissions of the only file in {d} to {bits}", f"give the single file of {d} the mode {bits}"),
        (f"ls {d}", f"chmod {bits} {d}/{f}"),
        (mode(f"{d}/{f}", bits),),
        {f"{d}/{f}": text("echo hi")},
        careless=(f"ls {d}", f"chmod 755 {d}/{f}") if bits != "755" else (),
    )
