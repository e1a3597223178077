"""A tokenizer whose ids are readable pieces, and turns whose numbers say where they come from: for examples worked by hand.

`ids("<u> ls _ la <e>")` are the ids of these pieces; `_` stands for a space and `/` for a line break."""

import dataclasses

import numpy as np

from t1x.engine.protocol import Completion
from t1x.model.routing_layout import RoutingLayout
from t1x.text.chat import bundled
from t1x.text.tokenizer import EncodedText, RenderedPrompt
from t1x.trajectory.records import Turn

PIECES = [
    *("<u>", "<a>", "<t>", "<e>", "<x>", " ", "\n", "\n\n"),
    *"abcdefghijklmnopqrstuvwxyz",
    *("ls", "la", "l ", "ab", "bc", "c\n", " a", "<think>", "</think>"),
]
"""`<e>` and `<x>` end a message. `ls` is canonical, `l` and `s` are not; `c` with the line break behind it is one piece."""
BY_NAME = {piece.replace(" ", "_").replace("\n", "/"): id_ for id_, piece in enumerate(PIECES)}
LAYOUT = RoutingLayout(layers=1, k=1, experts=1000)


def ids(names):
    return np.array([BY_NAME[name] for name in names.split()], np.int32)


def names(values):
    """The other way round."""
    return " ".join(PIECES[id_].replace(" ", "_").replace("\n", "/") for id_ in values)


class ToyTokenizer:
    """Encodes by the longest piece that fits. Its template ends every prompt with `generation_prompt`."""

    vocab_size = len(PIECES)
    stop_ids = (BY_NAME["<e>"], BY_NAME["<x>"])
    blank_ids = frozenset((BY_NAME["_"], BY_NAME["/"], BY_NAME["//"]))

    def __init__(self, generation_prompt="<a><think>"):
        self.quirks = dataclasses.replace(bundled().quirks, generation_prompt=generation_prompt)

    def bytes_of(self, id_):
        return PIECES[id_].encode()

    def decode_spans(self, values):
        parts = [PIECES[id_] for id_ in values]
        starts = np.cumsum([0, *map(len, parts)])[:-1]
        return EncodedText("".join(parts), np.asarray(values, np.int32), starts.astype(np.int32))

    def encode_spans(self, text):
        found, at, starts = [], 0, []
        while at < len(text):
            piece = max((piece for piece in PIECES if text.startswith(piece, at)), key=len)
            found.append(PIECES.index(piece))
            starts.append(at)
            at += len(piece)
        return EncodedText(text, np.array(found, np.int32), np.array(starts, np.int32))


TOY = ToyTokenizer()


def rendered(prompt, answer=None):
    """How a harness rendered a prompt, given as names of pieces; which of them, [first, last), are the last answer's content."""
    spans = TOY.decode_spans(ids(prompt))
    if answer is None:
        return RenderedPrompt(spans, None)
    edges = np.append(spans.starts, len(spans.text))
    return RenderedPrompt(spans, (int(edges[answer[0]]), int(edges[answer[1]])))


def turn(index, prompt, answer, *, answered=None, text=False, start=0, cached=0, restarted=False, version=0, rows=None):
    """Turn `index`. Position j has the expert 100 · index + j, and the j-th sampled id the log-probability -index - j / 8 - 1. With
    `text` or `answered`, it has a rendered prompt."""
    prompt_ids, answer_ids = ids(prompt), ids(answer)
    n = len(prompt_ids) + len(answer_ids) - 1
    experts = 100 * index + np.arange(start, n) if rows is None else np.array(rows[start:n])
    return Turn(
        index,
        prompt_ids,
        Completion(
            ids=answer_ids,
            logprobs=(-index - 1 - np.arange(len(answer_ids)) / 8).astype(np.float32),
            routing=experts.astype(np.uint16).reshape(-1, 1, 1),
            routing_start=start,
            finish_reason="stop" if answer.endswith(("<e>", "<x>")) else "length",
            version=version,
            cached_tokens=cached,
        ),
        temperature=1.0,
        restarted=restarted,
        rendered=rendered(prompt, answered) if text or answered else None,
    )


def stitched(turns, stitcher):
    """Their trajectories, as `seen` shows them."""
    return [seen(trajectory) for trajectory in stitcher.stitch("a trial", turns, TOY, LAYOUT)]


def seen(trajectory):
    """A trajectory for reading: names of ids, with `*` in front of those that were sampled; rows; boundaries; substituted rows."""
    marks = ["*" if sampled else "" for sampled in trajectory.loss_mask]
    shown = " ".join(mark + name for mark, name in zip(marks, names(trajectory.token_ids).split(" "), strict=True))
    rows = trajectory.routed_experts.reshape(-1).tolist()
    return shown, rows, [str(boundary) for boundary in trajectory.boundaries], list(trajectory.substituted_rows)
