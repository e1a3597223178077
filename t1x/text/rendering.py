"""A chat template at work: conversations to text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment


class ChatTemplate:
    """A Jinja chat template. It may look into contents, drop and rewrite them."""

    def __init__(self, source: str, variables: Mapping[str, object]) -> None:
        """`variables` are those that the template sees beside the conversation. Raises `jinja2.TemplateError`."""
        self.source = source
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.globals.update(variables)
        environment.filters["tojson"] = _to_json
        self._template = environment.from_string(source)

    def render(self, messages: Sequence[Mapping[str, Any]], *, generation_prompt: bool) -> str:
        """Raises `jinja2.TemplateError` for a conversation that the template refuses."""
        return self._template.render(messages=messages, add_generation_prompt=generation_prompt)


def _to_json(value: object, indent: int | None = None, **options: Any) -> str:
    """As templates expect it: letters stay what they are, and nothing is escaped for a web page."""
    return json.dumps(value, ensure_ascii=False, indent=indent, **options)
