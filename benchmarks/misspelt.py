"""Questions as people type them: with slips, and with nicknames in place of names."""

import random
import re
from collections.abc import Sequence

from locomo import Conversation

from tiermem.rules.words import FUNCTION_WORDS

_LEAST = 4
"""Shorter words get no slip."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def questions_of(
    conversations: Sequence[Conversation], share: float, nicknames: bool
) -> list[Conversation]:
    """The conversations with such questions; the same question gets the same slips every time."""
    result = []
    for each in conversations:
        names = {name for turn in each.turns for name in turn.speaker.split()}
        questions = [
            question._replace(text=typed(question.text, share, names if nicknames else (), names))
            for question in each.questions
        ]
        result.append(each._replace(questions=questions))
    return result


def typed(
    text: str, share: float, shortened: Sequence[str] | set[str] = (), kept: set[str] = frozenset()
) -> str:
    """A text in which a share of the words that say something has a slip.

    Names that are to be ``shortened`` become nicknames; names that are ``kept`` get no slip.
    """
    rng = random.Random(text)
    pieces = []
    for piece in re.split(r"(\W+)", text):
        if piece in shortened:
            piece = nickname(piece)
        elif piece not in kept and _may_slip(piece) and rng.random() < share:
            piece = _slip(piece, rng)
        pieces.append(piece)
    return "".join(pieces)


def nickname(name: str) -> str:
    """What a name may be shortened to.

    >>> [nickname(name) for name in ("Caroline", "Tim", "Nate")]
    ['Caro', 'Timmy', 'Nat']
    """
    if len(name) > 4:
        return name[:4]
    return name[:-1] if name[-1] in "aeiouy" else f"{name}{name[-1]}y"


def _may_slip(word: str) -> bool:
    return len(word) >= _LEAST and word.isalpha() and word.lower() not in FUNCTION_WORDS


def _slip(word: str, rng: random.Random) -> str:
    """The word with one letter swapped with the next, left out, doubled or another one."""
    at = rng.randrange(1, len(word) - 1)
    return word[:at] + rng.choice(
        (
            word[at + 1] + word[at] + word[at + 2 :],
            word[at + 1 :],
            word[at] + word[at:],
            rng.choice(_LETTERS) + word[at + 1 :],
        )
    )
