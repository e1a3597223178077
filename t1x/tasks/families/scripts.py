"""Writing and running small scripts."""

from t1x.tasks.assertions import content, file, output
from t1x.tasks.families.family import Instance, Scene, text


def write_script(s: Scene) -> Instance:
    f, (w,) = s.file(".sh"), s.words(1)
    return Instance(
        s.say(f"write a script {f} that prints {w}", f"create a script {f} to print the word {w}"),
        (f"echo echo {w} > {f}",),
        (file(f), output(f, text(w))),
    )


def run_script(s: Scene) -> Instance:
    f, g, words = s.file(".sh"), s.file(), s.words(2)
    return Instance(
        s.say(f"run {f} and save its output in {g}", f"write what the script {f} prints to {g}"),
        (f"bash {f} > {g}",),
        (file(g), content(g, text(*words))),
        {f: text(*(f"echo {word}" for word in words))},
    )
