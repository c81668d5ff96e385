"""A bank on disk beside the model of its temperatures: what the machine does, and how it checks."""

import contextlib
import itertools
import shutil
import tempfile
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine
from model import CRITICAL, PINNED, SmallEmbedder
from temperature_model import (
    ACTIVE,
    ARCHIVED,
    COLD,
    DELETED,
    HOT,
    WARM,
    Kept,
    Key,
    Only,
    Scored,
    TemperatureModel,
    fields_of,
    has_faded,
    is_completed,
    lines_of,
)

from agents import InvalidInput, MemoryBank, MemoryNotFound, MemoryPinned
from agents.memory.filters import ANY
from agents.storage.state.ledger import Ledger

AGENTS = ("alice", "bob", "carol")
TOKENS, FACTS = 20, 4
MOST_COLD, GRACE, OFTEN = 2, 3, 3
PROMOTE_AT, RECALLS, WINDOW = 0.85, 2, 2
HALF_LIVES = {1: 4, 2: 3, 3: 2, 4: 1}
TIER_NAMES = ("pinned", "critical", "important", "normal", "low")
TEMPERATURES = ("hot", "warm", "cold")


class Stop(Exception):
    """Raised inside a transaction to make it fail."""


def settings_of(**temperature: object) -> dict[str, Any]:
    """Small limits, so that what is rare happens often."""
    decays = temperature.pop("decays", False)
    half_lives = {TIER_NAMES[tier]: half_life for tier, half_life in HALF_LIVES.items()}
    return {
        "memory": {"max_pinned": 2, "max_critical": 3},
        "temperature": {
            "hot_max_tokens": TOKENS,
            "hot_max_facts": FACTS,
            "max_cold_items": MOST_COLD,
            "promote_threshold": PROMOTE_AT,
            "promote_accesses": RECALLS,
            "promote_window": WINDOW,
            **temperature,
        },
        "clock": {"ticks_per_day": 1},
        "decay": {"enabled": decays, "half_life": half_lives},
        "retention": {"grace": GRACE},
        "storage": {"sync": "manual"},
    }


def look(bank: MemoryBank) -> dict[Key, tuple[Any, bytes, tuple[int, ...]]]:
    """Every memory that the bank has, deleted ones too: its record, its vector, its recalls."""
    resident = bank.parts.ledger.resident
    found: dict[Key, tuple[Any, bytes, tuple[int, ...]]] = {}
    for agent in bank.agents():
        block = resident.block(agent)
        for row in range(block.size):
            memory = block.memory(row)
            vector = block.vectors([row]).tobytes()
            found[agent, memory.sequence] = (memory, vector, block.recalls.get(memory.sequence, ()))
        for retention in (ACTIVE, ARCHIVED, DELETED):
            for record in resident.shelf.of_agent(agent, retention):
                assert (agent, record.sequence) not in found, "a memory is in two places"
                memory = record.memory(agent, block.prefix)
                found[agent, record.sequence] = (memory, record.vector, record.recalls)
    return found


def assert_equal(bank: MemoryBank, model: TemperatureModel) -> None:
    """The bank has the model's memories, to the bit, and no others."""
    found = look(bank)
    assert bank.tick == model.tick
    assert found.keys() == model.memories.keys()
    for key, (memory, vector, recalls) in found.items():
        expected = model.memories[key]
        assert fields_of(memory) == expected.fields()
        assert vector == expected.vector
        assert recalls == expected.recalls


class TemperatureBank(RuleBasedStateMachine):
    """A bank, the model, and what both were at the end of earlier ticks."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="tiermem-temperature-"))
        self.folders = (self.root / str(number) for number in itertools.count())
        self.thresholds = Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT
        self.words = itertools.count()
        self.ids: dict[Key, str] = {}
        self.history: dict[int, tuple[TemperatureModel, str | None]] = {}
        self.purged: list[Key] = []
        """Since the last commit."""
        self.forgotten: list[str] = []
        self.in_transaction = False
        self.bank: MemoryBank
        self.folder: Path
        self.model: TemperatureModel
        self.temperature: dict[str, Any]

    def teardown(self) -> None:
        Ledger.SNAPSHOT_ON_CLOSE, Ledger.SNAPSHOT_ON_COMMIT = self.thresholds
        if hasattr(self, "bank"):
            self.bank.close()
        shutil.rmtree(self.root)

    def open(self, folder: Path) -> MemoryBank:
        return MemoryBank.open(
            folder, embedder=SmallEmbedder(), preset="vector", **settings_of(**self.temperature)
        )

    def view(self, agent: str) -> Any:
        return self.bank.agent(agent)

    def choose(self, agent: str, pick: int) -> tuple[str, Kept | None]:
        """Mostly one of the agent's memories, hidden ones too; else an id that it does not have."""
        own = [m for retention in range(3) for m in self.model.of(agent, retention)]
        if own and pick:
            memory = own[pick % len(own)]
            return self.ids[agent, memory.sequence], memory
        others = [i for (owner, _), i in sorted(self.ids.items()) if owner != agent]
        return (others[pick % len(others)] if others else str(uuid.UUID(int=pick))), None

    # Operations: each does the same to the bank and to the model, and compares

    def perform(self, name: str, *arguments: Any) -> None:
        getattr(self, f"do_{name}")(*arguments)

    def do_add(self, agent, size, tier, temperature, ttl, kind, tags, metadata) -> None:
        options = {"kind": kind, "tags": tags, "ttl": ttl, "temperature": temperature}
        text = self.new_text(size)
        view = self.view(agent)
        if tier == PINNED and (ttl is not None or temperature not in (None, "hot")):
            with pytest.raises(InvalidInput):
                view.add(text, tier, metadata, **options)
            return
        got = view.add(text, tier, metadata, **options)
        self.follow_expiry()
        expires = None if ttl is None else self.model.tick + ttl
        now = self.model.tick
        added = self.model.add(
            Kept(
                agent, 0, text, tier, now, now, metadata or {}, kind, tuple(sorted(set(tags))),
                self.initial(tier, temperature, ttl), expires,
            )
        )  # fmt: skip
        assert self.ids.setdefault((agent, added.sequence), got.id) == got.id
        self.verify(agent, [added])
        assert fields_of(got) == added.fields()

    def new_text(self, size: int) -> str:
        return f"zq{next(self.words):05d}qz" + " and so on" * size

    def initial(self, tier: int, asked: str | None, ttl: int | None) -> int:
        if tier == PINNED:
            return HOT
        if asked is not None:
            return TEMPERATURES.index(asked)
        for limit, temperature in (("ttl_cold_below", COLD), ("ttl_warm_below", WARM)):
            most = self.temperature.get(limit)
            if ttl is not None and most is not None and ttl < most:
                return temperature
        return TEMPERATURES.index(self.temperature.get("initial", "warm"))

    def do_set_tier(self, agent, pick, tier) -> None:
        identifier, memory = self.choose(agent, pick)
        if self.is_gone(memory):
            with pytest.raises(MemoryNotFound):
                self.view(agent).set_tier(identifier, tier)
            return
        got = self.view(agent).set_tier(identifier, tier)
        self.follow_expiry()
        self.model.set_tier(memory, tier)
        self.verify(agent, [memory])
        assert fields_of(got) == memory.fields()

    def do_pin(self, agent, pick) -> None:
        self.do_set_tier(agent, pick, PINNED)

    def do_unpin(self, agent, pick, to) -> None:
        identifier, memory = self.choose(agent, pick)
        if self.is_gone(memory):
            with pytest.raises(MemoryNotFound):
                self.view(agent).unpin(identifier, to)
            return
        got = self.view(agent).unpin(identifier, to)
        self.follow_expiry()
        if memory.tier == PINNED:
            self.model.set_tier(memory, to)
        self.verify(agent, [memory])
        assert fields_of(got) == memory.fields()

    def do_promote(self, agent, pick) -> None:
        identifier, memory = self.choose(agent, pick)
        if not self.is_active(memory, self.view(agent).promote, identifier):
            return
        got = self.view(agent).promote(identifier)
        too_large = self.temperature["auto_spill"] and not self.fits(memory)
        if memory.temperature == HOT or too_large:
            assert not got
            self.verify()
            return
        self.model.use([(memory, memory.relevance)])
        memory.temperature = HOT
        self.verify(agent, [memory])
        assert got == (memory.temperature == HOT)

    def do_demote(self, agent, pick, to) -> None:
        identifier, memory = self.choose(agent, pick)
        view = self.view(agent)
        if not self.is_active(memory, view.demote, identifier, to):
            return
        if memory.tier == PINNED:
            with pytest.raises(MemoryPinned):
                view.demote(identifier, to)
            return
        target = TEMPERATURES.index(to)
        got = view.demote(identifier, to)
        assert got == (memory.temperature < target)
        memory.temperature = max(memory.temperature, target)
        self.verify()

    def is_gone(self, memory: Kept | None) -> bool:
        """Whether its id is nobody's: it never was, was deleted, or expired."""
        if memory is None or memory.retention == DELETED:
            return True
        return memory.retention == ACTIVE and not self.model.is_seen(memory)

    def is_active(self, memory: Kept | None, call: Any, *arguments: Any) -> bool:
        """Whether the call may succeed; it fails here where it may not."""
        missing = self.is_gone(memory)
        if not missing and memory.retention == ACTIVE:
            return True
        with pytest.raises(MemoryNotFound if missing else InvalidInput):
            call(*arguments)
        return False

    def do_cold_to_hot_to_cold(self, agent, pick) -> None:
        """Lossless: all is as before but for temperature and use."""
        cold = [
            m
            for m in self.model.of(agent)
            if m.temperature == COLD and self.fits(m) and self.model.is_seen(m)
        ]
        if not cold:
            return
        memory = cold[pick % len(cold)]
        identifier = self.ids[agent, memory.sequence]
        before, vector, recalls = look(self.bank)[agent, memory.sequence]
        self.view(agent).promote(identifier)  # where pinned ones fill hot, not for long
        self.view(agent).demote(identifier, "cold")
        after, same_vector, same_recalls = look(self.bank)[agent, memory.sequence]
        used = {"access_count": before.access_count + 1, "last_access_tick": self.model.tick}
        assert tuple(after) == tuple(before._replace(**used))
        assert (vector, recalls) == (same_vector, same_recalls)
        self.model.use([(memory, memory.relevance)])
        self.verify(agent, [])

    def do_spill(self, agent, count, picks) -> None:
        view = self.view(agent)
        hot = [memory for memory in self.model.hot(agent) if memory.tier != PINNED]
        if picks is not None:
            chosen = [self.choose(agent, pick) for pick in picks]
            ids = [identifier for identifier, _ in chosen]
            memories = [memory for _, memory in chosen]
            if any(map(self.is_gone, memories)):
                with pytest.raises(MemoryNotFound):
                    view.spill(ids=ids)
                return
            if any(memory.tier == PINNED for memory in memories):
                with pytest.raises(MemoryPinned):
                    view.spill(ids=ids)
                return
            moved = view.spill(ids=ids).moved
            assert moved.keys() == {self.ids[agent, m.sequence] for m in hot if m in memories}
        else:
            moved = view.spill(count).moved
            if count is not None:
                assert len(moved) == min(count, len(hot))
        for memory in hot:
            if (to := moved.get(self.ids[agent, memory.sequence])) is not None:
                assert to == self.spilled_to(memory)
                memory.temperature = int(to)
        self.verify()
        if count is None and picks is None:
            self.check_hot(agent)

    def do_recall(self, agent, query, limit, auto_promote, kinds, least) -> None:
        got = self.view(agent).recall(
            query, limit, auto_promote=auto_promote, kinds=kinds, min_relevance=least
        )
        if not query.strip():
            assert got == ((), (), (), ())
            return
        only = Only(
            temperatures=frozenset({WARM, COLD}),
            kinds=None if kinds is None else frozenset(kinds),
            min_score=least or 0.0,
        )
        found = self.model.search(agent, query, limit, only)
        self.model.use(found, recalled=True)
        promoted = [memory for memory, score in found if self.deserves(memory, score)]
        if auto_promote:
            too_large = [m for m in promoted if self.temperature["auto_spill"] and not self.fits(m)]
            for memory in promoted:
                memory.temperature = WARM if memory in too_large else HOT
        self.verify(agent if auto_promote else None, promoted)
        assert [fields_of(item) for item in got.items] == [memory.fields() for memory, _ in found]
        assert list(got.scores) == [score for _, score in found]
        hot = [self.ids[agent, m.sequence] for m, _ in found if m.temperature == HOT]
        assert list(got.promoted) == hot

    def deserves(self, memory: Kept, score: float) -> bool:
        recent = [tick for tick in memory.recalls if tick >= self.model.tick - WINDOW]
        return score >= PROMOTE_AT or len(recent) >= RECALLS

    def do_search(self, agent, query, limit, filters, include_cold) -> None:
        view = self.view(agent)
        least = filters.get("min_score") if query.strip() else None
        hits = view.search(
            query, limit, include_cold=include_cold, **{**filters, "min_score": least}
        )
        only = self.only(filters, include_cold)._replace(min_score=least or 0.0)
        found = self.model.search(agent, query, limit, only)
        self.check_hits(hits, found)
        for hit in hits:
            assert (
                include_cold
                or "cold" in (filters.get("temperature") or ())
                or (hit.memory.temperature != COLD)
            )
        self.used(query, found)

    @staticmethod
    def only(filters: dict[str, Any], include_cold: bool) -> Only:
        named = filters.get("temperature")
        temperatures = {HOT, WARM} if named is None else {TEMPERATURES.index(t) for t in named}
        sets = {
            name: None if filters.get(name) is None else frozenset(filters[name])
            for name in ("tier", "kind", "tags")
        }
        return Only(
            sets["tier"],
            frozenset(temperatures | ({COLD} if include_cold else set())),
            sets["kind"],
            sets["tags"],
            filters.get("since_tick") or 0,
        )

    def do_relevant(self, agent, query, limit) -> None:
        found = self.model.context(agent, query, limit, TOKENS, FACTS)
        assert len({memory.sequence for memory, _ in found}) == len(found)
        assert self.view(agent).get_relevant_memories(query, limit) == lines_of(found)
        self.used(query, found)
        front = self.model.context(agent, "", 0, TOKENS, FACTS)
        assert self.view(agent).hot_context() == lines_of(front)

    def check_hits(self, hits: Any, found: list[Scored]) -> None:
        assert [fields_of(hit.memory) for hit in hits] == [memory.fields() for memory, _ in found]
        assert [hit.score for hit in hits] == [score for _, score in found]

    def used(self, query: str, found: list[Scored]) -> None:
        if query.strip():
            self.model.use(found)
        self.verify()

    def do_retain(self, agent, pick, what) -> None:
        identifier, memory = self.choose(agent, pick)
        call = getattr(self.view(agent), what)
        if memory is None or (self.is_gone(memory) and what in ("archive", "delete")):
            with pytest.raises(MemoryNotFound):
                call(identifier)
            return
        is_over = memory.retention == DELETED and self.model.tick - memory.retained >= GRACE
        if what == "restore" and is_over:
            with pytest.raises(MemoryNotFound, match="grace"):
                call(identifier)
            return
        if memory.tier == PINNED and what != "restore":
            with pytest.raises(MemoryPinned, match="unpin"):
                call(identifier)
            return
        call(identifier)
        self.follow_expiry(identifier)
        if what == "forget":
            self.purge([(agent, memory.sequence)])
            self.forgotten.append(memory.content)
            self.verify()
            return
        if what == "restore" and self.is_gone(memory):
            memory.retention = DELETED  # if it was not: it expired
        returned = what == "restore" and memory.retention != ACTIVE
        wanted = {"archive": ARCHIVED, "delete": DELETED, "restore": ACTIVE}[what]
        self.model.retain(memory, wanted)
        self.verify(agent if returned else None, [memory])

    def purge(self, keys: Collection[Key]) -> None:
        for key in keys:
            self.model.purge(key)
        self.purged += keys

    def do_compact(self, agent) -> None:
        if not all(map(self.model.is_seen, self.model.memories.values())):
            self.do_sweep()
        before = self.bank.state_hash()
        planned = self.bank.compact(agent, dry_run=True)
        assert self.bank.state_hash() == before, "a dry run changed something"
        done = self.bank.compact(agent)
        assert done[:4] == planned[:4], "a dry run did not say what would happen"
        for memory, to, _ in planned.moves:
            kept = self.model.memories[memory.agent_id, memory.sequence]
            assert kept.tier != PINNED
            assert fields_of(memory) == kept.fields()
            assert kept.temperature != to
            kept.temperature = int(to)
        if self.temperature.get("auto_prune"):
            self.prune(agent)
        self.verify()
        for memory in self.model.memories.values():
            if memory.retention != ACTIVE or agent not in (None, memory.agent_id):
                continue
            assert memory.temperature == COLD or not is_completed(memory)
            if memory.temperature == HOT and memory.tier != PINNED:
                idle = self.model.tick - memory.idle_since
                is_kept = memory.kind == "preference" and idle < 7
                assert is_kept or "blocker" in memory.tags
        before = self.bank.state_hash()
        again = self.bank.compact(agent)
        assert again == (0, 0, 0, 0, ())
        assert self.bank.state_hash() == before, "a second compaction changed something"

    def do_prune(self, agent) -> None:
        if not all(map(self.model.is_seen, self.model.memories.values())):
            self.do_sweep()
        expected = self.bank.prune(agent, dry_run=True)
        self.verify()
        assert self.bank.prune(agent) == expected
        assert expected == [self.ids[key] for key in self.prune(agent)]
        self.verify()

    def prune(self, agent: str | None) -> list[Key]:
        """Archive in the model: the least worth first; never what is critical."""
        chosen = []
        for each in AGENTS if agent is None else [agent]:
            cold = [memory for memory in self.model.of(each) if memory.temperature == COLD]
            going = [memory for memory in cold if memory.tier > CRITICAL]
            going.sort(key=lambda m: (m.relevance + 0.1 * m.count, m.sequence))
            for memory in going[: max(0, len(cold) - MOST_COLD)]:
                self.model.retain(memory, ARCHIVED)
                chosen.append((each, memory.sequence))
        return chosen

    def do_sweep(self) -> None:
        self.bank.sweep()
        self.purge(self.model.sweep(GRACE))
        if self.temperature.get("decays"):
            for memory in self.model.memories.values():
                if memory.retention != ACTIVE or memory.tier == PINNED:
                    continue
                # Compaction would make a blocker hot again.
                stays = memory.temperature == HOT and "blocker" in memory.tags
                if has_faded(memory, self.model.tick, HALF_LIVES) and not stays:
                    memory.temperature += 1
        self.verify()

    def do_advance(self, delta) -> None:
        if not self.in_transaction:
            self.bank.commit()
            self.remember_this_tick()
        self.bank.advance(self.model.tick + delta)
        self.model.tick += delta
        self.verify()

    def do_pass_time(self, ticks) -> None:
        """As in a simulation: each tick is swept."""
        for _ in range(ticks):
            self.do_advance(1)
            self.do_sweep()

    def remember_this_tick(self) -> None:
        self.committed()
        self.history[self.model.tick] = (self.model.saved(), self.bank.state_hash())

    def committed(self) -> None:
        """What was purged for good is gone from the past as well."""
        for tick, (model, _) in list(self.history.items()):
            if any(key in model.memories for key in self.purged):
                for key in self.purged:
                    model.purge(key)
                self.history[tick] = (model, None)
        self.purged.clear()

    # Transactions

    def perform_all(self, operations: list[tuple[Any, ...]]) -> None:
        for name, *arguments in operations:
            self.perform(name, *arguments)

    @contextlib.contextmanager
    def transaction_of_several(self) -> Iterator[None]:
        self.bank.commit()
        self.remember_this_tick()
        self.in_transaction = True
        try:
            with self.bank.transaction():
                yield
        finally:
            self.in_transaction = False
        self.committed()

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """What happens inside ends with Stop, and never happened."""
        saved, mark, known = self.model.saved(), len(self.purged), len(self.forgotten)
        ids, before = dict(self.ids), self.bank.state_hash()
        with pytest.raises(Stop):
            yield
        self.model, self.ids = saved, ids
        del self.purged[mark:], self.forgotten[known:]
        assert self.bank.state_hash() == before
        assert_equal(self.bank, self.model)

    # Checks

    def follow_expiry(self, but: str = "") -> None:
        """What expired may be deleted before the next sweep, where it takes the place of others."""
        for key, (found, _, _) in look(self.bank).items():
            memory = self.model.memories.get(key)
            if memory is None or found.id == but or self.model.is_seen(memory):
                continue
            if (memory.retention, found.retention) == (ACTIVE, DELETED):
                memory.retention, memory.retained = DELETED, self.model.tick

    def verify(self, spilling: str | None = None, newcomers: Collection[Kept] = ()) -> None:
        """The bank is as the model says; of ``spilling``, others than told may have left hot."""
        found = look(self.bank)
        assert found.keys() == self.model.memories.keys()
        left = []
        for key, (memory, _, _) in found.items():
            expected = self.model.memories[key]
            if memory.temperature != expected.temperature:
                self.check_spilled(expected, int(memory.temperature), spilling)
                left.append(expected)
        assert_equal(self.bank, self.model)
        for key, (memory, _, _) in found.items():
            assert self.ids.setdefault(key, memory.id) == memory.id
        spilled = [m for m in left if m in newcomers and self.fits(m)]
        if spilled and spilling is not None:
            assert all(m.tier == PINNED or m in newcomers for m in self.model.hot(spilling))

    def check_spilled(self, memory: Kept, now: int, spilling: str | None) -> None:
        """It left hot because hot was full; the model follows."""
        assert memory.agent_id == spilling, "it moved, and nobody said so"
        assert self.temperature["auto_spill"]
        assert (memory.temperature, memory.retention) == (HOT, ACTIVE)
        assert memory.tier != PINNED
        assert now == self.spilled_to(memory)
        memory.temperature = now

    def spilled_to(self, memory: Kept) -> int:
        """Where it goes when it leaves hot; what hot could never hold is not cold for that."""
        return WARM if not self.fits(memory) or memory.count >= OFTEN else COLD

    def fits(self, memory: Kept) -> bool:
        """Whether hot could hold it beside what is pinned."""
        pinned = [m for m in self.model.hot(memory.agent_id) if m.tier == PINNED]
        room = TOKENS - sum(m.cost for m in pinned if m is not memory)
        return memory.cost <= room and len(pinned) < FACTS

    def check_hot(self, agent: str) -> None:
        hot = self.model.hot(agent)
        if sum(memory.cost for memory in hot) > TOKENS or len(hot) > FACTS:
            assert all(memory.tier == PINNED for memory in hot), "hot is over its limits"

    def check_found(self, agent: str, query: str, limit: int) -> None:
        """What a search of all temperatures finds, without the use that a search would count."""
        found, _ = self.view(agent)._moves._found(agent, query, limit, ANY)
        everything = Only(temperatures=frozenset({HOT, WARM, COLD}))
        self.check_hits(found, self.model.search(agent, query, limit, everything))

    def check_views(self) -> None:
        for agent in AGENTS:
            view = self.view(agent)
            seen = [memory for memory in self.model.of(agent) if self.model.is_seen(memory)]
            assert [fields_of(each) for each in view.all()] == [each.fields() for each in seen]
            assert view.count() == len(seen)
            for tier in range(5):
                assert view.count(tier) == sum(memory.tier == tier for memory in seen)
            for heat, name in enumerate(TEMPERATURES):
                got = [memory.sequence for memory in view.all(temperature=name)]
                assert got == [m.sequence for m in seen if m.temperature == heat]
            for memory in self.model.of(agent, ARCHIVED):
                got = view.get(self.ids[agent, memory.sequence])
                assert fields_of(got) == memory.fields()
            for memory in self.model.of(agent, DELETED):
                with pytest.raises(MemoryNotFound, match="restore"):
                    view.get(self.ids[agent, memory.sequence])
