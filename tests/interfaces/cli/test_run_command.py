"""``tiermem run``, as a user types it."""

import json
import os
import pty
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from commands import WORLDS

import warm_children
from agents import MemoryBank
from agents.memory.tiers import TIER_NAMES
from agents.simulation.runs.run import Run
from banks import ROOT
from openai_server import OpenAIServer
from plain_mem0 import assert_store_is_exact
from waiting import ended

Command = Callable[..., Any]
Write = Callable[..., Path]

TIERMEM = str(Path(sys.executable).with_name("tiermem"))
OUTPUTS = ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json", "report.html")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# What it makes


def test_a_run_has_its_settings_its_bank_its_checkpoints_and_what_came_out(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} == {
        "config.yaml", "run.json", "run.seal", "code", "bank", "checkpoints", *OUTPUTS,
    }  # fmt: skip
    assert (whole / "bank" / "journal.db").is_file()
    assert sorted(path.name for path in (whole / "checkpoints").iterdir()) == [
        "tick-000004.tmck", "tick-000008.tmck", "tick-000012.tmck",
    ]  # fmt: skip


def test_the_settings_are_resolved(whole: Path, tiermem: Command) -> None:
    kept = (whole / "config.yaml").read_text()
    assert yaml.safe_load(kept)["memory"]["default_limit"] == 5
    assert tiermem("config", "-c", whole / "config.yaml").out == kept


def test_a_preset_beats_the_scenario_and_set_beats_the_preset(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario("village")
    path.write_text(path.read_text() + "temperature: {ttl_cold_below: 2d, max_cold_items: 9}\n")
    flags = ("--preset", "lifetime", "--set", "temperature.ttl_warm_below=3d")
    done = tiermem("run", path, *flags, "--ticks", 1, "--out", "r")
    assert done.code == 0, done.err
    used = yaml.safe_load(Path("r/config.yaml").read_text())
    assert used["decay"]["enabled"] is True
    assert used["temperature"]["ttl_cold_below"] == "1d"
    assert used["temperature"]["ttl_warm_below"] == "3d"
    assert used["temperature"]["max_cold_items"] == 9
    assert "changes nothing" not in done.err


def test_a_preset_changes_what_the_scenario_says_of_searching(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario()
    path.write_text(path.read_text() + "retrieval: {mode: vector}\n")
    assert tiermem("run", path, "--preset", "hybrid", "--ticks", 1, "--out", "r", "-q").code == 0
    assert yaml.safe_load(Path("r/config.yaml").read_text())["retrieval"]["mode"] == "hybrid"


def test_a_flag_without_effect_says_so(tiermem: Command, scenario: Write) -> None:
    flags = ("--preset", "hybrid", "--set", "seed=3", "--set", "memory.max_pinned=2")
    done = tiermem("run", scenario(), *flags, "--ticks", 1, "--out", "r")
    assert done.code == 0
    assert "--preset hybrid changes nothing here" in done.err
    assert "--set seed=3 changes nothing here" in done.err
    assert "max_pinned=2 changes nothing" not in done.err
    quiet = tiermem("run", scenario(), *flags, "--ticks", 1, "--out", "q", "-q")
    assert quiet == (0, "", "")


def test_a_sweep_is_not_run_as_a_scenario(tiermem: Command, scenario: Write) -> None:
    file = scenario().with_name("my sweep.yaml")
    file.write_text("scenario: stones.yaml\nseeds: 2\n")
    done = tiermem("run", file, "--out", "r")
    assert done.is_one_error(2, "this is a sweep", f"tiermem sweep '{file}'")
    assert not Path("r").exists()


def test_the_folder_is_named_after_scenario_and_seed(tiermem: Command, scenario: Write) -> None:
    assert tiermem("run", scenario("village"), "--seed", 8, "--ticks", 1, "-q").code == 0
    assert Path("runs/village-8/summary.json").is_file()


def test_ticks_seed_and_set_override_the_scenario(tiermem: Command, scenario: Write) -> None:
    arguments = ("--ticks", 2, "--seed", 9, "--set", "memory.max_pinned=1", "--out", "r", "-q")
    assert tiermem("run", scenario(), *arguments).code == 0
    used = yaml.safe_load(Path("r/config.yaml").read_text())
    assert (used["simulation"]["ticks"], used["seed"], used["memory"]["max_pinned"]) == (2, 9, 1)
    summary = json.loads(Path("r/summary.json").read_text())
    assert (summary["ticks"], summary["seed"], summary["finished"]) == (2, 9, True)


def test_metrics_has_a_row_per_tick_and_a_column_per_metric(whole: Path) -> None:
    table = pq.read_table(whole / "metrics.parquet")
    assert table.column_names == ["tick", "steps", "luck"]
    assert table["tick"].to_pylist() == list(range(13))
    assert table["steps"].to_pylist() == [2 * tick for tick in range(13)]


def test_ticks_has_hash_tiers_adds_demotions_and_retrieval_sizes(whole: Path) -> None:
    rows = pq.read_table(whole / "ticks.parquet").to_pylist()
    assert [row["tick"] for row in rows] == list(range(13))
    assert len({row["state_hash"] for row in rows}) == 13
    for row in rows[1:]:
        assert row["added"] == 6  # observation, outcome and note, for each of two
        assert sum(row[name] for name in TIER_NAMES.values()) == 6 * row["tick"]
        assert row["retrieved"] >= row["retrieved_most"]
        assert row["errors"] == 0
    assert rows[1]["retrieved"] == 0
    assert rows[-1]["retrieved_most"] > 0
    assert sum(row["demoted"] for row in rows) == 24 - rows[-1]["pinned"]


def test_the_tables_agree_with_the_bank_and_the_summary(whole: Path) -> None:
    last = pq.read_table(whole / "ticks.parquet").to_pylist()[-1]
    summary = json.loads((whole / "summary.json").read_text())
    with MemoryBank.at(whole / "bank") as bank:
        assert last["state_hash"] == summary["state_hash"] == bank.state_hash()
        assert summary["memories"] == sum(bank.agent(name).count() for name in bank.agents())


def test_the_same_seed_gives_the_same_files(tiermem: Command, scenario: Write, whole: Path) -> None:
    assert tiermem("run", scenario(), "--out", "again/run", "-q").code == 0
    for name in (*OUTPUTS, "config.yaml"):
        assert (whole / name).read_bytes() == Path("again/run", name).read_bytes(), name


def test_another_seed_gives_another_run(tiermem: Command, scenario: Write, whole: Path) -> None:
    first = json.loads((whole / "summary.json").read_text())
    other = tiermem("run", scenario(), "--seed", 4, "--out", "other", "--json").json
    assert other["state_hash"] != first["state_hash"]
    assert other["metrics"]["luck"] != first["metrics"]["luck"]


def test_a_worlds_option_may_be_named_like_a_secret(tiermem: Command, scenario: Write) -> None:
    path = scenario(world="worlds_for_tests:Vault", world_options={"token": 5})
    done = tiermem("run", path, "--ticks", 1, "--out", "r", "--json")
    assert done.json["metrics"] == {"token": 5}


def test_a_key_in_the_scenario_is_used_and_not_written_down(
    tiermem: Command, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = scenario(policy="llm", policy_options={"retries": 0})
    with OpenAIServer(lambda _: '{"actions": []}') as server:
        values = yaml.safe_load(path.read_text())
        config = {"api_key": "sk-5ecret", "model": "m", "openai_base_url": server.url}
        path.write_text(yaml.safe_dump({**values, "llm": {"provider": "openai", "config": config}}))
        done = tiermem("run", path, "--ticks", 1, "--out", "r", "-q")
    assert done.code == 0, done.err
    assert not any(b"sk-5ecret" in content for content in files(Path("r")).values())


def test_old_checkpoints_go(tiermem: Command, scenario: Write) -> None:
    keep = ("--set", "checkpoint.every=3", "--set", "checkpoint.keep=2")
    tiermem("run", scenario(), "--ticks", 10, "--out", "r", "-q", *keep)
    assert sorted(path.name for path in Path("r/checkpoints").iterdir()) == [
        "tick-000009.tmck", "tick-000010.tmck",
    ]  # fmt: skip


def test_agents_know_their_first_memories_in_the_first_tick(
    tiermem: Command, scenario: Write
) -> None:
    known = [{"agent": "bob", "content": "alice lies", "tier": "pinned"}, {"content": "it is May"}]
    tiermem("run", scenario(memories=known), "--ticks", 1, "--out", "r", "-q")
    shown = {name: tiermem("show", "r", "-t", 0, "-a", name, "--json").json for name in
             ("alice", "bob")}  # fmt: skip
    assert [row["memory"] for row in shown["alice"]] == ["it is May"]
    assert [(row["memory"], row["tier"]) for row in shown["bob"]] == [
        ("alice lies", "pinned"), ("it is May", "normal"),
    ]  # fmt: skip
    assert pq.read_table("r/ticks.parquet").to_pylist()[1]["retrieved"] == 3


@pytest.mark.slow
def test_the_market_runs_as_it_is_shipped(tiermem: Command) -> None:
    shipped = ROOT / "simulations" / "market.yaml"
    manual = ("--set", "storage.sync=manual")
    done = tiermem("run", shipped, "--ticks", 5, "--out", "market", "--json", *manual)
    assert done.code == 0
    assert done.json["agents"] == len(MemoryBank.at(Path("market/bank")).agents())
    assert tiermem("replay", "market", "--verify", "-q").code == 0


def test_a_run_may_have_no_store(tiermem: Command, scenario: Write) -> None:
    alone = ("--set", "store.provider=none", "--set", "storage.sync=close")
    done = tiermem("run", scenario(), "--out", "r", "-q", "--ticks", 2, *alone)
    assert done.code == 0, done.err
    assert not Path("r/bank/chroma").exists()


@pytest.mark.slow
def test_mem0s_store_is_exact_after_run_and_after_going_back(
    tiermem: Command, scenario: Write
) -> None:
    every = ("--set", "storage.sync=checkpoint", "--set", "checkpoint.every=2", "--ticks", 5)
    done = tiermem("run", scenario(), "--out", "r", *every)
    assert "commits in mem0's store 2/2" in done.err
    with MemoryBank.open(Path("r/bank"), storage={"sync": "manual"}) as bank:
        assert_store_is_exact(bank)
    again = tiermem("resume", "r", "--from-tick", 3, "--ticks", 4)
    with MemoryBank.at("r/bank") as bank:
        commits = bank.engine.journal.head
    assert f"commits in mem0's store {commits}/{commits}" in again.err  # it is made anew
    with MemoryBank.open(Path("r/bank"), storage={"sync": "manual"}) as bank:
        assert bank.tick == 4
        assert_store_is_exact(bank)
    with Run.open(Path("r")) as run:
        for _ in run.advance(5):
            pass
    with MemoryBank.open(Path("r/bank"), storage={"sync": "manual"}) as bank:
        assert bank.tick == 5
        assert_store_is_exact(bank)


# What it says


def test_elsewhere_than_on_a_terminal_it_says_plain_lines(
    tiermem: Command, scenario: Write
) -> None:
    done = tiermem("run", scenario(), "--out", "r")
    assert done.out == ""
    assert done.err.splitlines()[0].startswith("tick 12/12 ")
    assert "r/report.html" in done.err
    assert "\x1b" not in done.err
    assert "\r" not in done.err


def test_a_metrics_name_can_not_draw_on_a_terminal(tiermem: Command, scenario: Write) -> None:
    path = scenario(world="worlds_for_tests:DrawingMetric")
    done = tiermem("run", path, "--ticks", 1, "--out", "r")
    assert done.code == 0, done.err
    assert "  luck\\u001b[2J\\u202e\\n  state 0000   1\n" in done.err
    assert "\x1b" not in done.err
    assert sum(line.startswith("  state ") for line in done.err.splitlines()) == 1


def test_quiet_says_nothing(tiermem: Command, scenario: Write) -> None:
    assert tiermem("run", scenario(), "--out", "r", "--quiet") == (0, "", "")


def test_json_is_the_summary_and_nothing_else(tiermem: Command, scenario: Write) -> None:
    done = tiermem("run", scenario(), "--out", "r", "--json")
    assert done.err == ""
    assert done.json == {"run": "r", **json.loads(Path("r/summary.json").read_text())}


def test_on_a_terminal_it_draws_a_bar(scenario: Write, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    arguments = [TIERMEM, "run", str(scenario()), "--out", str(tmp_path / "r")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with warm_children.Popen(arguments, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(master)
    assert process.returncode == 0
    assert "━" in shown.decode()
    assert b"12/12" in shown
    assert b"report.html" in shown


# Ctrl-C


def test_ctrl_c_finishes_the_tick_and_says_how_to_go_on(tiermem: Command, scenario: Write) -> None:
    done = tiermem("run", scenario(world_options={"interrupt_at": 6}), "--out", "r")
    assert done.code == 130
    assert "stopped after tick 6 of 12" in done.err
    assert "tiermem resume r" in done.err
    assert Path("r/checkpoints/tick-000006.tmck").is_file()
    assert json.loads(Path("r/summary.json").read_text())["finished"] is False


def test_a_run_that_was_interrupted_becomes_the_run_it_would_have_been(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    tiermem("run", scenario(world_options={"interrupt_at": 6}), "--out", "r", "-q")
    assert tiermem("resume", "r", "-q").code == 0
    for name in ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json"):
        assert (whole / name).read_bytes() == Path("r", name).read_bytes(), name


def test_ctrl_c_in_the_last_tick_is_a_finished_run(tiermem: Command, scenario: Write) -> None:
    done = tiermem("run", scenario(world_options={"interrupt_at": 12}), "--out", "r", "--json")
    assert (done.code, done.json["finished"]) == (0, True)


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_was_interrupted_by_quick_presses_becomes_the_same_run(
    scenario: Write, tmp_path: Path, seed: int
) -> None:
    path, chance = str(scenario(ticks=150)), random.Random(seed)
    whole, folder = tmp_path / "whole" / "r", tmp_path / "r"

    def start(*arguments: object) -> subprocess.Popen[str]:
        return warm_children.Popen([TIERMEM, *map(str, arguments), "-q"], stderr=PIPE, text=True)

    with start("run", path, "--out", whole) as process:
        assert ended(process)[1] == ""
    with start("run", path, "--out", folder) as process:
        while not (folder / "checkpoints").is_dir():
            time.sleep(0.01)
        for _ in range(3):
            time.sleep(chance.uniform(0, 0.03))
            process.send_signal(signal.SIGINT)
        assert "Traceback" not in ended(process)[1]
    assert process.returncode == 130
    with start("resume", folder) as process:
        assert ended(process)[1] == ""
    for name in ("metrics.parquet", "ticks.parquet", "decisions.parquet", "summary.json"):
        assert (whole / name).read_bytes() == (folder / name).read_bytes(), name


_PRESSES = """
import atexit, signal
from tiermem.interfaces.cli import app

def press_before(deaf):
    app.deaf_to_ctrl_c = deaf
    signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("press", "code"),
    [
        ("atexit.register(signal.raise_signal, signal.SIGINT)", 0),
        ("app.deaf_to_ctrl_c = lambda deaf=app.deaf_to_ctrl_c: press_before(deaf)", 0),
        ("app.open_streams = lambda: signal.raise_signal(signal.SIGINT)", 130),
    ],
    ids=["while Python ends", "after the command", "outside of the command"],
)
def test_ctrl_c_around_a_command_is_no_traceback(press: str, code: int) -> None:
    command = [sys.executable, "-c", f"{_PRESSES}\n{press}\napp.main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_real_process_between_two_ticks(
    scenario: Write, tmp_path: Path, number: signal.Signals
) -> None:
    folder = tmp_path / "r"
    arguments = [TIERMEM, "run", str(scenario(ticks=100_000)), "--out", str(folder)]
    with warm_children.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        while not (folder / "checkpoints").is_dir():
            time.sleep(0.02)
            assert process.poll() is None
        process.send_signal(number)
        _, said = ended(process)
    assert process.returncode == 130
    assert said.index("stopping after this tick") < said.index(f"tiermem resume {folder}")
    ticks = json.loads((folder / "summary.json").read_text())["ticks"]
    assert (folder / "checkpoints" / f"tick-{ticks:06}.tmck").is_file()


# A folder that is there already


def test_an_existing_run_is_not_touched(tiermem: Command, scenario: Write, whole: Path) -> None:
    before = files(whole)
    done = tiermem("run", scenario(), "--out", whole)
    assert done.is_one_error(1, "exists already", "tiermem resume", "--out", "--force")
    assert files(whole) == before


def test_force_replaces_a_run(tiermem: Command, scenario: Write, whole: Path) -> None:
    assert tiermem("run", scenario(), "--ticks", 2, "--out", whole, "--force", "-q").code == 0
    assert json.loads((whole / "summary.json").read_text())["ticks"] == 2
    assert len(list((whole / "checkpoints").iterdir())) == 1


def test_force_deletes_no_folder_that_is_no_run(tiermem: Command, scenario: Write) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("years of work")
    done = tiermem("run", scenario(), "--out", "thesis", "--force")
    assert done.is_one_error(1, "thesis is not a run")
    assert files(Path("thesis")) == {"chapter.txt": b"years of work"}


def test_force_deletes_no_folder_with_a_run_json_of_something_else(
    tiermem: Command, scenario: Write
) -> None:
    Path("thesis").mkdir()
    Path("thesis/run.json").write_text('{"name": "of another program"}')
    Path("thesis/chapter.txt").write_text("years of work")
    assert tiermem("run", scenario(), "--out", "thesis", "--force", "-q").code == 1
    assert Path("thesis/chapter.txt").read_text() == "years of work"


def test_force_deletes_no_file(tiermem: Command, scenario: Write) -> None:
    Path("thesis").write_text("years of work")
    assert tiermem("run", scenario(), "--out", "thesis", "--force").is_one_error(1, "is not a run")
    assert Path("thesis").read_text() == "years of work"


def test_force_does_not_replace_a_run_in_use(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    before = files(whole)
    with Run.open(whole):
        done = tiermem("run", scenario(), "--out", whole, "--force")
    assert done.is_one_error(1, str(os.getpid()))
    assert files(whole).keys() == before.keys()


def test_force_keeps_the_old_run_when_the_scenario_is_wrong(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    before = files(whole)
    wrong = scenario(world_options={"fail_at": -1})
    assert tiermem("run", wrong, "--out", whole, "--force").code == 2
    assert files(whole) == before


def test_force_follows_no_link(tiermem: Command, scenario: Write, whole: Path) -> None:
    Path("link").symlink_to(whole)
    done = tiermem("run", scenario(), "--out", "link", "--force", "-q")
    assert "Traceback" not in done.err
    assert done.code in (0, 1)
    assert (whole / "run.json").is_file()


# Scenarios that are wrong


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"world": None}, ["simulation.world is not set", "market"]),
        ({"world": "marked"}, ["there is no world 'marked'", "market", "module:Class"]),
        ({"world": "nowhere:World"}, ["nowhere can't be imported"]),
        ({"world": "worlds_for_tests:Absent"}, ["has no class 'Absent'"]),
        ({"world": "worlds_for_tests:Half"}, ["Half has no setup", "set_state"]),
        ({"world": "../worlds_for_tests:Stones"}, ["is not a module"]),
        ({"world_options": {"stones": 3}}, ["simulation.world_options", "'stones'", "fail_at"]),
        ({"world_options": {"fail_at": -1}}, ["simulation.world_options", "fail_at is a tick"]),
        ({"world_options": {"fail_at": "x"}}, ["simulation.world_options"]),
        ({"policy": "clever"}, ["simulation.policy", "'clever'", "rules"]),
        ({"policy": "llm"}, ["llm.provider"]),
        ({"policy": "scripted"}, ["simulation.policy_options", "script"]),
        ({"policy": "scripted", "policy_options": {"script": 5}}, ["script", "not a list"]),
        ({"policy": "worlds_for_tests:Half"}, ["has no decide()"]),
        ({"policy_options": {"tiers": 1}}, ["simulation.policy_options", "'tiers'"]),
        ({"agents": 0}, ["simulation.agents"]),
        ({"agents": []}, ["simulation.agents"]),
        ({"agents": ["bob", "bob"]}, ["simulation.agents"]),
        ({"agents": ["*"]}, ["*"]),
        ({"ticks": 0}, ["simulation.ticks"]),
        ({"ticks": "many"}, ["simulation.ticks"]),
        ({"tick": 5}, ["simulation.tick", "did you mean simulation.ticks?"]),
        ({"memories": [{"agent": "zed", "content": "x"}]}, ["memories[0]", "'zed'"]),
        ({"memories": [{"content": "x", "tier": "shiny"}]}, ["memories[0]", "'shiny'"]),
        ({"memories": [{"tier": "low"}]}, ["memories", "content"]),
        ({"memories": [{"content": "x", "ttl": 0}]}, ["memories[0].ttl", "0"]),
        ({"memories": [{"content": "x", "metadata": {"a": [1]}}]}, ["memories[0]", "metadata"]),
        ({"memories": [{"content": "x", "colour": "red"}]}, ["memories[0]", "colour"]),
    ],
)
def test_a_wrong_value_is_one_clear_error(
    tiermem: Command, scenario: Write, changes: dict[str, Any], parts: list[str]
) -> None:
    assert tiermem("run", scenario(**changes)).is_one_error(2, *parts)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simulation: [", "not valid YAML"),
        ("", "simulation.world is not set"),
        ("- 1\n", "wrong.yaml"),
        ("simulaton: {}\n", "did you mean simulation?"),
        ("simulation: {world: market, agents: 1}\n", "scammers"),
        ("simulation: {world: market, world_options: {scammers: many}}\n", "scammers"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tiermem: Command, text: str, message: str) -> None:
    Path("wrong.yaml").write_text(text)
    assert tiermem("run", "wrong.yaml").is_one_error(2, message)


def test_a_setup_that_refuses_the_settings_leaves_no_folder(tiermem: Command) -> None:
    Path("wrong.yaml").write_text("simulation: {world: market, agents: 1}\n")
    assert tiermem("run", "wrong.yaml", "--out", "r").code == 2
    assert not Path("r").exists()


def test_the_hint_how_to_go_on_can_be_pasted_into_a_shell(
    tiermem: Command, scenario: Write
) -> None:
    done = tiermem("run", scenario(world_options={"interrupt_at": 2}), "--out", "my run")
    (hint,) = (line for line in done.err.splitlines() if "tiermem resume" in line)
    assert shlex.split(hint) == ["tiermem", "resume", "my run"]


def test_a_wrong_assignment_is_one_clear_error(tiermem: Command, scenario: Write) -> None:
    done = tiermem("run", scenario(), "--set", "memory.max_pined=3")
    assert done.is_one_error(2, "did you mean memory.max_pinned?")


def test_code_that_does_not_load_is_one_clear_error(tiermem: Command, scenario: Write) -> None:
    path = scenario(world="broken:World")
    (path.parent / "broken.py").write_text("1 / 0\n")
    done = tiermem("run", path)
    assert done.is_one_error(2, "broken.py", "ZeroDivisionError")


# Worlds and policies that misbehave


def test_a_world_that_raises_is_named_with_its_tick(tiermem: Command, scenario: Write) -> None:
    done = tiermem("run", scenario(world_options={"fail_at": 7}), "--out", "r")
    assert done.is_one_error(1, "Stones.end_tick()", "RuntimeError", "tick 7", "the sky fell")


def test_after_a_world_raised_the_run_is_as_after_the_tick_before(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    tiermem("run", scenario(world_options={"fail_at": 7}), "--out", "r", "-q")
    with MemoryBank.at(Path("r/bank")) as bank, MemoryBank.at(whole / "bank", 6) as other:
        assert bank.tick == 6
        assert bank.state_hash() == other.state_hash()


BROKEN_PROMISES = (
    "NotANumber",
    "TextMetric",
    "HugeMetric",
    "NoMetrics",
    "SetAsState",
    "NumberAsOutcome",
    "RaisingReport",
    "RaisingStart",
)


@pytest.mark.parametrize(
    "name",
    [
        "NumberAsObservation",
        "TextAsHeard",
        "RaisingSetup",
        *BROKEN_PROMISES,
    ],
)
def test_a_world_that_keeps_no_promise_is_one_error_that_names_it(
    tiermem: Command, scenario: Write, name: str
) -> None:
    given = scenario(world=f"worlds_for_tests:{name}")
    done = tiermem("run", given, "--ticks", 3, "--out", "r", "-q")
    assert done.is_one_error(2 if name == "RaisingStart" else 1, name)


@pytest.mark.parametrize(
    ("name", "parts"),
    [("RaisingPolicy", ["tick 3", "the mind went blank"]), ("NumberPolicy", ["tick 1"])],
)
def test_a_policy_that_misbehaves_is_one_error_that_names_it(
    tiermem: Command, scenario: Write, name: str, parts: list[str]
) -> None:
    done = tiermem("run", scenario(policy=f"worlds_for_tests:{name}"), "--ticks", 4, "--out", "r")
    assert done.is_one_error(1, name, *parts)


# A user's own code


def test_the_run_keeps_a_copy_of_the_users_code(whole: Path) -> None:
    shutil.rmtree(whole.parent / "mine")
    copy = whole / "code" / "worlds_for_tests.py"
    assert copy.read_bytes() == WORLDS.read_bytes()


def test_a_policy_of_the_users_own_is_found_beside_the_scenario(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario(policy="minds:Still")
    (path.parent / "minds.py").write_text(
        "class Still:\n    def decide(self, observation, memories, rng):\n        return []\n"
    )
    assert tiermem("run", path, "--ticks", 2, "--out", "r", "--json").json["memories"] == 4
    assert Path("r/code/minds.py").is_file()


def test_a_module_in_a_package_beside_the_scenario_is_found(
    tiermem: Command, scenario: Write
) -> None:
    path = scenario(world="village.world:Stones")
    (path.parent / "village").mkdir()
    (path.parent / "village" / "__init__.py").touch()
    shutil.copy(path.parent / "worlds_for_tests.py", path.parent / "village" / "world.py")
    assert tiermem("run", path, "--ticks", 2, "--out", "r", "-q").code == 0
