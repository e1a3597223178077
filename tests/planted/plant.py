"""Plants faults in a copy of the library, one at a time, and runs the tests that must find them.

python tests/planted/plant.py             all of them
python tests/planted/plant.py "stale cursor" "shifted mask"
python tests/planted/plant.py --list
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from faults import FAULTS, Fault
from rich.console import Console
from rich.table import Table
from verdict import CRASHED

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@contextmanager
def copy() -> Iterator[Path]:
    """A folder with a copy of the library."""
    with tempfile.TemporaryDirectory(prefix="t1x-planted-") as folder:
        shutil.copytree(ROOT / "t1x", Path(folder) / "t1x", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(folder)


def plant(fault: Fault, folder: Path) -> None:
    """Edits the copy. Raises `ValueError` where the fault no longer fits the library."""
    file = folder / "t1x" / fault.file
    text = file.read_text(encoding="utf-8")
    if (found := text.count(fault.old)) != 1:
        raise ValueError(f"fault {fault.name!r}: its old text stands {found} times in t1x/{fault.file}, not once: {fault.old!r}")
    file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")


def run(tests: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs tests against the library in `folder`; hypothesis keeps nothing of it and doesn't shrink."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder), str(HERE)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    pytest = ["-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "verdict"]
    pytest += ["-m", "not soak", "--hypothesis-profile=planted"]
    return subprocess.run(
        [sys.executable, "-P", *pytest, *tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def finders(fault: Fault) -> dict[str, str]:
    """Each test of a fault to what is wrong with it: empty where it fails, as it must."""
    with copy() as folder:
        plant(fault, folder)
        return {test: _found(run([test], folder)) for test in fault.tests}


def _found(done: subprocess.CompletedProcess[str]) -> str:
    """Exit status 1 is a failed test; others are errors of another kind, such as a test that isn't there."""
    if done.returncode == 1:
        return ""
    what = {0: "passes", CRASHED: "crashes"}.get(done.returncode, f"pytest ends with {done.returncode}")
    return what if what == "passes" else f"{what}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def baseline(faults: Sequence[Fault]) -> str:
    """What fails of all their tests without a fault, in the same kind of copy; empty where nothing does."""
    tests = sorted({test for fault in faults for test in fault.tests})
    with copy() as folder:
        environment = os.environ | {"PYTHONPATH": str(folder)}
        code = [sys.executable, "-P", "-c", "import t1x; print(t1x.__file__)"]
        place = subprocess.run(code, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        assert Path(place).is_relative_to(folder), "tests see the copy"
        done = run(tests, folder)
        return "" if done.returncode == 0 else done.stdout[-4000:] + done.stderr[-2000:]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to plant; all of them where none is named")
    parser.add_argument("--list", action="store_true", help="their names, files and tests")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {fault.name for fault in FAULTS}:
        parser.error(f"no fault is named {sorted(unknown)}; --list tells the names")
    faults = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    console = Console()
    table = Table("fault", "in", "test", *([] if options.list else ["found"]))
    if options.list:
        for fault in faults:
            table.add_row(fault.name, fault.file, "\n".join(map(_short, fault.tests)))
        console.print(table)
        return 0
    with console.status("the tests without a fault"):
        if wrong := baseline(faults):
            console.print(wrong, markup=False)
            console.print("The tests must pass before a fault is planted.")
            return 2
    missed = 0
    for fault in faults:
        with console.status(fault.name):
            found = finders(fault)
        missed += any(found.values())
        for test, wrong in found.items():
            if wrong:
                console.print(f"{fault.name}: {test} {wrong}", markup=False)
        verdicts = ["no" if wrong else "yes" for wrong in found.values()]
        table.add_row(fault.name, fault.file, "\n".join(map(_short, found)), "\n".join(verdicts))
    console.print(table)
    console.print(f"{len(faults) - missed} of {len(faults)} planted faults were found.")
    return int(missed > 0)


def _short(test: str) -> str:
    return test.partition("::")[2] or Path(test).name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
