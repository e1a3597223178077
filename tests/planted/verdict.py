"""A pytest plugin: whether what failed says that the library does wrong, or only that planted code can't run."""

import pytest

CRASHED = 20
"""The exit status of a run in which something failed by another error than those that prove a fault."""
crashed = pytest.StashKey[bool]()


def proves(error: BaseException) -> bool:
    """Whether an error is a failed assertion or one of the library's own; of several that hypothesis found, whether one is."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(proves, error.exceptions))
    return isinstance(error, AssertionError | pytest.fail.Exception) or type(error).__module__.partition(".")[0] == "t1x"


def pytest_exception_interact(node, call):
    if not proves(call.excinfo.value):
        node.session.stash[crashed] = True


def pytest_sessionfinish(session):
    if crashed in session.stash:
        session.exitstatus = CRASHED
