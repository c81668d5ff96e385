"""What a bank of somebody else may do, and how banks are told from each other."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, TrustError, Untrusted, trust
from agents.bank import history
from agents.config.load import load_settings
from agents.simulation.runs.trust import trusted, untrust
from agents.simulation.workers import carriers
from agents.storage import trust as trust_module
from agents.storage.journal.journal import Journal
from agents.storage.mem0 import child_process
from agents.storage.mem0.child_process import end_idle
from embedders import Directions
from openai_server import OpenAIServer
from strangers import name_class, name_function, poison, stand_in, stranger

ASKS = {"provider": "openai", "config": {"openai_base_url": "http://127.0.0.1:9/v1", "model": "m"}}
QDRANT = {"provider": "qdrant"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of this user, who made nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tiermem"


def made(folder: Path, **settings: Any) -> Path:
    """A bank with a memory."""
    settings.setdefault("storage", {"sync": "manual"})
    with MemoryBank.open(folder, **settings) as bank:
        bank.agent("alice").add("the key is under the mat")
    return folder


def made_by_a_stranger(tmp_path: Path, **settings: Any) -> Path:
    with stranger(tmp_path):
        return made(tmp_path / "theirs", **settings)


def extract(folder: Path, **settings: Any) -> None:
    with MemoryBank.open(folder, **settings) as bank:
        bank.agent("alice").add_messages("hello", infer=True)


# What needs no trust


def test_a_strangers_bank_is_read_searched_and_written_offline(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path, llm=ASKS)
    with MemoryBank.open(folder) as bank:
        assert bank.agent("alice").search("where is the key?")
        bank.agent("alice").add("it moved")
    with MemoryBank.at(folder) as copy:
        assert len(copy.agent("alice").all()) == 2


def test_what_this_user_made_may_do_all_that_its_settings_say(tmp_path: Path) -> None:
    with OpenAIServer(lambda _: '{"memory": []}') as server:
        llm = {"provider": "openai", "config": {"openai_base_url": server.url, "api_key": "k"}}
        folder = made(tmp_path / "mine", llm=llm)
        extract(folder, assignments=["llm.config.api_key=k"])
        assert server.requests


def test_the_state_folder_does_not_grow_with_banks(tmp_path: Path, state: Path) -> None:
    for number in range(20):
        made(tmp_path / str(number), llm=ASKS)
    assert {path.name for path in state.iterdir()} == {"key", "lock"}


# What needs trust


def test_a_strangers_llm_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with OpenAIServer(lambda _: '{"memory": []}') as server:
        llm = {"provider": "openai", "config": {"openai_base_url": server.url}}
        folder = made_by_a_stranger(tmp_path, llm=llm)
        with pytest.raises(Untrusted, match=r"your API key to the LLM openai at http://127"):
            extract(folder)
        with pytest.raises(Untrusted):  # a part that is the user's own makes the rest no better
            extract(folder, assignments=["llm.config.model=own"])
        assert not server.requests
        trust(folder)
        extract(folder)
        assert server.requests


@pytest.mark.parametrize(
    ("llm", "wanted"),
    [
        ({"provider": "local"}, None),
        ({"provider": "local", "threads": 1, "groups": [{"agents": ["a"], "seed": 2}]}, None),
        ({"provider": "local", "path": "strange.gguf"}, "the LLM local at strange.gguf"),
        ({"provider": "local", "config": {"cache_prompt": False}}, "the LLM local"),
        (
            {"provider": "local", "groups": [{"agents": ["a"], "base_url": "http://far/v1"}]},
            "the LLM at http://far/v1",
        ),
    ],
)
def test_the_installed_model_of_this_process_needs_no_trust_and_any_other_one_does(
    llm: dict[str, Any], wanted: str | None
) -> None:
    told = trust_module.llm_wish(load_settings({"llm": llm}).llm)
    assert told == (wanted and f"give texts and your API key to {wanted}")


def test_a_strangers_embedder_gets_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with OpenAIServer() as server:
        config = {"openai_base_url": server.url, "model": "m"}
        embedder = {"provider": "openai", "config": config}
        folder = made_by_a_stranger(tmp_path, embedder=embedder)
        server.requests.clear()
        with MemoryBank.open(folder) as bank:
            assert len(bank.agent("alice").all()) == 1
            with pytest.raises(Untrusted, match="the embedder openai at http"):
                bank.agent("alice").add("hello")
            with pytest.raises(Untrusted):
                bank.agent("alice").search("where is the key?")
        assert not server.requests
        with MemoryBank.open(folder, embedder=embedder) as bank:  # the user's own words
            bank.agent("alice").add("hello")
        assert server.requests


@pytest.mark.parametrize(
    ("settings", "wish"),
    [
        (
            {"store": {"provider": "qdrant", "config": {"host": "h.example", "port": 1}}},
            "h.example",
        ),
        ({"store": {"provider": "chroma", "config": {"path": "../elsewhere"}}}, "outside"),
        (
            {"store": {"provider": "chroma", "config": {"host": "h.example", "port": 1}}},
            "h.example",
        ),
        ({"notes": {"extra_paths": ["/etc"]}}, "/etc"),
    ],
)
def test_a_strangers_store_and_notes_elsewhere_are_not_opened(
    tmp_path: Path, settings: dict[str, Any], wish: str
) -> None:
    folder = made_by_a_stranger(tmp_path, **settings)
    with pytest.raises(Untrusted, match=wish):
        MemoryBank.open(folder)
    with MemoryBank.at(folder) as copy:
        assert copy.settings.store.provider == "chroma"
        assert not copy.settings.notes.extra_paths
    own = {"store": {"provider": "chroma"}, "notes": {"extra_paths": []}}
    (section,) = settings
    if section == "notes" or settings["store"]["provider"] == "qdrant":
        MemoryBank.open(folder, storage={"sync": "manual"}, **{section: own[section]}).close()


def test_a_link_in_a_strangers_store_is_not_followed(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path)
    (tmp_path / "precious").mkdir()
    (folder / "chroma").symlink_to(tmp_path / "precious")
    with pytest.raises(Untrusted, match="outside its folder"):
        MemoryBank.open(folder)
    assert not list((tmp_path / "precious").iterdir())


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path)
    (tmp_path / "precious").write_text("precious")
    (folder / "bank.lock").unlink()
    (folder / "bank.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Exception, match="can't hold a bank"):
        MemoryBank.open(folder)
    assert (tmp_path / "precious").read_text() == "precious"


def test_pickles_of_a_store_are_not_opened_though_the_user_names_the_store(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path, store=QDRANT, storage={"sync": "close"})
    poison(folder, tmp_path / "ran")
    for settings in ({}, {"store": QDRANT}, {"store": QDRANT, "storage": {"sync": "manual"}}):
        with pytest.raises(Untrusted, match="which can hold code"):
            MemoryBank.open(folder, **settings)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("column", ["schema_str", "config_json_str"])
def test_chroma_builds_no_function_that_a_strangers_store_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    folder = made_by_a_stranger(tmp_path, storage={"sync": "commit"})
    name_function(folder / "chroma", column, tmp_path / "built")
    monkeypatch.setenv("PYTHONPATH", stand_in(tmp_path / "modules"))
    end_idle()
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("it moved")
        cold = bank.agent("alice").add("it was there once")
        bank.agent("alice").update(cold.id, temperature="cold")
        assert bank.sync() == 2
        found = bank.agent("alice").search("where is the key?", include_cold=True)
        assert cold.id in [each.memory.id for each in found]
    assert not (tmp_path / "built").exists()


def test_chroma_imports_no_class_that_a_file_in_the_current_folder_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_by_a_stranger(tmp_path)
    modules = name_class(folder / ".env", tmp_path / "modules", tmp_path / "imported")
    monkeypatch.setenv("PYTHONPATH", modules)
    monkeypatch.chdir(folder)
    end_idle()
    with MemoryBank.open(folder) as bank:
        assert bank.sync() == 1
    assert not (tmp_path / "imported").exists()


def test_the_process_of_a_store_takes_no_module_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(child_process, "subprocess", subprocess)  # a process from scratch
    child = child_process.StoreChild()
    child.ask("close", 600)
    child.end()
    assert not Path("imported").exists()


@pytest.mark.parametrize("looks_there", [False, True])
def test_a_worker_takes_modules_from_the_current_folder_only_if_its_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_there: bool
) -> None:
    (tmp_path / "theirs.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [""] * looks_there + [each for each in sys.path if each])
    link = carriers.ProcessLink("theirs")
    link.process.wait()
    link.end()
    assert Path("imported").exists() is looks_there


def test_a_store_that_comes_back_from_a_stranger_is_not_opened(tmp_path: Path) -> None:
    mine = made(tmp_path / "mine", store=QDRANT, storage={"sync": "close"})
    MemoryBank.open(mine).close()
    theirs = shutil.copytree(mine, tmp_path / "theirs")  # its settings are mine, with my seal
    poison(theirs, tmp_path / "ran")
    shutil.rmtree(mine)
    with pytest.raises(Untrusted, match="which can hold code"):
        MemoryBank.open(theirs)
    theirs.rename(mine)
    with pytest.raises(Untrusted, match="which can hold code"):
        MemoryBank.open(mine)
    assert not (tmp_path / "ran").exists()
    shutil.rmtree(mine / "qdrant")
    with MemoryBank.open(mine, storage={"sync": "manual"}) as bank:
        bank.repair_store()
    MemoryBank.open(mine).close()


# Who made it


def test_a_moved_or_copied_bank_is_still_the_users(tmp_path: Path) -> None:
    folder = made(tmp_path / "mine", store={"provider": "chroma", "config": {"path": "../store"}})
    folder.rename(tmp_path / "moved")
    MemoryBank.open(tmp_path / "moved").close()
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    MemoryBank.open(tmp_path / "copied").close()


def test_branches_and_checkpoints_are_as_trusted_as_their_bank(tmp_path: Path) -> None:
    mine = made(tmp_path / "mine", notes={"extra_paths": ["/etc"]})
    theirs = made_by_a_stranger(tmp_path, notes={"extra_paths": ["/etc"]})
    for name, folder in (("mine", mine), ("theirs", theirs)):
        history.branch(folder, 0, tmp_path / f"{name}-branch")
        with MemoryBank.at(folder) as bank:
            bank.checkpoint(tmp_path / f"{name}.tmck")
        history.restore(tmp_path / f"{name}.tmck", tmp_path / f"{name}-restored").release()
    for made_of in ("branch", "restored"):
        MemoryBank.open(tmp_path / f"mine-{made_of}").close()
        with pytest.raises(Untrusted):
            MemoryBank.open(tmp_path / f"theirs-{made_of}")
    trust(tmp_path / "theirs.tmck")
    MemoryBank.restore(tmp_path / "theirs.tmck", tmp_path / "again").close()


def test_no_seal_makes_other_settings_trusted(tmp_path: Path) -> None:
    mine = made(tmp_path / "mine")
    theirs = made_by_a_stranger(tmp_path, notes={"extra_paths": ["/etc"]})
    with closing(Journal(mine / "journal.db")) as journal:
        seal, own_id = journal.get("bank")["seal"], journal.get("bank")["id"]
    for forged in ({"seal": seal}, {"seal": seal, "id": own_id}, {"seal": True}, {"seal": "é"}):
        with closing(Journal(theirs / "journal.db")) as journal:
            journal.set(bank={**journal.get("bank"), **forged})
        with pytest.raises(Untrusted):
            MemoryBank.open(theirs)


def test_without_a_place_for_the_key_a_process_knows_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    folder = made(tmp_path / "mine", notes={"extra_paths": [str(tmp_path / "docs")]})
    MemoryBank.open(folder).close()
    trust_module._key.cache_clear()  # another process
    with pytest.raises(Untrusted, match="could not see whether it is yours"):
        MemoryBank.open(folder)
    with pytest.raises(TrustError):
        trust(folder)


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path, state: Path) -> None:
    folder = made(tmp_path / "mine", notes={"extra_paths": [str(tmp_path / "docs")]})
    (state / "key").chmod(0o644)
    trust_module._key.cache_clear()
    with pytest.raises(Untrusted, match="may be used by others"):
        MemoryBank.open(folder)
    (state / "key").chmod(0o600)
    trust_module._key.cache_clear()
    MemoryBank.open(folder).close()


# The list


def test_what_is_trusted_can_be_listed_and_untrusted(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path, notes={"extra_paths": [str(tmp_path / "docs")]})
    assert trust(folder) == [f"read your files in '{tmp_path}/docs'"]
    trust(folder)
    assert [(each.path, each.kind) for each in trusted()] == [(str(folder), "bank")]
    MemoryBank.open(folder).close()
    untrust(folder)
    assert trusted() == []
    with pytest.raises(Untrusted):
        MemoryBank.open(folder)


def test_trust_ends_when_the_settings_change(tmp_path: Path) -> None:
    folder = made_by_a_stranger(tmp_path, notes={"extra_paths": [str(tmp_path / "docs")]})
    trust(folder)
    with closing(Journal(folder / "journal.db")) as journal:
        identity = journal.get("bank")
        identity["settings"]["notes"]["extra_paths"] = ["/etc"]
        journal.set(bank=identity)
    with pytest.raises(Untrusted, match="/etc"):
        MemoryBank.open(folder)


def test_processes_that_trust_at_once_lose_nothing(tmp_path: Path, state: Path) -> None:
    code = (
        "import sys\nfrom tiermem.storage.trust import Trusted, seal_of, update_list\n"
        "for n in range(20):\n"
        "    new = Trusted(f'{sys.argv[1]}-{n}', 'bank', [seal_of('x')])\n"
        "    update_list(lambda known: [*known, new])\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(4)]
    assert [child.wait(timeout=300) for child in children] == [0] * 4
    rows = json.loads((state / "trusted.json").read_text())["trusted"]
    assert len({row["path"] for row in rows}) == 80
    assert len({seal for row in rows for seal in row["seals"]}) == 1  # one key for all
    assert {oct(path.stat().st_mode & 0o777) for path in state.iterdir()} == {"0o600"}


def test_a_damaged_list_is_named(tmp_path: Path, state: Path) -> None:
    folder = made_by_a_stranger(tmp_path, notes={"extra_paths": ["/etc"]})
    trust(folder)
    (state / "trusted.json").write_text("{")
    MemoryBank.open(made_by_a_stranger(tmp_path / "plain")).close()
    with pytest.raises(TrustError, match="damaged"):
        MemoryBank.open(folder)
    assert os.stat(state).st_mode & 0o777 == 0o700


def test_an_embedder_of_ones_own_needs_no_trust(tmp_path: Path) -> None:
    with stranger(tmp_path):
        made(tmp_path / "theirs", embedder=Directions(), preset="vector")
    with MemoryBank.open(tmp_path / "theirs", embedder=Directions()) as bank:
        bank.agent("alice").add("east")
