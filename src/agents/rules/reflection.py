"""What an agent concludes from memories by rule: an insight quotes its evidence."""

from collections.abc import Iterable, Sequence

from ..memory.records import Memory
from ..memory.sources import INSIGHT
from .words import normal_text

_UNASKED = (INSIGHT, "note")
"""Kinds that are drawn from other memories or files."""
_BEGINNING = "Together: "


def importance_of(memory: Memory, by_tier: Sequence[float]) -> float:
    """The importance that a memory was given, or else that of its tier."""
    given = memory.importance
    return by_tier[memory.tier] if given is None else given


def focal_points(memories: Sequence[Memory], by_tier: Sequence[float], most: int) -> list[Memory]:
    """The most important memories that are no evidence yet, the newest first of equals.

    A text comes once, whatever its blanks and capitals.
    """
    cited = {each for memory in memories for each in memory.evidence}
    open_to = [each for each in memories if each.kind not in _UNASKED and each.id not in cited]
    open_to.sort(key=lambda each: (-importance_of(each, by_tier), -each.sequence))
    chosen: dict[str, Memory] = {}
    for memory in open_to:
        chosen.setdefault(normal_text(memory.content), memory)
        if len(chosen) == most:
            break
    return list(chosen.values())


def quotation(found: Iterable[Memory], most_bytes: int) -> tuple[str, list[Memory]] | None:
    """A text that quotes memories, best first, and the memories that it quotes; at least two.

    A text comes once. Memories that make it longer than ``most_bytes`` are left out.
    """
    text, quoted, known = "", list[Memory](), set[str]()
    for memory in found:
        words = normal_text(memory.content)
        if memory.kind in _UNASKED or words in known:
            continue
        longer = f"{text}; {memory.content}" if text else f"{_BEGINNING}{memory.content}"
        if len(longer.encode()) <= most_bytes:
            text = longer
            quoted.append(memory)
            known.add(words)
    return (text, quoted) if len(quoted) > 1 else None
