"""What templates see, against transformers' `apply_chat_template`."""

import datetime
import functools

import jinja2
import pytest
import transformers
from hypothesis import given
from hypothesis import strategies as st
from own_checkpoint import write
from own_templates import TEMPLATES, byte_level
from promises import promise

from t1x.text.huggingface import HuggingFaceTokenizer
from t1x.text.rendering import ChatTemplate

MORE = {
    "generation": """{% for m in messages %}
    {% set said = m.content %}
    {% if m.role == 'assistant' %}
        {% generation %}
        {% set said = said | upper %}
    {{ said }}<|end|>
        {% endgeneration %}
    {{- said }}{% generation -%} {{ loop.index }} {%- endgeneration %}
    {% else %}{{ '<|' + m.role + '|>' + said }}{% endif %}
{% endfor %}""",
    "loop_controls": """{% for m in messages %}{% if m.role == 'tool' %}{% continue %}{% endif %}{{ m.content }}
{%- if loop.index > 2 %}{% break %}{% endif %}{% endfor %}""",
    "json": """{{ messages | tojson }}{{ messages | tojson(indent=2) }}{{ messages[0] | tojson(sort_keys=true) }}
{{ messages | tojson(True, 1, (',', ' : '), True) }}
{{ {'b': 1, 'a': '<é>'} | tojson(ensure_ascii=true, separators=(',', ':')) }}""",
    "given": """{{ tools is none }}{{ documents is none }}{{ tools is defined }}{{ eos_token }}{{ bos_token }}
{{ pad_token is defined }}{{ add_generation_prompt }}{{ enable_thinking is defined }}{{ messages[-1].tool_calls is defined }}
{{ continue_final_message }}""",
    "state": """{% set ns = namespace(n=0) %}{% macro shown(m) %}[{{ m.role }}:{{ m.content | trim }}]{% endmacro %}
{% for m in messages | reverse %}{% set ns.n = ns.n + m.content | length %}{{ shown(m) }}{% endfor %}{{ ns.n }}
{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | first | default('none') }}""",
}
TEXTS = st.text(max_size=8) | st.sampled_from(["<é>\n ", "{{ 1 }}", "</think>x", "\u2028"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": TEXTS}), min_size=1, max_size=5
)


@functools.cache
def library() -> transformers.PreTrainedTokenizerFast:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="<|end|>")


@promise
@given(st.sampled_from(sorted(TEMPLATES | MORE)), MESSAGES, st.booleans())
def test_a_conversation_has_the_text_that_the_library_gives_it(name, messages, prompted):
    source = (TEMPLATES | MORE)[name]
    ours = ChatTemplate(source, {"eos_token": "<|end|>"})
    try:
        theirs = library().apply_chat_template(messages, chat_template=source, tokenize=False, add_generation_prompt=prompted)
    except jinja2.TemplateError as error:
        with pytest.raises(jinja2.TemplateError, match=f"^{error}$"):
            ours.render(messages, generation_prompt=prompted)
    else:
        assert ours.render(messages, generation_prompt=prompted) == theirs


DATED = """{{- '<|pad|>' + strftime_now('%d %b %Y') + ' %a'[:0] + '<|close|>' }}
{%- for m in messages %}{{ '<|open|>' + m.role + m.content + '<|close|>' }}{% endfor %}"""
GUARDED = "{% set now = strftime_now('%d %b %Y') if strftime_now is defined else '26 Jul 2024' %}" + DATED.replace(
    "strftime_now('%d %b %Y')", "now"
)


def test_the_date_is_the_declared_one(tmp_path):
    chat = HuggingFaceTokenizer(path=write(tmp_path, DATED), vocab_size=320, date="2025-01-31").build()
    assert chat.decode(chat.first_prompt("x")) == "31 Jan 2025userx"


def test_a_date_is_one_setting_however_it_is_written():
    one, other = (HuggingFaceTokenizer(path="x", vocab_size=320, date=date) for date in ("20250131", "2025-01-31"))
    assert one == other
    assert one.date == "2025-01-31"


def test_the_date_of_today_is_what_the_library_writes():
    def ours() -> str:
        return ChatTemplate("{{ strftime_now('%d %b %Y, %A') }}", {}, datetime.date.today()).render([], generation_prompt=False)

    before = ours()
    theirs = library().apply_chat_template(
        [{"role": "user", "content": ""}], chat_template="{{ strftime_now('%d %b %Y, %A') }}", tokenize=False
    )
    assert theirs in (before, ours())


def test_a_template_that_asks_for_a_date_is_told_to_have_one_declared(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer_config.json: .*today's date.*set HuggingFaceTokenizer.date .*'2025-01-31'"):
        HuggingFaceTokenizer(path=write(tmp_path, DATED), vocab_size=320).build()


@pytest.mark.parametrize("date", ["today", "31.01.2025", "2025-02-30", ""])
def test_what_is_no_day_is_told_what_one_looks_like(date):
    with pytest.raises(ValueError, match="should be a day of the calendar as YYYY-MM-DD, such as '2025-01-31'"):
        HuggingFaceTokenizer(path="x", vocab_size=320, date=date)


def test_a_template_with_a_date_of_its_own_keeps_it_unless_another_is_declared(tmp_path):
    write(tmp_path, GUARDED)
    said = [HuggingFaceTokenizer(path=tmp_path, vocab_size=320, date=date).build() for date in (None, "2025-02-01")]
    assert [chat.decode(chat.first_prompt("x")) for chat in said] == ["26 Jul 2024userx", "01 Feb 2025userx"]


NAMING = """{{- bos_token + unk_token + (sep_token or '') + (image_token or '') + (voice_token or '') + (add_bos_token | string) }}
{%- for m in messages %}{{ '<|open|>' + m.role + m.content + eos_token }}{% endfor %}"""


@pytest.mark.parametrize("legacy", [False, True])
def test_files_are_read_as_the_library_reads_them(tmp_path, legacy):
    """Special tokens have their names, those of the model's own too; a template's own file counts first."""
    names = {
        "bos_token": "<|open|>",
        "unk_token": "?",
        "image_token": "<|pad|>",
        "extra_special_tokens": {"voice_token": "<|open|>"},
    }
    names |= {"add_bos_token": True, "sep_token": None}
    write(
        tmp_path, NAMING, eos_token="<|pad|>" if legacy else "<|close|>", **({} if legacy else names | {"added_tokens_decoder": {}})
    )
    # the library reads the older file only where the settings list no tokens
    (tmp_path / "special_tokens_map.json").write_text(
        '{"eos_token": {"content": "<|close|>"}, "bos_token": "a", "unk_token": "?"}' if legacy else '{"eos_token": "<|open|>"}'
    )
    for template in (NAMING, "own file" + NAMING):
        if template != NAMING:
            (tmp_path / "chat_template.jinja").write_text(template)
        reference = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
        text = reference.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
        chat = HuggingFaceTokenizer(path=tmp_path, vocab_size=320).build()
        rendered = chat.prompt_renderer()([("user", "x")]).encoded.text
        assert rendered == text
        assert text.endswith("userx<|close|>")
        assert text.startswith("own file") == (template != NAMING)


@pytest.mark.parametrize(
    "escape",
    ["messages.append(1)", "messages[0].pop('role')", "''.__class__.mro()", "render.__globals__.keys()", "messages[0].update({})"],
)
def test_a_template_reaches_and_changes_nothing_outside(escape):
    """Whatever of the same name was allowed before it, and the second time too."""

    def render() -> str:
        return "text"

    allowed = "{{ render() }}{{ messages[0].role }}{{ ''.count('a') }}{{ messages.index(messages[0]) }}{{ messages[0].get('pop') }}"
    template = ChatTemplate(f"{allowed}{{{{ {escape} }}}}", {"render": render})
    messages = [{"role": "user", "content": "x"}]
    for _ in range(2):
        with pytest.raises(jinja2.TemplateError, match="unsafe"):
            template.render(messages, generation_prompt=True)
    assert messages == [{"role": "user", "content": "x"}]
