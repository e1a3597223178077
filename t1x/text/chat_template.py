"""Where a checkpoint's folder has its chat template: in `tokenizer_config.json`, or in a file of its own."""

import json
from pathlib import Path
from typing import Any

SETTINGS = "tokenizer_config.json"
TEMPLATE = "chat_template.jinja"


def read_settings(folder: Path) -> dict[str, Any]:
    """The tokenizer's settings. Raises `ValueError` where they can't be read."""
    file = folder / SETTINGS
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} can't be read as JSON: {error}") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{file} has {type(settings).__name__}, not an object with settings")
    return settings


def find_template(folder: Path, settings: dict[str, Any]) -> tuple[Path, str] | None:
    """The file that has the template, and the template; of several, the one named `default`. None where there is none."""
    template = settings.get("chat_template")
    if isinstance(template, list):
        template = next((entry["template"] for entry in template if entry["name"] == "default"), None)
    if template is not None:
        return folder / SETTINGS, template
    file = folder / TEMPLATE
    return (file, file.read_text(encoding="utf-8")) if file.is_file() else None
