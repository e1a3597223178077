"""A stored trial as one row of a table: nested plain values and arrays, and back.

Invariants:
- what is read equals what was written, to the bit;
- a row whose streams disagree is neither written nor read;
- nothing is stored once a turn that grows with the turns before it: a prompt is what it has beyond the turn before, and the routing
  rows of a trajectory are those of its turns.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from t1x.engine.protocol import Completion
from t1x.text.tokenizer import EncodedText, RenderedPrompt
from t1x.trajectory.prompt import PromptBuffer
from t1x.trajectory.records import Boundary, Trajectory, Turn, VersionSpan
from t1x.trajectory.storage_copies import Copies, Rows, common_prefix, find_copies
from t1x.trajectory.stored import StoredTrial

Row = dict[str, Any]

_IDS, _NUMBERS = pa.list_(pa.int32()), pa.list_(pa.int64())
_EXPERTS = pa.struct(
    [("rows", pa.int64()), ("layers", pa.int64()), ("k", pa.int64()), ("bytes", pa.int64()), ("data", pa.large_binary())]
)
_RENDERED = pa.struct(
    [
        ("kept_text", pa.int64()),
        ("text", pa.large_binary()),
        ("kept_ids", pa.int64()),
        ("ids", _IDS),
        ("kept_starts", pa.int64()),
        ("starts", _IDS),
        ("answer", _NUMBERS),
    ]
)
_TURN = pa.struct(
    [
        ("index", pa.int64()),
        ("kept", pa.int64()),
        ("prompt_ids", _IDS),
        ("ids", _IDS),
        ("logprobs", pa.list_(pa.float32())),
        ("routing", _EXPERTS),
        ("routing_start", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("placeholder_tokens", pa.int64()),
        ("finish_reason", pa.string()),
        ("version", pa.int64()),
        ("temperature", pa.float64()),
        ("restarted", pa.bool_()),
        ("rendered", _RENDERED),
    ]
)
_TRAJECTORY = pa.struct(
    [
        ("token_ids", _IDS),
        ("loss_mask", pa.list_(pa.bool_())),
        ("logprobs", pa.list_(pa.float32())),
        ("routing", _EXPERTS),
        ("routing_parts", _NUMBERS),
        ("versions", _NUMBERS),
        ("boundaries", pa.list_(pa.string())),
        ("temperature", pa.float64()),
        ("substituted_rows", _NUMBERS),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("task", pa.string()),
        ("ended_by", pa.string()),
        ("reward", pa.float64()),
        ("resolved", pa.bool_()),
        ("turns", pa.list_(_TURN)),
        ("trajectories", pa.list_(_TRAJECTORY)),
        ("checksum", pa.binary()),
    ]
)
"""`kept` ids of a turn's prompt are the first ones of the turn before (its prompt and completion), `prompt_ids` those that follow;
`kept_text`, `kept_starts`: as many characters, starts as in the rendered prompt before; `kept_ids`: of the turn's own prompt."""


def to_row(trial: StoredTrial, routing: bool = True) -> Row:
    """The row of a trial; without `routing` all its records have 0 layers. Raises `ValueError` where streams disagree."""
    if not routing:
        trial = _without_routing(trial)
    _check(trial)
    captured = [turn.completion.routing for turn in trial.turns]
    source = _joined(captured)
    return {
        "id": trial.id,
        "task": trial.task,
        "ended_by": str(trial.ended_by),
        "reward": None if trial.reward is None else float(trial.reward),
        "resolved": None if trial.resolved is None else bool(trial.resolved),
        "turns": list(_turn_rows(trial.turns)),
        "trajectories": [_trajectory_row(each, source) for each in trial.trajectories],
    }


def from_row(row: Row) -> StoredTrial:
    """The trial of a row. Raises `ValueError` where streams disagree."""
    turns = tuple(_turns(row["turns"]))
    source = _joined([turn.completion.routing for turn in turns])
    trajectories = tuple(_trajectory(each, source) for each in row["trajectories"])
    trial = StoredTrial(row["id"], row["task"], row["ended_by"], row["reward"], row["resolved"], turns, trajectories)
    _check(trial)
    return trial


def checksum(row: Row) -> bytes:
    """Of everything in a row but its own."""
    hashed = hashlib.sha256()
    for piece in _pieces({name: value for name, value in row.items() if name != "checksum"}):
        hashed.update(piece)
    return hashed.digest()


def to_table(rows: list[Row]) -> pa.Table:
    """Rows with their checksums."""
    return pa.Table.from_pylist([{**row, "checksum": checksum(row)} for row in rows], SCHEMA)


def from_table(table: pa.Table) -> list[Row]:
    """Rows of a table. Arrays are read-only views of its memory."""
    columns = {name: _values(table[name].combine_chunks()) for name in table.column_names}
    return [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]


def _turn_rows(turns: tuple[Turn, ...]) -> Iterator[Row]:
    before = nothing = np.array([], np.int32)
    rendered = RenderedPrompt(EncodedText("", nothing, nothing), None)
    for turn in turns:
        done, kept = turn.completion, common_prefix(before, turn.prompt_ids)
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
    text = common_prefix(_characters(before.encoded.text), _characters(encoded.text))
    ids, starts = common_prefix(prompt, encoded.ids), common_prefix(before.encoded.starts, encoded.starts)
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
    encoded = EncodedText(
        text=_first(text, row["kept_text"]) + row["text"].decode("utf-8", "surrogatepass"),
        ids=_frozen(np.concatenate([_first(prompt, row["kept_ids"]), row["ids"]])),
        starts=_frozen(np.concatenate([_first(starts, row["kept_starts"]), row["starts"]])),
    )
    answer = row["answer"].tolist()
    if len(answer) not in (0, 2):
        raise ValueError(f"a rendered answer has {len(answer)} ends")
    return RenderedPrompt(encoded, (answer[0], answer[1]) if answer else None)


def _trajectory_row(trajectory: Trajectory, source: Rows) -> Row:
    copies = find_copies(trajectory.routed_experts, source)
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
    return Trajectory(
        token_ids=row["token_ids"],
        loss_mask=row["loss_mask"],
        logprobs=row["logprobs"],
        routed_experts=_frozen(Copies(row["routing_parts"].reshape(-1, 2), _experts(row["routing"])).rows(source)),
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
    return np.frombuffer(row["data"], dtypes[row["bytes"]]).reshape(row["rows"], row["layers"], row["k"])


def _joined(captured: list[Rows]) -> Rows:
    """All rows that turns captured, one after the other; none where they don't look alike, as those of no trajectory can then."""
    alike = len({(each.shape[1:], each.dtype) for each in captured}) == 1
    return np.concatenate(captured) if alike else np.empty((0, 0, 0), np.uint8)


def _without_routing(trial: StoredTrial) -> StoredTrial:
    turns = [replace(turn, completion=replace(turn.completion, routing=turn.completion.routing[:, :0, :0])) for turn in trial.turns]
    streams = [replace(each, routed_experts=each.routed_experts[:, :0, :0]) for each in trial.trajectories]
    return replace(trial, turns=tuple(turns), trajectories=tuple(streams))


def _check(trial: StoredTrial) -> None:
    """Shapes and types of everything, as the records' docstrings have them. Raises `ValueError`."""
    for number, turn in enumerate(trial.turns):
        done, where = turn.completion, f"turn {number}"
        _is(turn.prompt_ids, np.int32, len(turn.prompt_ids), f"{where}: prompt_ids")
        _is(done.ids, np.int32, len(done.ids), f"{where}: ids")
        _is(done.logprobs, np.float32, len(done.ids), f"{where}: logprobs")
        _is_routing(done.routing, len(turn.prompt_ids) + len(done.ids) - 1 - done.routing_start, where)
        if turn.rendered is not None:
            encoded = turn.rendered.encoded
            _is(encoded.ids, np.int32, len(encoded.ids), f"{where}: rendered ids")
            _is(encoded.starts, np.int32, len(encoded.ids), f"{where}: starts of the rendered ids")
    for number, stream in enumerate(trial.trajectories):
        n, where = len(stream.token_ids), f"trajectory {number}"
        _is(stream.token_ids, np.int32, n, f"{where}: token_ids")
        _is(stream.loss_mask, np.bool_, n, f"{where}: loss_mask")
        _is(stream.logprobs, np.float32, n, f"{where}: logprobs")
        _is_routing(stream.routed_experts, n - 1, where)


def _is(array: npt.NDArray[Any], dtype: npt.DTypeLike, length: int, what: str) -> None:
    if array.dtype != dtype or array.shape != (length,):
        raise ValueError(f"{what} are {array.dtype} {list(array.shape)}, but must be {np.dtype(dtype)} [{length}]")


def _is_routing(experts: Rows, rows: int, where: str) -> None:
    if experts.ndim != 3 or len(experts) != rows or experts.dtype not in (np.uint8, np.uint16):
        raise ValueError(
            f"{where}: routing is {experts.dtype} {list(experts.shape)}, but must have {rows} rows of [layers, k] uint8 or uint16"
        )


def _values(array: pa.Array) -> list[Any]:
    """Elements of an Arrow array: dicts, lists, NumPy arrays for lists of numbers, plain values."""
    if pa.types.is_struct(array.type):
        fields = {field.name: _values(array.field(index)) for index, field in enumerate(array.type)}
        rows = [dict(zip(fields, each, strict=True)) for each in zip(*fields.values(), strict=True)]
        return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_list(array.type):
        inner, ends = array.type.value_type, array.offsets.to_pylist()
        plain = pa.types.is_primitive(inner)
        values = _frozen(array.values.to_numpy(zero_copy_only=False)) if plain else _values(array.values)
        return [values[start:stop] for start, stop in pairwise(ends)]
    plain_values: list[Any] = array.to_pylist()
    return plain_values


def _pieces(value: object) -> Iterator[bytes | memoryview]:
    """A value as bytes that no other value has."""
    if isinstance(value, Mapping):
        yield f"dict {len(value)}:".encode()
        for name in sorted(value):
            yield from _pieces(name)
            yield from _pieces(value[name])
    elif isinstance(value, list):
        yield f"list {len(value)}:".encode()
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {len(value)}:".encode()
        yield np.ascontiguousarray(value).tobytes()
    else:
        data = value if isinstance(value, bytes) else repr(value).encode()
        yield f"{type(value).__name__} {len(data)}:".encode()
        yield data


def _characters(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _first(sequence: Any, count: int) -> Any:
    if not 0 <= count <= len(sequence):
        raise ValueError(f"{count} first elements of {len(sequence)} aren't there")
    return sequence[:count]


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
