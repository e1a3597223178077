"""The judge's beginning and end.

    judge.main RECORD CANDIDATE VARIABLES TESTS PACKAGES TEST_FILE...

VARIABLES is a JSON object, the environment of what the tests start: not this process's own, which they could have lead to the
agent's files. PACKAGES are folders of pytest and what it needs, joined by `:`.

It ends with one line in the record: `{"exit": pytest's exit status, "ctrf": CTRF document, "errors": [what can't be
collected, see `Results.errors`]}`.
"""

import json
import os
import sys

from .confine import confine
from .guard import Guard


def main() -> None:
    judge, record, candidate, variables, tests, packages, *files = sys.argv[1:]
    descriptor = int(record)
    os.set_inheritable(descriptor, False)
    os.environ.pop("LD_PRELOAD", None)  # of this interpreter
    os.environ.update(json.loads(variables))
    libraries = packages.split(":")
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(judge)]
    sys.path += dict.fromkeys(os.path.dirname(package) for package in libraries)
    import pytest

    from .results import Results

    confined = os.path.exists(candidate)
    if confined:
        confine(candidate)
    trusted = [os.path.dirname(os.__file__), judge, *libraries]
    Guard(descriptor, trusted, tests, candidate if confined else None).install()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    results = Results()
    options = ["-q", "--color=no", "--tb=short", "-c", "/dev/null", "-p", "no:cacheprovider"]
    status = pytest.main([*options, f"--rootdir={tests}", f"--confcutdir={tests}", *files], plugins=[results])
    line = json.dumps({"exit": int(status), "ctrf": results.ctrf(), "errors": results.errors}) + "\n"
    with open(descriptor, "wb", closefd=False) as end:
        end.write(line.encode())
    sys.stdout.flush()
    os._exit(0)  # whatever threads and servers the tests have left
