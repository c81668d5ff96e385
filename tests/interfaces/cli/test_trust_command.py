"""``tiermem store trust``, and what commands refuse to do for banks and runs of somebody else."""

import shutil
from pathlib import Path

import pytest
import yaml
from commands import Command, run_command, write_scenario

from agents import MemoryBank, Untrusted
from agents.interfaces.cli.banks import check_served
from openai_server import OpenAIServer
from strangers import poison, stranger

LLM = {"provider": "openai", "config": {"openai_base_url": "http://127.0.0.1:9/v1", "model": "m"}}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def spying(world: Path, seen: Path) -> None:
    """Let the module of a world leave a trace when it is imported."""
    trace = f"import pathlib\npathlib.Path({str(seen)!r}).touch()\n"
    world.write_text(trace + world.read_text())


@pytest.fixture
def strange_run(tmp_path: Path) -> Path:
    """A run of a stranger with code that tells when it runs; its scenario's folder is gone."""
    with stranger(tmp_path):
        scenario = write_scenario(tmp_path / "scenario")
        assert run_command("run", scenario, "--out", tmp_path / "run", "--ticks", 2).code == 0
    shutil.rmtree(tmp_path / "scenario")
    spying(tmp_path / "run" / "code" / "worlds_for_tests.py", tmp_path / "seen")
    return tmp_path / "run"


def test_a_strangers_qdrant_store_runs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "crew"
    with stranger(tmp_path), MemoryBank.open(folder, store={"provider": "qdrant"}) as bank:
        bank.agent("alice").add("hello")
    poison(folder, tmp_path / "ran")
    assert "which can hold code" in run_command("doctor", folder).out
    for command in ("add BANK -a alice hi", "store rebuild BANK", "store vacuum BANK"):
        words = [folder if word == "BANK" else word for word in command.split()]
        assert run_command(*words).is_one_error(1, "which can hold code", "tiermem store trust")
    for command in (["status"], ["store", "export"], ["show"]):
        assert run_command(*command, folder).code == 0
    assert "hello" in run_command("search", folder, "-a", "alice", "hello").out
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_strangers_checkpoint_sends_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with OpenAIServer() as server:
        embedder = {"provider": "openai", "config": {"openai_base_url": server.url, "model": "m"}}
        with stranger(tmp_path), MemoryBank.ephemeral(embedder=embedder) as bank:
            bank.agent("alice").add("hello")
            bank.checkpoint(tmp_path / "theirs.tmck")
        server.requests.clear()
        MemoryBank.restore(tmp_path / "theirs.tmck", tmp_path / "crew").close(sync=False)
        refused = run_command("search", tmp_path / "crew", "-a", "alice", "what?")
        assert refused.is_one_error(1, "your API key to the embedder openai at http://127.0.0.1")
        assert "trust" in run_command("doctor", tmp_path / "crew").out
        assert not server.requests
        assert run_command("store", "trust", tmp_path / "crew").code == 0
        assert run_command("search", tmp_path / "crew", "-a", "alice", "what?").code == 0
        assert server.requests


@pytest.mark.parametrize(
    "command",
    [
        ("resume",),
        ("replay",),
        ("report",),
        ("branch", "--at", "1", "--out", "other"),
        ("effect", "--at", "1", "--set", "memory.max_pinned=2"),
    ],
    ids=lambda command: command[0],
)
def test_the_code_of_a_strangers_run_is_not_run(
    strange_run: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    name, *options = command
    refused = run_command(name, strange_run, *options)
    assert refused.is_one_error(
        1, "run the code of 'worlds_for_tests:Stones'", "tiermem store trust"
    )
    assert not (tmp_path / "seen").exists()
    assert run_command("show", strange_run).code == 0


def test_a_trusted_run_goes_on_and_its_code_may_be_mended(
    strange_run: Path, tmp_path: Path
) -> None:
    done = run_command("store", "trust", strange_run)
    assert done.out.startswith(f"{strange_run} is trusted, and may run the code of 'worlds_for_")
    assert run_command("resume", strange_run, "--ticks", 3).code == 0
    assert (tmp_path / "seen").exists()
    code = strange_run / "code" / "worlds_for_tests.py"
    code.write_text(code.read_text() + "\n# mended\n")
    assert run_command("resume", strange_run, "--ticks", 4).code == 0
    assert run_command("store", "trust", "--remove", strange_run).code == 0
    assert run_command("resume", strange_run, "--ticks", 5).is_one_error(1, "run the code")


def test_a_class_of_an_installed_package_needs_trust(tmp_path: Path) -> None:
    with stranger(tmp_path):
        scenario = write_scenario(tmp_path / "scenario", world="market", agents=6)
        assert run_command("run", scenario, "--out", tmp_path / "run", "--ticks", 1).code == 0
    assert run_command("resume", tmp_path / "run", "--ticks", 2).code == 0  # nothing but ours
    config = tmp_path / "run" / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["simulation"] |= {
        "world": "subprocess:Popen",
        "world_options": {"args": ["touch", str(tmp_path / "seen")]},
    }
    config.write_text(yaml.safe_dump(settings))
    assert run_command("resume", tmp_path / "run").is_one_error(1, "subprocess:Popen")
    assert not (tmp_path / "seen").exists()


def test_an_own_run_is_trusted_where_it_is_moved_or_copied_unchanged(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario")
    assert run_command("run", scenario, "--out", tmp_path / "run", "--ticks", 2).code == 0
    (tmp_path / "run").rename(tmp_path / "moved")
    assert run_command("resume", tmp_path / "moved", "--ticks", 3).code == 0
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    shutil.copytree(tmp_path / "moved", tmp_path / "changed")
    code = tmp_path / "changed" / "code" / "worlds_for_tests.py"
    code.write_text(code.read_text() + "\n# by somebody else\n")
    assert run_command("resume", tmp_path / "copied", "--ticks", 4).code == 0
    assert run_command("resume", tmp_path / "changed").is_one_error(1, "run the code")
    out = tmp_path / "branch"
    assert run_command("branch", tmp_path / "copied", "--at", 1, "--out", out).code == 0
    assert run_command("replay", out).code == 0


def test_compiled_code_that_came_with_a_run_is_a_change(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path / "scenario")
    assert run_command("run", scenario, "--out", tmp_path / "run", "--ticks", 1).code == 0
    assert not list((tmp_path / "run").rglob("__pycache__"))
    shutil.copytree(tmp_path / "run", tmp_path / "back")
    (tmp_path / "back" / "code" / "__pycache__").mkdir()
    assert run_command("replay", tmp_path / "back").is_one_error(1, "run the code")


def test_an_llm_of_a_strangers_run_is_not_asked(tmp_path: Path) -> None:
    with stranger(tmp_path):
        scenario = write_scenario(tmp_path / "scenario", world="market", agents=6)
        assert run_command("run", scenario, "--out", tmp_path / "run", "--ticks", 1).code == 0
    config = tmp_path / "run" / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["llm"] = LLM
    settings["simulation"]["policy"] = "llm"
    config.write_text(yaml.safe_dump(settings))
    assert run_command("resume", tmp_path / "run").is_one_error(1, "the LLM openai at http")


def test_a_server_tells_of_tokens_that_came_with_a_bank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crew"
    with stranger(tmp_path):
        assert run_command("init", folder).code == 0
        assert run_command("token", "create", folder, "-a", "alice").code == 0
    with MemoryBank.open(folder) as bank:
        check_served(bank, folder)
    assert "its tokens may be known to others" in capsys.readouterr().err
    assert run_command("store", "trust", folder).code == 0
    with MemoryBank.open(folder) as bank:
        check_served(bank, folder)
    assert capsys.readouterr().err == ""


def test_an_untrusted_bank_that_cannot_embed_is_not_served(tmp_path: Path) -> None:
    folder = tmp_path / "crew"
    with stranger(tmp_path), OpenAIServer() as server:
        config = {"openai_base_url": server.url, "model": "m", "api_key": "k"}
        MemoryBank.open(folder, embedder={"provider": "openai", "config": config}).close()
    with MemoryBank.open(folder) as bank, pytest.raises(Untrusted, match="embedder"):
        check_served(bank, folder)
    done = run_command("serve", folder, "--agent", "alice", "--port", 0)
    assert done.is_one_error(1, "embedder openai")


def test_the_list_is_printed(tmp_path: Path) -> None:
    with stranger(tmp_path):
        assert run_command("init", tmp_path / "crew").code == 0
    assert run_command("store", "trust", "--list").out == "trusted: nothing\n"
    assert (
        run_command("store", "trust", tmp_path / "crew").out == f"{tmp_path / 'crew'} is trusted\n"
    )
    assert run_command("store", "trust", "--list", "--json").json == [
        {"path": str(tmp_path / "crew"), "kind": "bank"}
    ]
    assert run_command("store", "trust", "--remove", tmp_path / "crew").code == 0
    assert run_command("store", "trust", "--remove", tmp_path / "crew").is_one_error(
        2, "not in the list"
    )


@pytest.mark.parametrize("arguments", [(), ("--remove",), ("--list", "crew")])
def test_wrong_use_is_one_error(arguments: tuple[str, ...], command: Command) -> None:
    assert command("store", "trust", *arguments).is_one_error(2, "tiermem store trust PATH")


def test_what_is_nowhere_is_not_trusted(tmp_path: Path) -> None:
    assert run_command("store", "trust", tmp_path / "nothing").code == 1
