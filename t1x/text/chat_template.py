"""What a checkpoint's folder says of chats, read as transformers reads it: the template stands in a file of its own or in
`tokenizer_config.json`, special tokens' names in the latter."""

import json
from pathlib import Path
from typing import Any

SETTINGS = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"
_NAMES = "special_tokens_map.json"
"""Older checkpoints have the names of special tokens here; it counts where the settings don't list the tokens."""


def read_settings(folder: Path) -> dict[str, Any]:
    """The tokenizer's settings. Raises `ValueError` where they can't be read."""
    settings = _object(folder / SETTINGS)
    if "added_tokens_decoder" not in settings and (folder / _NAMES).is_file():
        settings |= _object(folder / _NAMES)
    return settings


def named_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """Special tokens by the names that templates call them: `eos_token` and so on, and what a model calls its own."""
    own = settings.get("extra_special_tokens")
    named = {name: token for name, token in settings.items() if name.endswith("_token")} | (own if isinstance(own, dict) else {})
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in named.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str) and text}


def find_template(folder: Path, settings: dict[str, Any]) -> tuple[Path, str] | None:
    """The file that has the template, and the template; of several, the one named `default`. None where there is none. Raises
    `ValueError` where it can't be read."""
    file = folder / TEMPLATE
    if file.is_file():
        return file, read_text(file)
    template = settings.get("chat_template")
    if isinstance(template, list) and all(isinstance(entry, dict) for entry in template):
        template = next((entry.get("template") for entry in template if entry.get("name") == "default"), None)
    if not isinstance(template, str | None):
        raise ValueError(f"{folder / SETTINGS}: chat_template should be a text, or a list of objects with name and template")
    return None if template is None else (folder / SETTINGS, template)


def read_text(file: Path) -> str:
    """Raises `ValueError` where it can't be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{file} can't be read as text: {error}") from error


def _object(file: Path) -> dict[str, Any]:
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} can't be read as JSON: {error}") from error
    if not isinstance(read, dict):
        raise ValueError(f"{file} has {type(read).__name__}, not an object with settings")
    return read
