"""Telling: a copy of one agent's memory becomes a memory of another agent.

A correction follows the way of what it corrects: those who were told it are told the correction.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, final

from ..engine.engine import Engine
from ..engine.move import warm
from ..engine.read import find
from ..engine.write import add_many, add_new
from ..errors import InvalidInput, InvalidTier
from ..memory.records import NO_METADATA, VALUE, Memory, sequence_of
from ..memory.requests import (
    KeptMetadata,
    NewMemories,
    Options,
    check_agent_id,
    check_content,
    check_metadata,
    is_of_agent,
)
from ..memory.scopes import check_same_scope
from ..memory.sources import (
    HEARD,
    SOURCE,
    TOLD_NOTE,
    Chain,
    Heard,
    Source,
    Telling,
    Told,
    source_text,
)
from ..memory.tiers import Retention, Temperature, Tier, parse_tier
from ..storage.columns.extras import NO_VALUES
from ..storage.state.links import heir, heirs, superseding
from .links import contradict, key_for, take_place_of
from .trust import copies_of

MOST_EARLIER = 32
"""How many earlier corrections of a memory a correction replaces: the latest."""
_RETRACTED = "Retracted: "
_NOBODY: frozenset[str] = frozenset()
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
    check_same_scope(teller, listener)
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
        new, state = list(self._waiting.values()), self._bank.state
        self._waiting.clear()
        firsts = {one.receiver: state.block(one.receiver).next_sequence for _, one in new}
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


# Corrections


def correction_of(bank: Engine, memory: Memory) -> Memory:
    """The memory that superseded this one, or :class:`InvalidInput`."""
    found = superseding(bank.state, memory)
    if found is None or not _holds(bank, found):
        raise InvalidInput(
            f"no memory of {memory.agent_id} superseded {memory.id}",
            hint="store the correction with supersedes first",
        )
    return found


def said_before(bank: Engine, memory: Memory, correction: Memory) -> list[str]:
    """The origins of what superseded a memory before the correction did; the latest, if many."""
    heirs_before = takewhile(lambda each: each.id != correction.id, heirs(bank.state, memory))
    origins = dict.fromkeys(map(_origin, heirs_before))
    origins.pop(_origin(memory), None)
    return list(origins)[-MOST_EARLIER:]


def _origin(memory: Memory) -> str:
    return memory.id if memory.source is None else memory.source.origin_id


def retract(bank: Engine, memory: Memory, text: str | None) -> list[Told]:
    """:meth:`AgentSocial.retract`."""
    told: list[Told] = []
    with bank.changing():
        waiting = deque([(memory, _correction(bank, memory, text))])
        earlier = said_before(bank, memory, waiting[0][1])
        listeners = _Listeners(bank, memory)
        reached = {memory.id}  # agents may tell each other in circles
        while waiting:
            former, correction = waiting.popleft()
            one = correcting(copied(bank, correction), former, earlier)
            copies = [each for each in listeners.copies(one) if each.id not in reached]
            reached.update(each.id for each in copies)
            for copy in copies:
                for each in deliver(bank, [one._replace(receiver=copy.agent_id)]):
                    told.append(each)
                    waiting.append((copy, find(bank, each.listener, each.memory_id)))
                listeners.look_at(copy.agent_id)
    return told


def _holds(bank: Engine, memory: Memory) -> bool:
    return memory.retention is Retention.ACTIVE and not memory.is_expired(bank.tick)


def _correction(bank: Engine, memory: Memory, text: str | None) -> Memory:
    """The agent's own correction: the text, or what superseded the memory, or that it is not so."""
    state = bank.state
    after = superseding(state, memory)
    former = memory if after is None else after
    if text is None:
        if after is not None and _holds(bank, after):
            return after
        most = bank.settings.memory.max_content_bytes
        text = (_RETRACTED + memory.content).encode()[:most].decode(errors="ignore")
    check_content(text, bank.settings.memory.max_content_bytes)
    if former.retention is not Retention.ACTIVE:
        (correction,) = add_many(bank, [(memory.agent_id, text)])
        take_place_of(bank, correction, former)
        return correction
    options = {"key": key_for(former, None), "kind": memory.kind, "tags": memory.tags}
    return add_many(bank, [(memory.agent_id, text, None, None, options)])[0]


@final
class _Listeners:
    """Those who have copies of a memory or of its origin, by whom they had them from.

    All agents are looked at once; then each correction finds its listeners by a look-up.
    """

    def __init__(self, bank: Engine, memory: Memory) -> None:
        self._bank = bank
        self._origin = _origin(memory)
        self._by_memory = defaultdict[str, set[str]](set)
        """By the id of a teller's memory, who has a copy of it."""
        self._by_teller = defaultdict[str, set[str]](set)
        """By a teller, who was told by it what it had already."""
        for agent_id in bank.state.blocks:
            if is_of_agent(agent_id):
                self.look_at(agent_id)

    def look_at(self, agent_id: str) -> None:
        """Learn from whom an agent has its copies; a correction may have added a teller."""
        for copy in copies_at(self._bank, agent_id, self._origin):
            if copy.source is not None:
                self._by_memory[copy.source.memory_id].add(agent_id)
            for teller in tellers_again(self._bank, copy):
                self._by_teller[teller].add(agent_id)

    def copies(self, one: Telling) -> Iterator[Memory]:
        """The copies of what a correction corrects, of all whom its sender told it, by agent."""
        of_memory = self._by_memory.get(one.corrects or "", _NOBODY)
        for agent_id in sorted(of_memory | self._by_teller.get(one.sender, _NOBODY)):
            if agent_id != one.sender:
                yield from copies_told(self._bank, agent_id, one)
