"""What moves memories between hot, warm, cold and the archive: limits, rules, decay and lifetime.

Each decision is a pure rule of :mod:`tiermem.memory`; here it meets an agent's memories.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..config.settings import TIERS, Settings
from ..errors import InvalidInput
from ..memory.context import TokenCounter, cost, cost_of
from ..memory.events import Start
from ..memory.kinds import PLAIN
from ..memory.records import Memory, memory_id
from ..memory.requests import PLAIN_OPTIONS, Options
from ..memory.results import RuledMove
from ..memory.retention import Retention
from ..memory.temperature import Temperature, parse_temperature
from ..memory.tiers import Tier
from ..rules import decay as decays
from ..rules.compaction import Facts, Move, Rule, parse_rules, plan, resting_places
from ..rules.lifetime import initial_temperature
from ..rules.prune import choose_prune
from ..rules.spill import HotFact, HotLimits, choose_spill, destination, least_relevant
from ..storage.full_record import NEVER
from ..storage.note import is_of_note, note_of
from ..storage.resident.agent_columns import AgentColumns
from ..storage.shelf.shelf import ColdFact
from ..storage.state.ledger import Ledger

__all__ = ["Left", "Movement"]

_MOST_STARTS = 4096
_LOWER = {Temperature.HOT: Temperature.WARM, Temperature.WARM: Temperature.COLD}


class Left(NamedTuple):
    """What left hot: sequence numbers with where they went, and what to say about it."""

    moved: dict[int, Temperature]
    notes: list[str]


class Movement:
    """Moves the memories of a bank, as its settings say. Transactions are the caller's."""

    def __init__(self, ledger: Ledger, settings: Settings, count_tokens: TokenCounter) -> None:
        own, ticks = settings.temperature, settings.clock.ticks
        self.limits = HotLimits(own.hot_max_tokens, own.hot_max_facts)
        self.rules = parse_rules(own.rules, ticks)
        self.grace = ticks(settings.retention.grace)
        self.window = ticks(own.promote_window)
        self._ledger = ledger
        self._own = own
        self._count = count_tokens
        self._initial = parse_temperature(own.initial)
        self._starts: dict[tuple[Options, bool], Start | None] = {}
        """How memories with these options begin: most of a tick's are alike."""
        self._warm_below = None if own.ttl_warm_below is None else ticks(own.ttl_warm_below)
        self._cold_below = None if own.ttl_cold_below is None else ticks(own.ttl_cold_below)
        half_lives = [ticks(settings.decay.half_life.get(tier, 0)) for tier in TIERS]
        fading = decays.Decay(
            tuple(half_lives), settings.decay.hot_below, settings.decay.warm_below
        )
        self._idle_limits = decays.limits(fading) if settings.decay.enabled else None
        self._plain_start = self.start(Tier.NORMAL, PLAIN_OPTIONS, 0)
        """How a memory begins of which nothing is said, and that is not pinned."""

    # New memories

    def starts(
        self, tiers: Sequence[Tier], options: Sequence[Options], tick: int
    ) -> Sequence[Start | None]:
        """How new memories begin; None for one that begins as its tier alone says."""
        plain = self._plain_start
        if options.count(PLAIN_OPTIONS) == len(options) and Tier.PINNED not in tiers:
            return (plain,) * len(tiers)
        return [
            plain if tier and own is PLAIN_OPTIONS else self.start(tier, own, tick)
            for tier, own in zip(tiers, options, strict=True)
        ]

    def start(self, tier: Tier, options: Options, tick: int) -> Start | None:
        """How a new memory begins, as in :meth:`starts`."""
        key = (options, tier is Tier.PINNED)
        if key in self._starts:
            return self._starts[key]
        kind, tags, asked, ttl, expires = options
        if asked is None and ttl is None and expires is None:
            temperature = Temperature.HOT if tier is Tier.PINNED else self._initial
            start = None
            if temperature != _usual(tier) or kind != "fact" or tags:
                start = Start(int(temperature), kind, tags, None)
            if len(self._starts) < _MOST_STARTS:
                self._starts[key] = start
            return start
        if expires is not None:
            ttl = expires - tick
            if ttl <= 0:
                raise InvalidInput(
                    f"expires_tick {expires} is not after the current tick, {tick}",
                    hint=f"name a tick from {tick + 1} on",
                )
        if ttl is not None and tier is Tier.PINNED:
            raise InvalidInput(
                "a pinned memory does not expire",
                hint="leave out its lifetime, or use another tier",
            )
        if ttl is not None and tick + ttl >= NEVER:
            raise InvalidInput(f"a lifetime of {ttl} ticks is too long", hint="leave it out")
        temperature = initial_temperature(
            tier, asked, ttl, self._initial, self._warm_below, self._cold_below
        )
        return Start(int(temperature), kind, tags, None if ttl is None else tick + ttl)

    # Hot and its limits

    def relieve_hot(self, agent_id: str, newcomers: Collection[int]) -> Left:
        """Let the least relevant leave until hot is within its limits, if it may."""
        left = Left({}, [])
        if not self._own.auto_spill:
            return left
        block = self._ledger.resident.block(agent_id)
        if not block.hot:  # pinned ones stay
            return left
        hot = self._hot(block)
        room = self._room(hot)
        giants = [
            fact.sequence
            for fact in hot
            if fact.sequence in newcomers and not fact.pinned and not _fits(fact.tokens, room)
        ]
        self._spill(block, hot, giants, left)
        hot = [fact for fact in hot if fact.sequence not in left.moved]
        return self._spill(block, hot, choose_spill(hot, self.limits, newcomers), left)

    def spill(self, agent_id: str, count: int | None, chosen: Sequence[int] | None) -> Left:
        """Let so many leave hot, or these, or as many as are too many."""
        block = self._ledger.resident.block(agent_id)
        hot = self._hot(block)
        if chosen is not None:
            present = {fact.sequence for fact in hot}
            leaving = [sequence for sequence in dict.fromkeys(chosen) if sequence in present]
        elif count is not None:
            leaving = least_relevant(hot, count)
        else:
            leaving = choose_spill(hot, self.limits)
        return self._spill(block, hot, leaving, Left({}, []))

    def too_large_for_hot(self, memory: Memory) -> str | None:
        """Why hot could not hold a memory even if all but the pinned left it; None if it could."""
        if not self._own.auto_spill:
            return None
        room = self._room(self._hot(self._ledger.resident.block(memory.agent_id)))
        tokens = cost(memory, self._count)
        return None if _fits(tokens, room) else self.too_large(memory.id, tokens, room)

    def too_large(self, identifier: str, tokens: int, room: HotLimits) -> str:
        """What to say of a memory that hot can't hold."""
        return (
            f"memory {identifier} takes {tokens} tokens, and beside what is pinned hot has room "
            f"for {max(0, room.tokens)} tokens and {max(0, room.facts)} memories (temperature."
            f"hot_max_tokens is {self.limits.tokens}, hot_max_facts {self.limits.facts}); it is "
            "warm"
        )

    def _room(self, hot: Sequence[HotFact]) -> HotLimits:
        """What the pinned leave of hot."""
        pinned = [fact.tokens for fact in hot if fact.pinned]
        return HotLimits(self.limits.tokens - sum(pinned), self.limits.facts - len(pinned))

    def _spill(
        self, block: AgentColumns, hot: Sequence[HotFact], leaving: Sequence[int], left: Left
    ) -> Left:
        facts, room = {fact.sequence: fact for fact in hot}, self._room(hot)
        for sequence in leaving:
            fact = facts[sequence]
            to = destination(fact.access_count, self._own.warm_access_threshold)
            if not _fits(fact.tokens, room):  # it was never hot in earnest, so it isn't cold either
                to = Temperature.WARM
                identifier = memory_id(block.prefix, sequence)
                left.notes.append(self.too_large(identifier, fact.tokens, room))
            left.moved[sequence] = to
        for to in (Temperature.WARM, Temperature.COLD):
            going = [sequence for sequence in leaving if left.moved[sequence] is to]
            self._ledger.move(block.agent_id, going, to, "spill")
        return left

    def _hot(self, block: AgentColumns) -> list[HotFact]:
        pinned = block.pinned
        rows = [*pinned, *block.hot]
        return [
            HotFact(
                memory.sequence,
                cost(memory, self._count),
                memory.relevance,
                memory.created_tick,
                memory.access_count,
                index < len(pinned),
            )
            for index, memory in enumerate(block.memories(rows))
        ]

    def hot_tokens(self, block: AgentColumns) -> int:
        """What the hot memories take, pinned ones included."""
        if block.hot_tokens is None:
            hot = block.labels([*block.pinned, *block.hot])
            block.hot_tokens = sum([cost_of(*label, self._count) for label in hot])
        return block.hot_tokens

    def utilization(self) -> float:
        """How full hot is, of the agent where it is fullest: the share of its tokens."""
        blocks = self._ledger.resident.blocks.values()
        fullest = max(map(self.hot_tokens, blocks), default=0)
        return round(fullest / self.limits.tokens, 6) if self.limits.tokens else 0.0

    # Compaction

    def compact(self, agent_id: str) -> Counter[Temperature]:
        """Apply the rules to one agent's memories; how many moved to which temperature."""
        self.expire(agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going: dict[Temperature, list[int]] = {to: [] for to in reversed(Temperature)}
        for row, to, _ in moves:
            going[to].append(sequences[row])
        for to, chosen in going.items():  # cold first
            self._ledger.move(agent_id, chosen, to, "compact")
        return Counter({to: len(chosen) for to, chosen in going.items() if chosen})

    def would_move(self, agent_id: str) -> list[RuledMove]:
        """What :meth:`compact` would do; what expired is deleted, so undo it afterwards."""
        self.expire(agent_id, everywhere=True)
        moves, sequences = self._plan(agent_id)
        going = [sequences[move.row] for move in moves]
        memories = self._ledger.resident.memories(agent_id, going)
        return [
            RuledMove(memory, move.to, move.rule)
            for memory, move in zip(memories, moves, strict=True)
        ]

    def _plan(self, agent_id: str) -> tuple[list[Move], list[int]]:
        """The moves by row, and the sequence number of each row."""
        resident = self._ledger.resident
        cold = resident.shelf.cold(agent_id) if any(map(_lifts, self.rules)) else []
        facts, sequences = _facts(resident.block(agent_id), cold, resident.tick)

        def tokens(row: int) -> int:
            (memory,) = resident.memories(agent_id, [sequences[row]])
            return cost(memory, self._count)

        return plan(facts, self.rules, self.limits, tokens), sequences

    def prune(
        self, agent_id: str, *, dry_run: bool = False, after: Sequence[RuledMove] = ()
    ) -> list[int]:
        """Archive what is cold beyond ``temperature.max_cold_items``; the sequence numbers.

        A dry run may ask what it would be ``after`` moves that were not made. What expired is
        deleted, so undo that afterwards.
        """
        self.expire(agent_id, everywhere=True)
        gone = {move.memory.sequence for move in after}
        facts = self._ledger.resident.shelf.cold(agent_id)
        cold: list[ColdFact | Memory] = [each for each in facts if each.sequence not in gone]
        cold += [move.memory for move in after if move.to is Temperature.COLD]
        cold.sort(key=lambda each: each.sequence)
        chosen = choose_prune(
            np.array([each.sequence for each in cold], np.int64),
            np.array([each.tier for each in cold], np.int8),
            np.array([each.relevance for each in cold], np.float64),
            np.array([each.access_count for each in cold], np.int64),
            self._own.max_cold_items,
        )
        if not dry_run:
            self._ledger.retain(agent_id, chosen, Retention.ARCHIVED, "prune")
        return chosen

    # Each tick

    def sweep(self, every: int = 1) -> None:
        """Delete what expired, purge what was deleted long ago, and move what faded.

        With ``every``, only those agents' memories fade whose turn it is: each has one in so many
        ticks.
        """
        resident = self._ledger.resident
        tick = resident.tick
        # In the order of their names: events must not depend on the order agents came in.
        for agent_id in sorted(resident.blocks):
            block = resident.blocks[agent_id]
            self.expire(agent_id)
            if self._idle_limits is None or block.next_decay > tick:
                continue
            if (tick + zlib.crc32(agent_id.encode())) % every == 0:  # its turn, whoever else is
                self._fade(block, tick, self._idle_limits)
        for agent_id, (expired, _) in resident.shelf.due(tick, -1).items():
            self._ledger.retain(agent_id, expired, Retention.DELETED, "expire")
        for agent_id, (_, over) in resident.shelf.due(tick, tick - self.grace).items():
            found = [resident.memory(agent_id, sequence) for sequence in over]
            gone = [memory for memory in found if memory is not None]
            self._ledger.purge([memory for memory in gone if not is_of_note(memory)])
            # The journal has the text of a note anyway, and its past needs the memories of then. A
            # part that is still in its note stays deleted: once purged, it would be indexed again.
            notes = resident.block(agent_id).notes
            outdated = [each for each in gone if is_of_note(each) and not note_of(each, notes)]
            self._ledger.purge(outdated, redacted=False)

    def expire_of(self, agents: Iterable[str]) -> None:
        """:meth:`expire` for these agents."""
        blocks, tick = self._ledger.resident.blocks, self._ledger.resident.tick
        for agent_id in agents:
            block = blocks.get(agent_id)
            if block is not None and (block.next_expiry <= tick or block.critical_elsewhere):
                self.expire(agent_id)

    def expire(self, agent_id: str, *, everywhere: bool = False) -> None:
        """Delete what expired and takes a place that others could have, in hot or in a tier.

        With ``everywhere``, what is cold as well.
        """
        if everywhere:
            resident = self._ledger.resident
            expired, _ = resident.shelf.due(resident.tick, -1).get(agent_id, ([], []))
            self._ledger.retain(agent_id, expired, Retention.DELETED, "expire")
        resident = self._ledger.resident
        block, tick = resident.blocks.get(agent_id), resident.tick
        if block is None or (block.next_expiry > tick and not block.critical_elsewhere):
            return
        elsewhere = [
            sequence
            for sequence, memory in block.critical_elsewhere.items()
            if memory.is_expired(tick)
        ]
        self._ledger.retain(agent_id, sorted(elsewhere), Retention.DELETED, "expire")
        if block.next_expiry > tick:
            return
        expires = np.where(block.tiers == Tier.PINNED, NEVER, block.column("expires"))
        rows = np.flatnonzero(expires <= tick).tolist()
        expired = [block.sequence(row) for row in rows]
        self._ledger.retain(block.agent_id, expired, Retention.DELETED, "expire")
        block.next_expiry = int(expires[expires > tick].min(initial=NEVER))

    def _fade(self, block: AgentColumns, tick: int, idle_limits: NDArray[np.int64]) -> None:
        last = np.maximum(block.column("last"), block.column("created"))
        # The place of each memory's limit in the table, read as a list.
        places = (block.tiers * len(Temperature) + block.temperatures) * 2
        places += block.column("accesses") > 0
        due = last + np.minimum(idle_limits.ravel().take(places), NEVER - last)
        rows = (due <= tick).nonzero()[0]
        any_due = len(rows) > 0
        if any_due and block.hot:  # what a rule keeps hot does not fade: it would come and go
            facts, _ = _facts(block, (), tick)
            faded = np.full_like(facts.temperatures, Temperature.WARM)
            back = resting_places(facts._replace(temperatures=faded), self.rules)
            stays = (block.temperatures == Temperature.HOT) & (back == Temperature.HOT)
            rows = rows[~stays[rows]]
        fading = {
            to: [block.sequence(row) for row in rows[block.temperatures[rows] == now].tolist()]
            for now, to in _LOWER.items()
        }
        # Whatever comes later fades later: at the earliest after the shortest of the limits.
        later = due[due > tick].min(initial=tick + int(idle_limits.min()))
        for to, sequences in fading.items():
            self._ledger.move(block.agent_id, sequences, to, "decay")
        block.next_decay = tick if any_due else int(later)  # what faded once may fade again


def _fits(tokens: int, room: HotLimits) -> bool:
    return tokens <= room.tokens and room.facts > 0


def _usual(tier: Tier) -> Temperature:
    return Temperature.HOT if tier is Tier.PINNED else Temperature.WARM


def _lifts(rule: Rule) -> bool:
    """Whether a rule may warm up what is cold."""
    at = rule.when.temperatures
    return rule.to != Temperature.COLD and (at is None or Temperature.COLD in at)


def _facts(block: AgentColumns, cold: Sequence[ColdFact], tick: int) -> tuple[Facts, list[int]]:
    """What rules look at, the cold memories among the others; and the sequence numbers."""
    sequences: list[int] = block.column("sequence").tolist()
    created, last = block.column("created"), block.column("last")
    accesses, kinds = block.column("accesses"), block.traits()
    tiers, temperatures = block.tiers, block.temperatures
    if cold:
        sequences += [each.sequence for each in cold]
        order = np.argsort(sequences, kind="stable")
        sequences = [sequences[place] for place in order.tolist()]
        created = np.append(created, [each.created_tick for each in cold])[order]
        last = np.append(last, [each.last_access_tick for each in cold])[order]
        accesses = np.append(accesses, [each.access_count for each in cold])[order]
        kinds = [*kinds, *(each.traits for each in cold)]
        kinds = [kinds[place] for place in order.tolist()]
        tiers = np.append(tiers, np.array([each.tier for each in cold], np.int8))[order]
        more = np.full(len(cold), Temperature.COLD, np.int8)
        temperatures = np.append(temperatures, more)[order]
    facts = Facts(
        tiers,
        temperatures,
        tick - created,
        tick - np.maximum(last, created),
        accesses,
        [each or PLAIN for each in kinds],
    )
    return facts, sequences
