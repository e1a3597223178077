"""Reads the tokenizer of a Hugging Face checkpoint."""

import datetime
from pathlib import Path

import jinja2
import tokenizers

from t1x.text.chat import TemplatedTokenizer
from t1x.text.chat_template import SETTINGS, find_template, named_tokens, read_settings, read_text
from t1x.text.huggingface import HuggingFaceTokenizer


def load_tokenizer(spec: HuggingFaceTokenizer) -> TemplatedTokenizer:
    """Raises `ValueError` naming the files that are absent or can't be used."""
    path = spec.path
    if lacks := spec.missing():
        raise ValueError("; ".join(lacks))
    settings = read_settings(path)
    named = named_tokens(settings)
    stop_token = spec.stop_token or named.get("eos_token")
    if stop_token is None:
        raise ValueError(f"{path / SETTINGS}: has no eos_token; set HuggingFaceTokenizer.stop_token")
    tokenizer = _read(path / "tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = find_template(path, settings)
    assert found is not None, "missing() would have said so"
    file, template = found
    size = spec.vocab_size
    variables = {**named, "enable_thinking": spec.thinking}
    date = None if spec.date is None else datetime.date.fromisoformat(spec.date)
    try:
        return TemplatedTokenizer(tokenizer, template, stop_token=stop_token, variables=variables, vocab_size=size, date=date)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"{file}: the chat template can't be rendered: its line {error.lineno}: {error.message}") from error
    except jinja2.TemplateError as error:
        raise ValueError(f"{file}: the chat template can't be rendered: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}, with the chat template in {file.name}: {error}") from error


def _read(file: Path) -> tokenizers.Tokenizer:
    text = read_text(file)
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{file}: the tokenizers library can't read it: {error}") from error
