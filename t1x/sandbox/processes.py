"""The processes of this machine at one moment, as /proc tells."""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_PAGE = os.sysconf("SC_PAGE_SIZE")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


@dataclass(frozen=True, slots=True)
class Running:
    """One living process."""

    pid: int
    parent: int
    ticks: int
    """Processor time of it and of the children that it waited for, in clock ticks."""
    memory: int
    """Bytes resident; what it shares with others counts in full."""


class Snapshot:
    """Taken when made; details are read when they are asked for, of those that are still there. Zombies are left out."""

    def __init__(self) -> None:
        self._pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        self._variables: dict[str, dict[bytes, list[int]]] = {}

    def below(self, pid: int) -> list[Running]:
        """The process and all that it or what it started has started; empty where it is gone."""
        found = [self._all[pid]] if pid in self._all else []
        for process in found:
            found += self._children[process.pid]
        return found

    def of_user(self, user: int) -> list[Running]:
        """Processes with this effective user id, also those that keep others from looking into them."""
        return self._alive(self._by_user.get(user, []))

    def users(self) -> set[int]:
        """The user ids that have a process."""
        return set(self._by_user)

    def with_variable(self, name: str, value: str) -> list[Running]:
        """Processes that were started with an environment variable; one that took it out of its environment isn't found."""
        return self._alive(self._by_value(name)[os.fsencode(value)])

    def _alive(self, pids: list[int]) -> list[Running]:
        return [process for pid in pids if (process := _read(pid)) is not None]

    @cached_property
    def _all(self) -> dict[int, Running]:
        return {process.pid: process for process in self._alive(self._pids)}

    @cached_property
    def _children(self) -> dict[int, list[Running]]:
        found: dict[int, list[Running]] = defaultdict(list)
        for process in self._all.values():
            found[process.parent].append(process)
        return found

    @cached_property
    def _by_user(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for pid in self._pids:
            try:
                found[os.stat(f"/proc/{pid}").st_uid].append(pid)
            except _GONE:
                continue
        return found

    def _by_value(self, name: str) -> dict[bytes, list[int]]:
        if name in self._variables:
            return self._variables[name]
        found = self._variables[name] = defaultdict(list)
        start = os.fsencode(name) + b"="
        for pid in self._pids:
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    variables = environ.read().split(b"\0")
            except _GONE:
                continue
            for variable in variables:
                if variable.startswith(start):
                    found[variable[len(start) :]].append(pid)
        return found


def shared_memory(processes: Iterable[Running], held: int) -> int:
    """Bytes that the processes take together: what several share counts once, as far as we may look. `held` are bytes of memory
    files that they hold open, mapped or not."""
    private = shared = 0
    for process in processes:
        try:
            with open(f"/proc/{process.pid}/smaps_rollup", "rb") as rollup:
                sizes = {line.split()[0]: int(line.split()[1]) << 10 for line in rollup.readlines()[1:]}
        except _GONE:
            private += process.memory
            continue
        mapped = sizes.get(b"Pss_Shmem:", 0)
        private += sizes.get(b"Pss:", 0) - mapped
        shared += mapped
    return private + max(shared, held)


def _read(pid: int) -> Running | None:
    """None where it is gone or a zombie."""
    try:
        stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            fields = os.read(stat, 4096).rpartition(b")")[2].split()  # the name before may hold anything
        finally:
            os.close(stat)
    except _GONE:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return Running(pid, int(fields[1]), ticks, int(fields[21]) * _PAGE)
