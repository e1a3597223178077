"""Neighbouring tokens as a reader looks at them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from t1x.model.routing_layout import Experts
from t1x.text.tokenizer import ChatTokenizer


@dataclass(frozen=True, slots=True)
class Tokens:
    """Some neighbouring tokens; arrays are [n]."""

    ids: npt.NDArray[np.int32]
    texts: Sequence[str]
    """Of an id that continues a character the empty one: the last id of a character has it. Of one that stands for nothing, since
    only the model's vocabulary has it, its number."""
    loss: npt.NDArray[np.bool_]
    logprobs: npt.NDArray[np.float32]
    """The sampler's; 0 for context."""
    agreement: npt.NDArray[np.float64]
    """Share of the experts of this position that other choices of experts have too; NaN where there is none."""
    substituted: npt.NDArray[np.bool_]
    """Whether this position's experts are those of the one before (Eq. 14)."""
    experts: Experts
    """[≤ n, layers, k]: the experts that each went through. The last token of a stream has none, nor has one that nobody captured:
    where there are fewer than n, they are of the first ones."""
    bytes: Sequence[bytes]
    """What each id alone stands for."""
    placeholder: npt.NDArray[np.bool_]
    """Whether the harness put it where the policy would have spoken."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def mean_logprob(self) -> float:
        """Over all of them, NaN where there is none."""
        return float(self.logprobs.mean(dtype=np.float64)) if len(self) else float("nan")

    def part(self, start: int, stop: int) -> "Tokens":
        """Those of [start, stop)."""
        return Tokens(**{part.name: getattr(self, part.name)[start:stop] for part in fields(self)})


def tokens_of(ids: npt.NDArray[np.int32], tokenizer: ChatTokenizer, **streams: Any) -> Tokens:
    """Ids with what they stand for; `streams` are the other fields."""
    spans = tokenizer.decode_spans(ids)
    bytes_ = [tokenizer.bytes_of(id_) for id_ in ids.tolist()]
    ends = pairwise([*spans.starts.tolist(), len(spans.text)])
    texts = [spans.text[slice(*end)] if data else f"⟨{id_}⟩" for end, data, id_ in zip(ends, bytes_, ids.tolist(), strict=True)]
    return Tokens(ids=ids, texts=texts, bytes=bytes_, **streams)
