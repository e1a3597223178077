"""Symbolic links."""

from t1x.tasks.assertions import link, link_target
from t1x.tasks.families.family import Instance, Scene


def symbolic_link(s: Scene) -> Instance:
    f, g = s.file(), s.file(".lnk")
    return Instance(
        s.say(f"make a symbolic link {g} to {f}", f"link {g} to {f}"),
        (f"ln -s {f} {g}",),
        (link(g), link_target(g, f)),
        {f: "x\n"},
    )
