"""A tokenizer and its chat template at work.

Invariants:
- a special token's id comes from the template alone: text that spells one is encoded as plain bytes;
- `first_prompt` ∥ completion ∥ `glue` ∥ … is what rendering and encoding the whole conversation gives, as long as every completion
  is the canonical encoding of its text, and the template doesn't change a message when others follow; where either isn't so, the
  ids stay as they were sampled and shown;
- what stands between an answer and the next one doesn't depend on the turns before.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment

from t1x.text.tokenizer import ChatTokenizer, EncodedText, Ids, Message, RenderedPrompt

FIRST_MARK = 0x100000
"""In a rendered template the code point FIRST_MARK + i, of a private plane, stands for the content of message i."""
MARK = re.compile("[\U00100000-\U0010fffd]")


class TemplatedTokenizer(ChatTokenizer):
    """Renders and encodes at id level. The template may look at roles and positions, not into contents: it is rendered once per
    sequence of roles, with a mark in place of each content."""

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, template: str, *, stop_token: str, variables: Mapping[str, object] | None = None
    ) -> None:
        """`variables` are further ones that the template sees. Raises `ValueError` for a template that has no prompt for the turn
        after a tool's message, and `jinja2.TemplateError` for one that can't be rendered."""
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.globals.update(variables or {})
        self._template = environment.from_string(template)
        special = {token.content: id_ for id_, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        if stop_token not in special:
            raise ValueError(f"the tokenizer has no special token {stop_token!r} that could end an answer")
        self._special = special
        self._split_special = re.compile("(" + "|".join(map(re.escape, special)) + ")")
        self._skeletons: dict[tuple[tuple[str, ...], bool], list[int | str]] = {}
        self.vocab_size: int = tokenizer.get_vocab_size()
        self.stop_ids = (special[stop_token],)
        texts = {id_: tokenizer.decode([id_], skip_special_tokens=False) for id_ in range(self.vocab_size)}
        self.whitespace_ids = frozenset(id_ for id_, text in texts.items() if text and not text.strip())
        self._glue = self._behind_answer(("user", "assistant", "tool"))
        """Rendered from behind the stop id of the answer before; the mark is the tool message's."""
        later = self._behind_answer(("user", "assistant", "tool", "assistant", "tool"))
        if [_moved(piece, by=2) for piece in self._glue] != later:
            raise ValueError("what the chat template puts between two answers depends on the turns before them")

    def encode(self, text: str) -> Ids:
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        text: str = self._tokenizer.decode(np.asarray(ids).tolist(), skip_special_tokens=True)
        return text

    def encode_spans(self, text: str) -> EncodedText:
        ids: list[int] = []
        starts: list[int] = []
        at = 0
        for piece in self._split_special.split(text):
            if piece in self._special:
                ids.append(self._special[piece])
                starts.append(at)
            elif piece:
                encoding = self._tokenizer.encode(piece, add_special_tokens=False)
                ids += encoding.ids
                starts += [at + start for start, _ in encoding.offsets]
            at += len(piece)
        return EncodedText(text, np.array(ids, dtype=np.int32), np.array(starts, dtype=np.int32))

    def decode_spans(self, ids: Ids) -> EncodedText:
        stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
        text, starts = "", []
        for id_ in ids.tolist():
            starts.append(len(text))
            text += stream.step(self._tokenizer, id_) or ""
        whole: str = self._tokenizer.decode(ids.tolist(), skip_special_tokens=False)
        return EncodedText(whole, np.asarray(ids, np.int32), np.array(starts, dtype=np.int32))

    def render_prompt(self, messages: Sequence[Message]) -> RenderedPrompt:
        last = max((i for i, (role, _) in enumerate(messages) if role == "assistant"), default=None)
        text = self._rendered(messages)
        encoded = self.encode_spans(text)
        if last is None:
            return RenderedPrompt(encoded, None)
        marked = self._rendered([*messages[:last], ("assistant", _mark(last)), *messages[last + 1 :]])
        before, _, behind = marked.partition(_mark(last))
        return RenderedPrompt(encoded, (len(before), len(text) - len(behind)))

    def _rendered(self, messages: Sequence[Message]) -> str:
        told = [{"role": role, "content": content} for role, content in messages]
        return self._template.render(messages=told, add_generation_prompt=True)

    def render(self, messages: Sequence[Message], *, generation_prompt: bool) -> Ids:
        """The ids of a whole conversation."""
        skeleton = self._skeleton(tuple(role for role, _ in messages), generation_prompt)
        return self._fill(skeleton, [content for _, content in messages])

    def first_prompt(self, instruction: str) -> Ids:
        return self.render([("user", instruction)], generation_prompt=True)

    def glue(self, observation: str) -> Ids:
        return self._fill(self._glue, ["", "", observation])

    def _fill(self, skeleton: Sequence[int | str], contents: Sequence[str]) -> Ids:
        """The ids of a skeleton with contents in place of its marks."""
        ids: list[int] = []
        for piece in skeleton:
            if isinstance(piece, int):
                ids.append(piece)
            else:
                text = MARK.sub(lambda mark: contents[ord(mark[0]) - FIRST_MARK], piece)
                ids += self._tokenizer.encode(text, add_special_tokens=False).ids
        return np.array(ids, dtype=np.int32)

    def _behind_answer(self, roles: tuple[str, ...]) -> list[int | str]:
        """The skeleton of a conversation from behind the stop id of its last assistant message on."""
        skeleton = self._skeleton(roles, True)
        answer = len(roles) - 1 - roles[::-1].index("assistant")
        at = next((i for i, piece in enumerate(skeleton) if isinstance(piece, str) and _mark(answer) in piece), len(skeleton))
        end = next((i for i in range(at, len(skeleton)) if skeleton[i] in self.stop_ids), None)
        behind = skeleton[end + 1 :] if end is not None else []
        if not any(isinstance(piece, str) and _mark(len(roles) - 1) in piece for piece in behind):
            raise ValueError(
                "the chat template doesn't put a stop token between an assistant message and the tool message behind it"
            )
        return behind

    def _skeleton(self, roles: tuple[str, ...], generation_prompt: bool) -> list[int | str]:
        """The rendered template: ids of special tokens, and texts with a mark for each content."""
        key = (roles, generation_prompt)
        if key not in self._skeletons:
            marked = [{"role": role, "content": _mark(i)} for i, role in enumerate(roles)]
            rendered = self._template.render(messages=marked, add_generation_prompt=generation_prompt)
            pieces = [piece for piece in self._split_special.split(rendered) if piece]
            self._skeletons[key] = [self._special.get(piece, piece) for piece in pieces]
        return self._skeletons[key]


def _mark(message: int) -> str:
    return chr(FIRST_MARK + message)


def _moved(piece: int | str, by: int) -> int | str:
    """A piece of a skeleton whose marks stand for messages so many places later."""
    return piece if isinstance(piece, int) else MARK.sub(lambda mark: chr(ord(mark[0]) + by), piece)


@functools.cache
def bundled() -> TemplatedTokenizer:
    """The bundled tokenizer, one a process."""
    data = resources.files("t1x.text") / "data"
    tokenizer = tokenizers.Tokenizer.from_str((data / "tokenizer.json").read_text(encoding="utf-8"))
    template = (data / "chat_template.jinja").read_text(encoding="utf-8")
    return TemplatedTokenizer(tokenizer, template, stop_token="<|end|>")
