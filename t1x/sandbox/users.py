"""User ids for the trials that root starts.

Invariant: a living trial shares its id with no other living trial, whichever t1x on this machine started it, so that whatever runs
as that user is the trial's.
"""

import fcntl
import os
import struct
import tempfile
from itertools import count

from t1x.sandbox.processes import Snapshot
from t1x.sandbox.protocol import SandboxError

_FIRST, _COUNT = 61184, 4336
"""The range that systemd keeps for services with users of their own; nobody logs in with one."""
_NAME = "t1x-users.lock"


class Users:
    """Hands out ids. Where we aren't root, trials run as ourselves and there are none to hand out.

    Each id is one byte of a file in /run that all t1x share; the byte of an id in use is locked, and the kernel unlocks it when its
    owner ends, however it does."""

    def __init__(self) -> None:
        self._lock: int | None = None
        self._ours: set[int] = set()  # which don't lock us out
        self._next = count(os.getpid())  # what has just been given back is given out last
        if os.geteuid() == 0:
            self._strangers = Snapshot().users()
            folder = "/run" if os.access("/run", os.W_OK) else tempfile.gettempdir()
            self._lock = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def take(self) -> int | None:
        """An id that nobody has; None where trials run as ourselves. Raises `SandboxError` where all are taken."""
        if self._lock is None:
            return None
        unusable = self._strangers | self._ours
        for _ in range(_COUNT):
            user = _FIRST + next(self._next) % _COUNT
            if user not in unusable and self._set(fcntl.F_WRLCK, user):
                self._ours.add(user)
                return user
        raise SandboxError(f"all {_COUNT} user ids of sandboxes are taken by living ones; destroy some")

    def give_back(self, user: int | None) -> None:
        """Call when nothing of its trial is alive. None is fine."""
        if user is not None:
            self._ours.remove(user)
            self._set(fcntl.F_UNLCK, user)

    def close(self) -> None:
        """Gives all back; safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _set(self, kind: int, user: int) -> bool:
        """Whether the lock could be set. Locks of open files, not of processes: two hosts in one process exclude one another."""
        assert self._lock is not None
        try:
            fcntl.fcntl(self._lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, user - _FIRST, 1, 0))
        except BlockingIOError:
            return False
        return True
