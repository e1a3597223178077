"""A tokenizer and its chat template at work.

Invariants:
- a special token's id comes from the template alone: text that spells one is encoded as plain bytes;
- `first_prompt` ∥ completion ∥ `glue` ∥ … is what rendering and encoding the whole conversation gives, as long as every completion
  is the canonical encoding of its text; where it isn't, its ids stay as they were sampled.
"""

import functools
import re
from collections.abc import Sequence
from importlib import resources

import jinja2
import numpy as np
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment

from t1x.text.tokenizer import ChatTokenizer, Ids

Message = tuple[str, str]
"""(role, content)"""

FIRST_MARK = 0x100000
"""In a rendered template the code point FIRST_MARK + i, of a private plane, stands for the content of message i."""
MARK = re.compile("[\U00100000-\U0010fffd]")


class TemplatedTokenizer(ChatTokenizer):
    """Renders and encodes at id level. The template may look at roles and positions, not into contents: it is rendered once per
    sequence of roles, with a mark in place of each content."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, template: str, *, stop_token: str) -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self._template = environment.from_string(template)
        special = {token.content: id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        self._special = special
        self._split_special = re.compile("(" + "|".join(map(re.escape, special)) + ")")
        self._skeletons: dict[tuple[tuple[str, ...], bool], list[int | str]] = {}
        self.vocab_size: int = tokenizer.get_vocab_size()
        self.stop_ids = (special[stop_token],)
        finished = self.render([("user", ""), ("assistant", "")], generation_prompt=False)
        after_stop = 1 + int(np.flatnonzero(np.isin(finished, self.stop_ids))[-1])
        self._answered = finished[:after_stop]
        """A first exchange up to and including its stop id: what `glue` is the continuation of."""

    def encode(self, text: str) -> Ids:
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        text: str = self._tokenizer.decode(np.asarray(ids).tolist(), skip_special_tokens=True)
        return text

    def render(self, messages: Sequence[Message], *, generation_prompt: bool) -> Ids:
        """The ids of a whole conversation."""
        skeleton = self._skeleton(tuple(role for role, _ in messages), generation_prompt)
        ids: list[int] = []
        for piece in skeleton:
            if isinstance(piece, int):
                ids.append(piece)
            else:
                text = MARK.sub(lambda mark: messages[ord(mark[0]) - FIRST_MARK][1], piece)
                ids += self._tokenizer.encode(text, add_special_tokens=False).ids
        return np.array(ids, dtype=np.int32)

    def first_prompt(self, instruction: str) -> Ids:
        return self.render([("user", instruction)], generation_prompt=True)

    def glue(self, observation: str) -> Ids:
        whole = self.render([("user", ""), ("assistant", ""), ("tool", observation)], generation_prompt=True)
        head = len(self._answered)
        assert np.array_equal(whole[:head], self._answered), "the chat template changes earlier messages when later ones are added"
        return whole[head:]

    def _skeleton(self, roles: tuple[str, ...], generation_prompt: bool) -> list[int | str]:
        """The rendered template: ids of special tokens, and texts with a mark for each content."""
        key = (roles, generation_prompt)
        if key not in self._skeletons:
            marked = [{"role": role, "content": chr(FIRST_MARK + i)} for i, role in enumerate(roles)]
            rendered = self._template.render(messages=marked, add_generation_prompt=generation_prompt)
            pieces = [piece for piece in self._split_special.split(rendered) if piece]
            self._skeletons[key] = [self._special.get(piece, piece) for piece in pieces]
        return self._skeletons[key]


@functools.cache
def bundled() -> TemplatedTokenizer:
    """The bundled tokenizer, one a process."""
    data = resources.files("t1x.text") / "data"
    tokenizer = tokenizers.Tokenizer.from_str((data / "tokenizer.json").read_text(encoding="utf-8"))
    template = (data / "chat_template.jinja").read_text(encoding="utf-8")
    return TemplatedTokenizer(tokenizer, template, stop_token="<|end|>")
