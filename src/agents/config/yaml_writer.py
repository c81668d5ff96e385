"""Writes plain values as YAML, which reads back as what was written."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

_NEXT_LINE = "\x85"
"""PyYAML writes this line break as it is, and reads it as a space."""


def to_yaml(
    values: Mapping[str, Any] | Sequence[Any], *, sort_keys: bool = False, width: int = 80
) -> str:
    """The values as YAML, with the characters as they are where that can be read."""
    text: str = yaml.safe_dump(values, sort_keys=sort_keys, width=width, allow_unicode=True)
    if _NEXT_LINE in text:
        text = yaml.safe_dump(values, sort_keys=sort_keys, width=width)
    return text
