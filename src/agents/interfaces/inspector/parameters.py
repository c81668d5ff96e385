"""What a request asks for, checked; and the errors that say what is wrong with it."""

from collections.abc import Mapping
from typing import Any

from ...errors import TierMemError

_MOST_LETTERS = 10_000
_MOST_DIGITS = 15


class WrongParameter(TierMemError):
    """A parameter of a request is missing or wrong."""


class NotThere(TierMemError):
    """There is no run, agent, tick or memory like that."""


class CantTell(TierMemError):
    """What is asked for was not kept, or can't be done here."""


class Reading(Exception):
    """The answer needs ticks that are not read yet."""

    def __init__(self, done: int, of: int) -> None:
        super().__init__(f"{done} of {of} ticks are read")
        self.done = done
        self.of = of


class Parameters:
    """The parameters of a request: texts by name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def text(self, name: str, default: str | None = None) -> str:
        """A text; :class:`WrongParameter` if it is missing and has no default."""
        found = self._given.get(name, default)
        if found is None:
            raise WrongParameter(f"the parameter {name} is missing", hint="give it in the address")
        if len(found) > _MOST_LETTERS:
            raise WrongParameter(f"{name} has over {_MOST_LETTERS} letters", hint="shorten it")
        return found

    def is_given(self, name: str) -> bool:
        """Whether a parameter is there, be it empty."""
        return name in self._given

    def has(self, name: str) -> bool:
        """Whether a parameter is there, and not empty."""
        return bool(self._given.get(name))

    def whole(self, name: str, default: int | None = None, most: int | None = None) -> int:
        """A whole number from 0, up to ``most``."""
        text = self.text(name, None if default is None else str(default))
        if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
            raise WrongParameter(
                f"{name} is {text!r:.40}", hint=f"{name} is a whole number from 0 on"
            )
        number = int(text)
        return number if most is None else min(number, most)

    def one_of(self, name: str, known: Mapping[str, Any] | tuple[str, ...], default: str) -> str:
        """A text that is one of the known ones."""
        found = self.text(name, default)
        if found not in known:
            raise WrongParameter(f"{name} is {found!r:.40}", hint=f"use one of {', '.join(known)}")
        return found
