"""The command line, as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import run_command

import warm_children
from agents import MemoryBank, __version__


def tiermem(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("tiermem")), *arguments]
    return warm_children.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_without_arguments_it_shows_its_commands() -> None:
    shown = tiermem().stdout
    assert "rebuild" in shown
    assert "config" in shown


def test_version() -> None:
    assert tiermem("--version").stdout == f"tiermem {__version__}\n"


def test_config_prints_what_would_be_used_and_takes_it_back(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("memory:\n  max_pinned: 4\n  max_critical: 8\n")
    done = tiermem("config", "-c", "mine.yaml", "--set", "memory.max_pinned=3", cwd=tmp_path)
    settings = yaml.safe_load(done.stdout)
    assert settings["memory"]["max_pinned"] == 3
    assert settings["memory"]["max_critical"] == 8
    assert settings["memory"]["default_limit"] == 5
    (tmp_path / "whole.yaml").write_text(done.stdout)
    assert tiermem("config", "-c", "whole.yaml", cwd=tmp_path).stdout == done.stdout


def test_config_shows_a_preset_above_the_file_and_below_set(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("temperature: {ttl_cold_below: 2d, max_cold_items: 9}\n")
    flags = ("--preset", "lifetime", "--set", "temperature.ttl_warm_below=9d")
    done = tiermem("config", *flags, "-c", "mine.yaml", cwd=tmp_path)
    temperature = yaml.safe_load(done.stdout)["temperature"]
    assert (temperature["ttl_cold_below"], temperature["ttl_warm_below"]) == ("1d", "9d")
    assert temperature["max_cold_items"] == 9


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bank, a run of two ticks, and files of which each has a mistake."""
    place = tmp_path_factory.mktemp("place")
    with MemoryBank.open(place / "crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("the harbour is closed on Mondays")
    files = {
        "bad.yaml": "memory:\n  max_pinned: [1]\n",
        "bad.jsonl": '{"agent_id": "alice", "content": "fine"}\n{"content": \n',
        "out.jsonl": "",
        "scenario.yaml": "simulation: {world: market, agents: 6, ticks: 2}\n"
        "storage: {sync: manual}\n",
        "sweep.yaml": "scenario: scenario.yaml\nmetrics: [happiness]\n",
        "edits.yaml": "- {agent: agent_01, do: explode}\n",
    }
    for name, text in files.items():
        (place / name).write_text(text)
    (place / "empty").mkdir()
    (place / "foreign").mkdir()
    (place / "foreign" / "journal.db").write_text("this is not a database" * 100)
    assert tiermem("run", "scenario.yaml", "--out", "done", "-q", cwd=place).returncode == 0
    return place


NO_BANK = ("there is no bank in nowhere", "tiermem init nowhere")
NO_RUN = ("there is no run nowhere", "tiermem run makes a run")


@pytest.mark.parametrize(
    ("arguments", "why", "do"),
    [
        ("config --preset lifetme", "no preset 'lifetme'", "did you mean lifetime?"),
        ("config --set memory.max_pinned=many", "max_pinned must be a whole", "tiermem config"),
        ("config --set memory.max_pined=3", "unknown key", "did you mean memory.max_pinned?"),
        ("config --set memory.max_pinned", "--set memory.max_pinned", "a key, = and a value"),
        ("config --config absent.yaml", "absent.yaml: there is no such file", "check the path"),
        ("config --config bad.yaml", "bad.yaml:2: memory.max_pinned", "put it right there"),
        ("store rebuild nowhere", *NO_BANK),
        ("store rebuild empty", "there is no bank in empty", "tiermem init empty"),
        ("store rebuild done", "there is no bank in done", "the run's bank is done/bank"),
        ("store rebuild foreign", "can't be read", "restore a backup or a checkpoint"),
        ("init crew", "crew is a bank already", "tiermem status crew"),
        ("init done", "done is a run", "choose another folder"),
        ("add nowhere --agent alice hello", *NO_BANK),
        ("add crew --agent .x hello", "'.x' is not an agent id", "not starting with a dot"),
        ("add crew --agent alice --tier top hello", "'top' is not a tier", "0 pinned, 1 critical"),
        ("add crew --agent alice --meta source hello", "--meta takes", "--meta source=chat"),
        ("search nowhere --agent alice x", *NO_BANK),
        ("search crew --agent bob x", "crew has no agent bob", "it has alice"),
        ("search crew --agent alice --tier cold x", "'cold' is not a tier", "are temperatures"),
        ("search crew --agent alice --temperature mild x", "'mild' is not", "hot, warm, cold"),
        ("pin crew --agent alice ffff", "alice has no memory", "tiermem search"),
        ("unpin crew --agent alice ffff", "alice has no memory", "tiermem search"),
        ("show nowhere", *NO_RUN),
        ("show crew --agent bob", "crew has no agent 'bob'", "tiermem show crew"),
        ("show crew --query x", "--agent is missing", "give --agent"),
        ("show done --tick 9", "there is no tick 9", "from 0 to 2"),
        ("status crew --tiers --agent bob", "crew has no agent bob", "it has alice"),
        ("status nowhere", *NO_BANK),
        ("compact nowhere", *NO_BANK),
        ("compact nowhere --prune", *NO_BANK),
        ("store vacuum nowhere", *NO_BANK),
        ("store export crew --out out.jsonl", "out.jsonl exists already", "--force"),
        ("store export crew --out out.txt", "what sort of file", ".jsonl or .parquet"),
        ("store import crew bad.jsonl", "bad.jsonl, line 2: not JSON", "a line is an object"),
        ("store import crew absent.jsonl", "absent.jsonl", "check the path"),
        ("store import crew", "one thing to import", "name a FILE"),
        ("store import crew --mem0 bad.yaml", "not a config of mem0", "vector_store"),
        ("notes crew --agent alice get ../x.md", "is not a note's path", "MEMORY.md"),
        ("notes crew --agent alice get MEMORY.md", "alice has no note", "there is none yet"),
        ("notes crew --agent alice search", "search for what?", "search QUERY"),
        ("run absent.yaml", "absent.yaml: there is no such file", "check the path"),
        ("run bad.yaml", "bad.yaml:2", "put it right there"),
        ("run scenario.yaml --out done", "done exists already", "tiermem resume done"),
        ("run scenario.yaml --out crew", "crew exists already", "--out"),
        ("run scenario.yaml --out new --set simulation.world=mars", "no world 'mars'", "market"),
        ("resume nowhere", *NO_RUN),
        ("resume crew", "crew is not a run", "tiermem run made"),
        ("resume done --ticks 1", "done has 2 ticks already", "--from-tick"),
        ("resume done --set seed=3", "a run keeps its settings", "tiermem branch"),
        ("replay nowhere", *NO_RUN),
        ("replay done --from-tick 9", "no tick 9", "from 0 to 2"),
        ("branch done --at 9 --out new", "can't be branched at 9", "from 0 to 2"),
        ("branch done --at 1 --out new --set seed=7", "seed can't be changed", "leave it out"),
        ("branch done --at 1 --out new --edit edits.yaml", "edits.yaml:1: edit 1", "do: add"),
        ("diff done nowhere", *NO_RUN),
        ("report nowhere", *NO_RUN),
        ("sweep absent.yaml", "absent.yaml: there is no such file", "check the path"),
        ("sweep sweep.yaml", "sweep.yaml:2: the world has no metric 'happiness'", "it has loss"),
        ("serve nowhere", "there is no bank in nowhere", "--create makes one"),
        ("serve crew --host 0.0.0.0", "can be reached by others", "tiermem token create crew"),
        ("serve crew", "crew has no token", "--agent"),
        ("mcp crew", "whose memory?", "give --agent"),
        ("token create nowhere --agent alice", "there is no bank in nowhere", "--create"),
        ("token list nowhere", *NO_BANK),
        ("token revoke crew zed", "there is no token 'zed'", "there is none"),
        ("doctor nowhere", *NO_BANK),
    ],
)
def test_an_error_is_what_why_and_what_to_do_and_no_traceback(
    place: Path, arguments: str, why: str, do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    done = run_command(*arguments.split())
    assert done.code in (1, 2)
    assert done.out == ""
    assert "Traceback" not in done.err
    lines = done.err.splitlines()
    labels = ("tiermem: ", "    why: ", "     do: ")
    assert len(lines) == 3
    assert all(line.startswith(label) for line, label in zip(lines, labels, strict=True))
    assert all(line.removeprefix(label).strip() for line, label in zip(lines, labels, strict=True))
    assert why in lines[1]
    assert do in lines[2]
    assert not lines[2].endswith("--help")


def test_each_mistake_of_a_file_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("memory:\n  max_pinned: [1]\n  max_pined: 3\n")
    done = tiermem("config", "-c", "bad.yaml", cwd=tmp_path)
    _, first, second, do = done.stderr.splitlines()
    assert first.startswith("    why: bad.yaml:2: memory.max_pinned must be")
    assert second.startswith("         bad.yaml:3: unknown key memory.max_pined; did you mean")
    assert do.startswith("     do: ")


def test_repairing_a_bank_in_use_names_the_holder(tmp_path: Path) -> None:
    import os

    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}):
        done = tiermem("store", "rebuild", str(tmp_path / "bank"))
    assert done.returncode == 1
    assert str(os.getpid()) in done.stderr


def test_repair_without_a_journal_makes_no_files(tmp_path: Path) -> None:
    tiermem("store", "rebuild", "nowhere", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
