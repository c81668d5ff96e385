"""The directory of long names: texts that are longer than an agent id, or than a key.

Adapters make them. ``@@`` and the text's SHA-256 are the id of an agent, or the end of a memory's
key, and the agent ``@@names`` keeps the text.
"""

import re

from ..memory.records import Memory
from ..memory.tiers import Retention, Tier
from .agent_moves import forget
from .engine import Engine

DIRECTORY = "@@names"
"""The agent whose memories are the texts, each under its name as a key."""
LONG_NAME = re.compile(r"@@[0-9a-f]{64}")
_LENGTH = 66


def forget_unused(bank: Engine) -> None:
    """Purge the texts whose names nothing has: no agent with a memory or a note, and no key."""
    kept = [each for each in _memories(bank, DIRECTORY) if each.tier is not Tier.PINNED]
    unused = {each.key for each in kept if LONG_NAME.fullmatch(each.key or "")}
    blocks = bank.state.blocks
    for owner in [each for each in blocks if each != DIRECTORY]:
        if not unused:
            return
        memories = _memories(bank, owner)
        unused -= {each.key[-_LENGTH:] for each in memories if each.key is not None}
        own = blocks[owner]
        if memories or (own.has_extras and own.notes):
            unused.discard(owner)
    if unused:
        with bank.changing():
            for memory in kept:
                if memory.key in unused:
                    forget(bank, DIRECTORY, memory)


def _memories(bank: Engine, agent_id: str) -> list[Memory]:
    """All memories of an agent or a board that were not purged, whatever became of them."""
    state = bank.state
    state.check_shelf(agent_id)
    block = state.block(agent_id)
    shelved = [
        each for retention in Retention for each in state.shelf.of_agent(agent_id, retention)
    ]
    found = block.memories(range(block.size))
    return found + [each.memory(agent_id, block.prefix) for each in shelved]
