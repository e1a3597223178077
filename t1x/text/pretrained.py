"""Reads the tokenizer of a Hugging Face checkpoint."""

from typing import Any, NoReturn

import jinja2
import tokenizers

from t1x.text.chat import TemplatedTokenizer
from t1x.text.chat_template import SETTINGS, find_template, read_settings
from t1x.text.huggingface import HuggingFaceTokenizer

_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token")
"""Special tokens that templates call by these names."""


def load_tokenizer(spec: HuggingFaceTokenizer) -> TemplatedTokenizer:
    """Raises `ValueError` naming the files that are absent or can't be used."""
    path = spec.path
    if lacks := spec.missing():
        raise ValueError("; ".join(lacks))
    settings = read_settings(path)
    named = {name: _content(settings[name]) for name in _NAMED if settings.get(name)}
    stop_token = spec.stop_token or named.get("eos_token")
    if stop_token is None:
        raise ValueError(f"{path / SETTINGS}: has no eos_token; set HuggingFaceTokenizer.stop_token")
    tokenizer = tokenizers.Tokenizer.from_str((path / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = find_template(path, settings)
    assert found is not None, "missing() would have said so"
    file, template = found
    variables = {**named, "tools": None, "documents": None, "enable_thinking": spec.thinking, "raise_exception": _raise}
    try:
        loaded = TemplatedTokenizer(tokenizer, template, stop_token=stop_token, variables=variables, vocab_size=spec.vocab_size)
    except jinja2.TemplateError as error:
        raise ValueError(f"{file}: the chat template can't be rendered: {error}") from error
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if loaded.own_ids > spec.vocab_size:
        raise ValueError(
            f"{path / 'tokenizer.json'}: has {loaded.own_ids} ids, but HuggingFaceTokenizer.vocab_size is {spec.vocab_size}; "
            f"set it to the model's, {loaded.own_ids} or more"
        )
    return loaded


def _content(token: str | dict[str, Any]) -> str:
    return token if isinstance(token, str) else token["content"]


def _raise(message: str) -> NoReturn:
    """What templates call for conversations that they don't know."""
    raise jinja2.TemplateError(message)
