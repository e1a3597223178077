"""The tokenizer of a Hugging Face checkpoint, as a component."""

from pathlib import Path
from typing import Annotated

from t1x.config import Role
from t1x.config.requirements import folder
from t1x.text.chat_template import SETTINGS, TEMPLATE, find_template, read_settings
from t1x.text.tokenizer import ChatTokenizer, Tokenizer


class HuggingFaceTokenizer(Tokenizer):
    """Tokenizer and chat template from a checkpoint's folder: `tokenizer.json`, `tokenizer_config.json` and, where the latter has
    no `chat_template`, `chat_template.jinja`."""

    path: Annotated[Path, Role.SCALE]
    """The folder. It stands for the tokenizer in it: another folder is another run."""
    stop_token: Annotated[str | None, Role.SCALE] = None
    """Special token that ends an answer; the folder's `eos_token` where None."""
    thinking: bool = False
    """The template's `enable_thinking` (report, section 6.1: disabled)."""

    def build(self) -> ChatTokenizer:
        from t1x.text.pretrained import load_tokenizer

        return load_tokenizer(self)

    def missing(self) -> list[str]:
        if lacks := folder(self.path, "HuggingFaceTokenizer.path; it holds tokenizer.json"):
            return lacks
        why = f"in HuggingFaceTokenizer.path = {self.path}, the folder of a checkpoint with a chat template"
        lacks = [f"file {name} ({why})" for name in ("tokenizer.json", SETTINGS) if not (self.path / name).is_file()]
        if (self.path / SETTINGS).is_file() and find_template(self.path, read_settings(self.path)) is None:
            lacks.append(f"file {TEMPLATE} or chat_template in {SETTINGS} ({why})")
        return lacks
