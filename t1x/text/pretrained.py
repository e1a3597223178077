"""Reads the tokenizer of a Hugging Face checkpoint."""

import json
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import tokenizers

from t1x.text.chat import TemplatedTokenizer
from t1x.text.huggingface import HuggingFaceTokenizer

_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token")
"""Special tokens that templates call by these names."""


def load_tokenizer(spec: HuggingFaceTokenizer) -> TemplatedTokenizer:
    """Raises `ValueError` naming the file that is absent or can't be used."""
    path = spec.path
    settings = json.loads(_read(path / "tokenizer_config.json"))
    named = {name: _content(settings[name]) for name in _NAMED if settings.get(name)}
    stop_token = spec.stop_token or named.get("eos_token")
    if stop_token is None:
        raise ValueError(f"{path / 'tokenizer_config.json'}: has no eos_token; set HuggingFaceTokenizer.stop_token")
    tokenizer = tokenizers.Tokenizer.from_str(_read(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    file, template = _template(path, settings)
    variables = {**named, "tools": None, "documents": None, "enable_thinking": spec.thinking, "raise_exception": _raise}
    try:
        loaded = TemplatedTokenizer(tokenizer, template, stop_token=stop_token, variables=variables)
    except jinja2.TemplateError as error:
        raise ValueError(f"{file}: the chat template can't be rendered: {error}") from error
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if loaded.vocab_size > spec.vocab_size:
        raise ValueError(
            f"{path / 'tokenizer.json'}: has {loaded.vocab_size} ids, but HuggingFaceTokenizer.vocab_size is {spec.vocab_size}; "
            f"set it to {loaded.vocab_size} or more"
        )
    return loaded


def _template(path: Path, settings: dict[str, Any]) -> tuple[Path, str]:
    """The chat template and the file that has it; of several, the one named `default`."""
    template = settings.get("chat_template")
    if isinstance(template, list):
        template = next((entry["template"] for entry in template if entry["name"] == "default"), None)
    if template is not None:
        return path / "tokenizer_config.json", template
    return path / "chat_template.jinja", _read(path / "chat_template.jinja")


def _content(token: str | dict[str, Any]) -> str:
    return token if isinstance(token, str) else token["content"]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{file}: missing; HuggingFaceTokenizer.path is the folder of a checkpoint with a chat template") from None


def _raise(message: str) -> NoReturn:
    """What templates call for conversations that they don't know."""
    raise jinja2.TemplateError(message)
