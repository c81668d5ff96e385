"""How chosen memories become the text that an agent reads."""

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from operator import index
from typing import NamedTuple, Protocol

from ..errors import InvalidInput
from .records import Hit, Hits, Memory
from .tiers import TIER_NAMES, Tier

NOTHING = "(No relevant memories)"
_MOST_TOKENS = 2**53


class TokenCounter(Protocol):
    """Counts the tokens of a text. ``MemoryBank.open`` takes the counter of your model."""

    def __call__(self, text: str, /) -> int: ...


def approximate_tokens(text: str, /) -> int:
    """A quarter of the characters, rounded up."""
    return -(-len(text) // 4)


def whole_tokens(count: TokenCounter) -> TokenCounter:
    """The counter, which raises :class:`InvalidInput` where it gives no whole number."""
    if count is approximate_tokens:
        return count

    def counted(text: str, /) -> int:
        tokens = count(text)
        if type(tokens) is int and 0 <= tokens <= _MOST_TOKENS:
            return tokens
        with suppress(TypeError):
            number = index(tokens)  # of a NumPy number, too
            if not isinstance(tokens, bool) and 0 <= number <= _MOST_TOKENS:
                return number
        raise InvalidInput(
            f"the token counter gave {tokens!r:.40}, not a whole number from 0 to 2^53",
            hint="let it give an int",
        )

    return counted


# Controls with the line ends, line and paragraph separators, marks that reorder text, halves of
# pairs, and invisible characters that no text needs: reserved and deprecated ones, and tags, which
# spell a text of their own. Joiners, selectors and the tags of a flag stay: scripts and emoji need
# them.
_UNSAFE = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    "|[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2065-\u206f\ufff0-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# Letters and symbols that are invisible.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\U0001d159")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if match["flag"]:
        return character
    # Two halves for a character beyond 16 bits, as in JSON.
    code = character.encode("utf-16-be", "surrogatepass").hex()
    halves = (f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))
    return _SHORT.get(character) or "".join(halves)


def one_line(text: str) -> str:
    """The text with all characters escaped that could end, reorder or hide a part of a line.

    All text of memories, notes, worlds and files goes through it on its way to a prompt, a terminal
    or a page.
    """
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def line(memory: Memory) -> str:
    """The memory as one line, ``- [tier] text``; a memory of the tier normal has no label.

    Characters that could end the line, reorder it or pass for a label are escaped.
    """
    return _line(memory.content, memory.tier, memory.kind)


def _line(content: str, tier: Tier, kind: str) -> str:
    if kind == "note":  # a chunk of a file ends with a line end
        content = content.rstrip("\r\n")
    text = one_line(content)
    if "[" in text:
        text = _escape_leading_bracket(text)
    if tier is Tier.NORMAL:
        return f"- {text}"
    return f"- [{TIER_NAMES[tier]}] {text}"


def _escape_leading_bracket(text: str) -> str:
    for position, character in enumerate(text):
        if character == "[":
            return f"{text[:position]}\\{text[position:]}"
        blank = character.isspace() or character in _FILLERS
        if not blank and unicodedata.category(character) not in ("Cf", "Mn", "Me"):
            break
    return text


class Fitted(NamedTuple):
    """The memories that fit into a token budget, and the memories that do not."""

    kept: list[Hit]
    pinned_left_out: tuple[Memory, ...]
    rest_left_out: tuple[Memory, ...]


def fit(
    pinned: Sequence[Hit], rest: Sequence[Hit], budget: int | None, count: TokenCounter
) -> Fitted:
    """Choose hits within ``budget`` tokens: pinned ones first, then each of the rest that fits.

    If the pinned memories alone exceed the budget, the oldest are left out until the rest fit.
    A memory costs the tokens of its line, line end included.
    """
    if budget is None:
        return Fitted([*pinned, *rest], (), ())
    costs = [cost(hit.memory, count) for hit in pinned]
    left = budget - sum(costs)
    first = 0
    while left < 0 and first < len(pinned):
        left += costs[first]
        first += 1
    kept = list(pinned[first:])
    skipped = []
    for hit in rest:
        needed = cost(hit.memory, count)
        if needed <= left:
            kept.append(hit)
            left -= needed
        else:
            skipped.append(hit.memory)
    return Fitted(kept, tuple(hit.memory for hit in pinned[:first]), tuple(skipped))


def cost(memory: Memory, count: TokenCounter) -> int:
    """The tokens of a memory's line, line end included."""
    return cost_of(memory.content, memory.tier, memory.kind, count)


def cost_of(content: str, tier: Tier, kind: str, count: TokenCounter) -> int:
    """:func:`cost` of a memory with this text, tier and kind."""
    return count(_line(content, tier, kind) + "\n")


def render(hits: Hits) -> str:
    """The text that an agent reads. A last line tells how many pinned memories were left out."""
    lines = [line(hit.memory) for hit in hits]
    missing = len(hits.pinned_left_out)
    if missing:
        noun = "memory" if missing == 1 else "memories"
        lines.append(f"({missing} older pinned {noun} left out: over the token budget)")
    return "\n".join(lines) or NOTHING
