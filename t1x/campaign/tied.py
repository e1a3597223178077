"""Starts a program that is told to end when its parent is gone: `python tied.py <parent's pid> <program> <argument>…`.

A file of its own that imports nothing of t1x, so that it takes a few milliseconds, and an `exec` rather than code between fork and
exec, which isn't safe beside threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""<linux/prctl.h>"""


def main() -> None:
    parent, *program = sys.argv[1:]
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it was gone before it could be asked for
        sys.exit(128 + signal.SIGTERM)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
