"""When two words are one, spelled otherwise: a slip of the hand, or a nickname.

Of five misspelt words, four differ from what was meant by one letter more, less or other, or by two
letters swapped (Damerau, 1964); and few by their first letter.
"""

from typing import NamedTuple

_LEAST = 5
"""A shorter word has too many neighbours that are words, too."""
_LONG = 8
"""Two slips are allowed in a word of so many letters."""
_CALENDAR = frozenset(
    {"jan", "feb", "mar", "apr", "april", "may", "jun", "june", "jul", "july", "aug", "august"}
    | {"sep", "sept", "oct", "nov", "dec", "mon", "tue", "tues", "wed", "thu", "thur", "thurs"}
    | {"fri", "sat", "sun"}
)
"""What stands for a month or a day, and is no nickname."""


class Reading(NamedTuple):
    """A word of a query, and the word of the agent's memories that it is read as."""

    written: str
    meant: str

    def __str__(self) -> str:
        return f"read “{self.written}” as “{self.meant}”"


def slips_allowed(word: str) -> int:
    """How many slips may lie between a word and what was meant by it."""
    return 0 if len(word) < _LEAST else 1 if len(word) < _LONG else 2


def slips(word: str, other: str, most: int) -> int:
    """How many letters were changed, left out, added or swapped with the next; ``most + 1``: more.

    >>> slips("hotle", "hotel", 1), slips("hotl", "hotel", 1), slips("house", "mouses", 1)
    (1, 1, 2)
    """
    if abs(len(word) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        now = [row]
        for column, its in enumerate(other, 1):
            least = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != its))
            is_swap = row > 1 < column and letter == other[column - 2] and its == word[row - 2]
            now.append(min(least, before[column - 2] + 1) if is_swap else least)
        if min(now) > most:
            return most + 1
        before, last = last, now
    return min(last[-1], most + 1)


def may_be_nickname(word: str) -> bool:
    """Whether a word may stand for a name: ``Caro``, and not ``May``."""
    return len(word) > 1 and word.isalpha() and word.casefold() not in _CALENDAR


def is_of_name(word: str, name: str) -> bool:
    """Whether one of a nickname and a name begins with the other, both without capitals.

    >>> is_of_name("caro", "caroline"), is_of_name("johnny", "john"), is_of_name("tom", "tim")
    (True, True, False)
    """
    return min(len(word), len(name)) > 1 and (word.startswith(name) or name.startswith(word))
