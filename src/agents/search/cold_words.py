"""Which texts of cold memories, which no index has, have the words of a query."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from ..memory.records import NEVER
from ..rules.ranking import Measure
from ..rules.words import ascii_of, folded, root
from ..storage.columns.words import Vocabulary

Having = Callable[[Sequence[str], int], AbstractContextManager[Iterable[tuple[int, str]]]]
"""Called with the roots of terms and a number; gives texts with smaller numbers that may have one
of the roots, and all that have one. The newest text comes first, and has the largest number."""

_WORDS = 2
"""By how many words of a query memories are found that its vector does not find."""
_MOST_BY_WORD = 100
"""If more memories have a word, the newest of them will do: it is not a name or number."""
_MOST_LIKELY = 200
"""If more texts have the root of a word, the newest of them are looked at."""
_MOST_ROOTS = 8
"""How many words are looked for, those that the fewest resident memories have."""


def with_words(
    vocabulary: Vocabulary, by: Measure, query: str, having: Having, *, alone: bool
) -> list[int]:
    """The numbers of the texts, oldest first, that have a word of the query which says something.

    A query that also has a vector finds by it what is like the query: then the two words that are
    rarest among all memories count, and the newest texts of each. ``alone``, all words count.
    """
    asked = vocabulary.query(query)
    names = [
        asked.names[place]
        for place in by.frequencies.argsort(kind="stable").tolist()
        if not asked.common[place]
    ]
    roots = list(dict.fromkeys(map(root, names if alone else names[:_MOST_ROOTS])))
    likely = _newest(having, roots, None if alone else _MOST_LIKELY)
    numbers = np.fromiter(likely, np.int64, len(likely))
    found = vocabulary.count(query, list(likely.values()))
    if alone:
        has = ~asked.common[found.terms]
        return sorted(set(numbers[found.memories[has]].tolist()))
    here = np.bincount(found.terms, minlength=found.asked)
    places = np.flatnonzero((here > 0) & ~asked.common)
    rarest = places[np.argsort((here + by.frequencies)[places], kind="stable")][:_WORDS]
    newest = [np.sort(numbers[found.memories[found.terms == each]]) for each in rarest]
    return sorted({number for each in newest for number in each[-_MOST_BY_WORD:].tolist()})


def _newest(having: Having, roots: Sequence[str], most: int | None) -> dict[int, str]:
    """The newest ``most`` texts that have each root; all with None."""
    found: dict[int, str] = {}
    fold = ascii_of if all(map(str.isascii, roots)) else folded
    left, before = dict.fromkeys(roots, -1 if most is None else most), NEVER
    while left:
        asked = list(left)
        with having(asked, before) as texts:
            for number, text in texts:
                plain = fold(text)
                has = [each for each in asked if each in plain]
                if has:
                    found[number] = text
                for each in has:
                    left[each] -= 1
                    if not left[each]:
                        del left[each]
                if len(left) < len(asked):  # the rest is looked for alone, which is faster
                    before = number
                    break
            else:
                break
    return found
