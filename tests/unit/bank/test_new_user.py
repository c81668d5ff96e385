"""What a new user stumbled over."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents import (
    BankClosed,
    BankDamaged,
    ConfigError,
    EmbedderError,
    InvalidContent,
    InvalidInput,
    MemoryBank,
    StoreDamaged,
)
from agents.config.load import load_settings
from banks import MANUAL
from embedders import Directions

pytestmark = pytest.mark.slow_after(1)


def test_a_config_file_goes_on_top_of_the_settings_that_the_bank_was_made_with(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.yaml").write_text("memory: {default_limit: 2}\n")
    folder = tmp_path / "bank"
    with MemoryBank.open(
        folder, embedder=Directions(), storage=MANUAL, memory={"max_pinned": 20}
    ) as bank:
        bank.agent("a").add_many([(f"pin{n}", 0) for n in range(20)])
    with MemoryBank.open(folder, tmp_path / "mine.yaml", embedder=Directions()) as bank:
        assert bank.agent("a").count("pinned") == 20
        assert bank.settings.memory.default_limit == 2


def test_a_relative_folder_stays_the_same_bank_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    bank = MemoryBank.open("bank", embedder=Directions(), storage=MANUAL)
    os.chdir("elsewhere")
    assert bank.mem0_config()["config"]["path"] == str(tmp_path / "bank" / "chroma")
    bank.close()


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["emptied", "deleted"])
def test_a_lost_journal_beside_a_full_store_is_not_taken_for_a_new_bank(
    tmp_path: Path, lost: str
) -> None:
    with MemoryBank.open(tmp_path) as bank:
        bank.agent("a").add("precious")
    if lost == "emptied":
        os.truncate(tmp_path / "journal.db", 0)
    else:
        (tmp_path / "journal.db").unlink()
    for storage in ({}, MANUAL):
        with pytest.raises(BankDamaged, match="the journal was lost"):
            MemoryBank.open(tmp_path, storage=storage)
    for name in ("bank.head", "journal.db-head"):
        (tmp_path / name).unlink()  # without, the store still shows that a bank was here
    with pytest.raises(BankDamaged, match="the journal was lost"):
        MemoryBank.open(tmp_path)
    with (
        MemoryBank.open(tmp_path, storage=MANUAL) as bank,
        pytest.raises(BankDamaged, match="the journal was lost"),
    ):
        bank.repair_store()
    assert (tmp_path / "chroma" / "chroma.sqlite3").exists()


@pytest.mark.parametrize(
    ("section", "near"),
    [("store", "chroma"), ("embedder", "openai"), ("llm", "ollama")],
)
def test_a_mistyped_provider_is_found_before_anything_is_written(
    tmp_path: Path, section: str, near: str
) -> None:
    typo = near[:2] + near[3:]
    with pytest.raises(ConfigError, match=f"{section}.provider.*did you mean {near}"):
        MemoryBank.open(tmp_path / "bank", **{section: {"provider": typo}})  # type: ignore[arg-type]
    assert not (tmp_path / "bank" / "journal.db").exists()


def test_every_provider_that_the_documents_name_is_known(tmp_path: Path) -> None:
    for provider in ("chroma", "qdrant", "pgvector", "faiss"):
        with MemoryBank.open(
            tmp_path / provider, store={"provider": provider}, storage=MANUAL
        ) as bank:
            assert bank.settings.store.provider == provider


@pytest.mark.parametrize("items", [5, None, "ab", {"a": "b"}])
def test_a_batch_that_is_no_list_is_refused(bank: MemoryBank, items: Any) -> None:
    for call in (bank.add_many, bank.search_many, bank.relevant_many):
        with pytest.raises(InvalidInput):
            call(items)


def test_what_is_no_embedder_is_refused() -> None:
    with pytest.raises(EmbedderError, match="embed"):
        MemoryBank.ephemeral(embedder=5)  # type: ignore[arg-type]


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(InvalidInput, match="folder"):
        MemoryBank.open("")


def test_assignments_are_a_list(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="list"):
        MemoryBank.open(tmp_path / "b", assignments="memory.max_pinned=3")


def test_a_closed_bank_can_not_be_entered(bank: MemoryBank) -> None:
    bank.close()
    with pytest.raises(BankClosed), bank:
        pass


def test_an_action_succeeds_or_not_and_its_details_are_json(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    with pytest.raises(InvalidInput, match="True or False"):
        alice.record_action("trade", success="no")  # type: ignore[arg-type]
    for details in ({"a": float("nan")}, ["a list"]):
        with pytest.raises(InvalidContent):
            alice.record_action("trade", details)  # type: ignore[arg-type]
    assert alice.count() == 0


def test_a_query_has_an_end(bank: MemoryBank) -> None:
    with pytest.raises(InvalidContent, match="query"):
        bank.agent("alice").search("x" * 1_000_001)


def test_whole_settings_are_taken_as_they_are(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL, store={"config": {"path": "vectors"}}):
        pass
    whole = load_settings(overrides={"storage": MANUAL})
    with MemoryBank.open(tmp_path, whole) as bank:
        assert bank.settings == whole


def test_the_repair_command_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "my bank"
    with MemoryBank.open(folder) as bank:
        bank.agent("a").add("x")
    shutil.rmtree(folder / "chroma")
    with pytest.raises(StoreDamaged, match=f"tiermem store rebuild '{folder}'"):
        MemoryBank.open(folder)
