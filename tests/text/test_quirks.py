"""What is found out about a template by rendering it."""

import dataclasses

import pytest
from own_templates import TEMPLATES, build

from t1x.text.quirks import TemplateQuirks

PLAIN = TemplateQuirks(
    observation_role="tool",
    closing_token="<|end|>",
    after_stop="",
    generation_prompt="<|assistant|>",
    prompt_only="",
    history_only="",
    trims_answers=False,
    trims_start=False,
    trims_observations=False,
    prunes_reasoning=(),
    reserialises_tool_calls=False,
    depends_on_turn=False,
)
BLOCK = "<think>\n\n</think>\n\n"
FOUND = {
    "line_break": {"after_stop": "\n", "generation_prompt": "<|user|>assistant\n"},
    "begins_once": {"generation_prompt": "", "history_only": " "},
    "empty_block": {"generation_prompt": "<|assistant|>" + BLOCK, "prompt_only": BLOCK},
    "block_in_history": {"after_stop": "\n", "history_only": BLOCK, "prunes_reasoning": ("user",)},
    "drops_reasoning": {
        "generation_prompt": "<|assistant|><think>\n",
        "prompt_only": "<think>\n",
        "prunes_reasoning": ("tool", "user"),
    },
    "trims": {
        "generation_prompt": "<|user|>assistant<|assistant|>\n\n",
        "trims_answers": True,
        "trims_start": True,
        "trims_observations": True,
    },
    "alternates": {"observation_role": "user"},
    "closes_otherwise": {"closing_token": "<|pad|>"},
    "next_role_stops": {"generation_prompt": "<|assistant|>\n"},
    "calls": {"after_stop": "\n", "reserialises_tool_calls": True},
    "numbered": {"generation_prompt": "<|assistant|>2\n", "depends_on_turn": True},
}


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_a_template_is_known_by_what_it_does(template):
    assert build("byte_level", template).quirks == dataclasses.replace(PLAIN, **FOUND[template])


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_a_reader_is_told_what_was_found(template):
    said = build("byte_level", template).quirks.describe()
    plain = build("byte_level", "closes_otherwise").quirks.describe().splitlines()
    for line, field in (
        ("Tool calls are written again", "reserialises_tool_calls"),
        ("Reasoning is dropped once a message of the", "prunes_reasoning"),
        ("Answers lose white space at both ends.", "trims_answers"),
        ("of which history doesn't keep", "prompt_only"),
        ("before an answer, which its prompt hadn't", "history_only"),
        ("It has no messages of tools", "observation_role"),
        ("depends on how many there were before", "depends_on_turn"),
    ):
        assert (line in said) == (field in FOUND[template])
    assert len(plain) == 2


def test_reasoning_is_looked_for_between_the_templates_own_tags():
    """Found by the tags in the template's text, whatever they are called."""
    renamed = TEMPLATES["drops_reasoning"].replace("think>", "muse>")
    bracketed = TEMPLATES["drops_reasoning"].replace("</think>", "[/MUSE]")
    for template in (renamed, bracketed):
        assert build("byte_level", template).quirks.prunes_reasoning == ("tool", "user")


def test_a_call_whose_text_is_kept_is_not_written_again():
    """As templates have it that print arguments which are text already."""
    verbatim = TEMPLATES["calls"].replace("call.function | tojson", "call.function.arguments")
    assert not build("byte_level", verbatim).quirks.reserialises_tool_calls
