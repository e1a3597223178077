"""Which sampled ids aren't how the tokenizer would have encoded their text: those that encoding anew replaces."""

import numpy as np
import numpy.typing as npt

from t1x.text.tokenizer import ChatTokenizer, Ids


def noncanonical(tokenizer: ChatTokenizer, ids: Ids) -> npt.NDArray[np.bool_]:
    """[n]: whether the encoding of what a completion spells has another id, or none, where this one begins. Bytes that are no
    UTF-8 count too, since text can't say them."""
    spelled = tokenizer.decode_spans(ids)
    again = tokenizer.encode_spans(spelled.text)
    known = set(zip(again.starts.tolist(), again.ids.tolist(), strict=True))
    return np.array([place not in known for place in zip(spelled.starts.tolist(), ids.tolist(), strict=True)], np.bool_)
