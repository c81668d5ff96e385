"""Cold memories in a search by meaning and by words."""

import gc
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hybrid import SMALL_TALK, Make, Ones, contents

from agents import AgentMemory, InvalidInput, MemoryBank
from agents.engine import clock
from agents.storage.columns.agent_columns import AgentColumns
from agents.storage.store_sync import StoreSync


def test_an_agent_whose_memories_are_all_cold_finds_them(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.update(alice.add("The gate failed with ERR-42 at noon").id, temperature="cold")
    (hit,) = alice.search("ERR-42", min_score=0.35, include_cold=True)
    assert hit.score > 0.8


def test_a_word_that_only_cold_memories_have_counts_for_all_of_them(make: Make) -> None:
    alice = make(embedder=Ones())
    alice.add_many(["a third", "another thing"])
    alice.update(alice.add("ERR-42 at the gate").id, temperature="cold")
    hits = alice.search("ERR-42", 3, include_cold=True)
    assert hits[0].memory.content == "ERR-42 at the gate"
    assert hits[1].score == pytest.approx(0.5)


def test_a_cold_memory_without_a_vector_has_its_keyword_score(make: Make) -> None:
    alice = make(embedder=Ones())
    alice.add_many(["a third", "another thing"])
    alice.update(alice.add("zero ERR-42").id, temperature="cold")
    assert alice.search("ERR-42", 1, include_cold=True)[0].score > 0.8


def test_a_cold_memory_of_a_session_does_not_overtake_because_it_is_cold(make: Make) -> None:
    alice = make()
    first = alice.add("the dragon sleeps in the old mill at noon", session="a")
    second = alice.add("the dragon sleeps", session="a")
    alice.add_many(SMALL_TALK)
    query = "does the dragon sleep in the mill at noon"
    both = contents(alice.search(query, 2))
    assert both == [first.content, second.content]
    alice.update(second.id, temperature="cold")
    assert contents(alice.search(query, 2, include_cold=True)) == both


@pytest.mark.slow
def test_a_reopened_bank_finds_what_is_cold_as_the_live_one_did(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        alice = bank.agent("alice")
        texts = [f"angling trip number {n} on the lake" for n in range(100)]
        for memory in alice.add_many([*texts, "Marcel keeps all his invoices in a tin"]):
            alice.update(memory.id, temperature="cold")
        alice.add("the lake is deep")
        live = [(hit.memory.id, hit.score) for hit in alice.search("Marcel fishing", 3,
                                                                  include_cold=True)]  # fmt: skip
    with MemoryBank.open(tmp_path / "bank") as bank:
        again = bank.agent("alice").search("Marcel fishing", 3, include_cold=True)
        assert [(hit.memory.id, hit.score) for hit in again] == live
        assert again[0].memory.content.startswith("Marcel")


@pytest.mark.slow
def test_a_copy_of_a_bank_finds_what_is_cold(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank") as bank:
        alice = bank.agent("alice")
        alice.update(alice.add("the gate failed with ERR-42").id, temperature="cold")
    with MemoryBank.at(tmp_path / "bank") as copy:
        found = copy.agent("alice").search("what failed at the gate?", include_cold=True)
        assert contents(found) == ["the gate failed with ERR-42"]


def test_cold_memories_are_scored_by_their_words_too(make: Make) -> None:
    alice = make()
    cold = alice.add("The gate failed with ERR-42")
    alice.add_many(SMALL_TALK)
    alice.update(cold.id, temperature="cold")
    (hit,) = alice.search("ERR-42", 1, include_cold=True)
    assert hit.memory.id == cold.id
    assert hit.score > 0.6


@pytest.mark.parametrize("provider", ["offline", "none"])
def test_a_cold_memory_is_found_by_a_rare_word_among_many(make: Make, provider: str) -> None:
    alice = make(embedder={"provider": provider})
    texts = [f"the gate failed with code {n}_A after a deal of ${n}K" for n in range(300)]
    for memory in alice.add_many(texts):
        alice.update(memory.id, temperature="cold")
    found = alice.search("what about 7_A", 1, include_cold=True)
    assert contents(found) == [texts[7]]
    assert alice.recall("$123K").items[0].content == texts[123]


@pytest.mark.parametrize("provider", ["offline", "none"])
def test_what_is_cold_is_found_alike_before_and_after_a_commit_and_a_sync(
    tmp_path: Path, provider: str
) -> None:
    texts = [f"the gate failed with code {n}_A after a deal of ${n}K" for n in range(60)]
    queries = ["7_A", "$12K", "a gate that broke", "who failed?", "???"]
    embedder = {"provider": provider}
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}, embedder=embedder) as bank:
        alice = bank.agent("alice")

        def found() -> list[list[tuple[int, float]]]:
            return [
                [(hit.memory.sequence, hit.score) for hit in alice.search(q, 4, include_cold=True)]
                for q in queries
            ]

        with bank.transaction():
            for memory in alice.add_many(texts):
                alice.update(memory.id, temperature="cold")
            pending = found()
        committed = found()
        bank.sync()
        assert found() == committed == pending


def _cold(alice: AgentMemory, *texts: str) -> None:
    alice.add_many([(text, None, None, {"temperature": "cold"}) for text in texts])


@pytest.mark.parametrize("provider", ["none", "offline"])
def test_a_name_in_a_cold_memory_is_found_beside_a_word_that_many_have(
    make: Make, provider: str
) -> None:
    alice = make(embedder={"provider": provider})
    deals = [f"the market deal number {n}" for n in range(700)]
    _cold(alice, "Zoltan never pays back", *deals[:600])
    alice.add_many(deals[600:])
    for query in ("market Zoltan", "did the market deal with Zoltan work?"):
        found = contents(alice.search(query, 1, include_cold=True))
        assert found == ["Zoltan never pays back"]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("bridges", "The bridge is closed"),
        ("happiness", "She was happy"),
        ("cafe", "The Café burned"),
        ("ÉCOLE", "l'école est fermée"),
        ("abc", "the code ＡＢＣ"),
        ("obrien", "O'Brien lies"),
        ("Al", "Al has a boat"),
        ("agent_X", "NEVER trust Agent_X"),
        ("茶", "我喜欢茶"),
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_cold_memory_is_found_by_the_words_of_a_resident_one(
    make: Make, query: str, text: str, mode: str
) -> None:
    alice = make(retrieval={"mode": mode})
    _cold(alice, text, *(f"we also walked along the wall {n}" for n in range(250)))
    assert contents(alice.search(query, 1, include_cold=True)) == [text]


TALK = [
    ("Ann", "Where did you put the ladder, Bob?"),
    ("Bob", "Behind the shed, next to the wheelbarrow."),
    ("Ann", "My sister Clara moved to Lisbon last spring."),
    ("Bob", "Lisbon! Does she still play the cello?"),
    ("Ann", "Every Sunday, in a small orchestra."),
    ("Bob", "I broke the handle of the wheelbarrow yesterday."),
    ("Ann", "Then borrow mine, it has a new wheel."),
    ("Bob", "Is Clara coming for your birthday?"),
    ("Ann", "No, but she sends olive oil and tiles."),
]
QUESTIONS = ("where is the ladder?", "what does Clara play?", "what did Bob break", "Ann", "olive")


def _talk(alice: AgentMemory, cold: Callable[[int], bool]) -> list[str]:
    """The ids of a talk over several days, some of it cold; also memories without a session."""
    ids = []
    for n in range(6 * len(TALK)):
        speaker, text = TALK[n % len(TALK)]
        day, temperature = n // len(TALK), "cold" if cold(n) else "warm"
        text = f"Day {day}: {text}"
        talk = {} if day == 4 else {"session": f"day {day % 5}", "speaker": speaker}
        ttl = 3 if n % 11 == 5 else None
        ids.append(alice.add(text, ttl=ttl, temperature=temperature, **talk).id)
    return ids


def _found(alice: AgentMemory, **options: Any) -> list[list[tuple[int, float, float]]]:
    return [
        [
            (hit.memory.sequence, hit.score, hit.boosted_score)
            for hit in alice.search(query, 7, include_cold=True, **options)
        ]
        for query in QUESTIONS
    ]


@pytest.mark.parametrize("preset", ["hybrid", "weighted-sum", "vector", "generative-agents"])
@pytest.mark.parametrize("every", [1, 2])
def test_the_same_memories_are_found_alike_cold_or_warm(
    make: Make, preset: str, every: int
) -> None:
    banks = make(preset=preset), make(preset=preset)
    for alice, is_cold in zip(banks, (True, False), strict=True):
        _talk(alice, lambda n, is_cold=is_cold: is_cold and not n % every)  # type: ignore[misc]
    for options in ({}, {"session": "day 2"}, {"min_score": 0.4}):
        cold, warm = (_found(alice, **options) for alice in banks)
        assert cold == warm


def test_what_moves_between_cold_and_warm_is_found_as_if_all_were_warm(make: Make) -> None:
    still, bank = make(), MemoryBank.ephemeral()
    moving = bank.agent("alice")
    rng, ids = random.Random(3), list(zip(_talk(moving, lambda n: n % 3 > 0),
                                          _talk(still, lambda _: False), strict=True))  # fmt: skip

    def on_both(act: Callable[[AgentMemory, str], object], place: int) -> None:
        for alice, each in zip((moving, still), ids[place], strict=True):
            act(alice, each)

    for step in range(16):
        place = rng.randrange(len(ids))
        if (kind := rng.randrange(5)) < 2:
            temperature = ("warm", "cold")[kind]
            with suppress(InvalidInput):  # it is archived
                moving.update(ids[place][0], temperature=temperature)
        elif kind == 2:
            retention = rng.choice(["archived", "active"])
            on_both(lambda alice, each, to=retention: alice.update(each, retention=to), place)  # type: ignore[misc]
        elif kind == 3:
            text = f"Bob: the ladder of day {step} is new"
            new = [alice.add(text, session="day 1", speaker="Bob") for alice in (moving, still)]
            ids.append((new[0].id, new[1].id))
            place = len(ids) - 1
        else:
            with suppress(RuntimeError), bank.transaction():
                moving.add("Lisbon, Lisbon, Lisbon")
                moving.update(ids[place][0], tier="critical", temperature="cold")
                _found(moving)
                raise RuntimeError("this did not happen")
        assert _found(moving) == _found(still)
    bank.close()


def test_how_rare_a_word_is_depends_on_cold_memories_too(make: Make) -> None:
    alice = make(retrieval={"mode": "keyword"})
    alice.add_many(["the dragon sleeps", "a zebu sleeps"])
    _cold(alice, *(f"zebu number {n}" for n in range(200)))
    assert contents(alice.search("zebu dragon", 1, include_cold=True)) == ["the dragon sleeps"]


def test_a_blank_query_for_what_was_superseded_gives_that(make: Make) -> None:
    alice = make()
    alice.add("diet meat", key="diet")
    alice.add("diet vegan", key="diet")
    _cold(alice, "cold thing")
    found = alice.search("", include_superseded=True)
    assert contents(found) == ["diet vegan", "diet meat"]


def test_blank_queries_sort_alike_with_cold_memories_and_boards(make: Make) -> None:
    alice = make(preset="generative-agents")
    for text, tier in (("a", "pinned"), ("b", "low"), ("c", "critical"), ("d", "normal")):
        alice.add(text, tier)
    _cold(alice, "e")
    assert contents(alice.search("")) == ["d", "c", "b", "a"]
    assert contents(alice.search("", include_groups=True)) == ["d", "c", "b", "a"]
    assert contents(alice.search("", include_cold=True)) == ["e", "d", "c", "b", "a"]


def test_an_agent_in_no_group_finds_the_same_with_boards(make: Make) -> None:
    alice = make()
    alice.add_many(["red boat in bay", "red boat in bay now", "gold fish market", "a red boat"])
    found = contents(alice.search("red boat gold", 3))
    assert contents(alice.search("red boat gold", 3, include_groups=True)) == found


def test_mem0s_store_is_not_asked_for_an_agent_without_cold_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        _cold(bank.agent("bob"), "the mill burns")
        bank.agent("alice").add("the mill is old")
        monkeypatch.setattr(StoreSync, "written", 1)
        monkeypatch.delattr(StoreSync, "search")
        found = bank.agent("alice").search("mill", include_cold=True)
    assert contents(found) == ["the mill is old"]


@pytest.mark.parametrize("how", ["forgotten", "deleted"])
def test_a_purged_memory_is_in_no_columns_any_more(make: Make, how: str) -> None:
    alice = make(retention={"grace": 1})
    secret = alice.add("the cellar key is under the stone", temperature="cold")
    assert alice.search("cellar key", include_cold=True)
    assert _columns_with("cellar")
    if how == "forgotten":
        alice.forget(secret.id)
    else:
        alice.delete(secret.id)
        clock.pass_time(alice.engine, 3)
    assert not _columns_with("cellar")


def _columns_with(word: str) -> list[AgentColumns]:
    gc.collect()
    every = [each for each in gc.get_objects() if isinstance(each, AgentColumns)]
    texts = ((own, memory.content) for own in every for memory in own.memories(range(own.size)))
    return [own for own, text in texts if word in text]
