"""One conversation's prompts, turn by turn.

Invariant: a prompt is what rendering and encoding the conversation by itself gives, whatever was rendered before. Of the prompt
before, the ids up to a special token that both texts have are kept: what stands before one is encoded alike, whatever follows it.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from t1x.text.answer_span import answer_span
from t1x.text.encoder import TextEncoder, joined
from t1x.text.prefix import common_text
from t1x.text.special_tokens import SpecialTokens
from t1x.text.tokenizer import EncodedText, Message, RenderedPrompt
from t1x.text.veil import Veil


class PromptRenderer:
    """Renders and encodes a conversation that grows. A turn costs what the template takes for the whole of it, twice, and little
    more for messages that were there before."""

    def __init__(
        self, render: Callable[[Sequence[Message]], str], special: SpecialTokens, encoder: TextEncoder, prompt_only: str
    ) -> None:
        """`render` gives a conversation's text with the generation prompt, which ends with what history doesn't have."""
        self._template, self._special, self._encoder, self._prompt_only = render, special, encoder, prompt_only
        self._veil = Veil(special)
        self._hidden: dict[Message, Message] = {}
        self._messages: Sequence[Message] = ()
        self._text = ""
        """The last prompt as it was rendered, its messages, and what it was encoded to."""
        self._encoded = joined([])
        self._borders: list[tuple[int, int, int]] = []
        """Behind each of its special tokens: characters of it as rendered and as encoded, and ids."""

    def __call__(self, messages: Sequence[Message]) -> RenderedPrompt:
        """As `ChatTokenizer.prompt_renderer` has it."""
        self._hidden = {each: self._hidden.get(each) or (each[0], self._veil.hide(each[1])) for each in messages}
        hidden = [self._hidden[each] for each in messages]
        text = self._template(hidden)
        span = answer_span(self._rendered, text, hidden, self._veil.mark(), self._prompt_only)
        self._encode(text)
        self._messages, self._text = hidden, text
        answer = None if span is None else (self._veil.shown_length(text[: span[0]]), self._veil.shown_length(text[: span[1]]))
        return RenderedPrompt(self._encoded, answer)

    def _rendered(self, messages: Sequence[Message]) -> str:
        """What was before the last answer is the prompt before, as a rule."""
        return self._text if messages == self._messages else self._template(messages)

    def _encode(self, text: str) -> None:
        same = common_text(text, self._text) - self._special.longest  # so no token that begins before it is another one now
        del self._borders[bisect_right(self._borders, same, key=lambda border: border[0]) :]
        rendered, shown, ids = self._borders[-1] if self._borders else (0, 0, 0)
        before = self._encoded
        parts = [EncodedText(before.text[:shown], before.ids[:ids], before.starts[:ids])]
        for piece, special in self._special.split(text[rendered:]):
            parts.append(self._encoder.piece(self._veil.show(piece), special, first=rendered == 0))
            rendered, shown, ids = rendered + len(piece), shown + len(parts[-1].text), ids + len(parts[-1].ids)
            if special is not None:
                self._borders.append((rendered, shown, ids))
        self._encoded = joined(parts)
