"""When the context of an agent is about to overflow, and what of it is worth saving then."""

from collections.abc import Iterable, Mapping
from typing import Any, final

from ..errors import InvalidInput
from ..memory.checks import check_whole
from ..memory.context import TokenCounter, cost, line
from ..memory.records import Memory

__all__ = ["FLUSH_PROMPT", "SILENT_REPLY", "FlushMonitor", "summary"]

SILENT_REPLY = "NO_REPLY"
"""What an agent answers that has nothing to save."""

FLUSH_PROMPT = f"""\
Your context is nearly full and is about to be compacted: what you do not save now may be lost.
Save now what should last, with the actions for your memories and your notes. No other action is
done in this turn. If there is nothing to save, reply with {SILENT_REPLY} and nothing else."""
"""What an agent is told that may save what should last."""


@final
class FlushMonitor:
    """Tells when a flush is due: once in each cycle, which ends when the context is compacted.

    ``threshold`` is how many tokens make it due: the window less what is reserved for an answer,
    less what is left to flush in. Values that leave nothing of the window are ``InvalidInput``.
    """

    __slots__ = ("_is_done", "cycle", "threshold")

    def __init__(self, context_window: int, reserve_tokens: int, soft_threshold: int) -> None:
        check_whole("context_window", context_window)
        check_whole("reserve_tokens", reserve_tokens)
        check_whole("soft_threshold", soft_threshold)
        self.threshold = context_window - reserve_tokens - soft_threshold
        if self.threshold < 1:
            raise InvalidInput(
                f"context_window ({context_window}) must be more than reserve_tokens "
                f"({reserve_tokens}) and soft_threshold ({soft_threshold}) together",
                hint="raise the first, or lower the others",
            )
        self.cycle = 0
        """How often the context was compacted."""
        self._is_done = False

    def due(self, tokens: int | None, cycle: int) -> bool:
        """Whether to flush now, by a count of tokens that was made in ``cycle``.

        A count that is missing, or of another cycle than this one, says nothing.
        """
        if tokens is None or cycle != self.cycle:
            return False
        return tokens >= self.threshold and not self._is_done

    def flushed(self) -> None:
        """No flush is due any more in this cycle."""
        self._is_done = True

    def compacted(self) -> None:
        """The context was compacted: the next cycle begins."""
        self.cycle += 1
        self._is_done = False

    def get_state(self) -> dict[str, Any]:
        """All that changes, as JSON values."""
        return {"cycle": self.cycle, "flushed": self._is_done}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`get_state` gave."""
        self.cycle = check_whole("cycle", state["cycle"])
        self._is_done = bool(state["flushed"])


def summary(memories: Iterable[Memory], most_tokens: int, count: TokenCounter) -> str:
    """What would be lost, a line for each memory as an agent reads it: ``- [tier] text``.

    The highest tier comes first, then the most accessed, then the newest. What does not fit into
    ``most_tokens``, line end included, is left out, and smaller ones after it still go in. Empty
    if nothing does.
    """
    lines: list[str] = []
    left = most_tokens
    for memory in sorted(memories, key=_worth):
        needed = cost(memory, count)
        if needed <= left:
            lines.append(line(memory))
            left -= needed
    return "\n".join(lines)


def _worth(memory: Memory) -> tuple[int, int, int, int]:
    return int(memory.tier), -memory.access_count, -memory.created_tick, -memory.sequence
