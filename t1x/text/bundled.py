"""The tokenizer that the package ships for small models."""

from typing import Annotated

from pydantic import Field

from t1x.config import Role
from t1x.text.tokenizer import ChatTokenizer, Tokenizer

OWN_IDS = 700
"""Those of the shipped file, known without reading it, so that a Gin file is checked before anything is built."""


class BundledTokenizer(Tokenizer):
    """Byte-level BPE of 700 tokens, trained on synthetic tasks. A prompt is `<|user|>`, the text, `<|end|><|assistant|>`."""

    vocab_size: Annotated[int, Role.SCALE, Field(ge=OWN_IDS)] = OWN_IDS

    def build(self) -> ChatTokenizer:
        from t1x.text.chat import bundled

        return bundled(self.vocab_size)
