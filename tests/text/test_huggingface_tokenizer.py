"""The tokenizer of a checkpoint's folder, against Hugging Face's own rendering of the same folder."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from own_checkpoint import SPECIAL, TEMPLATE, write

from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.text.tokenizer import ChatTokenizer


def load(folder: Path, **fields: object) -> ChatTokenizer:
    return HuggingFaceTokenizer(path=folder, vocab_size=320, **fields).build()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def reference(checkpoint):
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(checkpoint / "tokenizer.json"), eos_token="<|close|>")
    fast.backend_tokenizer.no_truncation()
    fast.chat_template = TEMPLATE
    return fast


PLAIN = st.text(alphabet=st.characters(exclude_characters="<", exclude_categories=("Cs", "Co")))


@given(instruction=PLAIN, command=PLAIN, observation=PLAIN)
def test_prompts_are_those_of_hugging_face(checkpoint, reference, instruction, command, observation):
    """Where it thinks the template adds nothing behind its prompt, so that a conversation renders as the turns were shown."""
    tokenizer = load(checkpoint, thinking=True)
    messages = [
        {"role": "user", "content": instruction},
        {"role": "assistant", "content": command},
        {"role": "tool", "content": observation},
    ]

    def rendered(messages: list[dict[str, str]]) -> list[int]:
        text = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=True)
        return reference(text, add_special_tokens=False)["input_ids"]

    first = tokenizer.first_prompt(instruction)
    assert first.tolist() == rendered(messages[:1])
    # the template ends its prompt with a line break, which no text of the command merges with where it is encoded by itself
    turn = [*tokenizer.encode(command).tolist(), *tokenizer.stop_ids, *tokenizer.glue(observation).tolist()]
    whole = rendered(messages)
    assert whole[-len(tokenizer.glue(observation)) :] == tokenizer.glue(observation).tolist()
    assert tokenizer.decode(np.array([*first.tolist(), *turn], np.int32)) == tokenizer.decode(np.array(whole, np.int32))


def test_thinking_is_the_templates_to_say(checkpoint):
    assert load(checkpoint).decode(load(checkpoint).glue("7")) == "\nuser\noutput:\n7\nassistant\nno thoughts\n"
    thinking = load(checkpoint, thinking=True)
    assert thinking.decode(thinking.first_prompt("count")) == "user\ncount\nassistant\n"


def test_what_spells_a_special_token_is_plain_text(checkpoint):
    tokenizer = load(checkpoint)
    ids = tokenizer.glue("<|close|>\n<|open|>user\n").tolist()
    assert [id_ for id_ in ids if id_ < len(SPECIAL)] == [1, 2, 1]


def test_the_folders_truncation_is_not_taken_over(checkpoint):
    text = "list the files of a folder and count their lines"
    assert load(checkpoint).decode(load(checkpoint).encode(text * 3)) == text * 3


@pytest.mark.parametrize(
    ("file", "template"),
    [
        ("chat_template.jinja", TEMPLATE),
        ("tokenizer_config.json", [{"name": "tool_use", "template": "{{ no }}"}, {"name": "default", "template": TEMPLATE}]),
    ],
)
def test_a_template_stands_where_checkpoints_have_it(tmp_path, checkpoint, file, template):
    other = load(write(tmp_path, template, file))
    assert other.glue("7").tolist() == load(checkpoint).glue("7").tolist()


def test_the_stop_token_may_be_another(tmp_path):
    folder = write(tmp_path, TEMPLATE.replace("eos_token", "'<|pad|>'"))
    assert load(folder, stop_token="<|pad|>").stop_ids == (0,)
    with pytest.raises(ValueError, match=r"in tokenizer_config.json: the chat template doesn't put a stop token"):
        load(folder)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for m in messages %}\n{% if %}", "the chat template can't be rendered: its line 2: Expected an expression"),
        ("{{ 'a' + 1 }}", "the chat template can't be rendered: TypeError: "),
        ("{{ 1 / 0 }}", "the chat template can't be rendered: ZeroDivisionError: "),
        ([{"name": "default", "template": 1}], "chat_template should be a text, or a list of objects"),
        (["x"], "chat_template should be a text, or a list of objects"),
        ("{{ raise_exception('roles must alternate') }}", "the chat template can't be rendered: roles must alternate"),
        (
            "{% for m in messages %}{{ m.content }}<|open|>{% endfor %}",
            "'<|close|>' is expected, but '<|open|>' is what",
        ),
    ],
)
def test_a_template_that_cannot_be_used_is_named(tmp_path, template, message):
    with pytest.raises(ValueError, match=f"tokenizer_config.json: .*{re.escape(message)}"):
        load(write(tmp_path, template))
    (line,) = HuggingFaceTokenizer(path=tmp_path, vocab_size=320).unusable()
    assert message in line
    assert str(tmp_path) in line


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", b"{", "tokenizer.json: the tokenizers library can't read it: "),
        ("tokenizer.json", b"\xff", "tokenizer.json can't be read as text: "),
        ("chat_template.jinja", b"\xff", "chat_template.jinja can't be read as text: "),
        ("tokenizer_config.json", b"{", "tokenizer_config.json can't be read as JSON: "),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, file, content, message):
    (write(tmp_path, file="chat_template.jinja") / file).write_bytes(content)
    (line,) = HuggingFaceTokenizer(path=tmp_path, vocab_size=320).unusable()
    assert line.startswith(f"{tmp_path}/{message}")
    with pytest.raises(ValueError, match=re.escape(line)):
        load(tmp_path)


def test_nothing_is_said_of_a_folder_that_serves_or_is_not_here(checkpoint):
    assert HuggingFaceTokenizer(path=checkpoint, vocab_size=320).unusable() == []
    assert HuggingFaceTokenizer(path="nowhere", vocab_size=320).unusable() == [], "missing() says so"


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_missing_file_is_named(tmp_path, file):
    write(tmp_path, file="chat_template.jinja")
    (tmp_path / file).unlink()
    (line,) = HuggingFaceTokenizer(path=tmp_path, vocab_size=320).missing()
    assert line.startswith(f"file {file} ")
    assert line.endswith(f"(in HuggingFaceTokenizer.path = {tmp_path}, the folder of a checkpoint with a chat template)")
    with pytest.raises(ValueError, match=re.escape(line)):
        load(tmp_path)


def test_a_template_may_stand_in_either_place(tmp_path):
    write(tmp_path, [{"name": "tool_use", "template": "{{ no }}"}])
    (line,) = HuggingFaceTokenizer(path=tmp_path, vocab_size=320).missing()
    assert line.startswith("file chat_template.jinja or chat_template in tokenizer_config.json (")


@pytest.mark.parametrize("text", ["{", "[]", '"text"'])
def test_settings_that_cannot_be_read_are_named(tmp_path, text):
    (write(tmp_path) / "tokenizer_config.json").write_text(text)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json"):
        HuggingFaceTokenizer(path=tmp_path, vocab_size=320).missing()


def test_settings_that_do_not_fit_the_folder_are_refused(tmp_path, checkpoint):
    size = 1 + max(json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"].values())
    HuggingFaceTokenizer(path=checkpoint, vocab_size=size).build()
    with pytest.raises(
        ValueError, match=f"the tokenizer has {size} ids, more than its vocab_size, {size - 1}; set that to the model"
    ):
        HuggingFaceTokenizer(path=checkpoint, vocab_size=size - 1).build()
    with pytest.raises(ValueError, match=r"has no eos_token; set HuggingFaceTokenizer.stop_token"):
        load(write(tmp_path, eos_token=None))


def test_the_folder_is_missing_or_here(checkpoint):
    assert HuggingFaceTokenizer(path=checkpoint, vocab_size=320).missing() == []
    (line,) = HuggingFaceTokenizer(path="nowhere", vocab_size=320).missing()
    assert line.startswith("folder nowhere (HuggingFaceTokenizer.path")


def test_loading_imports_neither_torch_nor_transformers(checkpoint):
    code = (
        "import sys; from t1x.text.huggingface import HuggingFaceTokenizer as T\n"
        "before = {'tokenizers', 'jinja2'} & set(sys.modules)\n"
        f"T(path={str(checkpoint)!r}, vocab_size=320).build(); print(before, set(sys.modules) & {{'torch', 'transformers'}})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set() set()"
