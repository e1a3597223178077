"""Trials to store, with nothing in them at its default, and whether two are the same to the bit."""

import dataclasses
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_turns import make_turns, stitch

from t1x.engine.protocol import Completion
from t1x.text.tokenizer import EncodedText, RenderedPrompt
from t1x.trajectory import storage_writer
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan
from t1x.trajectory.stored import StoredTrial

TEXTS = ("", "ls", "é😀\x1b[1m", "\ud800", "<|user|>a\x00b\r\n", "日本")


def experts(random: np.random.Generator, rows: int, layers: int, k: int, dtype: Any) -> np.ndarray:
    return random.integers(0, np.iinfo(dtype).max, (rows, layers, k), dtype, endpoint=True)


def text(random: np.random.Generator) -> str:
    return "".join(TEXTS[code] for code in random.integers(0, len(TEXTS), 3))


def ids(random: np.random.Generator, n: int) -> np.ndarray:
    return random.integers(0, 2**31 - 1, n, np.int32, endpoint=True)


def floats(random: np.random.Generator, n: int) -> np.ndarray:
    """Any bits, NaN and infinities among them."""
    return random.integers(0, 2**32 - 1, n, np.uint32).view(np.float32)


def rendered(random: np.random.Generator, prompt: np.ndarray) -> RenderedPrompt:
    own = prompt if random.random() < 0.5 else ids(random, int(random.integers(0, 5)))
    encoded = EncodedText(text(random), own, np.sort(random.integers(0, 99, len(own), np.int32)))
    return RenderedPrompt(encoded, (int(random.integers(1, 9)), int(random.integers(9, 99))))


def turn(random: np.random.Generator, before: np.ndarray, layout: tuple[int, int, Any]) -> Turn:
    """Its prompt begins as the turn before did, for as long as it happens to."""
    kept = before[: random.integers(0, len(before), endpoint=True)] if random.random() < 0.5 else before
    prompt = np.concatenate([kept, ids(random, int(random.integers(not len(kept), 4)))])
    n, start = int(random.integers(1, 5)), int(random.integers(1, 3)) if len(prompt) > 2 else 0
    done = Completion(
        ids=ids(random, n),
        logprobs=floats(random, n),
        routing=experts(random, len(prompt) + n - 1 - start, *layout),
        routing_start=start,
        finish_reason=str(random.choice(["stop", "length", "abort"])),
        version=int(random.integers(1, 2**40)),
        cached_tokens=int(random.integers(1, 2**40)),
    )
    return Turn(
        index=int(random.integers(1, 999)),
        prompt_ids=prompt,
        completion=done,
        temperature=float(random.random() + 0.1),
        restarted=True,
        rendered=rendered(random, prompt),
        placeholder_tokens=int(random.integers(1, 9)),
    )


def stream(random: np.random.Generator, layout: tuple[int, int, Any], rows: np.ndarray) -> Trajectory:
    """Some of its rows are `rows`, as those of a stream are its turns'."""
    n = int(random.integers(2, 12))
    routing = experts(random, n - 1, *layout)
    taken = int(random.integers(0, min(n - 1, len(rows)), endpoint=True))
    routing[:taken] = rows[:taken]
    cuts = np.unique([0, *random.integers(0, n, 2), n])
    return Trajectory(
        token_ids=ids(random, n),
        loss_mask=random.random(n) < 0.5,
        logprobs=floats(random, n),
        routed_experts=routing,
        versions=tuple(VersionSpan(int(a), int(b), int(random.integers(2**40))) for a, b in pairwise(cuts)),
        boundaries=tuple(list(Boundary)[code] for code in random.integers(0, len(Boundary), random.integers(1, 4))),
        temperature=float(random.random() + 0.1),
        substituted_rows=tuple(np.unique(random.integers(0, n - 1, random.integers(1, 4))).tolist()),
    )


def trial(seed: int, turns: int = 3, streams: int = 2, layers: int = 2, k: int = 2, dtype: Any = np.uint8) -> StoredTrial:
    """Whatever the records can hold, also what no harness makes."""
    random = np.random.default_rng(seed)
    layout, made, before = (layers, k, dtype), [], np.array([], np.int32)
    for _ in range(turns):
        made.append(turn(random, before, layout))
        before = np.concatenate([made[-1].prompt_ids, made[-1].completion.ids])
    rows = np.concatenate([np.empty((0, layers, k), dtype), *(each.completion.routing for each in made)])
    return StoredTrial(
        id=f"trial-{seed}",
        task=f"task {seed}",
        ended_by=EndedBy(random.choice(["done", "context", "engine_error"])),
        reward=float(random.normal()),
        resolved=bool(random.random() < 0.5),
        turns=tuple(made),
        trajectories=tuple(stream(random, layout, rows) for _ in range(streams)),
    )


def stitched(plan: Any, seed: int = 0, layout: tuple[int, int] = (2, 2)) -> StoredTrial:
    """One as a campaign makes it; see `random_turns.make_turns`."""
    turns = make_turns(plan, layout, seed)
    return StoredTrial(f"stitched-{seed}", "task", EndedBy.DONE, 1.0, True, tuple(turns), tuple(stitch(turns)))


def crafted(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Writes a trial whose row is changed before it gets its checksum: as of a writer that is wrong, or means harm."""
    to_row = storage_writer.to_row

    def changed(*arguments: Any) -> dict[str, Any]:
        row = to_row(*arguments)
        change(row)
        return row

    with pytest.MonkeyPatch.context() as patch, storage_writer.TrialWriter(path, {}) as writer:
        patch.setattr(storage_writer, "to_row", changed)
        writer.add(trial(0, turns=2, streams=1))
    return path


def same(one: Any, other: Any) -> bool:
    """Type by type and bit by bit; records field by field, whatever fields there are."""
    if type(one) is not type(other):
        return False
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
