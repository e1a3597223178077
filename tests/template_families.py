"""Chat templates that were written for tests after what families of models do; each has special tokens of its own."""

from typing import Any

CHATML = {
    "special": ["<|im_start|>", "<|im_end|>"],
    "stop": "<|im_end|>",
    # reasoning stays behind the last message that a person wrote; tools speak within a user message
    "template": """{%- set ns = namespace(last=messages | length - 1, looking=true) %}
{%- for m in messages | reverse %}
    {%- set at = messages | length - 1 - loop.index0 %}
    {%- if ns.looking and m.role == 'user' and not m.content.startswith('<tool_response>') %}
        {%- set ns.looking = false %}{% set ns.last = at %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- if m.role in ('user', 'system') %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
    {%- elif m.role == 'assistant' %}
        {%- set reasoning, said = '', m.content %}
        {%- if '</think>' in said %}
            {%- set reasoning = said.split('</think>')[0].split('<think>')[-1].strip('\\n') %}
            {%- set said = said.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<think>\\n' + reasoning + '\\n</think>\\n\\n' }}
        {%- endif %}
        {{- said }}
        {%- for call in m.tool_calls or [] %}{{- '\\n<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' }}{%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif m.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}""",
}

FAMILIES: dict[str, dict[str, Any]] = {
    "chatml": CHATML,
    "chatml_thinking": {**CHATML, "fields": {"thinking": True}},
    "chatml_plain": {
        "special": ["<|im_start|>", "<|im_end|>"],
        "stop": "<|im_end|>",
        # a system message where there is none; any role
        "template": """{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}
{{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}
{{- '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    },
    "headers_with_date": {
        "special": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"],
        "stop": "<|eot_id|>",
        "settings": {"bos_token": "<|begin_of_text|>"},
        # a clock where there is one, contents trimmed, tools speak as ipython, calls alone in a message
        "template": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now('%d %b %Y') %}
    {%- else %}{%- set date_string = '26 Jul 2024' %}{%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}{%- set told = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set told = '' %}{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + date_string + '\\n\\n' + told + '<|eot_id|>' }}
{%- for m in messages %}
    {%- if not (m.role == 'ipython' or m.role == 'tool' or 'tool_calls' in m) %}
        {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in m %}
        {%- if not m.tool_calls | length == 1 %}{{- raise_exception('one call at a time') }}{%- endif %}
        {%- set call = m.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + call.name + '", "parameters": ' + call.arguments | tojson + '}' + '<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {%- if m.content is mapping or m.content is iterable %}{{- m.content | tojson }}{%- else %}{{- m.content }}{%- endif %}
        {{- '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}""",
    },
    "inst": {
        "special": ["<s>", "</s>"],
        "stop": "</s>",
        "settings": {"bos_token": "<s>"},
        # [INST] is text, no messages of tools, roles alternate
        "template": """{{ bos_token }}{% for m in messages %}
{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
{%- if m['role'] == 'user' %}{{ ' [INST] ' + m['content'] + ' [/INST]' }}
{%- elif m['role'] == 'assistant' %}{{ ' ' + m['content'] + eos_token }}
{%- else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}""",
    },
    "inst_with_tools": {
        "special": ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"],
        "stop": "</s>",
        "settings": {"bos_token": "<s>"},
        # results of tools have ids of nine characters, and follow a message with calls
        "template": """{{- bos_token }}
{%- for m in messages %}
    {%- if m['role'] == 'user' %}{{- '[INST] ' + m['content'] + '[/INST]' }}
    {%- elif m['tool_calls'] is defined and m['tool_calls'] is not none %}
        {{- '[TOOL_CALLS] [' }}
        {%- for call in m.tool_calls %}
            {%- set out = call.function | tojson %}{{- out[:-1] }}
            {%- if call.id is not defined or call.id | length != 9 %}{{- raise_exception('ids have 9 characters') }}{%- endif %}
            {{- ', "id": "' + call.id + '"}' }}
        {%- endfor %}
        {{- ']' + eos_token }}
    {%- elif m['role'] == 'assistant' %}{{- ' ' + m['content'] | trim + eos_token }}
    {%- elif m['role'] == 'tool' %}
        {%- if m.tool_call_id is not defined or m.tool_call_id | length != 9 %}
            {{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + m.content | string + ', "call_id": "' + m.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}{{- raise_exception('Only user and assistant roles are supported') }}
    {%- endif %}
{%- endfor %}""",
    },
    "model_turns": {
        "special": ["<bos>", "<start_of_turn>", "<end_of_turn>"],
        "stop": "<end_of_turn>",
        "settings": {"bos_token": "<bos>"},
        # the assistant is the model, no system, roles alternate, contents trimmed
        "template": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for m in messages %}
{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}
{%- set role = 'model' if m['role'] == 'assistant' else m['role'] %}
{{- '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}""",
    },
    "wide_bars": {
        "special": [
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜tool▁outputs▁begin｜>",
            "<｜tool▁outputs▁end｜>",
            "<｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜>",
        ],
        "stop": "<｜end▁of▁sentence｜>",
        "settings": {"bos_token": "<｜begin▁of▁sentence｜>"},
        # reasoning is gone from all history; what tools put out is in a block of its own, behind which the assistant speaks
        "template": """{%- set ns = namespace(is_tool=false) %}{{- bos_token }}
{%- for m in messages %}
    {%- if m['role'] == 'user' %}{%- set ns.is_tool = false %}{{- '<｜User｜>' + m['content'] }}{%- endif %}
    {%- if m['role'] == 'assistant' and m['content'] is not none %}
        {%- if ns.is_tool %}{{- '<｜tool▁outputs▁end｜>' }}{%- set ns.is_tool = false %}
        {%- else %}{{- '<｜Assistant｜>' }}{%- endif %}
        {%- set said = m['content'] %}
        {%- if '</think>' in said %}{%- set said = said.split('</think>')[-1] %}{%- endif %}
        {{- said + '<｜end▁of▁sentence｜>' }}
    {%- endif %}
    {%- if m['role'] == 'tool' %}
        {%- if not ns.is_tool %}{{- '<｜tool▁outputs▁begin｜>' }}{%- set ns.is_tool = true %}{%- endif %}
        {{- '<｜tool▁output▁begin｜>' + m['content'] + '<｜tool▁output▁end｜>' }}
    {%- endif %}
{%- endfor %}
{%- if ns.is_tool %}{{- '<｜tool▁outputs▁end｜>' }}{%- endif %}
{%- if add_generation_prompt and not ns.is_tool %}{{- '<｜Assistant｜><think>\\n' }}{%- endif %}""",
    },
    "tag_names": {
        "special": ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"],
        "stop": "<|end|>",
        # a line break behind every tag; behind the last answer the text ends
        "template": """{% for m in messages %}{{ '<|' + m['role'] + '|>' + '\\n' + m['content'] + '<|end|>' + '\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ '<|endoftext|>' }}{% endif %}""",
    },
    "users_stop": {
        "special": ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>"],
        "stop": "<|user|>",
        # no token ends an answer but the next speaker's
        "template": """[gMASK]<sop>
{%- for m in messages %}
{%- set reasoning, said = '', m.content %}
{%- if m.role == 'tool' %}{{ '<|observation|>\\n' + m.content }}
{%- elif m.role == 'assistant' %}
    {%- if '</think>' in said %}{%- set said = said.split('</think>')[-1].strip() %}{%- endif %}
    {{- '<|assistant|>\\n<think></think>\\n' + said }}
{%- else %}{{ '<|' + m.role + '|>\\n' + m.content }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}
{%- if enable_thinking is defined and not enable_thinking %}{{ '\\n<think></think>' }}{% endif %}{% endif %}""",
    },
    "channels": {
        "special": ["<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>", "<|call|>"],
        "stop": "<|return|>",
        "fields": {"date": "2025-01-31"},
        # the last answer ends otherwise than those before; reasoning has a channel of its own, and isn't kept
        "template": """{{- '<|start|>system<|message|>Current date: ' + strftime_now('%Y-%m-%d') + '<|end|>' }}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {%- if '<|channel|>' in m.content %}{{- raise_exception('contents have no channel tags') }}{%- endif %}
        {%- generation %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + m.content }}
        {%- if loop.last and not add_generation_prompt %}{{- '<|return|>' }}{%- else %}{{- '<|end|>' }}{%- endif %}
        {%- endgeneration %}
    {%- elif m.role == 'tool' %}
        {{- '<|start|>functions.shell to=assistant<|channel|>commentary<|message|>' + m.content | tojson + '<|end|>' }}
    {%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}""",
    },
    "chunks": {
        "special": ["<|im_start|>", "<|im_end|>"],
        "stop": "<|im_end|>",
        # contents are lists of parts, as of models that see images
        "template": """{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}
{%- for part in m.content %}{% if part.type == 'image' %}{{ '<image>' }}
{%- elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}
{{- '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    },
    "needs_a_system": {
        "special": ["<|im_start|>", "<|im_end|>"],
        "stop": "<|im_end|>",
        "template": """{%- if messages[0].role != 'system' %}{{ raise_exception('A system message comes first') }}{% endif %}
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' }}{% endfor %}""",
    },
    "legacy": {
        "special": ["<s>", "</s>"],
        "stop": "</s>",
        "settings": {"bos_token": "<s>"},
        # words only
        "template": """{{ bos_token }}{% for m in messages %}
{%- if m.role == 'user' %}{{ 'USER: ' + m.content.strip() + ' ' }}
{%- elif m.role == 'assistant' %}{{ 'ASSISTANT: ' + m.content.strip() + eos_token }}
{%- elif m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}""",
    },
}
