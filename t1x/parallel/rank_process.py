"""The process of one rank: `START` as a program, with two arguments, the file descriptors of a socket and of a lifeline.

It joins the group, makes the object that it is told to, and runs that object's methods until it is asked for no more. It ends at
once when the lifeline closes, which is when its parent is gone, however that came about.
"""

import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from t1x.parallel.plan import TorchPlan

START = "from t1x.parallel.rank_process import main; main()"


@dataclass(frozen=True, slots=True)
class Orders:
    """What a rank is and makes."""

    rank: int
    plan: TorchPlan
    store: str
    """File that the ranks meet over."""
    threads: int
    make: Callable[..., Any]
    """Called with the `Ranks` and `arguments`."""
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in a rank."""

    reason: str
    """The error's own words where it is a `ValueError`, which are for the user; else empty."""
    trace: str


def main() -> None:
    """See the module; it ends by ending the process."""
    connection, lifeline = Connection(int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    sys.path[:] = pickle.loads(connection.recv_bytes())
    made: Any = None
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            os._exit(0)
        try:
            content = pickle.loads(message)
            if isinstance(content, Orders):
                made, result = _make(content), None
            else:
                method, arguments = content
                result = getattr(made, method)(*arguments)
            answer = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            answer = pickle.dumps(Failure(str(error) if isinstance(error, ValueError) else "", traceback.format_exc()))
        connection.send_bytes(answer)


def _make(orders: Orders) -> Any:
    import torch
    import torch.distributed as dist

    from t1x.parallel.ranks import Ranks

    torch.set_num_threads(orders.threads)
    plan, device = orders.plan, str(orders.plan.device)
    if device == "cuda":
        device = f"cuda:{orders.rank}"
        torch.cuda.set_device(device)
    dist.init_process_group(
        "gloo" if plan.device == "cpu" else "cpu:gloo,cuda:nccl",
        store=dist.FileStore(orders.store, plan.data),
        rank=orders.rank,
        world_size=plan.data,
        timeout=timedelta(seconds=plan.collective_deadline),
    )
    return orders.make(Ranks(orders.rank, plan.data, plan.fully_sharded, device), *orders.arguments)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)
