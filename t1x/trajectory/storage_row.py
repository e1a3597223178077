"""A stored trial as one row of a table: nested plain values and arrays, and back.

Invariants:
- what is read equals what was written, to the bit;
- a row whose streams disagree is neither written nor read;
- nothing is stored once a turn that grows with the turns before it: a prompt is what it has beyond the turn before, and the routing
  rows of a trajectory are those of its turns.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.engine.protocol import Completion
from t1x.text.prefix import common_ids, common_text
from t1x.text.tokenizer import EncodedText, RenderedPrompt
from t1x.trajectory.ending import EndedBy
from t1x.trajectory.prompt import PromptBuffer
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan
from t1x.trajectory.storage_bounds import check_row
from t1x.trajectory.storage_check import check
from t1x.trajectory.storage_copies import Copies, Rows, alike, find_copies
from t1x.trajectory.storage_table import Row, frozen
from t1x.trajectory.stored import StoredTrial


def to_row(trial: StoredTrial, routing: bool = True) -> Row:
    """The row of a trial; without `routing` all its records have 0 layers. Raises `ValueError` where streams disagree, and
    where it's too large to be read."""
    if not routing:
        trial = _without_routing(trial)
    check(trial)
    copies = find_copies(trial.turns, trial.trajectories)
    row = {
        "id": trial.id,
        "task": trial.task,
        "ended_by": str(trial.ended_by),
        "reward": None if trial.reward is None else float(trial.reward),
        "resolved": None if trial.resolved is None else bool(trial.resolved),
        "turns": list(_turn_rows(trial.turns)),
        "trajectories": [_trajectory_row(each, own) for each, own in zip(trial.trajectories, copies, strict=True)],
    }
    check_row(row)
    return row


def from_row(row: Row) -> StoredTrial:
    """The trial of a row. Raises `ValueError` where streams disagree, and, before any memory is taken, where it's too large."""
    check_row(row)
    turns = tuple(_turns(row["turns"]))
    source = _joined([turn.completion.routing for turn in turns])
    trajectories = tuple(_trajectory(each, source) for each in row["trajectories"])
    trial = StoredTrial(row["id"], row["task"], EndedBy(row["ended_by"]), row["reward"], row["resolved"], turns, trajectories)
    check(trial)
    return trial


def _turn_rows(turns: tuple[Turn, ...]) -> Iterator[Row]:
    before = nothing = np.array([], np.int32)
    rendered = RenderedPrompt(EncodedText("", nothing, nothing), None)
    for turn in turns:
        done, kept = turn.completion, common_ids(before, turn.prompt_ids)
        yield {
            "index": int(turn.index),
            "kept": kept,
            "prompt_ids": turn.prompt_ids[kept:],
            "ids": done.ids,
            "logprobs": done.logprobs,
            "routing": _experts_row(done.routing),
            "routing_start": int(done.routing_start),
            "cached_tokens": int(done.cached_tokens),
            "placeholder_tokens": int(turn.placeholder_tokens),
            "finish_reason": done.finish_reason,
            "version": int(done.version),
            "temperature": float(turn.temperature),
            "restarted": bool(turn.restarted),
            "rendered": None if turn.rendered is None else _rendered_row(turn.rendered, rendered, turn.prompt_ids),
        }
        rendered = turn.rendered or rendered
        before = np.concatenate([turn.prompt_ids, done.ids])


def _turns(rows: list[Row]) -> Iterator[Turn]:
    history, rendered = PromptBuffer(), None
    for row in rows:
        if row["kept"] != len(history):
            history = PromptBuffer(_first(history.view(), row["kept"]))
        history.extend(row["prompt_ids"])
        prompt = history.view()
        history.extend(row["ids"])
        own = None if row["rendered"] is None else _rendered(row["rendered"], rendered, prompt)
        rendered = own or rendered
        completion = Completion(
            ids=row["ids"],
            logprobs=row["logprobs"],
            routing=_experts(row["routing"]),
            routing_start=row["routing_start"],
            finish_reason=row["finish_reason"],
            version=row["version"],
            cached_tokens=row["cached_tokens"],
        )
        yield Turn(row["index"], prompt, completion, row["temperature"], row["restarted"], own, row["placeholder_tokens"])


def _rendered_row(rendered: RenderedPrompt, before: RenderedPrompt, prompt: npt.NDArray[np.int32]) -> Row:
    encoded = rendered.encoded
    text = common_text(before.encoded.text, encoded.text)
    ids, starts = common_ids(prompt, encoded.ids), common_ids(before.encoded.starts, encoded.starts)
    return {
        "kept_text": text,
        "text": encoded.text[text:].encode("utf-8", "surrogatepass"),
        "kept_ids": ids,
        "ids": encoded.ids[ids:],
        "kept_starts": starts,
        "starts": encoded.starts[starts:],
        "answer": np.array(rendered.answer or (), np.int64),
    }


def _rendered(row: Row, before: RenderedPrompt | None, prompt: npt.NDArray[np.int32]) -> RenderedPrompt:
    text = before.encoded.text if before else ""
    starts = before.encoded.starts if before else np.array([], np.int32)
    if len(row["answer"]) not in (0, 2):
        raise ValueError(f"a rendered answer has {len(row['answer'])} ends")
    encoded = EncodedText(
        text=_first(text, row["kept_text"]) + row["text"].decode("utf-8", "surrogatepass"),
        ids=frozen(np.concatenate([_first(prompt, row["kept_ids"]), row["ids"]])),
        starts=frozen(np.concatenate([_first(starts, row["kept_starts"]), row["starts"]])),
    )
    answer = row["answer"].tolist()
    return RenderedPrompt(encoded, (answer[0], answer[1]) if answer else None)


def _trajectory_row(trajectory: Trajectory, copies: Copies) -> Row:
    spans = [(span.start, span.stop, span.version) for span in trajectory.versions]
    return {
        "token_ids": trajectory.token_ids,
        "loss_mask": trajectory.loss_mask,
        "logprobs": trajectory.logprobs,
        "routing": _experts_row(copies.rest),
        "routing_parts": copies.parts.reshape(-1),
        "versions": np.array(spans, np.int64).reshape(-1),
        "boundaries": [str(boundary) for boundary in trajectory.boundaries],
        "temperature": float(trajectory.temperature),
        "substituted_rows": np.array(trajectory.substituted_rows, np.int64),
    }


def _trajectory(row: Row, source: Rows) -> Trajectory:
    copies, due = Copies(row["routing_parts"].reshape(-1, 2), _experts(row["routing"])), max(0, len(row["token_ids"]) - 1)
    return Trajectory(
        token_ids=row["token_ids"],
        loss_mask=row["loss_mask"],
        logprobs=row["logprobs"],
        routed_experts=frozen(copies.rows(source, due)),
        versions=tuple(VersionSpan(*span) for span in row["versions"].reshape(-1, 3).tolist()),
        boundaries=tuple(Boundary(name) for name in row["boundaries"]),
        temperature=row["temperature"],
        substituted_rows=tuple(row["substituted_rows"].tolist()),
    )


def _experts_row(experts: Rows) -> Row:
    rows, layers, k = experts.shape
    return {"rows": rows, "layers": layers, "k": k, "bytes": experts.itemsize, "data": experts.tobytes()}


def _experts(row: Row) -> Rows:
    dtypes = {1: np.uint8, 2: np.uint16}
    if row["bytes"] not in dtypes:
        raise ValueError(f"experts have {row['bytes']} bytes each, not 1 or 2")
    shape, data = (row["rows"], row["layers"], row["k"]), np.frombuffer(row["data"], np.uint8)
    if math.prod(shape) * row["bytes"] != len(data):
        raise ValueError(f"experts [rows, layers, k] = {list(shape)} of {row['bytes']} bytes aren't {len(data)} bytes")
    return data.view(dtypes[row["bytes"]]).reshape(shape)


def _joined(captured: list[Rows]) -> Rows:
    """All rows that turns captured, one after the other; none where they don't look alike, as those of no trajectory can then."""
    return np.concatenate(captured) if alike(captured) else np.empty((0, 0, 0), np.uint8)


def _without_routing(trial: StoredTrial) -> StoredTrial:
    turns = [replace(turn, completion=replace(turn.completion, routing=turn.completion.routing[:, :0, :0])) for turn in trial.turns]
    streams = [replace(each, routed_experts=each.routed_experts[:, :0, :0]) for each in trial.trajectories]
    return replace(trial, turns=tuple(turns), trajectories=tuple(streams))


def _first(sequence: Any, count: int) -> Any:
    if not 0 <= count <= len(sequence):
        raise ValueError(f"{count} first elements of {len(sequence)} aren't there")
    return sequence[:count]
