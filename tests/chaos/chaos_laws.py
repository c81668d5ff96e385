"""What must hold of a bank after a fault."""

import itertools
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos_child import Said
from chaos_steps import (
    AGENTS,
    CAPS,
    CHANGING,
    CHECKPOINT,
    Imagined,
    SmallEmbedder,
    in_bank,
    open_bank,
    steps,
)

from agents import MemoryBank, MemoryNotFound, Retention, StoreError, Tier, TierMemError
from agents.engine import read
from agents.engine.engine import Engine
from agents.memory.context import approximate_tokens
from agents.storage.journal.journal import Journal
from plain_mem0 import assert_store_is_exact

Answer = dict[str, Any]
"""What a look at a bank came to: its digest and hash, an error, or a broken law."""


def possible(before: list[Imagined], seed: int, said: Said) -> list[Imagined]:
    """What the bank may hold: all that was acknowledged; of the rest, each step whole or not."""
    result = [each.copy() for each in before]
    attempted = set(said.attempted)
    last = max(attempted, default=0)
    for number, step in zip(range(1, last + 1), steps(seed), strict=False):
        if number not in attempted or step[0] not in CHANGING:
            continue
        without = [] if number in said.acknowledged else [each.copy() for each in result]
        for each in result:
            each.do(step)
        result += without
    return result


def prefixes(before: Imagined, seed: int, last: int) -> list[str]:
    """The digests after each step, from the state before the first one."""
    model = before.copy()
    found = [model.digest()]
    for step in itertools.islice(steps(seed), last):
        model.do(step)
        found.append(model.digest())
    return found


def look(folder: Path) -> Answer:
    """Open a bank and read all of it; for a process of its own."""
    return _answer(lambda: _read(open_bank(folder, "manual")))


def look_at_copy(folder: Path) -> Answer:
    """Read the copy in memory of a bank that another process has open."""
    return _answer(lambda: _read(MemoryBank.at(folder, embedder=SmallEmbedder())))


def restore(folder: Path, into: Path) -> Answer:
    """Make a bank from a checkpoint and read all of it."""
    options: dict[str, Any] = {"embedder": SmallEmbedder(), "storage": {"sync": "manual"}}
    return _answer(lambda: _read(MemoryBank.restore(folder / CHECKPOINT, into, **options)))


def check(folder: Path, sync: str) -> Answer:
    """Read a bank and hold it to the laws."""

    def checked() -> Answer:
        found = _read(open_bank(folder, "manual"), laws=True)
        again = _read(open_bank(folder, "manual"))
        if again != found:
            return {"law": "opening it once more gives another state"}
        if sync != "manual":
            _check_store(folder)
        return found

    return _answer(checked)


def _answer(ask: Any) -> Answer:
    try:
        result: Answer = ask()
    except TierMemError as error:
        return {"typed": type(error).__name__, "text": str(error)[:300]}
    except AssertionError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {"law": str(error)[:300] or f"{last.name}: {last.line}"}
    except Exception as error:
        return {"untyped": f"{type(error).__name__}: {error}"[:300]}
    return result


def _read(bank: MemoryBank, *, laws: bool = False) -> Answer:
    with bank:
        found = {
            "hash": bank.state_hash(),
            "digest": in_bank(bank),
            "without notes": in_bank(bank, notes=False),
        }
        for name in AGENTS:
            view = bank.agent(name)
            for memory in view.all():
                view.get(memory.id)
            view.all(retention=Retention.ARCHIVED)
            view.all(retention=Retention.DELETED)
        if laws:
            _check_laws(bank)
            assert replayed_hash(bank) == found["hash"], "a replay of the journal has another hash"
    return found


def _check_laws(bank: MemoryBank) -> None:
    own = {name: {memory.id for memory in bank.agent(name).all()} for name in AGENTS}
    for name in AGENTS:
        view = bank.agent(name)
        pinned = view.get_pinned_memories()
        assert len(pinned) <= CAPS["max_pinned"], "more pins than the cap"
        assert view.count(Tier.CRITICAL) <= CAPS["max_critical"], "more critical than the cap"
        assert all(m.temperature.name == "HOT" for m in pinned), "a pin that is not hot"
        assert {m.id for m in pinned} <= {h.memory.id for h in view.explain("many", 9)}, (
            "a pin less"
        )
        with bank.engine.observing():
            assert {hit.memory.id for hit in view.search("many", 9)} <= own[name], "a stranger's"
        for other in AGENTS:
            for stranger in sorted(own[other])[:2] if other != name else ():
                try:
                    view.get(stranger)
                except MemoryNotFound:
                    continue
                raise AssertionError("an agent got the memory of another")


def replayed_hash(bank: MemoryBank) -> str:
    """The hash of the state that all commits give, without a snapshot."""
    assert bank.folder is not None
    journal = Journal(None, copied=bank.folder / "journal.db")
    try:
        with journal.file.writing():
            journal.file.db.execute("DELETE FROM snapshots")
            journal.file.put({"snapshot": None, "rebuild_shelf": True, "store": None})
        parts = Engine(
            None,
            journal,
            journal.get("bank"),
            bank.settings,
            SmallEmbedder(),
            approximate_tokens,
            None,
        )
        return read.state_hash(parts)
    finally:
        journal.close()


def check_repaired(folder: Path) -> Answer:
    """Open a bank whose store may be damaged, rebuild the store, and compare the two."""

    def repaired() -> Answer:
        with suppress(StoreError):
            open_bank(folder, "commit").close()
        with open_bank(folder, "manual") as bank:
            bank.repair_store()
            _compare_store(bank)
        return _read(open_bank(folder, "manual"))

    return _answer(repaired)


def _check_store(folder: Path) -> None:
    try:
        bank = open_bank(folder, "commit")
    except StoreError:
        bank = open_bank(folder, "manual")
        bank.repair_store()
    with bank:
        bank.sync()
        _compare_store(bank)


def _compare_store(bank: MemoryBank) -> None:
    if bank.agents():  # a bank without memories has no store
        assert_store_is_exact(bank)
