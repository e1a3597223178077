"""Tokenizers and chat templates that were written for tests, each with what real ones are known for."""

from importlib import resources

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from t1x.text.chat import TemplatedTokenizer

SPECIAL = ["<|pad|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>"]
"""Those of the bundled tokenizer; the others here have them too."""


def byte_level() -> Tokenizer:
    """Byte-level BPE, with a post-processor that moves offsets behind white space."""
    tokenizer = Tokenizer.from_str((resources.files("t1x.text") / "data" / "tokenizer.json").read_text())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def metaspace(scheme: str) -> Tokenizer:
    """Words with their white space in front, the rest as bytes; `scheme` says where white space is added in front of a text."""
    words = [word for text in ("ls", "cat", "echo", "a", "ok", "the") for word in (f"▁{text}", text)]
    letters = ["▁", *"abcdefghijklmnopqrstuvwxyz0123456789-./"]
    vocabulary = [("<unk>", 0.0), *((each, -2.0) for each in words), *((each, -4.0) for each in letters)]
    vocabulary += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, 0, True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(parts if scheme == "never" else [*parts, decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def prepending() -> Tokenizer:
    """The older way: a normalizer puts white space in front of every text between special tokens."""
    tokenizer = metaspace("always")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    return tokenizer


TOKENIZERS = {
    "byte_level": byte_level,
    "metaspace_always": lambda: metaspace("always"),
    "metaspace_first": lambda: metaspace("first"),
    "metaspace_never": lambda: metaspace("never"),
    "prepending": prepending,
}

TEMPLATES = {
    # a line break after every stop token; roles are text
    "line_break": """{%- for m in messages %}{{ '<|user|>' + m.role + '\n' + m.content + '<|end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|user|>assistant\n' }}{% endif %}""",
    # a beginning-of-sequence token, once; white space around contents
    "begins_once": """{{- '<|pad|>' }}{%- for m in messages %}
{%- if m.role == 'assistant' %}{{ ' ' + m.content + '<|end|>' }}
{%- else %}{{ '<|user|> ' + m.content + ' <|assistant|>' }}{% endif %}
{%- endfor %}""",
    # an empty thinking block in prompts, gone from history
    "empty_block": """{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>\n\n</think>\n\n' }}{% endif %}""",
    # the same block is written into the history of the latest answers, which weren't asked for with it
    "block_in_history": """{%- set ns = namespace(last=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- set reasoning, content = '', m.content %}
{%- if m.role == 'assistant' and '</think>' in content %}
{%- set reasoning = content.split('</think>')[0].split('<think>')[-1].strip() %}
{%- set content = content.split('</think>')[-1].lstrip() %}
{%- endif %}
{{- '<|' + m.role + '|>' }}
{%- if m.role == 'assistant' and loop.index0 > ns.last %}{{ '<think>\n' + reasoning + '\n</think>\n\n' }}{% endif %}
{{- content + '<|end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""",
    # reasoning stays in the last answer only, whatever follows it
    "drops_reasoning": """{%- for m in messages %}<|{{ m.role }}|>
{%- if m.role == 'assistant' and '</think>' in m.content %}{{ m.content.split('</think>')[-1].strip() }}
{%- else %}{{ m.content }}{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>\n' }}{% endif %}""",
    "trims": """{%- for m in messages %}{{ '<|user|>' + m.role + '<|assistant|>\n\n' + m.content | trim + '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|user|>assistant<|assistant|>\n\n' }}{% endif %}""",
    # no messages of tools; roles alternate
    "alternates": """{%- for m in messages %}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{{- '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""",
    # an answer ends with another token where something follows
    "closes_otherwise": """{%- for m in messages %}{{ '<|' + m.role + '|>' + m.content }}
{%- if m.role == 'assistant' and loop.last %}{{ '<|end|>' }}{% else %}{{ '<|pad|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""",
    # no stop token of its own: the next message's role ends an answer
    "next_role_stops": """{%- for m in messages %}
{{- '<|end|>' if m.role == 'tool' else '<|' + m.role + '|>' }}{{ '\n' + m.content }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}""",
    # tools speak as the user, one message for those in a row; calls are written from data
    "calls": """{%- for m in messages %}
{%- if m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|user|>' }}{% endif %}
{{- '\n<response>\n' + m.content + '\n</response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|end|>\n' }}{% endif %}
{%- else %}{{ '<|' + m.role + '|>' + m.content }}
{%- for call in m.tool_calls or [] %}{{ '\n<call>' + call.function | tojson + '</call>' }}{% endfor %}{{ '<|end|>\n' }}
{%- endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""",
    "numbered": """{%- for m in messages %}{{ '<|' + m.role + '|>' }}{{ loop.index }}{{ '\n' + m.content + '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{{ messages | length + 1 }}{{ '\n' }}{% endif %}""",
}

HALVES = """{%- for m in messages %}{{ '<|' + m.role + '|><|' + m.content + '|><|end|>' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"""
"""What stands around contents are halves of special tokens."""


def build(tokenizer: str, template: str, padded: int = 0) -> TemplatedTokenizer:
    """`template` is a name or a template itself; the model's vocabulary has `padded` ids more than the tokenizer."""
    source, library = TEMPLATES.get(template, template), TOKENIZERS[tokenizer]()
    size = library.get_vocab_size() + padded
    return TemplatedTokenizer(library, source, stop_token="<|end|>", vocab_size=size)
