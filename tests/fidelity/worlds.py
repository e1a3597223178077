"""Random trials as they happen: a harness renders prompts (or goes on from ids), an engine with a session cache answers them and
captures routing, a sampler writes texts in ids of its own choice."""

import random
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from small_chats import STOP, SmallChat, chats

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.trajectory.records import Turn

WORDS = ["a", "b", " ", "\n", "ab", " a", ". ", "é", "a b\n", "<think>b</think>", "\u00a0"]


@dataclass(frozen=True)
class Step:
    """One turn, and what happens to history before it."""

    move: str
    """`go on`; `compact` (announced); `rewrite` (one character of an earlier message, not announced); `retry` (the last answer is
    dropped and asked for again; or, by ids, is to be continued behind what it says)."""
    announced: bool
    """Whether the harness says that history was rewritten, whatever the move."""
    words: tuple[str, ...]
    canonical: bool
    """Whether the sampler splits its text as the tokenizer does."""
    ends: str
    """`stop`, `spaces` (white space, then the stop id), `length` (cut off before it), `abort`, `silent` (aborted before the first
    id)."""
    shown: tuple[str, ...]
    """What the tool answers."""
    stripped: bool
    """Whether a text-based harness keeps the answer without white space around it."""
    evicted: float
    """Share of the cached positions that are computed, and captured, again."""
    returned: str
    """Rows from the cache's end on (`delta`), all (`full`) or from anywhere between (`some`)."""
    publishes: bool
    """Whether a new version, and an empty cache, come before it."""


words = st.lists(st.sampled_from(WORDS), max_size=4).map(tuple)
steps = st.builds(
    Step,
    move=st.sampled_from(["go on"] * 8 + ["compact", "compact", "rewrite", "retry", "retry"]),
    announced=st.sampled_from([False] * 5 + [True]),
    words=words,
    canonical=st.sampled_from([False, False, True]),
    ends=st.sampled_from(["stop", "stop", "stop", "spaces", "length", "abort", "silent", "silent"]),
    shown=words,
    stripped=st.booleans(),
    evicted=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
    returned=st.sampled_from(["delta", "delta", "full", "some"]),
    publishes=st.sampled_from([False, False, False, True]),
)
layouts = st.sampled_from([RoutingLayout(2, 2, 8), RoutingLayout(1, 3, 5), RoutingLayout(3, 2, 300), RoutingLayout(1, 1, 9), None])


def row_of(layout):
    """(layers, k, type) of a routing row; a model without experts has rows without layers."""
    return (layout.layers, layout.k, layout.dtype) if layout else (0, 0, np.dtype(np.uint8))


class CachingEngine:
    """One session's cache. Rows of what is computed are drawn anew, so that it shows which capture a row is from."""

    def __init__(self, layout, rng):
        self._layout, self._rng = layout, np.random.default_rng(rng.randrange(2**32))
        self._ids, self._rows, self._version = [], [], 0

    def _drawn(self, n):
        layers, k, _ = row_of(self._layout)
        experts = self._layout.experts if self._layout else 0
        return self._rng.random((n, layers, experts)).argsort(axis=-1)[..., :k].tolist()

    def complete(self, prompt, ids, step, rng):
        if step.publishes:
            self._version += 1
            self._ids, self._rows = [], []
        cached = 0
        while cached < min(len(self._rows), len(prompt) - 1) and self._ids[cached] == prompt[cached]:
            cached += 1
        cached -= int(cached * step.evicted)
        self._ids = [*prompt, *ids]
        self._rows = self._rows[:cached] + self._drawn(len(self._ids) - 1 - cached)
        start = {"delta": cached, "full": 0, "some": rng.randint(0, cached)}[step.returned]
        layers, k, dtype = row_of(self._layout)
        return Completion(
            ids=np.array(ids, np.int32),
            logprobs=-self._rng.random(len(ids)).astype(np.float32) - np.float32(0.01),
            routing=np.array(self._rows[start:], dtype).reshape(len(self._rows) - start, layers, k),
            routing_start=start,
            finish_reason="length" if step.ends == "length" else "abort" if step.ends in ("abort", "silent") else "stop",
            version=self._version,
            cached_tokens=cached,
        )


@dataclass
class World:
    """A trial that took place."""

    chat: SmallChat
    layout: RoutingLayout | None
    turns: list[Turn]


def sampled(chat, step, rng):
    """The ids that the policy emits."""
    if step.ends == "silent":
        return []
    text = "".join(step.words) + ("\n " if step.ends == "spaces" else "")
    ids = chat.encode(text) if step.canonical else chat.split(text, rng)
    if step.ends == "length" and len(ids) > 1:
        ids = ids[: rng.randint(1, len(ids))]  # may end within a character
    return ids + ([STOP] if step.ends in ("stop", "spaces") else [])


def happen(chat, plan, layout, seed, *, by_text=True):
    """The world of a plan."""
    rng = random.Random(seed)
    engine, turns = CachingEngine(layout, rng), []
    messages, prompt, ids = [("user", "ab. a")], [], []
    for index, step in enumerate(plan):
        restarted, rendered, placeholder = step.announced and index > 0, None, 0
        if index:
            last = plan[index - 1]
            if step.move == "compact":
                restarted = True
                messages = [("user", "ab. a"), ("user", "b b" + "".join(step.shown))]
            elif step.move == "rewrite":
                restarted = False
                at = rng.randrange(len(messages))
                role, content = messages[at]
                cut = rng.randint(0, len(content))
                messages = [*messages[:at], (role, content[:cut] + "a" + content[cut:]), *messages[at + 1 :]]
            if step.move in ("go on", "rewrite"):
                said = chat.text(ids, specials=False)
                messages = [*messages, ("assistant", said.strip() if last.stripped else said), ("tool", "".join(step.shown))]
        if by_text:
            rendered = chat.prompt(messages)
            prompt = rendered.encoded.ids.tolist()
        elif not index or step.move == "compact":
            prompt = chat.spans(chat.style.render(messages)[0]).ids.tolist()
        elif step.move == "retry":
            says = [at for at, id_ in enumerate(ids) if id_ != STOP and id_ not in chat.tokenizer.blank_ids]
            prompt = [*prompt, *ids[: says[-1] + 1 if says and step.announced else 0]]
        else:
            placeholder = int(not ids or ids[-1] != STOP)
            behind = [STOP] * placeholder + chat.spans("<|tool|>" + "".join(step.shown) + "<|end|><|assistant|>").ids.tolist()
            prompt = [*prompt, *ids, *behind]
            if step.move == "rewrite":
                at = rng.randrange(len(prompt))
                prompt[at] = prompt[at] % (len(chat.pieces) - 1) + 1
        ids = sampled(chat, step, rng)
        completion = engine.complete(prompt, ids, step, rng)
        turns.append(Turn(index, np.array(prompt, np.int32), completion, 1.0, restarted, rendered, placeholder))
    return World(chat, layout, turns)


def worlds_of(layouts, turns):
    """Worlds of two to so many turns, whose routing is of these layouts."""
    plans = st.lists(steps, min_size=2, max_size=turns)
    return st.builds(happen, chats, plans, layouts, st.integers(0, 2**32), by_text=st.sampled_from([True, True, False]))


worlds = worlds_of(layouts, turns=6)
