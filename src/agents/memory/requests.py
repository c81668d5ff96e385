"""What the batched calls take."""

from collections.abc import Iterable, Mapping

from agents.errors import InvalidInput
from agents.memory.metadata import KeptMetadata, check_metadata
from agents.memory.records import (
    check_agent_id,
    check_content,
    check_query,
)
from agents.memory.tiers import Tier, parse_tier

__all__ = ["NewMemory", "check_iterable", "check_new", "check_search"]

_SEQUENCES = (tuple, list)

NewMemory = tuple[str, str, Tier, KeptMetadata | None]


def check_iterable(items: Iterable[object]) -> Iterable[object]:
    """``items`` itself, if it has any; a text is one thing and not a list of letters."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        return items
    raise InvalidInput(f"a batch is a list of tuples; got {items!r:.80}")


def check_new(item: object, most_bytes: int) -> NewMemory:
    """Agent, text, tier and metadata from a tuple whose last two are optional."""
    if not isinstance(item, _SEQUENCES) or not 2 <= len(item) <= 4:
        raise InvalidInput(
            "a new memory is a tuple (agent_id, content), (agent_id, content, tier) or "
            f"(agent_id, content, tier, metadata); got {item!r:.80}"
        )
    return (
        check_agent_id(item[0]),
        check_content(item[1], most_bytes),
        parse_tier(item[2]) if len(item) > 2 else Tier.NORMAL,
        check_metadata(item[3]) if len(item) > 3 else None,
    )


def check_search(request: object) -> tuple[str, str]:
    """Agent and query from a pair."""
    if not isinstance(request, _SEQUENCES) or len(request) != 2:
        raise InvalidInput(f"a search is a pair (agent_id, query); got {request!r:.80}")
    return check_agent_id(request[0]), check_query(request[1])
