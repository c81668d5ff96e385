"""Links between memories of one agent: what supersedes what, and what contradicts what."""

from ..engine import read
from ..engine.engine import Engine
from ..engine.write import check_is_live, retire
from ..errors import InvalidInput
from ..memory.records import Memory
from ..memory.sources import CONTRADICTS, SUPERSEDED, Links
from ..memory.tiers import Retention
from ..storage.state.links import contradicted, heir


def key_for(former: Memory, key: str | None) -> str:
    """The key under which a new memory supersedes a former one."""
    own = former.key or former.id
    if key is not None and key != own:
        raise InvalidInput(
            f"memory {former.id} is stored under the key {own!r:.80}, not {key!r:.80}",
            hint="give supersedes or key, not both",
        )
    return own


def supersede(bank: Engine, memory: Memory, former: Memory) -> None:
    """Let a memory supersede another one: the former is archived."""
    _check_two(memory, former)
    check_is_live(bank, former)
    with bank.changing():
        retire(bank, former)
        bank.ledger.hold(memory.agent_id, SUPERSEDED, str(former.sequence), memory.sequence)


def take_place_of(bank: Engine, memory: Memory, former: Memory) -> None:
    """Let a memory supersede another one, which may be archived; what superseded it stays."""
    if former.retention is Retention.ACTIVE:
        supersede(bank, memory, former)
    elif memory.id != former.id and heir(bank.state, former) is None:
        with bank.changing():
            bank.ledger.hold(memory.agent_id, SUPERSEDED, str(former.sequence), memory.sequence)


def contradict(bank: Engine, memory: Memory, other: Memory) -> None:
    """Note that two memories contradict each other; both are still found."""
    _check_two(memory, other)
    state, agent_id = bank.state, memory.agent_id
    with bank.changing():
        for one, against in ((memory, other), (other, memory)):
            known = [each.sequence for each in contradicted(state, one)]
            if against.sequence not in known:
                numbers = sorted([*known, against.sequence])
                bank.ledger.hold(agent_id, CONTRADICTS, str(one.sequence), numbers)


def _check_two(memory: Memory, other: Memory) -> None:
    if memory.id == other.id:
        raise InvalidInput(f"memory {memory.id} can't be linked to itself", hint="name two")


def links(bank: Engine, memory: Memory) -> Links:
    """What superseded a memory, what contradicts it, and which of its evidence no longer holds."""
    state = bank.state
    after = heir(state, memory)
    against = [each for each in contradicted(state, memory) if _is_kept(each)]
    return Links(
        None if after is None else after.id,
        tuple(each.id for each in against),
        tuple(read.flags(bank, memory)),
    )


def _is_kept(memory: Memory) -> bool:
    return memory.retention is not Retention.DELETED
