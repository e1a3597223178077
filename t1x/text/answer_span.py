"""Where the last answer stands in a rendered conversation: by message, never by searching for its text."""

from collections.abc import Callable, Sequence

from t1x.text.tokenizer import Message

Render = Callable[[Sequence[Message]], str]
"""A conversation, with the generation prompt at its end."""


def answer_span(render: Render, text: str, messages: Sequence[Message], mark: str, prompt_only: str) -> tuple[int, int] | None:
    """[b, e) as in `RenderedPrompt.answer`: characters of `text`, which is the rendered `messages`. `mark` is a text that the
    template doesn't know.

    The conversation is rendered with the mark in place of the content, so that what stands behind it shows where the answer ends.
    It begins where its own prompt ended; where the template has since changed what was before that, where the mark stands."""
    last = max((i for i, (role, _) in enumerate(messages) if role == "assistant"), default=None)
    if last is None:
        return None
    before, found, behind = render([*messages[:last], ("assistant", mark), *messages[last + 1 :]]).partition(mark)
    if not found or not text.endswith(behind):
        return None
    end = len(text) - len(behind)
    asked = render(messages[:last]).removesuffix(prompt_only)
    begin = next((len(each) for each in (asked, before) if len(each) <= end and text.startswith(each)), None)
    return None if begin is None else (begin, end)
