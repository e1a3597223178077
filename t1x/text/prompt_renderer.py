"""One conversation's prompts, turn by turn.

Invariant: a prompt is what rendering and encoding the conversation by itself gives, whatever was rendered before. What is
remembered doesn't depend on where it stands: how a content is hidden from the template, and the ids of a text between special
tokens. What the last prompt didn't need is forgotten, so that all of it takes no more memory than two prompts.
"""

from collections.abc import Callable, Sequence

from t1x.text.answer_span import answer_span
from t1x.text.encoder import TextEncoder, joined
from t1x.text.special_tokens import SpecialTokens
from t1x.text.tokenizer import EncodedText, Message, RenderedPrompt
from t1x.text.veil import Veil


class PromptRenderer:
    """Renders and encodes a conversation that grows. A turn then costs what the template takes for the whole, and little more for
    messages that were there before."""

    def __init__(
        self, render: Callable[[Sequence[Message]], str], special: SpecialTokens, encoder: TextEncoder, prompt_only: str
    ) -> None:
        """`render` gives a conversation's text with the generation prompt, which ends with what history doesn't have."""
        self._template, self._special, self._encoder, self._prompt_only = render, special, encoder, prompt_only
        self._veil = Veil(special)
        self._hidden: dict[Message, Message] = {}
        self._pieces: dict[tuple[str, bool], EncodedText] = {}
        """By the piece's text as it was rendered, and whether the prompt begins with it."""
        self._last: tuple[Sequence[Message], str] = ((), "")

    def __call__(self, messages: Sequence[Message]) -> RenderedPrompt:
        """As `ChatTokenizer.render_prompt`."""
        self._hidden = {each: self._hidden.get(each) or (each[0], self._veil.hide(each[1])) for each in messages}
        hidden = [self._hidden[each] for each in messages]
        text = self._template(hidden)
        span = answer_span(self._rendered, text, hidden, self._veil.mark(), self._prompt_only)
        self._last = hidden, text
        answer = None if span is None else (self._veil.shown_length(text[: span[0]]), self._veil.shown_length(text[: span[1]]))
        return RenderedPrompt(self._encoded(text), answer)

    def _rendered(self, messages: Sequence[Message]) -> str:
        """What was before the last answer is the prompt before, as a rule."""
        return self._last[1] if messages == self._last[0] else self._template(messages)

    def _encoded(self, text: str) -> EncodedText:
        pieces: dict[tuple[str, bool], EncodedText] = {}
        order = []
        for index, (piece, special) in enumerate(self._special.split(text)):
            key = piece, index == 0
            if key not in pieces:
                pieces[key] = self._pieces.get(key) or self._encoder.piece(self._veil.show(piece), special, first=index == 0)
            order.append(pieces[key])
        self._pieces = pieces
        return joined(order)
