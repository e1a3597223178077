"""Templates that do as families of models do: what is found out about each, and whether its conversations hold."""

import dataclasses
import functools
import json
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import transformers
from template_families import FAMILIES
from tokenizers import AddedToken, Tokenizer

from t1x.engine.protocol import Completion
from t1x.harness.conversation import IdConversation
from t1x.harness.text_conversation import TextConversation
from t1x.text.chat import TemplatedTokenizer
from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.trajectory.audit import audit
from t1x.trajectory.records import Turn
from t1x.trajectory.stitcher import ExactStitcher, TokenStitcher

REFUSED = {
    "chunks": "leaves out what an assistant message says, which it is given as text and not in parts",
    "needs_a_system": "can't be rendered: A system message comes first",
}
TAKEN = sorted(set(FAMILIES) - set(REFUSED))
BLOCK = "<think>\n\n</think>\n\n"
FOUND = {
    "chatml": {
        "generation_prompt": "<|im_start|>assistant\n" + BLOCK,
        "prompt_only": BLOCK,
        "prunes_reasoning": ("user",),
        "reserialises_tool_calls": True,
    },
    "chatml_thinking": {
        "generation_prompt": "<|im_start|>assistant\n",
        "history_only": BLOCK,
        "prunes_reasoning": ("user",),
        "reserialises_tool_calls": True,
    },
    "chatml_plain": {"generation_prompt": "<|im_start|>assistant\n"},
    "headers_with_date": {
        "generation_prompt": "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "trims_answers": True,
        "reserialises_tool_calls": True,
    },
    "inst": {"observation_role": "user", "history_only": " "},
    "inst_with_tools": {
        "observation_role": "user",
        "history_only": " ",
        "trims_answers": True,
        "reserialises_tool_calls": True,
    },
    "model_turns": {
        "observation_role": "user",
        "generation_prompt": "<start_of_turn>model\n",
        "trims_answers": True,
        "trims_observations": True,
    },
    "wide_bars": {
        "generation_prompt": "<｜Assistant｜><think>\n",
        "prompt_only": "<think>\n",
        "prunes_reasoning": ("tool", "user"),
    },
    "tag_names": {"generation_prompt": "<|assistant|>\n"},
    "users_stop": {
        "observation_role": "user",
        "generation_prompt": "<|assistant|>\n<think></think>",
        "history_only": "\n",
        "prunes_reasoning": ("tool", "user"),
    },
    "channels": {"generation_prompt": "<|start|>assistant", "history_only": "<|channel|>final<|message|>"},
    "legacy": {
        "observation_role": "user",
        "generation_prompt": "ASSISTANT:",
        "history_only": " ",
        "trims_answers": True,
        "trims_observations": True,
    },
}
PLAIN = {
    "observation_role": "tool",
    "generation_prompt": "",
    "prompt_only": "",
    "history_only": "",
    "trims_answers": False,
    "trims_observations": False,
    "prunes_reasoning": (),
    "reserialises_tool_calls": False,
    "depends_on_turn": False,
}


@functools.cache
def folder(name: str) -> tempfile.TemporaryDirectory:
    """The checkpoint's; gone with the process."""
    family, made = FAMILIES[name], tempfile.TemporaryDirectory()
    tokenizer = Tokenizer.from_str((resources.files("t1x.text") / "data" / "tokenizer.json").read_text())
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in family["special"]])
    tokenizer.save(f"{made.name}/tokenizer.json")
    settings = {"eos_token": family["stop"], "chat_template": family["template"], **family.get("settings", {})}
    (Path(made.name) / "tokenizer_config.json").write_text(json.dumps(settings))
    return made


@functools.cache
def load(name: str) -> TemplatedTokenizer:
    return HuggingFaceTokenizer(path=folder(name).name, vocab_size=1000, **FAMILIES[name].get("fields", {})).build()


@pytest.mark.parametrize("name", TAKEN)
def test_a_family_is_known_by_what_its_template_does(name):
    found = dataclasses.asdict(load(name).quirks)
    assert {field: found[field] for field in PLAIN} == PLAIN | FOUND[name]


@pytest.mark.parametrize(("name", "reason"), REFUSED.items())
def test_what_cannot_be_used_is_refused_with_the_reason(name, reason):
    with pytest.raises(ValueError, match=f"tokenizer_config.json: .*{reason}"):
        load(name)


@pytest.mark.parametrize("name", TAKEN)
def test_prompts_are_those_of_the_library(name):
    chat, fields = load(name), FAMILIES[name].get("fields", {})
    reference = transformers.PreTrainedTokenizerFast.from_pretrained(folder(name).name)
    told = [("user", " go\n"), ("assistant", "ls -a"), ("tool", 'a "b"\n'), ("assistant", "cat é"), ("tool", "")]
    roles = {"tool": chat.quirks.observation_role}
    variables = {"enable_thinking": fields.get("thinking", False)}
    variables |= {"strftime_now": lambda form: "2025-01-31"} if fields.get("date") else {}
    if name == "headers_with_date":  # the library has a clock
        variables["date_string"] = "26 Jul 2024"
    for n in (1, 3, 5):
        messages = [{"role": roles.get(role, role), "content": content} for role, content in told[:n]]
        text = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **variables)
        rendered = chat.prompt_renderer()(told[:n])
        assert rendered.encoded.text == text
        assert rendered.encoded.ids.tolist() == reference(text, add_special_tokens=False)["input_ids"]


SAYS = {"inst": " ls -a", "inst_with_tools": " ls -a", "users_stop": "\nls -a", "legacy": " ls -a"}
SAYS["channels"] = "<|channel|>final<|message|>ls -a"
EDGES = {"chatml": ["edge"] * 3, "wide_bars": ["edge", "exact", "exact"], "channels": ["edge"] * 3}
"""Where prompts end with what history doesn't keep (behind tools the second has nothing of that), or answers with another token."""


def dialogue(chat, conversation, stitcher, answer, seen="out") -> tuple[list[Turn], list[str]]:
    """Four turns with the same answer."""
    worker, turns = stitcher.build(chat, None), []
    ids = np.append(chat.encode_spans(answer).ids, chat.stop_ids).astype(np.int32)
    for index in range(4):
        prompt = conversation.prompt()
        rows = np.zeros((len(prompt.ids) + len(ids) - 1, 0, 0), np.uint8)
        done = Completion(ids, np.full(len(ids), -1, np.float32), rows, 0, "stop", 0)
        turns.append(Turn(index, prompt.ids, done, 1.0, prompt.restarted, prompt.rendered, prompt.placeholder_tokens))
        worker.add(turns[-1])
        conversation.add(done, seen)
    streams = worker.finish()
    assert audit(turns, streams).violations == 0
    return turns, [str(case) for stream in streams for case in stream.boundaries]


def text_conversation(chat) -> TextConversation:
    return TextConversation(chat, "do it", role="tool", longest=10**6, kept_turns=1, summary=str)


@pytest.mark.parametrize("name", TAKEN)
def test_an_answer_as_the_template_writes_it_goes_on_in_both_harnesses(name):
    chat, answer = load(name), SAYS.get(name, "ls -a")
    assert chat.said(chat.encode_spans(answer).ids).strip() == "ls -a"
    turns, cases = dialogue(chat, text_conversation(chat), TokenStitcher(), answer)
    assert not any(turn.restarted for turn in turns)
    assert cases == EDGES.get(name, ["exact"] * 3)
    by_ids, cases = dialogue(chat, IdConversation(chat, "do it"), ExactStitcher(), answer)
    assert cases == ["exact"] * 3
    if name not in EDGES:
        assert [turn.prompt_ids.tolist() for turn in turns] == [turn.prompt_ids.tolist() for turn in by_ids]


REASONED = dict.fromkeys(TAKEN, "<think>\nwhy\n</think>\n\nls") | {
    "wide_bars": "why\n</think>\n\nls",
    "channels": "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>ls",
}
DROP = ("wide_bars", "users_stop", "channels")


@pytest.mark.parametrize("name", TAKEN)
def test_reasoning_that_history_drops_is_announced(name):
    chat, begins = load(name), " " * (FOUND[name].get("history_only") == " ")
    turns, cases = dialogue(chat, text_conversation(chat), TokenStitcher(), begins + REASONED[name])
    assert [turn.restarted for turn in turns[1:]] == [name in DROP] * 3
    assert cases == (["restart"] * 3 if name in DROP else EDGES.get(name, ["exact"] * 3))
    assert ("why" in turns[3].rendered.encoded.text) == (name not in DROP)


def test_a_channel_is_left_out_of_what_is_said():
    chat = load("channels")
    final = "<|channel|>final<|message|>"
    for spelled, said in (
        (f"{final}ls", "ls"),
        (REASONED["channels"], "ls"),
        (f"{final}a{final}b<|return|>", "b"),
        (final, ""),
        ("<|channel|>other<|message|>ls", "otherls"),
        ("", ""),
    ):
        assert chat.said(chat.encode_spans(spelled).ids) == said
