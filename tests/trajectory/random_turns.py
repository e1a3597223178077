"""Random trials for property tests, as an engine with a session cache captures them."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.text.chat import bundled
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import TokenStitcher

EXPERTS = 16
STRICT = TokenStitcher(suffix_ids=0, dropped_ids=0)
"""For random ids, which may look like an edge where history was rewritten."""


@dataclass(frozen=True)
class Plan:
    """One turn: how many ids stand before its completion, how long that is, whether history is rewritten, what the cache lost."""

    glue: int
    sampled: int
    restart: bool
    evicted: float
    """Share of the cached positions that are computed (and captured) again."""
    version: int


plans = st.lists(
    st.builds(
        Plan,
        glue=st.integers(0, 4),
        sampled=st.integers(1, 4),
        restart=st.booleans(),
        evicted=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
        version=st.integers(0, 1),
    ),
    min_size=1,
    max_size=6,
)
layouts = st.sampled_from([(2, 2), (1, 3), (1, 1), (0, 0)])


def rows(rng, n, layout):
    """[n, layers, k] of distinct experts."""
    layers, k = layout
    return rng.permuted(np.tile(np.arange(EXPERTS, dtype=np.uint8), (n, layers, 1)), axis=2)[..., :k]


def layout_of(turns):
    """Of turns of this module."""
    _, layers, k = turns[0].completion.routing.shape
    return RoutingLayout(layers, k, EXPERTS) if layers else None


def worker_for(turns):
    """A stitcher's worker for turns of this module."""
    return STRICT.build(bundled(), layout_of(turns))


def stitch(turns):
    """Their trajectories."""
    return STRICT.stitch("a trial", turns, bundled(), layout_of(turns))


def make_turns(plan, layout, seed=0, temperature=1.0):
    """Turns whose recomputed rows differ from the first capture, so that it matters which one wins."""
    rng = np.random.default_rng(seed)
    turns, history = [], np.array([], np.int32)
    for index, step in enumerate(plan):
        if index == 0:
            prompt, cached = rng.integers(2, 50, 1 + step.glue), 0
        elif step.restart:  # keeps a few ids, then an id that history has nowhere
            cached = int(rng.integers(0, min(3, len(history) - 1) + 1))
            prompt = np.concatenate([history[:cached], [60 + index], rng.integers(2, 50, step.glue)])
        else:
            cached = len(history) - 1
            prompt = np.concatenate([history, rng.integers(2, 50, step.glue)])
        prompt = prompt.astype(np.int32)
        start = cached - int(cached * step.evicted)
        completion = Completion(
            ids=rng.integers(2, 50, step.sampled).astype(np.int32),
            logprobs=-rng.random(step.sampled).astype(np.float32) - np.float32(0.01),
            routing=rows(rng, len(prompt) + step.sampled - 1 - start, layout),
            routing_start=start,
            finish_reason="stop",
            version=step.version,
        )
        turns.append(Turn(index, prompt, completion, temperature, restarted=step.restart and index > 0))
        history = np.concatenate([prompt, completion.ids])
    return turns
