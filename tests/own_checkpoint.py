"""The tokenizer of a checkpoint's folder, written for tests."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|pad|>", "<|open|>", "<|close|>"]
TEMPLATE = """{%- if tools %}{{- raise_exception('no tools here') }}{%- endif %}
{%- for message in messages %}
    {%- if message.tool_calls %}{{- raise_exception('no calls here') }}{%- endif %}
    {%- if message.role == 'system' %}{%- continue %}{%- endif %}
    {{- '<|open|>' + ('user' if message.role == 'tool' else message.role) + '\\n' }}
    {%- if message.role == 'tool' %}{{- 'output:\\n' + message.content }}{%- else %}{{- message.content }}{%- endif %}
    {{- eos_token + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|open|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- 'no thoughts\\n' }}{%- endif %}
{%- endif %}"""


def write(folder: Path, template: str = TEMPLATE, file: str = "tokenizer_config.json", **settings: object) -> Path:
    """A checkpoint's tokenizer: byte-level BPE that was trained here, with a template of our own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["list the files of a folder and count their lines", "output: user assistant thoughts"], trainer)
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": {"content": "<|close|>"}, "pad_token": "<|pad|>", **settings}
    if file == "tokenizer_config.json":
        settings["chat_template"] = template
    else:
        (folder / file).write_text(template)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
