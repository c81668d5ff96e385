"""The texts of other libraries' errors, without passwords and keys."""

import os
import re
from collections.abc import Iterator, Mapping

from ...config.settings import is_secret, passwords_in

# A key as services show it, a key in a header, a password in an address or in a list of options.
_SHOWN = re.compile(
    r"\b(?:sk|gsk|xai)-[\w*.-]{4,}|(?<=Bearer )[^\s,;'\"]+|(?<=://)[^/\s@]+(?=@)"
    r"|(?<=password=)[^\s&]+"
)
_LEAST, _LEAST_PART = 6, 4
"""A secret of fewer characters is not looked for, nor is a part of one."""


def without_secrets(text: str, config: Mapping[str, object]) -> str:
    """The text without the secrets of a provider's config and of the environment."""
    own = set(_secrets(config))
    # A library that cuts an address into parts shows a part of a password with @ or / in it.
    parts = {part for each in own for part in re.split(r"[@:/?#&=\s]", each)}
    hidden = {each for each in (*own, *_secrets(os.environ)) if len(each) >= _LEAST}
    hidden |= {part for part in parts if len(part) >= _LEAST_PART}
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _SHOWN.sub("***", text)


def _secrets(values: object, named: bool = False) -> Iterator[str]:
    """The texts, at any depth, that have the name of a secret, and passwords in addresses."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _secrets(value, named or is_secret(str(key)))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _secrets(value, named)
    elif isinstance(values, str):
        yield from [values] if named else passwords_in(values)
