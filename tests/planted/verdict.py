"""A pytest plugin: whether what failed says that the library does wrong, or only that planted code can't run."""

import linecache
import traceback

import pytest

CRASHED = 20
"""The exit status of a run in which something failed by another error than those that prove a fault."""
crashed = pytest.StashKey[bool]()


def proves(error: BaseException) -> bool:
    """Whether an error is a failed assertion or one that the library raises itself; of several that hypothesis found, whether one
    is."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(proves, error.exceptions))
    return isinstance(error, AssertionError | pytest.fail.Exception) or _raised_by_the_library(error)


def _raised_by_the_library(error: BaseException) -> bool:
    """Whether its traceback ends at a `raise` of the library."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return False
    frame, line = frames[-1]
    code = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
    return frame.f_globals["__name__"].partition(".")[0] == "t1x" and code.lstrip().startswith("raise ")


def pytest_exception_interact(node, call):
    if not proves(call.excinfo.value):
        node.session.stash[crashed] = True


def pytest_sessionfinish(session):
    if crashed in session.stash:
        session.exitstatus = CRASHED
