"""The flush: an agent saves what should last before its context overflows."""

from collections.abc import Iterable, Mapping
from typing import Any, final

from ..errors import InvalidInput
from ..memory.context import TokenCounter, cost, line
from ..memory.records import Memory
from ..memory.requests import check_whole

SILENT_REPLY = "NO_REPLY"
"""The answer of an agent that has nothing to save."""

FLUSH_PROMPT = f"""\
Your context is nearly full and is about to be compacted: what you do not save now may be lost.
Save now what should last, with the actions for your memories and your notes. No other action is
done in this turn. If there is nothing to save, reply with {SILENT_REPLY} and nothing else."""
"""The prompt that lets an agent save what should last."""


@final
class FlushMonitor:
    """Tells when a flush is due: once in each cycle. A compaction of the context ends a cycle.

    A flush is due above ``threshold`` tokens: the context window less the tokens reserved for the
    answer, less the soft threshold. If nothing of the window is left, ``InvalidInput`` is raised.
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
        """The number of compactions of the context so far."""
        self._is_done = False

    def due(self, tokens: int | None, cycle: int) -> bool:
        """Whether to flush now, by the number of tokens that was counted in ``cycle``.

        False without a count, or with a count of an earlier cycle.
        """
        if tokens is None or cycle != self.cycle:
            return False
        return tokens > self.threshold and not self._is_done

    def flushed(self) -> None:
        """Note that the agent flushed: no flush is due any more in this cycle."""
        self._is_done = True

    def compacted(self) -> None:
        """Note that the context was compacted: the next cycle begins."""
        self.cycle += 1
        self._is_done = False

    def get_state(self) -> dict[str, Any]:
        """The monitor's state as JSON values."""
        return {"cycle": self.cycle, "flushed": self._is_done}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of :meth:`get_state`."""
        self.cycle = check_whole("cycle", state["cycle"])
        self._is_done = bool(state["flushed"])


def summary(memories: Iterable[Memory], most_tokens: int, count: TokenCounter) -> str:
    """A line ``- [tier] text`` for each memory that fits into ``most_tokens``, line ends included.

    The highest tier comes first, then the most accessed memory, then the newest. A memory that does
    not fit is left out; smaller memories after it may still fit.
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
