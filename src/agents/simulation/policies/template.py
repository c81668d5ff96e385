"""The template of a decision's prompt: the order of its parts, and what stands between them."""

import re
from collections.abc import Mapping
from typing import final

from ...errors import ConfigError

PARTS = ("role", "actions", "persona", "memories", "situation")
"""The parts that a template puts together, each of them once."""

DEFAULT = """\
{role}

{actions}
---
{persona}

{memories}

{situation}
"""
"""A part that changes less often stands before one that changes more often: a server that keeps the
beginning of prompts need not read it again."""

_KEY = "simulation.policy_options.template"
_PART = re.compile(r"\{(\w+)\}\n*")
_BREAK = re.compile(r"^---\n", re.MULTILINE)


@final
class Template:
    """A text with ``{role}``, ``{actions}``, ``{persona}``, ``{memories}`` and ``{situation}``.

    What stands above a line ``---`` is the message of the system; without such a line, all of it is
    the message of the user.
    """

    def __init__(self, text: str = DEFAULT) -> None:
        text = text.replace("\r\n", "\n")
        found = [each[1] for each in _PART.finditer(text)]
        for name in found:
            if name not in PARTS:
                raise ConfigError(
                    f"{_KEY}: there is no part {{{name}}}",
                    hint=f"the parts are {', '.join(f'{{{each}}}' for each in PARTS)}",
                )
            if found.count(name) > 1:
                raise ConfigError(f"{_KEY}: {{{name}}} is in it twice", hint="drop one")
        for name in PARTS:
            if name not in found:
                raise ConfigError(f"{_KEY}: {{{name}}} is missing", hint="say where it belongs")
        self._messages = [each.strip("\n") for each in _BREAK.split(text)]
        if len(self._messages) > 2:
            raise ConfigError(f"{_KEY}: it has two lines ---", hint="there is one, or none")

    def messages(self, parts: Mapping[str, str]) -> list[dict[str, str]]:
        """The messages of a prompt; the lines below an empty part go with it."""
        texts = [self._filled(each, parts) for each in self._messages]
        roles = ("system", "user") if len(texts) > 1 else ("user",)
        return [
            {"role": role, "content": text} for role, text in zip(roles, texts, strict=True) if text
        ]

    @staticmethod
    def _filled(text: str, parts: Mapping[str, str]) -> str:
        def part(found: re.Match[str]) -> str:
            own = parts[found[1]]
            return own + found[0].removeprefix(f"{{{found[1]}}}") if own else ""

        return _PART.sub(part, text)
