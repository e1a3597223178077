"""`t1x` that kills itself outright at a moment of a phase: `python killed.py PHASE WHICH SECONDS ARGUMENT...`.

SIGKILL comes SECONDS after the WHICH-th time that the phase begins (counted from 1), from a thread, so that it falls wherever the
work is then.
"""

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

PHASES = (
    "rollout",
    "verification",
    "critic update",
    "actor update",
    "publication",
    "checkpoint",
    "trial storage",
    "evaluation",
    "epoch end",
)


def phase_of(name: str) -> tuple[Any, str]:
    """The object and the attribute that is called when the phase begins."""
    import t1x.campaign.evaluate
    import t1x.rollout.trial
    from t1x.campaign import checkpoint_store
    from t1x.campaign.rollouts import Rollouts
    from t1x.campaign.trajectory_store import TrajectoryStore
    from t1x.engine.continuous import ContinuousBatching
    from t1x.training.torch_trainer import TorchTrainerWorker

    return {
        "rollout": (Rollouts, "_sampled"),
        "verification": (t1x.rollout.trial, "verify"),
        "critic update": (TorchTrainerWorker, "update_critic"),
        "actor update": (TorchTrainerWorker, "update_actor"),
        "publication": (ContinuousBatching, "publish"),
        "checkpoint": (checkpoint_store, "write_checkpoint"),
        "trial storage": (TrajectoryStore, "_save"),
        "evaluation": (t1x.campaign.evaluate, "evaluate"),
    }[name]


def kill_in(name: str, which: int, seconds: float) -> None:
    begun = 0

    def begins() -> None:
        nonlocal begun
        begun += 1
        if begun == which:
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()

    def watched(work: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(work)
        def wrapper(*args: Any, **named: Any) -> Any:
            begins()
            return work(*args, **named)

        return wrapper

    if name == "epoch end":
        from t1x.campaign.cursor import PoolCursor

        take = PoolCursor.take

        def taking(self: PoolCursor, count: int) -> list[int]:
            before = self.taken
            indices = take(self, count)
            if before // self._size != self.taken // self._size:
                begins()
            return indices

        PoolCursor.take = taking  # type: ignore[method-assign]
        return
    owner, attribute = phase_of(name)
    setattr(owner, attribute, watched(getattr(owner, attribute)))


if __name__ == "__main__":
    phase, which, seconds, *arguments = sys.argv[1:]
    if phase != "none":
        kill_in(phase, int(which), float(seconds))
    from t1x.cli.outcome import outcome

    sys.exit(outcome(arguments))
