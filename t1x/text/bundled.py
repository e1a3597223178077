"""The tokenizer that the package ships for small models."""

from typing import Literal

from t1x.text.tokenizer import ChatTokenizer, Tokenizer


class BundledTokenizer(Tokenizer):
    """Byte-level BPE of 700 tokens, trained on synthetic tasks. A prompt is `<|user|>`, the text, `<|end|><|assistant|>`."""

    vocab_size: Literal[700] = 700

    def build(self) -> ChatTokenizer:
        from t1x.text.chat import bundled

        return bundled()
