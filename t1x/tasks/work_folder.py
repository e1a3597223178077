"""Where a task's work folder can be: not in or around what a sandbox keeps for itself."""

import posixpath
from pathlib import PurePosixPath

TESTS, LOGS, TOOLS = "/tests", "/logs", "/opt/t1x"
"""What only fresh sandboxes have: the tests, the folder of reports, and what judges."""

_RESERVED = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", TESTS, LOGS, TOOLS)


def work_folder(path: str) -> str:
    """The path in its normal form. Raises `ValueError` for one that can't be a work folder."""
    folder = normal(path)
    if any(folder == reserved or folder in _above(reserved) or reserved in _above(folder) for reserved in _RESERVED):
        raise ValueError(
            f"work folder {folder}: it lies in or around what stays read-only of the system; choose another, such as /app"
        )
    return folder


def normal(path: str) -> str:
    """An absolute path without `.` and doubled slashes. Raises `ValueError` for another one."""
    if not path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise ValueError(f"{path!r}: not an absolute path without `..`")
    return "/" + posixpath.normpath(path).lstrip("/")


def _above(path: str) -> list[str]:
    """The folders that a normal absolute path lies in."""
    return [str(folder) for folder in PurePosixPath(path).parents]
