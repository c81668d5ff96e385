"""When two memories are the same: equal texts, whatever their blanks and capitals."""


def normal_text(text: str) -> str:
    """The text with single blanks and without capitals; equal for texts that say the same.

    >>> normal_text(" Bob\\n likes  FISH ")
    'bob likes fish'
    """
    return " ".join(text.casefold().split())


def outlives(end: int | None, other: int | None) -> bool:
    """Whether a memory that expires in the tick ``end`` lives as long as one with ``other``.

    None stands for a memory that never expires.
    """
    return end is None or (other is not None and end >= other)
