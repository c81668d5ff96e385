"""From what the new memories of a tick were born: the log has no texts, the journal has them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...memory.events import Added, Event, Noted
from ...memory.insights import INSIGHT
from ...memory.sources import source_of
from ..loop.decisions import Kept

FORGOTTEN = "(forgotten)"


class Births(NamedTuple):
    """The memories of an agent's tick, by sequence number."""

    perceived: list[int]
    """What the agent observed and heard, in this order; old memories, where it was repeated."""
    done: list[int | None]
    """For each action the memory that it became; None if it became none."""
    told: list[int]
    """What others told it."""
    insights: list[int]
    rest: list[int]
    """What it saved before its context was compacted, if contexts are flushed."""


def new_memories(events: Iterable[Event]) -> dict[str, dict[int, Added]]:
    """The new memories of a commit, by agent and number, without the chunks of notes."""
    found: dict[str, dict[int, Added]] = {}
    chunks: set[tuple[str, int]] = set()
    for event in events:
        if isinstance(event, Added):
            found.setdefault(event.agent_id, {})[event.sequence] = event
        elif isinstance(event, Noted):
            chunks.update((event.agent_id, number) for number, *_ in event.chunks)
    for agent, number in chunks:
        found.get(agent, {}).pop(number, None)
    return found


def births(kept: Kept, new: Mapping[int, Added]) -> Births:
    """What became of all that the log has of an agent; ``new`` are its new memories."""
    is_told = {number: source_of(new[number].metadata or {}) is not None for number in new}
    own = iter([number for number in new if not is_told[number]])
    repeated = dict(kept.repeated)

    def numbers(first: int, count: int) -> list[int | None]:
        return [repeated.get(at) or next(own, None) for at in range(first, first + count)]

    seen = kept.has_text + kept.heard
    perceived = [number for number in numbers(0, seen) if number is not None]
    became = iter(numbers(seen, sum(born for *_, born in kept.did)))
    done = [next(became) if born else None for *_, born in kept.did]
    insights, rest = list[int](), list[int]()
    for number in own:
        start = new[number].start
        (insights if start is not None and start.kind == INSIGHT else rest).append(number)
    return Births(perceived, done, list(filter(is_told.get, new)), insights, rest)


def text_of(event: Added) -> str:
    """The text of a new memory, as it is told."""
    return FORGOTTEN if event.content is None else event.content
