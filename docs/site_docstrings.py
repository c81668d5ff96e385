"""Docstrings as Markdown: roles become code, and examples become blocks of code."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^(?![ ]*$).*\n?)*)", re.MULTILINE)
_TREE = re.compile(r"(?:^.*\n)?(?:^.*[├└│].*\n?)+", re.MULTILINE)
"""A drawing of lines, and what it hangs from."""


def as_markdown(text: str) -> str:
    """The text of a docstring, as a page shows it."""
    text = _ROLE.sub(lambda role: f"`{role[1].removeprefix('tiermem.')}`", text)
    text = text.replace("``", "`").replace("::\n\n    ", ":\n\n    ")
    text = _TREE.sub(lambda found: f"```text\n{found[0].rstrip()}\n```\n", text)
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


class Docstrings(griffe.Extension):
    """Changes each docstring before it is shown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make Markdown of the docstring of a class, a function or an attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
