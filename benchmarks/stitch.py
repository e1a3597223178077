"""Claim: stitching 300 turns of 84,000 tokens, with routing of 48 layers × 8 of 256 experts, takes under 0.2 s of CPU time, and
grows linearly with the turns.

`exact` are turns whose prompts continue the ids; `edge` are those of a text-based harness, whose history lacks the four ids that
end every prompt, and whose engine recomputes what differs. The merge that copies makes every stream anew each turn, by one
concatenation, and checks nothing but the prefix. Median CPU time of interleaved runs; the exponent is that of the fitted power of
the number of turns, the ratio that to `exact` at the most turns.
"""

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.text.chat import bundled
from t1x.trajectory.audit import audit
from t1x.trajectory.prompt import PromptBuffer
from t1x.trajectory.records import Trajectory, Turn
from t1x.trajectory.stitcher import TokenStitcher

TURNS = (50, 100, 200, 300)
GLUE, SAMPLED, SUFFIX = 180, 100, 4
LAYOUT = RoutingLayout(layers=48, k=8, experts=256)
AIM = 0.2
RUNS = 5


def captured(random: np.random.Generator, rows: int) -> np.ndarray:
    """[rows, layers, k] of distinct experts: k in a row, from any one on, in any order."""
    first = random.integers(0, LAYOUT.experts, (rows, LAYOUT.layers, 1))
    return ((first + random.permutation(LAYOUT.k)) % LAYOUT.experts).astype(LAYOUT.dtype)


def turn(index: int, prompt: np.ndarray, cached: int, random: np.random.Generator) -> Turn:
    """A turn that samples `SAMPLED` ids and captures what the cache hasn't."""
    completion = Completion(
        ids=random.integers(5, 200, SAMPLED).astype(np.int32),
        logprobs=-random.random(SAMPLED, np.float32),
        routing=captured(random, len(prompt) + SAMPLED - 1 - cached),
        routing_start=cached,
        finish_reason="stop",
        version=0,
        cached_tokens=cached,
    )
    return Turn(index, prompt, completion, temperature=1.0)


def exact_turns(count: int) -> list[Turn]:
    """Every prompt is the turn before and what stands between."""
    random, history, turns = np.random.default_rng(0), PromptBuffer(), []
    for index in range(count):
        cached = max(0, len(history) - 1)
        history.extend(random.integers(5, 200, GLUE))
        turns.append(turn(index, history.view(), cached, random))
        history.extend(turns[-1].completion.ids)
    return turns


def edge_turns(count: int) -> list[Turn]:
    """Every prompt ends with ids that the next one hasn't before the answer."""
    random, turns = np.random.default_rng(0), []
    suffix = np.arange(200, 200 + SUFFIX)
    history = np.zeros(0, np.int32)
    for index in range(count):
        cached = max(0, len(history) - SAMPLED)
        prompt = np.concatenate([history, random.integers(5, 200, GLUE - SUFFIX), suffix]).astype(np.int32)
        turns.append(turn(index, prompt, cached, random))
        history = np.concatenate([prompt[:-SUFFIX], turns[-1].completion.ids])
    return turns


def stitched(turns: Sequence[Turn]) -> list[Trajectory]:
    """By the token stitcher."""
    worker = TokenStitcher().build(bundled(), LAYOUT)
    for each in turns:
        worker.add(each)
    return worker.finish()


def merged(turns: Sequence[Turn], routing: bool = True) -> tuple[np.ndarray, ...]:
    """By concatenation, turn by turn; exact turns only."""
    ids, mask, logprobs = np.zeros(0, np.int32), np.zeros(0, np.bool_), np.zeros(0, np.float32)
    rows = np.zeros((0, LAYOUT.layers, LAYOUT.k), LAYOUT.dtype)
    for each in turns:
        done = each.completion
        assert np.array_equal(ids, each.prompt_ids[: len(ids)])
        context = each.prompt_ids[len(ids) :]
        ids = np.concatenate([ids, context, done.ids])
        mask = np.concatenate([mask, np.zeros(len(context), np.bool_), np.ones(len(done.ids), np.bool_)])
        logprobs = np.concatenate([logprobs, np.zeros(len(context), np.float32), done.logprobs])
        if routing:
            rows = np.concatenate([rows, done.routing[len(rows) - done.routing_start :]])
    return ids, mask, logprobs, rows


def merged_lists(turns: Sequence[Turn]) -> list[int]:
    """By Python lists that are made anew each turn, without routing."""
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []
    for each in turns:
        prompt, done = each.prompt_ids.tolist(), each.completion
        assert prompt[: len(ids)] == ids
        context = prompt[len(ids) :]
        ids = ids + context + done.ids.tolist()
        mask = mask + [0] * len(context) + [1] * len(done.ids)
        logprobs = logprobs + [0.0] * len(context) + done.logprobs.tolist()
    return ids


def seconds(stitch: Callable[[Sequence[Turn]], object], turns: Sequence[Turn]) -> float:
    """CPU time."""
    start = time.process_time()
    stitch(turns)
    return time.process_time() - start


def main() -> None:
    exact, edge = exact_turns(max(TURNS)), edge_turns(max(TURNS))
    (ours,), theirs = stitched(exact), merged(exact)
    streams = (ours.token_ids, ours.loss_mask, ours.logprobs, ours.routed_experts)
    assert all(np.array_equal(*pair) for pair in zip(streams, theirs, strict=True)), "both make the same streams"
    (repaired,) = stitched(edge)
    assert {str(boundary) for boundary in repaired.boundaries} == {"edge"}
    print(
        f"{len(ours.token_ids)} tokens in {len(exact)} turns, routing {LAYOUT.layers}x{LAYOUT.k}, {RUNS} interleaved runs, CPU time"
    )

    cases: dict[str, tuple[Callable[[Sequence[Turn]], object], list[Turn]]] = {
        "exact": (stitched, exact),
        "edge": (stitched, edge),
        "merge": (merged, exact),
        "merge, no routing": (lambda turns: merged(turns, routing=False), exact),
        "lists, no routing": (merged_lists, exact),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for count in TURNS:
        rounds = [[seconds(stitch, turns[:count]) for stitch, turns in cases.values()] for _ in range(RUNS)]
        for name, column in zip(cases, zip(*rounds, strict=True), strict=True):
            times[name].append(statistics.median(column))
    print(f"{'seconds':20}" + "".join(f"{count:>8} turns" for count in TURNS) + f"{'ms a turn':>12}{'exponent':>10}{'ratio':>8}")
    for name, column in times.items():
        exponent = np.polyfit(np.log(TURNS), np.log(np.maximum(column, 1e-6)), 1)[0]
        values = "".join(f"{value:14.4f}" for value in column)
        print(
            f"{name:20}{values}{1000 * column[-1] / TURNS[-1]:12.3f}{exponent:10.2f}{column[-1] / times['exact'][-1]:8.1f}",
            flush=True,
        )
    for name, turns in (("exact", exact), ("edge", edge)):
        streams_of = stitched(turns)
        audited = statistics.median(seconds(lambda turns, streams=streams_of: audit(turns, streams), turns) for _ in range(RUNS))
        print(f"the audit of {name}: {1000 * audited:.0f} ms")
    worst = max(times["exact"][-1], times["edge"][-1])
    print(f"aim: {AIM} s for {max(TURNS)} turns, {'reached' if worst < AIM else 'missed'} ({worst:.3f} s)")


if __name__ == "__main__":
    main()
