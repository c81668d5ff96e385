"""A bank with many memories that are not resident, its journal damaged, and every call that reads.

A call on a damaged bank gives an error of TierMem, or what it gave before the damage.
"""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agents import MemoryBank, TierMemError
from agents.engine import upkeep
from agents.exchange.row_files import exported
from agents.exchange.salvage import salvage
from agents.memory.records import memory_id
from agents.memory.tiers import Retention
from asking import asked
from banks import MANUAL
from embedders import Directions

AGENTS = ("alice", "bob", "carol", "dave")
PAGE = 4096
OPTIONS: dict[str, Any] = {"embedder": Directions(), "preset": "vector", "storage": MANUAL}

Call = Callable[[MemoryBank, Path], object]


def make(folder: Path) -> None:
    """Fill a bank: most memories are cold, some archived, deleted, critical or about to expire."""
    with MemoryBank.open(folder, **OPTIONS) as bank:
        for tick in range(3):
            bank.advance(tick)
            bank.add_many(
                (
                    agent,
                    f"{agent} {tick} {number} {'word ' * 20}<{number} {tick}>",
                    1 + number % 4,
                    {"n": number},
                    {"temperature": "cold", "kind": "decision", "tags": ["x"], "ttl": 50},
                )
                for number in range(20)
                for agent in AGENTS
            )
            bank.add_many((agent, f"warm {tick} <{tick} 1>") for agent in AGENTS)
        for agent in map(bank.agent, AGENTS):
            cold = agent.all(temperature="cold")
            for memory in cold[::5]:
                agent.update(memory.id, retention="archived")
            for memory in cold[1::9]:
                agent.delete(memory.id)
            agent.recall("<3 1>", auto_promote=False)
        bank.checkpoint(folder.parent / "sound.tmck")


def ids(bank: MemoryBank, agent: str) -> list[str]:
    """The ids of an agent's first memories, cold, archived and deleted ones among them."""
    resident = bank.engine.state
    prefix = resident.block(agent).prefix
    return [memory_id(prefix, sequence) for sequence in range(1, 40, 3)]


def each_id(name: str) -> Call:
    def call(bank: MemoryBank, _: Path) -> object:
        return tried(
            [
                (lambda agent=agent, own=own: asked(bank.agent(agent), name, own))
                for agent in AGENTS
                for own in ids(bank, agent)
            ]
        )

    return call


def tried(calls: list[Callable[[], object]]) -> list[object]:
    """What each call gives; the error of TierMem where it raises one."""
    given: list[object] = []
    for call in calls:
        try:
            given.append(call())
        except TierMemError as error:
            given.append(error)
    return given


CALLS: dict[str, Call] = {
    "all": lambda bank, _: [bank.agent(each).all() for each in AGENTS],
    "all cold": lambda bank, _: [bank.agent(each).all(temperature="cold") for each in AGENTS],
    "count": lambda bank, _: [bank.agent(each).count() for each in AGENTS],
    "hidden": lambda bank, _: [
        bank.agent(each).all(retention=kept)
        for each in AGENTS
        for kept in (Retention.ARCHIVED, Retention.DELETED)
    ],
    "search": lambda bank, _: [
        bank.agent(each).search("<3 1>", include_cold=True) for each in AGENTS
    ],
    "status": lambda bank, _: bank.status(),
    "state_hash": lambda bank, _: bank.state_hash(),
    "export": lambda bank, _: list(exported(bank, AGENTS, archived=True)),
    "checkpoint": lambda bank, folder: bank.checkpoint(folder / "again.tmck"),
    "dry compaction": lambda bank, _: bank.compact(dry_run=True),
    "dry prune": lambda bank, _: bank.prune(dry_run=True),
    "repr": lambda bank, _: repr(bank),
    "agents": lambda bank, _: upkeep.agents(bank.engine),
    "get": each_id("get"),
    "recall": lambda bank, _: [bank.agent(each).recall("<3 1>") for each in AGENTS],
    "restore": each_id("restore"),
    "warm": each_id("warm"),
    "forget": each_id("forget"),
    "set_tier": lambda bank, _: [
        tried([lambda own=own: bank.agent("bob").set_tier(own, "critical")])
        for own in ids(bank, "bob")
    ],
    "compact": lambda bank, _: bank.compact(),
    "prune": lambda bank, _: bank.prune(),
    "sweep": lambda bank, _: (bank.advance(60), bank.sweep()),
    "vacuum": lambda bank, _: bank.engine.journal.vacuum(),
}


def damages(data: bytes, pages: Iterator[int] | range, seed: int) -> Iterator[tuple[str, bytes]]:
    """The file with a page of zeros, a page of noise, or single bits changed; with a name."""
    chance = random.Random(seed)
    for page in pages:
        start = page * PAGE
        for how in ("zeros", "noise", "bit", "bits"):
            broken = bytearray(data)
            if how == "zeros":
                broken[start : start + PAGE] = bytes(PAGE)
            elif how == "noise":
                broken[start : start + PAGE] = chance.randbytes(PAGE)
            else:
                used = [place for place in range(start, start + PAGE) if data[place]] or [start]
                for place in chance.sample(used, min(len(used), 1 if how == "bit" else 12)):
                    broken[place] ^= 1 << chance.randrange(8)
            yield f"page {page}: {how}", bytes(broken)


def untyped(sound: Path, broken: bytes, work: Path) -> list[str]:
    """The calls that raise something else than an error of TierMem, with what they raise."""
    found: list[str] = []
    names = list(CALLS)
    for calls in (names[:13], names[13:18], names[18:]):
        place(work, broken)
        bank = None
        for name in ("open", *calls, "close"):
            try:
                if name == "open":
                    bank = MemoryBank.open(work, **OPTIONS)
                elif name == "close" and bank is not None:
                    bank.close()
                elif bank is not None:
                    CALLS[name](bank, work)
            except TierMemError:
                if name == "open":
                    break
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
    return found + untyped_outside(sound, broken, work)


def place(folder: Path, journal: bytes) -> None:
    """Make the folder of a bank that has only this journal."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "journal.db").write_bytes(journal)


def untyped_outside(sound: Path, broken: bytes, work: Path) -> list[str]:
    """The same for calls that need no open bank; a checkpoint takes the place of any damage."""
    found: list[str] = []
    outside: dict[str, Callable[[], object]] = {
        "at": lambda: MemoryBank.at(work, 1, embedder=Directions()).close(),
        "salvage": lambda: list(salvage(work).rows(archived=True)),
        "restore over it": lambda: MemoryBank.restore(
            sound.parent / "sound.tmck", work, **OPTIONS
        ).close(),
    }
    for name, call in outside.items():
        place(work, broken)
        try:
            call()
        except TierMemError as error:
            if name == "restore over it":
                found.append(f"{name}: {type(error).__name__}: {error}")
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


def listing(folder: Path) -> dict[str, tuple[str, int]]:
    """The hash and the time of every file; taking the lock touches its file."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("bank.lock", "journal.db-shm")
    }
