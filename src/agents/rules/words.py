"""The words of a text, as a keyword index knows them.

Words are compared without case and accents, and by their stem where a stemmer is given. An
identifier such as ``agent_X``, ``$50K`` or ``ERR-42`` counts as a whole and by its parts. Scripts
that put no blanks between words (Chinese, Japanese, Thai and others) count by character and by
pairs of characters, which is how their words are found without a dictionary.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

Stem = Callable[[str], str]

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a about after again all also am an and any are aren't as at be because been before being
        between both but by can can't could did didn't do does doesn't doing don't down during
        each else ever every few for from further get gets getting go goes going got had has
        hasn't have haven't having he he's her here hers him his how i i'd i'll i'm i've if in
        into is isn't it it's its just let's like made make makes me more most much my no nor not
        now of off on once one only or other our out over own same say says she she's should so
        some such tell than that that's the their them then there there's these they they're
        they've this those through to too under until up upon us very was wasn't we we're we've
        were weren't what what's when where where's which while who who's whom whose why will with
        won't would you you'd you'll you're you've your
        """,
    )
)
"""English words that say little in any text, also if an agent's few memories have none of them. The
frequency of a word shows how little it says only once there are many memories."""

# Han, kana, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f"
    "\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
# Vowel signs and the like are part of a word, and \w leaves them out.
_MARKS = "\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff"
_LETTER = rf"(?:[^\W_]|[{_MARKS}{_UNSPACED}])"
_WHOLE = rf"[$€£¥#@]?(?:{_LETTER}|_)+(?:[-_./:@&+]+(?:{_LETTER}|_)+)*%?"
_PART = rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}]){_LETTER})+"
# й and ў are letters, and a stemmer knows endings by them.
_ACCENTS = re.compile("(?<![иИуУ])\u0306|[\u0300-\u0305\u0307-\u036f]")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?:[sS]\b)?")
_ELIDED = re.compile(r"(?<=\w)['’]([^\W\d_]{3,})")
_LONGEST = 64
"""A longer piece, such as a base64 text, is found by what it starts with."""


class _Patterns(NamedTuple):
    """How words are found in a text."""

    whole: re.Pattern[str]
    """A word or an identifier."""
    part: re.Pattern[str]
    """A word of an identifier, or a run of letters without blanks between words."""
    unspaced: re.Pattern[str]
    """A letter of a script that puts no blanks between words."""


_PLAIN = _Patterns(
    re.compile(r"[$#@]?\w+(?:[-_./:@&+]+\w+)*%?", re.ASCII),
    re.compile(r"[^\W_]+", re.ASCII),
    re.compile(r"(?!)"),
)
"""What the patterns of all scripts are for a text in ASCII; they take 20 ms to compile."""


def _of_all_scripts() -> _Patterns:
    """The patterns for any text; :mod:`re` keeps them."""
    return _Patterns(re.compile(_WHOLE), re.compile(_PART), re.compile(f"[{_UNSPACED}]"))


class Words(NamedTuple):
    """The words of a piece of text without blanks."""

    terms: tuple[str, ...]
    """The terms that find the piece."""
    spoken: tuple[tuple[str, str], ...]
    """The words as they are written, each with its term; identifiers by their parts."""


def words_of(piece: str, stem: Stem | None = None) -> Words:
    """The words of a text, which may have blanks; no identifier reaches over a blank.

    >>> words_of("Agent_X,").terms
    ('agent_x', 'agent', 'x')
    """
    terms: list[str] = []
    spoken: list[tuple[str, str]] = []
    text = piece if piece.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFKC", piece))
    found = _PLAIN if text.isascii() else _of_all_scripts()
    for whole in found.whole.findall(_APOSTROPHE.sub("", text)):
        parts = found.part.findall(whole)
        if parts != [whole] and parts and not found.unspaced.search(whole):
            terms.append(_bare(whole).casefold()[:_LONGEST])
        for part in parts:
            if found.unspaced.match(part):
                letters = _letters(part)
                pairs = [first + second for first, second in pairwise(letters)]
                terms += [*letters, *pairs]
                spoken.append((part, pairs[0] if pairs else part))
                continue
            term = _term(part, stem)
            terms.append(term)
            spoken.append((part, term))
    # l'école is found by école as well.
    terms += [_term(tail, stem) for tail in _ELIDED.findall(text)]
    return Words(tuple(terms), tuple(spoken))


def _term(word: str, stem: Stem | None) -> str:
    plain = _bare(word).casefold()[:_LONGEST]
    return stem(plain) if stem is not None and plain.isalpha() else plain


def _bare(text: str) -> str:
    """A text without accents."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _letters(run: str) -> list[str]:
    """The characters of a text, each with the marks that belong to it."""
    letters: list[str] = []
    for letter in run:
        if letters and unicodedata.category(letter)[0] == "M":
            letters[-1] += letter
        else:
            letters.append(letter)
    return letters


def normal_text(text: str) -> str:
    """The text with single blanks and without capitals; equal for texts that say the same.

    >>> normal_text(" Bob\\n likes  FISH ")
    'bob likes fish'
    """
    return " ".join(text.casefold().split())
