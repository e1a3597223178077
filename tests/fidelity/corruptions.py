"""Every way in which a turn can be wrong, made from a right one."""

from dataclasses import replace

import numpy as np
from streams import change

from t1x.trajectory.stitcher import RoutingRecordError, StitchingError


def records(turn, layout, before, known):
    """(kind, turn, error): routing that isn't what the engine owes. `known` are the rows of every position of this turn."""
    done = turn.completion
    rows, start = done.routing, done.routing_start
    if len(rows):
        yield "first row missing", change(turn, routing=rows[1:]), RoutingRecordError
        yield "last row missing", change(turn, routing=rows[:-1]), RoutingRecordError
        yield "row twice", change(turn, routing=np.concatenate([rows, rows[-1:]])), RoutingRecordError
        yield "no rows", change(turn, routing=rows[:0]), RoutingRecordError
        yield "flat rows", change(turn, routing=rows.reshape(len(rows), -1)), RoutingRecordError
    yield "begins one later", change(turn, routing_start=start + 1), RoutingRecordError
    yield "begins one earlier", change(turn, routing_start=start - 1), RoutingRecordError
    held = 0 if before is None else len(before.prompt_ids) + len(before.completion.ids) - 1
    if len(known) > held:
        yield "rows that nobody has", change(turn, routing=known[held + 1 :], routing_start=held + 1), RoutingRecordError
    if layout is None:
        yield "experts of a model that has none", change(turn, routing=np.zeros((len(rows), 1, 1), rows.dtype)), RoutingRecordError
    else:
        yield from choices(turn, layout, known)


def choices(turn, layout, known):
    """The same for what stands in a row of experts."""
    done = turn.completion
    rows = done.routing
    rng = np.random.default_rng(len(rows))
    yield "no layers", change(turn, routing=rows[:, :0, :0]), RoutingRecordError
    yield "a layer more", change(turn, routing=np.concatenate([rows, rows[:, :1]], axis=1)), RoutingRecordError
    yield "an expert fewer", change(turn, routing=rows[..., :-1]), RoutingRecordError
    yield "other type", change(turn, routing=rows.astype(np.int32)), RoutingRecordError
    if len(rows):
        at, layer = rng.integers(len(rows)), rng.integers(layout.layers)
        bad = rows.copy()
        bad[at, layer, 0] = layout.experts
        yield "expert out of range", change(turn, routing=bad), RoutingRecordError
        if layout.k > 1:
            bad = rows.copy()
            bad[at, layer, 1] = bad[at, layer, 0]
            yield "duplicate expert", change(turn, routing=bad), RoutingRecordError
            bad = rows.copy()
            bad[:, layer] = 0
            yield "layer of zeros", change(turn, routing=bad), RoutingRecordError
    if done.cached_tokens:
        bad = known.copy()
        at = rng.integers(done.cached_tokens)
        bad[at] = (bad[at].astype(int) + 1) % layout.experts
        yield "row from the cache differs", change(turn, routing=bad, routing_start=0), RoutingRecordError


def samples(turn, before):
    """(kind, turn, error): what isn't a turn of this trial."""
    done = turn.completion
    for kind, value in (("NaN", np.nan), ("infinite", -np.inf)):
        if len(done.ids):
            logprobs = done.logprobs.copy()
            logprobs[-1] = value
            yield f"{kind} log-probability", change(turn, logprobs=logprobs), StitchingError
    yield "a log-probability more", change(turn, logprobs=np.append(done.logprobs, np.float32(-1))), StitchingError
    if len(done.ids):
        yield "a log-probability fewer", change(turn, logprobs=done.logprobs[:-1]), StitchingError
    if len(done.ids):
        above = done.logprobs.copy()
        above[0] = 0.5
        yield "log-probability above 0", change(turn, logprobs=above), StitchingError
        yield "id beyond the vocabulary", change(turn, ids=np.full_like(done.ids, 10**6)), StitchingError
        yield "negative id", change(turn, ids=-1 - done.ids), StitchingError
        yield "ids of 64 bits", change(turn, ids=done.ids + np.int64(2**32)), StitchingError
        yield "ids of floats", change(turn, ids=done.ids + 0.7), StitchingError
        yield "ids in two dimensions", change(turn, ids=done.ids[:, None], logprobs=done.logprobs[:, None]), StitchingError
        yield "log-probabilities of 64 bits", change(turn, logprobs=done.logprobs - np.float64(1e300)), StitchingError
    for kind, ids in (("of 64 bits", turn.prompt_ids + np.int64(2**32)), ("negative", -1 - turn.prompt_ids)):
        yield f"prompt {kind}", replace(turn, prompt_ids=ids, rendered=None), StitchingError
    beyond = len(turn.prompt_ids) + 1
    yield "temperature that isn't finite", replace(turn, temperature=float("nan")), StitchingError
    yield "temperature below 0", replace(turn, temperature=-1.0), StitchingError
    yield "version below 0", change(turn, version=-1), StitchingError
    yield "cached below 0", change(turn, cached_tokens=-1), StitchingError
    yield "cached beyond the prompt", change(turn, cached_tokens=beyond), StitchingError
    yield "placeholders below 0", replace(turn, placeholder_tokens=-1), StitchingError
    yield "placeholders beyond the prompt", replace(turn, placeholder_tokens=beyond), StitchingError
    empty = replace(turn, prompt_ids=turn.prompt_ids[:0], rendered=None)
    yield "empty prompt", change(empty, routing=done.routing[:0], routing_start=max(0, len(done.ids) - 1)), StitchingError
    yield "turn left out", replace(turn, index=turn.index + 1), StitchingError
    if before is not None:
        yield "turn again", before, StitchingError
    if turn.rendered is not None:
        other = replace(turn.rendered.encoded, ids=turn.rendered.encoded.ids[::-1].copy())
        if other.ids.tolist() != turn.prompt_ids.tolist():
            yield "text of another prompt", replace(turn, rendered=replace(turn.rendered, encoded=other)), StitchingError


def histories(turn, before):
    """(kind, turn) that the rules refuse unless what is left agrees: the slow stitcher knows."""
    if before is None:
        return
    rng = np.random.default_rng(len(turn.prompt_ids))
    silent = replace(turn, restarted=False)
    for kind, at in (("first id rewritten", 0), ("an id rewritten", rng.integers(len(turn.prompt_ids)))):
        ids = turn.prompt_ids.copy()
        ids[at] = ids[at] % 100 + 1
        yield kind, replace(silent, prompt_ids=ids, rendered=None)
    if len(turn.prompt_ids) > 1 and len(turn.completion.routing):
        fewer = change(silent, routing=turn.completion.routing[:-1])
        yield "an id dropped", replace(fewer, prompt_ids=turn.prompt_ids[1:], rendered=None)
    if turn.rendered is not None and turn.rendered.answer is not None:
        begin, end = turn.rendered.answer
        length = len(turn.rendered.encoded.text)
        moved = [(begin - 1, end), (begin + 1, end), (begin, end - 1), (begin, end + 1)]
        for span in [*moved, (0, begin), (end, length), (begin, length + 1)]:
            yield "span of another text", replace(silent, rendered=replace(turn.rendered, answer=span))
