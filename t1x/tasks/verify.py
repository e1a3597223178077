"""Held-out verifier of a synthetic task: checks a work folder against `assertions.json` beside this file.

    verify.py [WORK_FOLDER [REPORT]]        (/app and /logs/verifier/ctrf.json)

Writes a CTRF report with one entry per assertion, and reward.txt (1 or 0) beside it, which Harbor reads; exits with 0 iff all
assertions hold. Every process of the agent is dead when this runs.

Invariants: no symbolic link is followed, nothing but regular files is read, the report appears whole or not at all.
The standard library's json (it imports re) would cost more than all else here. A module that one check needs is imported there.
"""

import os
import stat
import sys
import time

LARGEST = 1 << 20
"""Bytes of the largest file that is read."""
SCRIPT_SECONDS = 5.0
"""Deadline of a script whose output is compared."""
SCRIPT_OUTPUT = 1 << 16
"""Bytes of output after which it is stopped."""
CANDIDATE = "/opt/t1x/candidate"
"""t1x's program that confines what it runs; it is there where t1x runs this in a sandbox."""
ROOT = -1
"""Descriptor of the work folder; -1, where nothing holds, if the agent removed it."""


def enter(path: str) -> tuple[int, str]:
    """(descriptor of the folder that holds `path`, its last name); the few descriptors live as long as this process."""
    *parents, name = path.split("/")
    folder = ROOT
    for parent in parents:
        folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    return folder, name


def status(path: str) -> os.stat_result:
    folder, name = enter(path)
    return os.lstat(name, dir_fd=folder)


def read(path: str) -> bytes:
    folder, name = enter(path)
    found = os.lstat(name, dir_fd=folder)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a regular file")
    if found.st_size > LARGEST:
        raise ValueError(f"{found.st_size} bytes are too many")
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    return os.read(descriptor, LARGEST)


def file(path: str, expected: None) -> bool:
    return stat.S_ISREG(status(path).st_mode)


def absent(path: str, expected: None) -> bool:
    try:
        status(path)
    except FileNotFoundError:
        return True
    return False


def directory(path: str, expected: None) -> bool:
    return stat.S_ISDIR(status(path).st_mode)


def listing(path: str, expected: list[str]) -> bool:
    folder, name = enter(path)
    return sorted(os.listdir(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder))) == expected


def content(path: str, expected: str) -> bool:
    return read(path) == expected.encode()


def contains(path: str, expected: str) -> bool:
    return expected.encode() in read(path)


def line_count(path: str, expected: int) -> bool:
    return read(path).count(b"\n") == expected


def mode(path: str, expected: int) -> bool:
    found = status(path).st_mode
    return not stat.S_ISLNK(found) and stat.S_IMODE(found) == expected


def link(path: str, expected: None) -> bool:
    return stat.S_ISLNK(status(path).st_mode)


def link_target(path: str, expected: str) -> bool:
    folder, name = enter(path)
    return os.readlink(name, dir_fd=folder) == expected


def tar_members(path: str, expected: list[str]) -> bool:
    import io
    import itertools
    import tarfile

    body = read(path)
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
        # a size below 0 leads back to an earlier member, again and again
        members = itertools.islice(archive, len(body) // tarfile.BLOCKSIZE)
        return sorted(member.name.removeprefix("./") for member in members if member.isfile()) == expected


def output(path: str, expected: str) -> bool:
    """The script runs in a process of its own that can't write a byte to any file, so neither can what it leaves behind; confined,
    it doesn't see the tests, the report or this process either."""
    import resource
    import select
    import signal

    read(path)
    reader, writer = os.pipe()
    script = os.fork()
    if script == 0:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            os.fchdir(ROOT)
            null = os.open("/dev/null", os.O_RDWR)
            for source, target in ((null, 0), (writer, 1), (null, 2)):
                os.dup2(source, target)
            argv = [CANDIDATE] * os.path.exists(CANDIDATE) + ["/bin/bash", path]
            os.execve(argv[0], argv, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
        finally:
            os._exit(127)
    os.close(writer)
    printed, deadline = b"", time.monotonic() + SCRIPT_SECONDS
    while len(printed) <= SCRIPT_OUTPUT:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(reader, SCRIPT_OUTPUT) if ready else b""
        if not chunk:
            break
        printed += chunk
    os.killpg(script, signal.SIGKILL)
    os.waitpid(script, 0)
    return printed == expected.encode()


def every(path: str, expected: list[dict]) -> bool:
    """For verifiers that only say whether all assertions hold."""
    return all(entry(assertion)[1] for assertion in expected)


def quoted(text: str) -> str:
    """A JSON string in ASCII."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    return '"' + "".join(chr(u) if 31 < u < 127 and chr(u) not in '"\\' else f"\\u{u:04x}" for u in units) + '"'


def entry(assertion: dict) -> tuple[str, bool]:
    """(CTRF entry, whether it holds)."""
    begin, message = time.monotonic(), "does not hold"
    try:
        holds = globals()[assertion["kind"]](assertion["path"], assertion["expected"])
    except Exception as error:  # whatever the agent left there is the agent's failure, never the verifier's
        holds, message = False, f"{type(error).__name__}: {error}"
    milliseconds = round(1000 * (time.monotonic() - begin))
    result = '"status": "passed"' if holds else f'"status": "failed", "message": {quoted(message)}'
    return f'{{"name": {quoted(assertion["name"])}, {result}, "duration": {milliseconds}}}', holds


def write(path: str, text: str) -> None:
    """The whole text at once, and never into what already lies at `path`."""
    draft = f"{path}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w", encoding="ascii") as target:
        target.write(text)
    os.replace(draft, path)


def main(report: str) -> int:
    begin = time.time()
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "assertions.json"), encoding="utf-8") as source:
        assertions = eval(source.read(), {"__builtins__": {}, "null": None})  # our own file, whose strings are Python literals too
    entries = [entry(assertion) for assertion in assertions]
    passed = sum(holds for _, holds in entries)
    summary = (
        f'{{"tests": {len(entries)}, "passed": {passed}, "failed": {len(entries) - passed}, "pending": 0, "skipped": 0, '
        f'"other": 0, "start": {int(1000 * begin)}, "stop": {int(1000 * time.time())}}}'
    )
    tests = ",\n".join(text for text, _ in entries)
    resolved = passed == len(entries)
    write(os.path.join(os.path.dirname(report), "reward.txt"), f"{resolved:d}\n")
    write(report, f'{{"results": {{"tool": {{"name": "t1x"}}, "summary": {summary}, "tests": [\n{tests}\n]}}}}\n')
    return 0 if resolved else 1


if __name__ == "__main__":
    work_folder, report = [*sys.argv[1:], *("/app", "/logs/verifier/ctrf.json")[len(sys.argv) - 1 :]]
    try:
        ROOT = os.open(work_folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        print(f"{work_folder}: {error.strerror}", file=sys.stderr)
    sys.exit(main(report))
