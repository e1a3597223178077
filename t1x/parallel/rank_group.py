"""Ranks as processes of this machine, from the side of the one that started them.

Invariants:
- a rank's error and a rank's death reach the caller as an error that tells which and why; the others are ended then, since a group
  of which one is missing can only wait;
- no process outlives `close`, nor the process that started it.
"""

import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from t1x.parallel.plan import TorchPlan
from t1x.parallel.rank_process import START, Failure, Orders

PATIENCE = 2.0
"""Seconds in which a death is looked for that explains another rank's error, and in which a rank ends by itself."""


class RankGroup:
    """`plan.data` processes, each with an object made by `make(ranks, *arguments)`, a module's function or class."""

    def __init__(self, plan: TorchPlan, threads: int, make: Callable[..., Any], *arguments: Any) -> None:
        self._deadline = plan.control_deadline
        self._folder = tempfile.mkdtemp(prefix="t1x-ranks-")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._lifelines: list[socket.socket] = []
        self._finalizer = weakref.finalize(self, _end, self._processes, self._connections, self._lifelines, self._folder)
        store = str(Path(self._folder) / "store")
        try:
            for _ in range(plan.data):
                self._start()
            self._send([pickle.dumps(sys.path)] * plan.data)
            self._send([pickle.dumps(Orders(rank, plan, store, threads, make, arguments)) for rank in range(plan.data)])
            self._answers(self._deadline)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids by rank."""
        return [process.pid for process in self._processes]

    def call(self, method: str, *arguments: Any, control: bool = False) -> Any:
        """Calls a method of every rank's object and returns rank 0's result. A `control` operation has the plan's deadline, others
        none of their own: what hangs in a collective is found by that one's. Raises `ValueError` for what a rank raised as such,
        `RuntimeError` with its traceback for another error, a death or a deadline that passed. The group has ended then."""
        if not self._finalizer.alive:
            raise RuntimeError("the ranks have ended")
        try:
            self._send([pickle.dumps((method, arguments), protocol=pickle.HIGHEST_PROTOCOL)] * len(self._processes))
            return self._answers(self._deadline if control else None)[0]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends all processes."""
        self._finalizer()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        lifeline, held = socket.socketpair()
        with theirs, held:
            process = subprocess.Popen(
                (sys.executable, "-c", START, str(theirs.fileno()), str(held.fileno())),
                pass_fds=(theirs.fileno(), held.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"GLOO_SOCKET_IFNAME": "lo", **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # an interrupt from the keyboard is the parent's to deal with
            )
        self._processes.append(process)
        self._connections.append(Connection(ours.detach()))
        self._lifelines.append(lifeline)

    def _send(self, messages: list[bytes]) -> None:
        for rank, (connection, message) in enumerate(zip(self._connections, messages, strict=True)):
            try:
                connection.send_bytes(message)
            except OSError as error:
                raise RuntimeError(self._death(rank)) from error

    def _answers(self, deadline: float | None) -> list[Any]:
        """By rank; None for all but rank 0 unless they say something."""
        until = None if deadline is None else time.monotonic() + deadline
        answers: dict[int, Any] = {}
        while len(answers) < len(self._connections):
            waiting = {connection: rank for rank, connection in enumerate(self._connections) if rank not in answers}
            ready = wait(list(waiting), None if until is None else max(0.0, until - time.monotonic()))
            if not ready:
                raise RuntimeError(f"ranks {sorted(waiting.values())} didn't answer within {deadline:g} s (control_deadline)")
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = waiting[connection]
                try:
                    answers[rank] = pickle.loads(connection.recv_bytes())
                except (EOFError, OSError) as error:
                    raise RuntimeError(self._death(rank)) from error
                if isinstance(failure := answers[rank], Failure):
                    if failure.reason:
                        raise ValueError(failure.reason)
                    raise RuntimeError(self._cause(rank, failure))
        return [answers[rank] for rank in range(len(answers))]

    def _cause(self, rank: int, failure: Failure) -> str:
        """Why a rank failed: that another one died, if one did."""
        until = time.monotonic() + PATIENCE
        while "torch.distributed" in failure.trace or "dist." in failure.trace:
            for other, process in enumerate(self._processes):
                if process.poll() is not None:
                    return self._death(other)
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        return f"training rank {rank} of {len(self._processes)} failed:\n{failure.trace}"

    def _death(self, rank: int) -> str:
        try:
            code = self._processes[rank].wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return f"training rank {rank} of {len(self._processes)} closed its connection"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        memory = ", as the system does where memory runs out" if code == -signal.SIGKILL else ""
        return f"training rank {rank} of {len(self._processes)} {how}{memory}"


def _end(
    processes: list[subprocess.Popen[bytes]], connections: list[Connection], lifelines: list[socket.socket], folder: str
) -> None:
    for connection in connections:
        connection.close()
    for lifeline in lifelines:
        lifeline.close()
    for process in processes:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
