"""A bank without a store of mem0's, and an engine without mem0 and Chroma."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agents import ConfigError, MemoryBank
from plain_mem0 import assert_store_is_exact


def test_a_bank_without_a_store_does_everything_else_and_stays_so(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    with MemoryBank.open(folder, store=None) as bank:
        alice = bank.agent("alice")
        alice.add("NEVER transfer to agent_X", tier="pinned")
        cold = alice.add("Once there was snow in the valley", temperature="cold")
        secret = alice.add("forget me", temperature="cold")
        bank.checkpoint(tmp_path / "kept.tmck")
        alice.forget(secret.id)
        (left,) = bank.vacuum()
        assert "kept.tmck" in left  # it is from before
        found = [hit.memory.id for hit in alice.search("snow in the valley", include_cold=True)]
        assert cold.id in found
    with MemoryBank.open(folder) as bank:
        assert bank.settings.store.provider == "none"
        assert bank.agent("alice").count() == 2
        assert bank.agent("alice").recall("snow").items[0].id == cold.id
        bank.agent("alice").add("after a new opening")
    assert not (folder / "chroma").exists()


@pytest.mark.parametrize("sync", ["commit", "checkpoint", "close", "manual"])
def test_nothing_is_synced_whatever_the_settings_say(tmp_path: Path, sync: str) -> None:
    with MemoryBank.open(tmp_path / "bank", store=None, storage={"sync": sync}) as bank:
        bank.agent("alice").add("hello")
        assert not any(each.what == "sync" for each in bank.status().suggestions)
    assert {path.name for path in (tmp_path / "bank").iterdir()} & {"chroma", "none"} == set()


def test_asking_for_the_store_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", store=None) as bank:
        bank.agent("alice").add("hello")
        for ask in (bank.sync, bank.repair_store, bank.mem0_config):
            with pytest.raises(ConfigError, match=r"has no store.*store.provider=chroma"):
                ask()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Chroma
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_bank_gets_a_store_later_with_every_memory(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", store=None) as bank:
        bank.agent("alice").add_many(["one", "two"])
    with MemoryBank.open(tmp_path / "bank", store={"provider": "chroma"}) as bank:
        assert bank.sync() == 0  # it was brought up to date by the opening
        bank.engine.store.close()
        assert_store_is_exact(bank)


def without_mem0(code: str, folder: Path) -> str:
    """What code prints where neither mem0 nor Chroma is installed."""
    begin = "import sys\nsys.modules['mem0'] = sys.modules['chromadb'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + textwrap.dedent(code), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_engine_works_where_mem0_and_chroma_are_not_installed(tmp_path: Path) -> None:
    said = without_mem0(
        """
        from tiermem import ConfigError, MemoryBank
        with MemoryBank.ephemeral() as bank:
            bank.agent("alice").add("hello")
            print(bank.agent("alice").search("hello")[0].memory.content)
        with MemoryBank.open(sys.argv[1] + "/bank", store=None) as bank:
            bank.agent("alice").add("kept", temperature="cold")
        with MemoryBank.open(sys.argv[1] + "/bank") as bank:
            print(bank.agent("alice").recall("kept").items[0].content)
        with MemoryBank.open(sys.argv[1] + "/manual", storage={"sync": "manual"}) as bank:
            bank.agent("alice").add("kept")
        """,
        tmp_path,
    )
    assert said.split() == ["hello", "kept"]


def test_where_mem0_is_missing_a_store_is_refused_at_once_and_nothing_is_made(
    tmp_path: Path,
) -> None:
    said = without_mem0(
        """
        from tiermem import ConfigError, MemoryBank
        try:
            MemoryBank.open(sys.argv[1] + "/bank")
        except ConfigError as error:
            print(error)
        """,
        tmp_path,
    )
    assert "needs the package mem0ai, which is not installed" in said
    assert "store.provider=none" in said
    assert not (tmp_path / "bank" / "journal.db").exists()
