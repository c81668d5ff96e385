"""All that agents do to their memories at the end of a tick, in its order."""

from collections.abc import Mapping, Sequence
from random import Random

from ...bank.memory_bank import MemoryBank
from ...memory.sources import Telling
from ..protocols import Policy
from .acting import Deed
from .deciding import Decided
from .decisions import DecisionLog
from .flushing import Contexts
from .grouping import Boards
from .rating import rate_by
from .recording import Recording
from .standing import Standing


def remember(
    bank: MemoryBank,
    policy: Policy,
    rngs: Mapping[str, Random],
    contexts: Contexts | None,
    rules: Standing,
    decided: Decided,
    deeds: Mapping[str, Sequence[Deed]],
    told: Sequence[Telling],
    boards: Boards,
    log: DecisionLog | None,
) -> Recording:
    """Record what the agents saw, did and were told; then let them flush and reflect.

    ``boards`` has what all agents of the run did with groups, also those that are not in the bank.
    """
    recording = Recording(bank, contexts, rate_by(bank, policy), rules)
    recording.deeds(decided, deeds, log)
    recording.deliver(told)
    recording.boards(boards)
    recording.flushes(policy, decided, rngs)
    if bank.settings.reflection.enabled:
        recording.reflections(policy, decided, rngs)
    return recording
