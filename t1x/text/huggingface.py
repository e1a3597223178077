"""The tokenizer of a Hugging Face checkpoint, as a component."""

import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from t1x.config import Role
from t1x.config.requirements import folder
from t1x.text.chat_template import SETTINGS, TEMPLATE, find_template, read_settings
from t1x.text.tokenizer import ChatTokenizer, Tokenizer


def _day(date: str | None) -> str | None:
    """One day is one setting, however it is written."""
    try:
        return None if date is None else datetime.date.fromisoformat(date).isoformat()
    except ValueError as error:
        raise ValueError("should be a day of the calendar as YYYY-MM-DD, such as '2025-01-31'") from error


class HuggingFaceTokenizer(Tokenizer):
    """Tokenizer and chat template from a checkpoint's folder: `tokenizer.json`, `tokenizer_config.json`, and `chat_template.jinja`
    or, where there is none, the `chat_template` of the settings."""

    path: Annotated[Path, Role.SCALE]
    """The folder. It stands for the tokenizer in it: another folder is another run."""
    stop_token: Annotated[str | None, Role.SCALE] = None
    """Special token that ends an answer; the folder's `eos_token` where None."""
    thinking: bool = False
    """The template's `enable_thinking` (report, section 6.1: disabled)."""
    date: Annotated[str | None, AfterValidator(_day)] = None
    """What a template that writes today's date takes for today, as in `2025-01-31`: prompts mustn't change while a run lasts. Where
    None, a template that has a date of its own for want of a clock writes that one, and any other that asks is refused."""

    def build(self) -> ChatTokenizer:
        from t1x.text.pretrained import load_tokenizer

        return load_tokenizer(self)

    def unusable(self) -> list[str]:
        try:
            if not self.missing():
                self.build()
        except ValueError as error:
            return [str(error)]
        return []

    def missing(self) -> list[str]:
        if lacks := folder(self.path, "HuggingFaceTokenizer.path; it holds tokenizer.json"):
            return lacks
        why = f"in HuggingFaceTokenizer.path = {self.path}, the folder of a checkpoint with a chat template"
        lacks = [f"file {name} ({why})" for name in ("tokenizer.json", SETTINGS) if not (self.path / name).is_file()]
        if (self.path / SETTINGS).is_file() and find_template(self.path, read_settings(self.path)) is None:
            lacks.append(f"file {TEMPLATE} or chat_template in {SETTINGS} ({why})")
        return lacks
