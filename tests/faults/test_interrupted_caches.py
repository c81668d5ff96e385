"""What is kept to answer faster is right after an error or an interrupt, at whatever line it came.

Nothing undoes it, as nothing of it is in the journal.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest
from every_step import Steps, at_most

from agents import MemoryBank
from agents.simulation.policies.cassette import Cassette, Exchange
from agents.storage import embedding
from agents.storage.columns.agent_columns import AgentColumns, KeywordIndex, Vocabulary
from agents.storage.columns.hashes import Sums
from agents.storage.columns.sessions import Sessions
from agents.storage.columns.table import ResidentTable
from agents.storage.embedding import CachedEmbedder, OfflineEmbedder, WordVectors, quantise
from agents.storage.state.snapshots import load
from agents.storage.state.state import State
from agents.telling.trust import origins_of
from examples import number_by_profile

pytestmark = pytest.mark.slow_after(1)

LIMIT = 120.0
"""Seconds in which a call that does not hang has come back, on the busiest machine."""
ALL = number_by_profile(0, 0, 1) == 1

BATCHES = [
    ["red fish"],
    ["a blue boat", "red fish"],
    ["salt", "rope", "tar", "pitch", "oakum"],
    ["gulls over the harbour wall", "an old net"],
]


def code_of(*owners: Any) -> set[CodeType]:
    """The code of functions, and of all methods of classes, with the functions inside them."""
    found: list[CodeType] = []
    for owner in owners:
        members = vars(owner).values() if inspect.isclass(owner) else [owner]
        found += [each.__code__ for each in members if isinstance(each, FunctionType)]
    for code in found:
        found += [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(found)


def faults(
    begin: Callable[[], object], work: Callable[[], object], of: set[CodeType]
) -> Iterator[Steps]:
    """An interrupt before each line of the code, and a MemoryError at each step of it.

    Each comes when the work is there for the first time; in a long test also for the last time.
    """
    for seen in (Steps(line=sys.maxsize, of=of), Steps(of=of)):
        begin()
        with seen:
            work()
        numbered = list(enumerate(seen.places, 1))
        first = {place: number for number, place in reversed(numbered)}
        last = {place: number for number, place in numbered if ALL}
        for number in sorted({*first.values(), *last.values()}):
            is_line = seen.lines > 0
            step = Steps(line=number, of=of) if is_line else Steps(number, of=of)
            begin()
            with at_most(LIMIT, lambda step=step: f"a call after {step.where}"):  # type: ignore[misc]
                with step:
                    work()
                assert step.where
                yield step


@pytest.mark.parametrize("of", [embedding._Newest, WordVectors])
def test_the_vectors_of_texts_stay_right(of: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_LETTERS_EACH", 12)
    monkeypatch.setattr(embedding, "_MOST_WORDS", 12)
    every = sorted({text for batch in BATCHES for text in batch})
    right = dict(zip(every, quantise(OfflineEmbedder().embed(every), 256, len(every)), strict=True))
    kept: CachedEmbedder

    def begin() -> None:
        nonlocal kept
        kept = CachedEmbedder(OfflineEmbedder(), 4, lambda _: {})

    def work() -> None:
        for batch in BATCHES:
            with suppress(KeyboardInterrupt, MemoryError):
                kept.encode(batch)
            with suppress(KeyboardInterrupt, MemoryError):
                kept.forget(batch[0])

    for fault in faults(begin, work, code_of(of)):
        for batch in (*BATCHES, every[:3]):
            expected = np.array([right[text] for text in batch])
            assert np.array_equal(kept.encode(batch), expected), fault.where
        assert len(kept._newest._texts) <= 4, fault.where


def _answers(bank: MemoryBank) -> Iterator[object]:
    """All that a bank answers from what it keeps beside the memories."""
    ann, bob = bank.agent("ann"), bank.agent("bob")
    for query in ("What did Zoe say of the boat?", "red fish in the net", "Yan and the boat"):
        yield [(hit.memory.content, hit.score) for hit in ann.search(query, limit=20)]
    yield [(hit.memory.content, hit.score) for hit in bob.search("red fish", limit=20)]
    yield bank.engine.state.tier_counts()
    yield bank.state_hash()


@pytest.mark.parametrize(
    "of",
    [
        pytest.param([State._cold_by_tier], id="counts"),
        pytest.param([KeywordIndex, Vocabulary, AgentColumns.keywords], id="words"),
        pytest.param([Sessions, AgentColumns.sessions], id="sessions"),
        pytest.param([origins_of], id="origins"),
        pytest.param([Sums, ResidentTable.make_sums], id="hashes"),
    ],
)
def test_the_answers_of_a_bank_stay_right(of: list[Any]) -> None:
    with MemoryBank.ephemeral(retrieval={"trust": True}) as bank:
        ann, bob = bank.agent("ann"), bank.agent("bob")
        for number, speaker in enumerate(("Zoe", "Yan", "Zoe", "Xia")):
            ann.add(f"the boat has {number} leaks?", session="talk", speaker=speaker)
        ann.add("red fish, red fish in the net")
        ann.add("a cold day", temperature="cold")
        ann.social.tell("bob", ann.add("fish is dear").id)
        bob.social.trust("ann", 0.5)
        ann.search("fish and a boat")
        bank.commit()

        def begin() -> None:
            """Read the memories again, with nothing beside them."""
            load(bank.engine.state, bank.engine.journal)

        def work() -> None:
            with suppress(KeyboardInterrupt, MemoryError):
                answers()

        def answers() -> list[object]:
            with bank.engine.observing():
                return list(_answers(bank))

        right = answers()
        for fault in faults(begin, work, code_of(*of)):
            assert answers() == right, fault.where


def test_a_cassette_finds_what_it_has_written(tmp_path: Path) -> None:
    def exchange(tick: int) -> Exchange:
        return Exchange(tick, "ann", 0, [{"role": "user", "content": "x" * tick}], "yes")

    number = 0
    kept: Cassette

    def begin() -> None:
        nonlocal kept, number
        number += 1
        kept = Cassette(tmp_path / f"{number}.jsonl")

    def work() -> None:
        for tick in (1, 2):
            with suppress(KeyboardInterrupt, MemoryError):
                kept.record(exchange(tick))

    for fault in faults(begin, work, code_of(Cassette)):
        for tick in (2, 3):
            kept.record(exchange(tick))
        for tick in (2, 3):
            assert kept.find(*exchange(tick).key) == exchange(tick), fault.where
        assert list(kept) == list(Cassette(kept.path)), fault.where
