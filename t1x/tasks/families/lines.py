"""Working on the lines of text files."""

from t1x.tasks.assertions import contains, content, file, line_count
from t1x.tasks.families.family import Instance, Scene, text


def sort_lines(s: Scene) -> Instance:
    f, g, words, order = s.file(), s.file(), s.words(s.rng.randint(3, 4)), s.rng.choice(("", "-r ", "-u "))
    if order == "-u ":
        words.append(words[0])
    kind = {"": "sorted", "-r ": "reverse sorted", "-u ": "unique sorted"}[order]
    result = sorted(set(words), reverse=order == "-r ")
    if words == result:
        words.reverse()
    return Instance(
        s.say(f"write the {kind} lines of {f} to {g}", f"save {f} {kind} as {g}"),
        (f"sort {order}{f} > {g}",),
        (file(g), content(g, text(*result))),
        {f: text(*words)},
        careless=(f"sort {f} > {g}",) if order else (),
    )


def keep_lines(s: Scene) -> Instance:
    f, g, words = s.file(), s.file(), s.words(8)
    w = words[0]
    lines = [f"{w} {words[1]}", f"{words[2]} {w}", f"{words[3]} {words[4]}", f"{words[5]} {words[6]}"]
    s.rng.shuffle(lines)
    result = [line for line in lines if w in line]
    return Instance(
        s.say(f"write the lines of {f} with {w} to {g}", f"save every line of {f} that contains {w} in {g}"),
        (f"grep {w} {f} > {g}",),
        (file(g), line_count(g, len(result)), content(g, text(*result))),
        {f: text(*lines)},
    )


def count_lines(s: Scene) -> Instance:
    f, g, count = s.file(), s.file(), s.rng.randint(2, 9)
    return Instance(
        s.say(f"count the lines of {f} into {g}", f"write the number of lines in {f} to {g}"),
        (f"wc -l < {f} > {g}",),
        (file(g), content(g, text(str(count)))),
        {f: text(*s.words(count))},
    )


def take_lines(s: Scene) -> Instance:
    f, g, count, lines = s.file(), s.file(), s.rng.randint(1, 5), s.words(7)
    command, which = s.rng.choice((("head", "first"), ("tail", "last")))
    result = lines[:count] if command == "head" else lines[-count:]
    return Instance(
        s.say(f"write the {which} {count} lines of {f} to {g}", f"save the {which} {count} lines from {f} in {g}"),
        (f"{command} -n {count} {f} > {g}",),
        (file(g), line_count(g, count), content(g, text(*result))),
        {f: text(*lines)},
        careless=(f"head -n {count} {f} > {g}",) if command == "tail" else (),
    )


def replace_word(s: Scene) -> Instance:
    f, (old, new, *others) = s.file(), s.words(5)
    lines = [old, *others]
    s.rng.shuffle(lines)
    return Instance(
        s.say(f"replace {old} by {new} in {f}", f"change every {old} to {new} in {f}"),
        (f"sed -i s/{old}/{new}/ {f}",),
        (content(f, text(*(new if line == old else line for line in lines))), contains(f, new)),
        {f: text(*lines)},
    )


def take_column(s: Scene) -> Instance:
    f, g, number = s.file(".csv"), s.file(), s.rng.randint(1, 3)
    rows = [s.words(3) for _ in range(3)]
    return Instance(
        s.say(f"write column {number} of {f} to {g}", f"save field {number} of {f} in {g}"),
        (f"cut -d , -f {number} {f} > {g}",),
        (file(g), content(g, text(*(row[number - 1] for row in rows)))),
        {f: text(*(",".join(row) for row in rows))},
    )


def upper_case(s: Scene) -> Instance:
    f, g, lines = s.file(), s.file(), text(*s.words(2))
    return Instance(
        s.say(f"write {f} in upper case to {g}", f"save {f} in capitals as {g}"),
        (f"tr a-z A-Z < {f} > {g}",),
        (file(g), content(g, lines.upper())),
        {f: lines},
    )


def append_line(s: Scene) -> Instance:
    f, (w, *others) = s.file(), s.words(3)
    return Instance(
        s.say(f"append the line {w} to {f}", f"add {w} at the end of {f}"),
        (f"echo {w} >> {f}",),
        (line_count(f, 3), content(f, text(*others, w))),
        {f: text(*others)},
        careless=(f"echo {w} > {f}",),
    )


def join_files(s: Scene) -> Instance:
    (f, g, h), words = s.files(3), s.words(3)
    return Instance(
        s.say(f"join {f} and {g} into {h}", f"write {f} and then {g} to {h}"),
        (f"cat {f} {g} > {h}",),
        (file(h), content(h, text(*words))),
        {f: text(words[0]), g: text(*words[1:])},
    )


def lower_case(s: Scene) -> Instance:
    f, g, lines = s.file(), s.file(), text(*s.words(2))
    return Instance(
        s.say(f"write {f} in lower case to {g}", f"save {f} in small letters as {g}"),
        (f"tr A-Z a-z < {f} > {g}",),
        (file(g), content(g, lines)),
        {f: lines.upper()},
    )


def append_matches(s: Scene) -> Instance:
    f, g, words = s.file(), s.file(), s.words(5)
    match = f"{words[0]} {words[1]}"
    lines = [match, f"{words[2]} {words[3]}"]
    s.rng.shuffle(lines)
    return Instance(
        s.say(f"append the lines of {f} with {words[0]} to {g}", f"add every line of {f} that contains {words[0]} to {g}"),
        (f"grep {words[0]} {f} >> {g}",),
        (line_count(g, 2), content(g, text(words[4], match))),
        {f: text(*lines), g: text(words[4])},
        careless=(f"grep {words[0]} {f} > {g}",),
    )
