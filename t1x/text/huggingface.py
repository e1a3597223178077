"""The tokenizer of a Hugging Face checkpoint, as a component."""

from pathlib import Path
from typing import Annotated

from t1x.config import Role
from t1x.config.requirements import folder
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
        return folder(self.path, "HuggingFaceTokenizer.path; it holds tokenizer.json")
