"""Permission bits."""

from t1x.tasks.assertions import mode
from t1x.tasks.families.family import Instance, Scene, text

MODES = ("755", "700", "600", "640", "444", "711")
"""Files start with 644."""


def set_mode(s: Scene) -> Instance:
    f, bits = s.file(".sh"), s.rng.choice(MODES)
    return Instance(
        s.say(f"set the permissions of {f} to {bits}", f"give {f} the mode {bits}"),
        (f"chmod {bits} {f}",),
        (mode(f, bits),),
        {f: text("echo hi")},
        careless=(f"chmod 755 {f}",) if bits != "755" else (),
    )
