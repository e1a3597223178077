"""What a chat template does to a conversation, found by rendering small ones and looking at what comes out.

Nothing here knows models by name: a template is what it does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from t1x.text.prefix import common_text
from t1x.text.rendering import ChatTemplate
from t1x.text.special_tokens import SpecialTokens

TASK, ANSWER, SEEN, THOUGHT = "\U00100000", "\U00100001", "\U00100002", "\U00100003"
"""Contents of the conversations that are rendered: code points that no template writes."""
_REFUSED = (jinja2.TemplateError, TypeError, ValueError, KeyError)
_TAGS = re.compile(r"<(/)([\w|]+)>|\[(/)([\w]+)\]")
"""Closing tags in a template's source: what stands before one may be reasoning."""


@dataclass(frozen=True, slots=True)
class TemplateQuirks:
    """How a template's conversations differ from a mere concatenation of messages."""

    observation_role: str
    """Role of the message with what a command put out: `tool`, or `user` where the template has no such message."""
    closing_token: str
    """The special token that ends an answer in history; most often the one that the policy ends it with."""
    after_stop: str
    """What follows that token where nothing else does: a line break, as a rule."""
    generation_prompt: str
    """What a prompt has behind its last message."""
    prompt_only: str
    """The end of it that history doesn't have before the answer: an empty thinking block, for example."""
    history_only: str
    """What history has before an answer that the prompt for it hadn't."""
    trims_answers: bool
    """Whether white space at an answer's ends is lost."""
    trims_start: bool
    """Whether that is so at its beginning."""
    trims_observations: bool
    prunes_reasoning: tuple[str, ...]
    """Roles of messages that make the template drop the reasoning of answers before them."""
    reserialises_tool_calls: bool
    """Whether tool calls that are handed over as data are written again, with the white space of the template's JSON."""
    depends_on_turn: bool
    """Whether what stands between two answers depends on how many there were before."""

    def describe(self) -> str:
        """For a reader, a sentence a line."""
        said = [
            f"An answer ends with {self.closing_token!r}"
            + (f", followed by {self.after_stop!r}." if self.after_stop else "; nothing follows it."),
            f"A prompt ends with {self.generation_prompt!r}"
            + (f", of which history doesn't keep {self.prompt_only!r}." if self.prompt_only else ", as history has it."),
        ]
        if self.history_only:
            said.append(f"History has {self.history_only!r} before an answer, which its prompt hadn't.")
        if self.observation_role != "tool":
            said.append(f"It has no messages of tools: what a command puts out is said by the {self.observation_role}.")
        if self.trims_answers:
            said.append(f"Answers lose white space at {'both ends' if self.trims_start else 'their end'}.")
        if self.trims_observations:
            said.append("Observations lose white space at their ends.")
        if self.prunes_reasoning:
            said.append(f"Reasoning is dropped once a message of the {' or '.join(self.prunes_reasoning)} follows.")
        if self.reserialises_tool_calls:
            said.append("Tool calls are written again from their data, so that their white space changes.")
        if self.depends_on_turn:
            said.append("What stands between two answers depends on how many there were before.")
        return "\n".join(said)


def conversation(role: str, turn: int, observation: str) -> list[dict[str, str]]:
    """A task, `turn` answers with observations, and one more of both, whose contents are what is looked for."""
    earlier = [{"role": "assistant", "content": "ok"}, {"role": role, "content": "ok"}] * turn
    return [
        {"role": "user", "content": TASK},
        *earlier,
        {"role": "assistant", "content": ANSWER},
        {"role": role, "content": observation},
    ]


def increment(template: ChatTemplate, special: SpecialTokens, role: str, turn: int, observation: str) -> tuple[str, str] | None:
    """The special token that ends the answer, and what the template puts between it and the next answer. None where the answer or
    such a token isn't there."""
    text = template.render(conversation(role, turn, observation), generation_prompt=True)
    _, answer, behind = text.partition(ANSWER)
    found = special.first(behind) if answer else None
    return (found[0], behind[found[1] :]) if found else None


def probe(template: ChatTemplate, special: SpecialTokens, stop_token: str) -> TemplateQuirks:
    """Raises `ValueError` for a template that has no prompt for the turn after a command, or whose answers don't end with
    `stop_token`, and `jinja2.TemplateError` for one that can't be rendered."""
    prompt = template.render([{"role": "user", "content": TASK}], generation_prompt=True)
    role, closing = _observation(template, special, stop_token)
    short = conversation(role, 0, SEEN)
    answered = template.render(short[:2], generation_prompt=False)
    history, whole = (_before(ANSWER, template.render(short[:n], generation_prompt=n == 3)) for n in (2, 3))
    asked = template.render(short[:1], generation_prompt=False)
    common = common_text(prompt, whole)
    increments = [increment(template, special, role, turn, SEEN) for turn in range(3)]
    behind = special.first(answered.partition(ANSWER)[2])
    start, end = _trimmed(template, role, 1, ANSWER)
    return TemplateQuirks(
        observation_role=role,
        closing_token=closing,
        after_stop=answered.partition(ANSWER)[2][behind[1] :] if behind else "",
        generation_prompt=_behind(prompt, asked, special),
        prompt_only=prompt[common:],
        history_only=whole[common:] or history[common_text(prompt, history) :],
        trims_answers=start or end,
        trims_start=start,
        trims_observations=any(_trimmed(template, role, 2, SEEN)),
        prunes_reasoning=tuple(each for each in ("tool", "user") if _prunes(template, each)),
        reserialises_tool_calls=_reserialises(template),
        depends_on_turn=len(set(increments)) > 1,
    )


def _observation(template: ChatTemplate, special: SpecialTokens, stop_token: str) -> tuple[str, str]:
    """The role of observations, and the token that ends the answer before one."""
    refusals: list[Exception] = []
    met: str | None = None
    written = False
    for role in ("tool", "user"):
        try:
            found = increment(template, special, role, 0, SEEN)
            answered = template.render(conversation(role, 0, SEEN)[:2], generation_prompt=False)
        except _REFUSED as error:
            refusals.append(error)
            continue
        written = written or ANSWER in answered
        if found and SEEN in found[1]:
            met = met or found[0]
            last = special.first(answered.partition(ANSWER)[2])
            if stop_token in (found[0], last[0] if last else None):
                return role, found[0]
    if len(refusals) == 2:
        raise refusals[0] if isinstance(refusals[0], jinja2.TemplateError) else jinja2.TemplateError(str(refusals[0]))
    if not written:
        raise ValueError("the chat template leaves out what an assistant message says, which it is given as text and not in parts")
    raise ValueError(
        f"the chat template doesn't put a stop token between an assistant message and the tool message behind it: {stop_token!r} "
        + (f"is expected, but {met!r} is what it puts there; set it as the stop token" if met else "is expected there")
    )


def _behind(prompt: str, asked: str, special: SpecialTokens) -> str:
    """What a prompt has that the same messages without a generation prompt haven't, which may end in a way of their own."""
    if prompt.startswith(asked):
        return prompt[len(asked) :]
    ours, theirs = (list(special.split(text)) for text in (prompt, asked))
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    return "".join(text for text, _ in ours[same:])


def _before(mark: str, text: str) -> str:
    return text.partition(mark)[0]


def _rendered(template: ChatTemplate, messages: Sequence[Mapping[str, Any]]) -> str:
    """Nothing where the template refuses the conversation."""
    try:
        return template.render(messages, generation_prompt=True)
    except _REFUSED:
        return ""


def _trimmed(template: ChatTemplate, role: str, message: int, content: str) -> tuple[bool, bool]:
    """Whether white space before, and behind, a message's content is lost."""
    bare, wide = conversation(role, 0, SEEN), conversation(role, 0, SEEN)
    wide[message] = {**wide[message], "content": f" \t{content}\t "}
    before, _, behind = _rendered(template, wide).partition(content)
    plain_before, _, plain_behind = _rendered(template, bare).partition(content)
    return before == plain_before, behind == plain_behind


def _prunes(template: ChatTemplate, role: str) -> bool:
    """Whether an answer's reasoning is gone when a message of the role follows."""
    tags = {(f"<{name}>", f"</{name}>") if name else (f"[{other}]", f"[/{other}]") for _, name, _, other in _tags(template)}
    for opening, closing in tags:
        reasoned = conversation(role, 0, SEEN)
        reasoned[1] = {"role": "assistant", "content": f"{opening}\n{THOUGHT}\n{closing}\n\n{ANSWER}"}
        text = _rendered(template, reasoned)
        if ANSWER in text and THOUGHT not in text:
            return True
    return False


def _tags(template: ChatTemplate) -> list[tuple[str, str, str, str]]:
    return _TAGS.findall(template.source)


def _reserialises(template: ChatTemplate) -> bool:
    """Hands over a tool call with arguments as text of unusual white space, and as data."""
    text = f'{{"a":   "{SEEN}"}}'
    handed_over: tuple[object, ...] = (text, {"a": SEEN})
    for arguments in handed_over:
        call = {"type": "function", "id": "call00000", "function": {"name": "run", "arguments": arguments}}
        asked: list[dict[str, Any]] = [
            {"role": "user", "content": TASK},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
        rendered = _rendered(template, asked)
        if text in rendered:
            return False
        if SEEN in rendered:
            return True
    return False
