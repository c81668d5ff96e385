"""Telling: a copy of one agent's memory becomes a memory of another agent."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

from ..errors import InvalidInput, InvalidTier
from ..memory.metadata import KeptMetadata, check_metadata
from ..memory.records import NO_METADATA, VALUE, Memory, sequence_of
from ..memory.requests import NewMemories, Options, check_agent_id
from ..memory.sources import (
    HEARD,
    SOURCE,
    TOLD_NOTE,
    TRUST,
    Chain,
    Heard,
    Source,
    Telling,
    Told,
    source_text,
)
from ..memory.tiers import Retention, Temperature, Tier, parse_tier
from ..storage.columns.extras import NO_VALUES
from ..storage.state.links import copies_of, heir, superseding
from .adding import add_new
from .agent_moves import warm
from .engine import Engine
from .linking import contradict, take_place_of
from .reading import find

MOST_TELLERS = 32
"""How many tellers of a memory are known beside its source and the last one: the latest."""

_OWN = ("session", "speaker", TOLD_NOTE)
"""What the metadata of a memory says about its own agent, which no copy has."""


def telling(
    bank: Engine, memory: Memory, to: object, as_tier: object = None, note: object = None
) -> Telling:
    """What crosses when a memory is told, or :class:`InvalidInput`."""
    listener, teller = check_agent_id(to), memory.agent_id
    if listener == teller:
        raise InvalidInput(f"{teller} can't tell {teller} a memory", hint="tell another agent")
    if not isinstance(note, str | None):
        raise InvalidInput(f"a note is a text, not {note!r:.40}")
    check_is_not_superseded(bank, memory)
    return copied(bank, memory, as_tier, note)._replace(receiver=listener)


def check_is_not_superseded(bank: Engine, memory: Memory) -> None:
    """Raise :class:`InvalidInput` if another memory superseded this one, which is not told then."""
    if memory.retention is Retention.ACTIVE:
        return
    now = superseding(bank.state, memory)
    if now is None:
        return
    stands = now.retention is Retention.ACTIVE and not now.is_expired(bank.tick)
    raise InvalidInput(
        f"memory {memory.id} was superseded",
        hint=f"tell {now.id}, which stands in its place"
        if stands
        else "restore it first, which makes it active again",
    )


def copied(bank: Engine, memory: Memory, as_tier: object = None, note: object = None) -> Telling:
    """What crosses when a memory is told, without its receiver."""
    teller = memory.agent_id
    tier = max(memory.tier, Tier.IMPORTANT) if as_tier is None else parse_tier(as_tier)
    if tier is Tier.PINNED:
        raise InvalidTier(
            "a memory can't be told as pinned", hint="its listener decides what is pinned"
        )
    said = check_metadata(None if note is None else {TOLD_NOTE: note}) or NO_METADATA
    before = memory.source
    origin = (teller, memory.id) if before is None else (before.origin_agent, before.origin_id)
    hands = 1 if before is None else before.hands + 1
    return Telling(
        "",
        teller,
        0,
        memory.content,
        Source(teller, bank.tick, memory.id, *origin, hands),
        int(tier),
        "fact" if memory.kind == "note" else memory.kind,
        memory.tags,
        _end_of_copy(memory, bank.tick),
        {**_shared(memory), **said},
    )


def correcting(one: Telling, former: Memory, instead_of: Sequence[str] = ()) -> Telling:
    """What crosses as the correction of a memory, for those whom the sender told the memory.

    Those whom the sender told an earlier correction, a copy of one of the origins, have it instead.
    """
    origin = None if former.source is None else former.source.origin_id
    return one._replace(corrects=former.id, corrects_origin=origin, instead_of=tuple(instead_of))


def _end_of_copy(memory: Memory, tick: int) -> int | None:
    """When a copy expires: with its memory, unless that is over and the memory lives on."""
    end = memory.expires_tick
    return None if end is None or end <= tick else end


def _shared(memory: Memory) -> dict[str, object]:
    """The metadata that a copy has."""
    return {
        key: value
        for key, value in memory.metadata.items()
        if key == VALUE or not (key in _OWN or key.startswith("memory_"))
    }


def deliver(bank: Engine, tellings: Iterable[Telling]) -> list[Told]:
    """Store what was told in the order given, in one commit.

    What a listener has already is counted, and not stored again.
    """
    with bank.changing():
        delivery = _Delivery(bank)
        for each in tellings:
            delivery.take(each)
        return delivery.end()


@final
class _Delivery:
    """Stores new copies together, up to one that a listener may just have got."""

    def __init__(self, bank: Engine) -> None:
        self._bank = bank
        self._told: list[Told | None] = []
        self._waiting: dict[tuple[str, str], tuple[int, Telling]] = {}
        """By listener and origin, new copies and their places in the result."""

    def take(self, one: Telling) -> None:
        if one.corrects is not None:
            self._store()
            self._correct(one)
            return
        key = one.receiver, one.source.origin_id
        if key in self._waiting:
            self._store()
        known = _known(self._bank, one)
        if known is None:
            self._waiting[key] = len(self._told), one
            self._told.append(None)
        else:
            self._told.append(_counted(self._bank, known, one))

    def _correct(self, one: Telling) -> None:
        """Let a correction supersede the copy that its sender told; nobody else is told."""
        state = self._bank.state
        told_before = copies_told(self._bank, one.receiver, one)
        copy = next((each for each in told_before if _is_there(each, state.tick)), None)
        if copy is None:
            return
        plain = one._replace(corrects=None, corrects_origin=None, instead_of=())
        same = _said_before(self._bank, one)
        told = _counted(self._bank, same, one) if same else deliver(self._bank, [plain])[0]
        self._told.append(told)
        memory = find(self._bank, told.listener, told.memory_id)
        _replace(self._bank, memory, copy)
        for earlier in _earlier(self._bank, one):
            if earlier.sequence < memory.sequence:
                _replace(self._bank, memory, earlier)

    def end(self) -> list[Told]:
        self._store()
        return [each for each in self._told if each is not None]

    def _store(self) -> None:
        if not self._waiting:
            return
        new, resident = list(self._waiting.values()), self._bank.state
        self._waiting.clear()
        firsts = {one.receiver: resident.block(one.receiver).next_sequence for _, one in new}
        memories = add_new(self._bank, NewMemories.of([_as_new(one) for _, one in new]))
        for (place, one), memory in zip(new, memories, strict=True):
            if memory.sequence >= firsts[one.receiver]:
                self._told[place] = Told(one.receiver, memory.id, True)
            else:  # memory.merge_duplicates
                self._told[place] = _counted(self._bank, memory, one)


def _replace(bank: Engine, correction: Memory, former: Memory) -> None:
    if former.id == correction.id:
        return
    if former.tier is Tier.PINNED:  # only its agent unpins a memory
        contradict(bank, correction, former)
    else:
        take_place_of(bank, correction, former)


def _earlier(bank: Engine, one: Telling) -> list[Memory]:
    """The earlier corrections that a listener has from the sender of a correction."""
    found = []
    for origin in one.instead_of:
        for copy in copies_at(bank, one.receiver, origin):
            teller = None if copy.source is None else copy.source.teller
            is_told = one.sender == teller or one.sender in tellers_again(bank, copy)
            if is_told and _is_there(copy, bank.tick):
                found.append(copy)
    return found


def _said_before(bank: Engine, one: Telling) -> Memory | None:
    """The earlier correction of the same sender that has the same text, and still stands."""
    for earlier in _earlier(bank, one):
        is_same = earlier.content == one.content
        if is_same and heir(bank.state, earlier) is None and _known(bank, one) is None:
            return earlier
    return None


def _as_new(one: Telling) -> tuple[str, str, Tier, KeptMetadata, Options]:
    own = {**one.metadata, "speaker": one.sender, SOURCE: source_text(one.source)}
    kept = KeptMetadata({key: own[key] for key in sorted(own)})
    options = Options(one.kind, tuple(one.tags), None, None, one.expires_tick)
    return one.receiver, one.content, Tier(one.tier), kept, options


def _known(bank: Engine, one: Telling) -> Memory | None:
    """The listener's memory of the same origin with the same text."""
    state, origin = bank.state, one.source.origin_id
    if one.receiver not in state.blocks:
        return None
    own = sequence_of(state.block(one.receiver).prefix, origin)
    numbers: Sequence[int] = copies_of(state, one.receiver, origin)
    for number in numbers if own is None else (own, *numbers):
        memory = state.memory(one.receiver, number)
        if memory is not None and memory.content == one.content and _is_there(memory, state.tick):
            return memory
    return None


def copies_told(bank: Engine, listener: str, one: Telling) -> Iterator[Memory]:
    """A listener's copies of what a correction corrects, if its sender told them, oldest first.

    The listener may have had its copy from another teller; then the sender's tell was counted.
    """
    origin = one.corrects_origin or one.corrects
    if origin is None:
        return
    for copy in copies_at(bank, listener, origin):
        source = copy.source
        is_told = source is not None and source.memory_id == one.corrects
        if is_told or one.sender in tellers_again(bank, copy):
            yield copy


def copies_at(bank: Engine, listener: str, origin: str) -> Sequence[Memory]:
    """A listener's copies of an origin that are not purged, oldest first."""
    state = bank.state
    numbers = copies_of(state, listener, origin) if listener in state.blocks else ()
    return state.memories(listener, numbers) if numbers else ()


def _is_there(memory: Memory, tick: int) -> bool:
    return memory.retention is not Retention.DELETED and not memory.is_expired(tick)


def _counted(bank: Engine, memory: Memory, one: Telling) -> Told:
    """Count a tell of a memory that the listener has; a cold memory becomes warm."""
    value: list[object] = [heard(bank, memory).times + 1, one.sender, one.source.tick]
    if memory.source is not None:
        known = (one.sender, memory.source.teller)
        others = [each for each in tellers_again(bank, memory) if each not in known]
        value += [others[-MOST_TELLERS:]] if others else []
    bank.ledger.hold(memory.agent_id, HEARD, str(memory.sequence), value)
    if memory.temperature is Temperature.COLD and memory.retention is Retention.ACTIVE:
        warm(bank, memory.agent_id, memory)
    return Told(memory.agent_id, memory.id, False)


def heard(bank: Engine, memory: Memory) -> Heard:
    """How often an agent was told one of its memories."""
    again = _held_again(bank, memory)
    if again:
        return Heard(*again[:3])
    source = memory.source
    return Heard(0, None, None) if source is None else Heard(1, source.teller, source.tick)


def _held_again(bank: Engine, memory: Memory) -> Sequence[Any]:
    """What an agent holds of a memory that it was told again; empty if it was not."""
    holdings = bank.state.block(memory.agent_id).holdings
    values = NO_VALUES if holdings is None else holdings.of(HEARD)
    held: Sequence[Any] = values.get(str(memory.sequence), ())
    return held


def tellers_again(bank: Engine, memory: Memory) -> list[str]:
    """Who told an agent a memory that it had, the last one at the end."""
    held = _held_again(bank, memory)
    return [*(held[3] if len(held) > 3 else ()), held[1]] if held else []


def trust(bank: Engine, agent_id: str, teller: object, value: object) -> None:
    """:meth:`AgentMemory.trust`."""
    name = check_agent_id(teller)
    if name == agent_id:
        raise InvalidInput(f"{agent_id} can't tell {agent_id} anything", hint="name a teller")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"trust is a number from 0 to 1, not {value!r:.40}")
    with bank.changing():
        if trust_of(bank, agent_id, name) != value:
            held = None if value == 1 else float(value)
            bank.ledger.hold(agent_id, TRUST, name, held)


def trust_of(bank: Engine, agent_id: str, teller: object) -> float:
    """:meth:`AgentMemory.trust_of`."""
    holdings = bank.state.block(agent_id).holdings
    own = NO_VALUES if holdings is None else holdings.of(TRUST)
    return float(own.get(check_agent_id(teller), 1.0))


def chain(bank: Engine, memory: Memory) -> Chain:
    """:meth:`MemoryBank.chain`."""
    with bank.using():
        found = list(_backwards(bank, memory))
    source = found[-1].source
    return Chain(tuple(found), None if source is None else source.memory_id)


def _backwards(bank: Engine, memory: Memory) -> Iterator[Memory]:
    state, seen = bank.state, set[str]()
    current: Memory | None = memory
    while current is not None and current.id not in seen:  # a source may be made up
        yield current
        seen.add(current.id)
        source = current.source
        if source is None:
            return
        number = sequence_of(state.block(source.teller).prefix, source.memory_id)
        current = None if number is None else state.memory(source.teller, number)
        if current is not None and not _is_there(current, state.tick):
            return
