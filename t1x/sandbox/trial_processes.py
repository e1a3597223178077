"""What runs in one sandbox, and its end."""

import asyncio

from t1x.sandbox.child import Child
from t1x.sandbox.isolation import Isolation
from t1x.sandbox.processes import Running, Snapshot
from t1x.sandbox.trial_folder import TrialFolder

_KILL_TIMEOUT = 30.0
"""Seconds for killed processes to be gone; longer means that the kernel holds one."""


class TrialProcesses:
    """The processes of one trial, known by those that are our own children."""

    def __init__(self, isolation: Isolation, trial: TrialFolder) -> None:
        self._isolation = isolation
        self._trial = trial
        self._started: list[Child] = []

    def add(self, child: Child) -> None:
        """One that has just been started."""
        self._started.append(child)

    @property
    def alive(self) -> bool:
        """Whether one of our children is."""
        return any(child.poll() is None for child in self._started)

    def running(self, snapshot: Snapshot) -> list[Running]:
        """All that runs; callable from any thread."""
        children = [child for child in list(self._started) if child.returncode is None]
        found = (self._isolation.processes(snapshot, self._trial, child) for child in children)
        return list({process.pid: process for processes in found for process in processes}.values())

    def kill(self) -> None:
        """SIGKILL to all of them."""
        for child in self._started:
            self._isolation.kill(self._trial, child)

    async def end(self) -> bool:
        """Kills all and waits until they are gone; False where the kernel holds one back."""
        self.kill()
        alive = [asyncio.shield(child.watch()) for child in self._started if child.poll() is None]
        if alive:
            await asyncio.wait(alive, timeout=_KILL_TIMEOUT)
        return self._forget()

    def end_now(self) -> bool:
        """The same without an event loop."""
        self.kill()
        return all(child.wait_blocking(_KILL_TIMEOUT) for child in self._started) and self._forget()

    def _forget(self) -> bool:
        if self.alive:
            return False
        self._started.clear()
        return True
