"""Claim: the prompts of a text-based harness that goes on for 200 turns cost an eighth or less of rendering and encoding every one
of them by itself.

`plain` is the bundled template, `prunes` one of the kind that looks at all messages twice and drops reasoning before the latest
user message. Both ways give the same prompts, of about 20,700 and 23,700 tokens in the end, which is checked. Median CPU time of
interleaved runs; what is left grows with the square of the turns, since a template renders all of a conversation.
"""

import statistics
import time
from collections.abc import Sequence
from importlib import resources

import numpy as np
import tokenizers

from t1x.text.chat import TemplatedTokenizer, bundled
from t1x.text.tokenizer import ChatTokenizer, Message, RenderedPrompt

TURNS = (50, 100, 200)
RUNS = 3
AIM = 0.125
PRUNES = """{%- set ns = namespace(last=messages | length - 1, looking=true) %}
{%- for m in messages | reverse %}
    {%- if ns.looking and m.role == 'user' and not m.content.startswith('<output>') %}
        {%- set ns.looking = false %}{% set ns.last = messages | length - 1 - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {%- set reasoning, said = '', m.content %}
        {%- if '</think>' in said %}
            {%- set reasoning = said.split('</think>')[0].split('<think>')[-1].strip() %}
            {%- set said = said.split('</think>')[-1].lstrip() %}
        {%- endif %}
        {{- '<|assistant|>' }}
        {%- if loop.index0 > ns.last and reasoning %}{{- '<think>\\n' + reasoning + '\\n</think>\\n\\n' }}{%- endif %}
        {{- said + '<|end|>\\n' }}
    {%- elif m.role == 'tool' %}{{- '<|user|><output>\\n' + m.content + '\\n</output><|end|>\\n' }}
    {%- else %}{{- '<|' + m.role + '|>' + m.content + '<|end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|><think>\\n\\n</think>\\n\\n' }}{%- endif %}"""


def pruning() -> TemplatedTokenizer:
    """The bundled tokenizer with the other template."""
    data = resources.files("t1x.text") / "data" / "tokenizer.json"
    return TemplatedTokenizer(tokenizers.Tokenizer.from_str(data.read_text()), PRUNES, stop_token="<|end|>")


def conversation(turns: int) -> list[Message]:
    """The task, then commands with what they put out."""
    said: list[Message] = [("user", "Count the lines of every file.")]
    for turn in range(turns):
        said += [("assistant", f"cat file{turn}.txt | sort -n | head -{turn % 9}"), ("tool", "a line of output\n" * 16 + str(turn))]
    return said


def prompts(chat: ChatTokenizer, messages: Sequence[Message], *, grows: bool) -> tuple[float, RenderedPrompt]:
    """CPU seconds of all turns' prompts, by one renderer that `grows` or each by itself, and the last one."""
    start, render = time.process_time(), chat.prompt_renderer()
    for end in range(1, len(messages), 2):
        last = (render if grows else chat.prompt_renderer())(messages[:end])
    return time.process_time() - start, last


def main() -> None:
    print(f"{'CPU seconds':12}{'turns':>6}{'tokens':>8}{'each by itself':>16}{'as one grows':>14}{'ratio':>8}")
    worst = 0.0
    for name, chat in (("plain", bundled()), ("prunes", pruning())):
        for turns in TURNS:
            messages = conversation(turns)
            rounds = []
            for _ in range(RUNS):
                (alone, one), (growing, other) = (prompts(chat, messages, grows=each) for each in (False, True))
                assert np.array_equal(one.encoded.ids, other.encoded.ids)
                assert np.array_equal(one.encoded.starts, other.encoded.starts)
                assert one.answer == other.answer
                rounds.append((alone, growing))
            alone, growing = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(growing / alone for alone, growing in rounds)
            print(f"{name:12}{turns:6}{len(one.encoded.ids):8}{alone:16.2f}{growing:14.2f}{ratio:8.3f}", flush=True)
        worst = max(worst, ratio)
    print(f"aim: {AIM} of the time at {TURNS[-1]} turns, {'reached' if worst <= AIM else 'missed'} ({worst:.3f})")


if __name__ == "__main__":
    main()
