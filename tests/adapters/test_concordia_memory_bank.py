"""Concordia's memory bank with TierMem behind it: what needs no Concordia."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import InvalidInput, MemoryBank, Tier
from agents.concordia import FORMATIVE, AssociativeMemoryBank, SentenceEmbedder
from embedders import direction

MANUAL = {"sync": "manual"}
FISH, BOATS, MARKET = "fish <1 0 0>", "boats <0 1 0>", "market <0 0 1>"


def embedder(text: str) -> list[float]:
    return direction(text, 3)


def bank_with(*texts: str, **options: Any) -> AssociativeMemoryBank:
    bank = AssociativeMemoryBank(embedder, **options)
    bank.extend(texts)
    return bank


def restored(state: dict[str, Any]) -> AssociativeMemoryBank:
    bank = AssociativeMemoryBank(embedder)
    bank.set_state(state)
    return bank


# Storing and reading


def test_memories_come_back_in_their_order() -> None:
    bank = bank_with(FISH, BOATS, MARKET)
    assert bank.get_all_memories_as_text() == [FISH, BOATS, MARKET]
    assert bank.retrieve_recent(2) == [BOATS, MARKET]
    assert bank.scan(lambda text: "o" in text) == [BOATS]
    assert len(bank) == 3


def test_the_most_similar_memories_come_first() -> None:
    bank = bank_with(FISH, BOATS, MARKET)
    assert bank.retrieve_associative("<0 2 1>", k=2) == [BOATS, MARKET]
    assert bank.retrieve_associative("<1 0 0>") == [FISH]


def test_a_text_is_stored_once() -> None:
    bank = bank_with(FISH, BOATS, FISH)
    bank.add(BOATS)
    assert bank.get_all_memories_as_text() == [FISH, BOATS]


def test_a_game_masters_bank_allows_duplicates() -> None:
    bank = bank_with("Bob: defect", "Bob: defect", allow_duplicates=True)
    bank.add("Bob: defect")
    assert bank.get_all_memories_as_text() == ["Bob: defect"] * 3


def test_line_breaks_become_spaces() -> None:
    assert bank_with("one\ntwo").get_all_memories_as_text() == ["one two"]


@pytest.mark.parametrize("text", ["", "  ", "long " * 10_000])
def test_blank_and_long_texts_come_back(text: str) -> None:
    bank = bank_with(text, FISH)
    bank.add(text)
    assert bank.get_all_memories_as_text() == [text, FISH]
    assert restored(bank.get_state()).get_all_memories_as_text() == [text, FISH]


def test_a_long_text_fits_into_a_bank_with_short_memories() -> None:
    with MemoryBank.ephemeral(memory={"max_content_bytes": 20}) as own:
        bank = AssociativeMemoryBank(memories=own.agent("alice"))
        bank.add("Zoë " * 100)
        assert bank.get_all_memories_as_text() == ["Zoë " * 100]


def test_without_an_embedder_nothing_is_added_or_asked() -> None:
    bank = AssociativeMemoryBank()
    with pytest.raises(ValueError, match="Embedder must be set"):
        bank.add(FISH)
    with pytest.raises(ValueError, match="Embedder must be set"):
        bank.retrieve_associative(FISH)
    assert (len(bank), bank.get_all_memories_as_text()) == (0, [])
    bank.set_embedder(embedder)
    bank.add(FISH)
    assert bank.retrieve_associative(FISH) == [FISH]


@pytest.mark.parametrize("k", [0, -1])
def test_a_limit_is_positive(k: int) -> None:
    bank = bank_with(FISH)
    with pytest.raises(ValueError, match="must be positive"):
        bank.retrieve_associative(FISH, k)
    with pytest.raises(ValueError, match="must be positive"):
        bank.retrieve_recent(k)


def test_the_data_frame_has_texts_and_vectors() -> None:
    pytest.importorskip("pandas", reason="Concordia brings pandas")
    frame = bank_with("fish <3 0 4>").get_data_frame()
    assert list(frame.columns) == ["text", "embedding"]
    assert frame["embedding"][0] == pytest.approx([0.6, 0, 0.8], abs=0.01)


# Tiers


def test_formative_memories_are_pinned_and_come_first() -> None:
    bank = bank_with(f"[observation] {FORMATIVE} fell into the sea", FISH, BOATS)
    assert bank.retrieve_associative("<0 1 0>", k=2) == [
        f"[observation] {FORMATIVE} fell into the sea",
        BOATS,
    ]


def test_tags_of_your_own_have_tiers() -> None:
    with MemoryBank.ephemeral() as own:
        alice = own.agent("alice")
        bank = AssociativeMemoryBank(memories=alice, tiers={"[plan]": "critical", "[chat]": 4})
        bank.extend(["[plan] flee", "[chat] hello", "rain"])
        assert [memory.tier for memory in alice.all()] == [Tier.CRITICAL, Tier.LOW, Tier.NORMAL]


# State


def test_a_state_is_json_and_comes_back() -> None:
    bank = bank_with(FISH, f"{FORMATIVE} <0 1 0>", "2024-01-01", "7")
    state = json.loads(json.dumps(bank.get_state()))
    again = restored(state)
    assert again.get_state() == state
    assert again.get_all_memories_as_text() == bank.get_all_memories_as_text()
    assert again.retrieve_associative("<1 0 0>", k=2) == [f"{FORMATIVE} <0 1 0>", FISH]


def test_a_restored_vector_is_not_embedded_again() -> None:
    state = bank_with(FISH, BOATS).get_state()
    asked: list[str] = []
    bank = AssociativeMemoryBank(lambda text: asked.append(text) or embedder(text))  # type: ignore[func-returns-value]
    bank.set_state(state)
    assert asked == []
    bank.add(MARKET)
    assert asked == [MARKET]


def test_a_state_can_be_restored_before_the_embedder_is_set() -> None:
    bank = AssociativeMemoryBank()
    bank.set_state(bank_with(FISH).get_state())
    with pytest.raises(InvalidInput, match="Embedder must be set"):
        bank.add(BOATS)
    assert bank.get_all_memories_as_text() == [FISH]
    bank.set_embedder(embedder)
    bank.add(BOATS)
    assert bank.retrieve_associative(BOATS) == [BOATS]


def test_a_state_of_the_original_is_read() -> None:
    frame = {"text": {"0": FISH, "1": "7"}, "embedding": {"0": [1.0, 0, 0], "1": [0, 1.0, 0]}}
    bank = restored({"stored_hashes": [-812, 4711], "memory_bank": json.dumps(frame)})
    bank.add(FISH)
    assert bank.get_all_memories_as_text() == [FISH, "7"]


def test_an_empty_state_is_a_state() -> None:
    bank = bank_with(FISH)
    bank.set_state(AssociativeMemoryBank(embedder).get_state())
    assert len(bank) == 0


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"memory_bank": "no JSON"},
        {"memory_bank": "[]"},
        {"memory_bank": 7},
        {"memory_bank": '{"text": {}, "embedding": {}}', "tiers": 5},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": [1.0]}}', "tiers": [5.5]},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": [1.0]}}', "tiers": "p"},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": null}}'},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": []}}'},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": 5}}'},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": ["a"]}}'},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": [[1.0]]}}'},
        {"memory_bank": '{"text": {"0": "x"}, "embedding": {"0": [NaN]}}'},
        {"memory_bank": '{"text": {"0": "x", "1": "y"}, "embedding": {"0": [1, 2], "1": [1]}}'},
    ],
)
def test_what_is_no_state_changes_nothing(state: Any) -> None:
    for bank in (bank_with(FISH), AssociativeMemoryBank()):
        before = bank.get_all_memories_as_text()
        with pytest.raises(InvalidInput, match="not a state of a memory bank"):
            bank.set_state(state)
        assert bank.get_all_memories_as_text() == before


def test_two_restores_share_nothing() -> None:
    state = bank_with(FISH).get_state()
    one, other = restored(state), restored(state)
    one.add(BOATS)
    assert one.get_all_memories_as_text() == [FISH, BOATS]
    assert other.get_all_memories_as_text() == [FISH]
    assert state == bank_with(FISH).get_state()


_CHILD = """
import json, sys
from tiermem.concordia import AssociativeMemoryBank
bank = AssociativeMemoryBank(lambda text: [1.0, 0.0])
if sys.argv[1:]:
    bank.set_state(json.loads(sys.argv[1]))
bank.extend(["Bob sells fish", "It rains"])
print(json.dumps([bank.get_state(), bank.get_all_memories_as_text()]))
"""


def _in_a_process(hash_seed: str, *arguments: str) -> Any:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(child.stdout)


@pytest.mark.slow
def test_a_restore_in_a_new_process_gives_no_duplicates() -> None:
    state, texts = _in_a_process("1")
    assert _in_a_process("2", json.dumps(state)) == [state, texts]


def test_reflection_sees_the_memories_by_value() -> None:
    assert vars(bank_with(FISH, BOATS)) == vars(bank_with(FISH, BOATS))
    assert vars(bank_with(FISH, BOATS)) != vars(bank_with(FISH, MARKET))
    assert vars(bank_with(FISH)) != vars(bank_with(FISH, allow_duplicates=True))


# In a folder


def opened(folder: Path) -> MemoryBank:
    return MemoryBank.open(folder, embedder=SentenceEmbedder(embedder, "test"), storage=MANUAL)


def test_a_bank_in_a_folder_goes_on_where_it_was(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        AssociativeMemoryBank(memories=own.agent("alice")).extend([FISH, BOATS])
    with opened(tmp_path) as own:
        bank = AssociativeMemoryBank(memories=own.agent("alice"))
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [FISH, BOATS]


def test_a_restore_keeps_what_is_the_same_and_removes_what_came_later(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        alice = own.agent("alice")
        bank = AssociativeMemoryBank(memories=alice)
        bank.extend([f"{FORMATIVE} home", FISH])
        ids = [memory.id for memory in alice.all()]
        state = bank.get_state()
        bank.extend([BOATS, f"{FORMATIVE} sea"])
        alice.unpin(ids[0])
        bank.set_state(state)
        assert [memory.id for memory in alice.all()] == ids
        assert bank.get_state() == state
        bank.add(BOATS)
        assert bank.retrieve_recent() == [BOATS]


def test_what_other_code_deletes_or_adds_is_seen(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        alice = own.agent("alice")
        bank = AssociativeMemoryBank(memories=alice)
        bank.extend([FISH, BOATS])
        alice.delete(alice.all()[0].id)
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [BOATS, FISH]
        alice.add(MARKET)
        bank.add(MARKET)
        assert bank.get_all_memories_as_text() == [BOATS, FISH, MARKET]


def test_a_text_that_other_code_took_away_is_stored_again(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        alice = own.agent("alice")
        bank, other = (AssociativeMemoryBank(memories=alice) for _ in range(2))
        bank.extend([FISH, BOATS])
        alice.delete(alice.all()[0].id)
        alice.add(MARKET)  # as many as before
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [BOATS, MARKET, FISH]
        alice.update(alice.all()[0].id, "The boats are gone.")
        bank.add(BOATS)
        assert bank.retrieve_recent() == [BOATS]
        state = bank_with(MARKET).get_state()
        other.set_state(state)
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [MARKET, FISH]


def test_a_text_of_a_transaction_that_was_undone_is_stored_again(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        bank = AssociativeMemoryBank(memories=own.agent("alice"))
        with contextlib.suppress(KeyError), own.transaction():
            bank.add(FISH)
            raise KeyError
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [FISH]


def test_a_text_is_stored_once_whatever_other_code_undoes_or_restores(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        alice = own.agent("alice")
        bank = AssociativeMemoryBank(memories=alice)
        with contextlib.suppress(KeyError), own.transaction():
            bank.add(FISH)
            raise KeyError
        alice.add(BOATS)
        bank.add(BOATS)
        assert bank.get_all_memories_as_text() == [BOATS]
        bank.add(FISH)
        boats, fish = (each.id for each in alice.all())
        alice.delete(boats)
        bank.add(MARKET)
        alice.delete(fish)
        alice.update(boats, retention="active")
        bank.add(BOATS)
        assert bank.get_all_memories_as_text() == [BOATS, MARKET]


def test_a_text_that_comes_back_cold_is_stored_once(tmp_path: Path) -> None:
    with opened(tmp_path) as own:
        alice = own.agent("alice")
        bank = AssociativeMemoryBank(memories=alice)
        cold = alice.add(FISH, temperature="cold")
        alice.delete(cold.id)
        bank.add(BOATS)
        alice.update(cold.id, retention="active")
        bank.add(FISH)
        assert bank.get_all_memories_as_text() == [FISH, BOATS]


@pytest.mark.parametrize("text", [None, 7, b"fish"])
def test_what_is_no_text_is_not_stored(text: Any) -> None:
    bank = bank_with(FISH)
    with pytest.raises(InvalidInput, match="a memory is a text"):
        bank.extend([BOATS, text])
    assert bank.get_all_memories_as_text() == [FISH]


def test_a_state_with_more_tiers_than_memories_changes_nothing() -> None:
    bank = bank_with(FISH)
    state = bank.get_state()
    state["tiers"] = [*state["tiers"], "normal"]
    with pytest.raises(InvalidInput, match="1 texts and 2 tiers"):
        bank.set_state(state)
    assert bank.get_state()["tiers"] == ["normal"]


# The embedder of these tests reads numbers after a <.
@given(st.lists(st.text(st.characters(exclude_characters="\0<", exclude_categories=["Cs"]))))
def test_any_texts_come_back_once_and_survive_a_restore(texts: list[str]) -> None:
    bank = AssociativeMemoryBank(embedder)
    for text in texts:
        bank.add(text)
    expected = list(dict.fromkeys(text.replace("\n", " ") for text in texts))
    assert bank.get_all_memories_as_text() == expected
    again = restored(json.loads(json.dumps(bank.get_state())))
    again.extend(texts)
    assert again.get_all_memories_as_text() == expected
