"""Trains a byte-level BPE tokenizer on a file with a JSON string a line; `t1x.tasks.corpus` writes that of the bundled one.

    python -m t1x.text.train_tokenizer corpus.jsonl t1x/text/data/tokenizer.json

The same file gives the same tokenizer.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 700
SPECIAL_TOKENS = ["<|pad|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"]
"""Ids 0 to 4."""
SPLIT = r"\.[a-z]+| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9.]+|\s+|."
"""No token crosses these borders: a file extension, a word, a digit, punctuation, white space."""


def train(texts: Iterable[str]) -> Tokenizer:
    """The tokenizer; the same texts in the same order give the same one."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


if __name__ == "__main__":
    corpus, target = sys.argv[1:]
    train(json.loads(line) for line in Path(corpus).read_text().splitlines()).save(target)
