"""A tokenizer and its chat template at work.

Invariants:
- a special token's id comes from the template alone: text that spells one is encoded as plain bytes;
- `first_prompt` ∥ answer ∥ `glue` ∥ … is what rendering and encoding the whole conversation gives, as long as every answer is
  the canonical encoding of its text, and the template doesn't change a message when others follow; where either isn't so, the
  ids stay as they were sampled and shown.
"""

import datetime
import functools
from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np
import tokenizers

from t1x.text.bundled import OWN_IDS
from t1x.text.decoder import TextDecoder
from t1x.text.encoder import TextEncoder
from t1x.text.prompt_renderer import PromptRenderer
from t1x.text.quirks import increment, probe
from t1x.text.rendering import ChatTemplate
from t1x.text.special_tokens import SpecialTokens
from t1x.text.tokenizer import ChatTokenizer, EncodedText, Ids, Message
from t1x.text.veil import Veil


class TemplatedTokenizer(ChatTokenizer):
    """Renders conversations with their Jinja template, which may look into contents, and compares them at id level."""

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        template: str,
        *,
        stop_token: str,
        variables: Mapping[str, object] | None = None,
        vocab_size: int | None = None,
        date: datetime.date | None = None,
    ) -> None:
        """`variables` are further ones that the template sees, `date` is what it takes for today, `vocab_size` are the ids that a
        model may sample: those of the tokenizer itself where None. Raises `ValueError` where they are fewer, and for a template
        that has no prompt for the turn after a command, and `jinja2.TemplateError` for one that can't be rendered."""
        tokenizer.encode_special_tokens = True
        tokenizer.post_processor = None  # it would add special tokens, and moves offsets
        self._tokenizer = tokenizer
        self._special = SpecialTokens(tokenizer)
        if stop_token not in self._special.ids:
            raise ValueError(f"the tokenizer has no special token {stop_token!r} that could end an answer")
        self._encoder = TextEncoder(tokenizer)
        self._decoder = TextDecoder(tokenizer, self._encoder, self._special.ids)
        self._template = ChatTemplate(template, variables or {}, date)
        own = max(tokenizer.get_vocab().values()) + 1
        self.vocab_size: int = own if vocab_size is None else vocab_size
        if self.vocab_size < own:
            raise ValueError(
                f"the tokenizer has {own} ids, more than its vocab_size, {vocab_size}; set that to the model's vocab_size"
            )
        self.stop_ids = (self._special.ids[stop_token],)
        self.quirks = probe(self._template, self._special, stop_token)

    @functools.cached_property
    def blank_ids(self) -> frozenset[int]:
        texts = {id_: self._decoder.text(id_) for id_ in range(self.vocab_size)}
        return frozenset(id_ for id_, text in texts.items() if not text.strip())

    def encode(self, text: str) -> Ids:
        return self._encoder.plain(text, first=True)

    def decode(self, ids: Ids) -> str:
        text: str = self._tokenizer.decode(np.asarray(ids).tolist(), skip_special_tokens=True)
        return text

    def said(self, ids: Ids) -> str:
        begins = self.quirks.history_only
        if not self._special.first(begins):
            return self.decode(ids).removeprefix(begins)
        spelled = self._decoder.spans(ids)
        found = spelled.text.rfind(begins)
        behind = None if found < 0 else spelled.id_at(found + len(begins))
        return self.decode(ids if behind is None else ids[behind:])

    def encode_spans(self, text: str) -> EncodedText:
        return self._encoder.pieces(self._special.split(text))

    def decode_spans(self, ids: Ids) -> EncodedText:
        return self._decoder.spans(ids)

    def bytes_of(self, id_: int) -> bytes:
        return self._decoder.bytes_of(id_)

    def prompt_renderer(self) -> PromptRenderer:
        return PromptRenderer(self._rendered, self._special, self._encoder, self.quirks.prompt_only)

    def render(self, messages: Sequence[Message], *, generation_prompt: bool) -> Ids:
        """The ids of a whole conversation."""
        veil = Veil(self._special)
        hidden = [(role, veil.hide(content)) for role, content in messages]
        return self._encoded(self._rendered(hidden, generation_prompt=generation_prompt), veil).ids

    def first_prompt(self, instruction: str) -> Ids:
        return self.render([("user", instruction)], generation_prompt=True)

    def glue(self, observation: str, turn: int = 0) -> Ids:
        veil = Veil(self._special)
        turn = turn if self.quirks.depends_on_turn else 0
        found = increment(self._template, self._special, self.quirks.observation_role, turn, veil.hide(observation))
        assert found is not None, "probing the template found the token"
        return self._encoded(found[1], veil, first=False).ids

    def _rendered(self, messages: Sequence[Message], *, generation_prompt: bool = True) -> str:
        roles = {"tool": self.quirks.observation_role}
        told = [{"role": roles.get(role, role), "content": content} for role, content in messages]
        return self._template.render(told, generation_prompt=generation_prompt)

    def _encoded(self, text: str, veil: Veil, *, first: bool = True) -> EncodedText:
        pieces = ((veil.show(piece), special) for piece, special in self._special.split(text))
        return self._encoder.pieces(pieces, first=first)


def bundled(vocab_size: int = OWN_IDS) -> TemplatedTokenizer:
    """The bundled tokenizer, one a process and vocabulary."""
    return _bundled(vocab_size)


@functools.cache
def _bundled(vocab_size: int) -> TemplatedTokenizer:
    data = resources.files("t1x.text") / "data"
    tokenizer = tokenizers.Tokenizer.from_str((data / "tokenizer.json").read_text(encoding="utf-8"))
    template = (data / "chat_template.jinja").read_text(encoding="utf-8")
    return TemplatedTokenizer(tokenizer, template, stop_token="<|end|>", vocab_size=vocab_size)
