"""What a worker does to a bank, step by step, and what a model makes of the same steps."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.bank import ModelBank
from model.memories import RETENTIONS
from writer import AGENTS, CAPS, HEAT, RULES, commits, imagine, write

from agents import MemoryBank
from tiermem.testing import SmallEmbedder

SCRIBE = "scribe"
"""The agent with notes: their chunks are memories, which the model does not know."""
NOTE = "MEMORY.md"
CHECKPOINT = "kept.tmck"

Step = tuple[str, Any]
_KINDS = {
    "commit": 40, "rollback": 6, "add_many": 10, "note": 8, "search": 8, "compact": 4,
    "checkpoint": 3, "sync": 3, "sweep": 2, "vacuum": 1,
}  # fmt: skip
CHANGING = {"commit", "add_many", "note"}
"""Steps after which the model is another one."""


class Undone(Exception):
    """Ends a transaction that is rolled back."""


def open_bank(folder: Path, sync: str) -> MemoryBank:
    return MemoryBank.open(
        folder,
        embedder=SmallEmbedder(),
        memory=CAPS,
        temperature=HEAT,
        storage={"sync": sync},
        retention={"grace": 10**6},  # the model knows no end of it
    )


def steps(seed: int) -> Iterator[Step]:
    """What the worker with this seed does, without end."""
    rng = random.Random(f"steps {seed}")
    written = commits(seed)
    number = 0
    while True:
        number += 1
        (kind,) = rng.choices(list(_KINDS), list(_KINDS.values()))
        if kind in ("commit", "rollback"):
            few = slice(None if rng.random() < 0.03 else 10)
            yield kind, [(*each[:4], each[4][:300]) for each in next(written)[few]]
        elif kind == "add_many":
            yield (
                kind,
                [
                    (rng.choice(AGENTS), f"many {seed}.{number}.{each}", rng.randrange(5))
                    for each in range(rng.choice([2, 5, 40]))
                ],
            )
        else:
            yield kind, f"{seed}.{number}"


def do(bank: MemoryBank, step: Step, beside: Path, *, has_store: bool) -> None:
    """Do a step to a bank; ``beside`` is where its checkpoints go."""
    kind, given = step
    if kind == "commit" and len(given) == 1:
        write(bank, given[0])
    elif kind == "commit":
        with bank.transaction():
            for operation in given:
                write(bank, operation)
    elif kind == "rollback":
        with suppress(Undone), bank.transaction():
            for operation in given:
                write(bank, operation)
            raise Undone
    elif kind == "add_many":
        bank.add_many(given)
    elif kind == "note":
        bank.agent(SCRIBE).notes.append(f"line {given}", NOTE)
    elif kind == "search":
        bank.search_many([(agent, given) for agent in AGENTS])
    elif kind == "checkpoint":
        bank.checkpoint(beside / CHECKPOINT)
    elif kind == "sync" and has_store:
        bank.sync()
    elif kind in ("compact", "sweep"):
        getattr(bank, kind)()
    elif kind == "vacuum" and not has_store:
        bank.vacuum()


@dataclass
class Imagined:
    """What a bank should hold."""

    bank: ModelBank = field(default_factory=lambda: ModelBank(RULES))
    lines: tuple[str, ...] = ()

    def copy(self) -> "Imagined":
        return Imagined(self.bank.saved(), self.lines)

    def do(self, step: Step) -> None:
        kind, given = step
        if kind == "commit":
            for operation in given:
                imagine(self.bank, operation)
        elif kind == "add_many":
            self.bank.add_many([(*each, None) for each in given])
        elif kind == "note":
            self.lines += (f"line {given}",)

    def digest(self) -> str:
        rows = {
            agent: [
                (m.sequence, m.content, m.tier, m.created_tick, m.tier_tick, m.metadata,
                 m.kind, m.tags, RETENTIONS[m.retention])
                for m in self.bank.every(agent)
            ]
            for agent in AGENTS
        }  # fmt: skip
        return digest_of(self.bank.tick, rows, self.lines)


def in_bank(bank: MemoryBank, *, notes: bool = True) -> str:
    """The digest of what a bank holds; as :meth:`Imagined.digest`, without temperature and use."""
    resident = bank.engine.state
    rows = {
        agent: [
            (m.sequence, m.content, int(m.tier), m.created_tick, m.tier_tick, dict(m.metadata),
             m.kind, m.tags, m.retention.name.lower())
            for sequence in range(1, resident.block(agent).next_sequence)
            if (m := resident.memory(agent, sequence))
        ]
        for agent in AGENTS
    }  # fmt: skip
    return digest_of(bank.tick, rows, lines_of(bank) if notes else ())


def lines_of(bank: MemoryBank) -> tuple[str, ...]:
    notes = bank.agent(SCRIBE).notes
    text = notes.read(NOTE) if NOTE in notes.paths() else ""
    return tuple(line for line in text.splitlines() if line)


def digest_of(tick: int, rows: dict[str, list[Any]], lines: tuple[str, ...]) -> str:
    return hashlib.sha256(repr((tick, rows, lines)).encode("utf-8", "surrogatepass")).hexdigest()
