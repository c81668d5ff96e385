"""``tiermem world new`` and ``tiermem world check``, as a user types them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

COUNTER = '''
import os, random, sys, time, uuid
from tiermem.simulation import Action, Observation

class Counter:
    """A sound world; tests spoil one line of it."""
    def setup(self, rng, agent_ids):
        self.rng, self.tick, self.total, self.names = rng, 1, 0, list(agent_ids)
    def observe(self, agent_id):
        return Observation(f"{agent_id} sees {self.rng.randrange(100)} in tick {self.tick}")
    def apply(self, agent_id, action):
        self.total += action.arguments["by"]
        return f"counted {self.total}"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"total": self.total}
    def get_state(self):
        return {"tick": self.tick, "total": self.total}
    def set_state(self, state):
        self.tick, self.total = state["tick"], state["total"]

class Adds:
    def __init__(self):
        self.calls = 0
    def decide(self, observation, memories, rng):
        self.calls += 1
        return [Action("add", {"by": rng.randrange(5)})]
'''
KEPT_IN_PROCESS = """
    def get_state(self):
        sys.__dict__.setdefault("_totals", {})[self.tick] = self.total
        return {"tick": self.tick}
    def set_state(self, state):
        self.tick, self.total = state["tick"], sys.__dict__.get("_totals", {}).get(state["tick"], 0)
"""
SOUND_STATE = COUNTER[COUNTER.index("    def get_state") : COUNTER.index("\nclass Adds")]


def check(tiermem: Command, *more: object) -> Any:
    return tiermem("world", "check", "counter:Counter", "--policy", "counter:Adds", *more)


def spoil(here: Path, old: str = "", new: str = "") -> None:
    assert old in COUNTER
    (here / "counter.py").write_text(COUNTER.replace(old, new) if old else COUNTER)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_new_world_runs_is_tested_and_is_sound_as_it_is(tiermem: Command, here: Path) -> None:
    made = tiermem("world", "new", "night_market")
    assert made.code == 0
    assert sorted(path.name for path in here.iterdir()) == [
        "night_market.py", "night_market.yaml", "test_night_market.py",
    ]  # fmt: skip
    last = made.out.splitlines()[-1]
    command = last.partition("tiermem ")[2].split()
    ran = tiermem("run", "night_market.yaml", "--json", "--set", "storage.sync=manual")
    assert ran.json["metrics"] == {"drinks": 20}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_night_market.py"]
    tested = subprocess.run(tests, capture_output=True, text=True, check=False)
    assert (tested.returncode, "2 passed" in tested.stdout) == (0, True), tested.stdout
    checked = tiermem(*command, "--ticks", 12)
    assert checked.code == 0, checked
    assert len([line for line in checked.out.splitlines() if line.startswith("held: ")]) == 5
    assert "killed with SIGKILL" in checked.out
    assert "warning: " not in checked.out
    assert checked.out.splitlines()[-1].startswith("night_market:NightMarket is sound")


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        pytest.param(
            '"total": self.total}\n    def set',
            '"total": 0}\n    def set',
            [
                "does get_state() leave something out?",
                "made anew",
                "killed with SIGKILL",
                "counted",
            ],
            id="state-left-out",
        ),
        pytest.param(
            SOUND_STATE,
            KEPT_IN_PROCESS,
            ["killed with SIGKILL after tick ", "counted"],
            id="state-kept-in-the-process",
        ),
        pytest.param(
            '"by": rng.randrange(5)',
            '"by": self.calls',
            ["made anew", "the run is another"],
            id="policy-with-a-memory-of-its-own",
        ),
        pytest.param(
            'f"{agent_id} sees',
            "f\"{'-'.join(set(self.names))} sees",
            ["PYTHONHASHSEED", "does the order of a set decide?", "memory of agent_00"],
            id="order-of-a-set",
        ),
        pytest.param(
            "self.rng.randrange(100)",
            "random.randrange(100)",
            [
                "counter.py, line 10: random.randrange() is not seeded",
                "the second run",
                "not tried",
            ],
            id="unseeded",
        ),
        pytest.param(
            "self.tick += 1",
            "self.tick += 1 + int(time.time() * 0)",
            ["counter.py, line 15: time.time() reads the clock; use the tick"],
            id="clock-without-effect",
        ),
        pytest.param(
            "self.tick += 1",
            "self.tick += int(os.environ.get('STEP', '1'))",
            ["counter.py, line 15: os.environ is not a part of a run; use world_options"],
            id="environment",
        ),
    ],
)
def test_a_world_that_is_not_sound_is_told_why(
    tiermem: Command, here: Path, old: str, new: str, parts: list[str]
) -> None:
    spoil(here, old, new)
    done = check(tiermem, "--ticks", 8)
    assert done.code == 1, done
    wrong = "\n".join(line for line in done.out.splitlines() if line.startswith("wrong: "))
    for part in parts:
        assert part in wrong
    assert "is sound" not in done.out
    assert [path.name for path in here.iterdir()] == ["counter.py"]  # nothing is left behind


@pytest.mark.slow
def test_problems_are_json_on_request(tiermem: Command, here: Path) -> None:
    spoil(here, "self.rng.randrange(100)", "uuid.uuid4().int")
    done = check(tiermem, "--ticks", 3, "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert done.json["problems"][0].startswith("counter.py, line 10: uuid.uuid4() is not seeded")


@pytest.mark.slow
def test_a_scenario_gives_agents_and_options(tiermem: Command, here: Path) -> None:
    folder = here / "mine"
    assert tiermem("world", "new", "oasis", "--out", folder).code == 0
    given = ("oasis:Oasis", "--scenario", folder / "oasis.yaml", "--ticks", 4)
    assert tiermem("world", "check", *given, "-q") == (0, "", "")


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("world", ["market", "household", "rumor"])
def test_the_built_in_worlds_are_sound(tiermem: Command, here: Path, world: str) -> None:
    done = tiermem("world", "check", world, "--ticks", 6, "--set", "simulation.agents=6")
    assert done.code == 0, done


@pytest.mark.slow
def test_a_world_that_raises_is_three_lines(tiermem: Command, here: Path) -> None:
    spoil(here, "self.tick += 1", "raise RuntimeError('the sky fell')")
    assert check(tiermem, "--ticks", 4).is_one_error(1, "the sky fell", "counter.py, line 15")


def test_a_module_with_a_mistake_was_found_and_is_to_be_mended(
    tiermem: Command, here: Path
) -> None:
    spoil(here, "self.tick += 1", "self.tick +=")
    assert check(tiermem).is_one_error(2, "SyntaxError", "counter.py, line 15", "mend it")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["world", "check", "nowhere:World"], "nowhere can't be imported"),
        (["world", "check", "counter:Nothing"], "counter has no function or class 'Nothing'"),
        (["world", "check", "counter:Adds"], "counter:Adds has no setup"),
        (["world", "check", "nonsense"], "there is no world 'nonsense'"),
        (["world", "check", "counter:Counter"], "Counter has no rules()"),
        (["world", "check", "market", "--policy", "llm"], "can't be tried again"),
        (["world", "check", "counter:Counter", "--policy", "counter:Counter"], "has no decide()"),
        (["world", "check", "market", "--scenario", "none.yaml"], "none.yaml"),
        (["world", "new", "night market"], "can't be the name of a module"),
        (["world", "new", "class"], "can't be the name of a module"),
        (["world", "new", "../up"], "can't be the name of a module"),
        (["world", "new", "random"], "would hide another module"),
        (["world", "new", "test_me"], "would hide another module"),
    ],
)
def test_bad_input_is_three_lines_and_writes_nothing(
    tiermem: Command, here: Path, arguments: list[str], part: str
) -> None:
    spoil(here)
    done = tiermem(*arguments)
    assert done.is_one_error(2, part)
    assert [path.name for path in here.iterdir()] == ["counter.py"]


@pytest.mark.parametrize("name", ["oasis.py", "oasis.yaml", "test_oasis.py"])
def test_an_existing_file_is_never_replaced(tiermem: Command, here: Path, name: str) -> None:
    (here / name).write_text("mine\n")
    assert tiermem("world", "new", "oasis").is_one_error(1, f"{name} exists already")
    assert {path.name: path.read_text() for path in here.iterdir()} == {name: "mine\n"}


@pytest.mark.slow
def test_a_world_that_draws_for_all_agents_from_one_stream_is_warned_of(
    tiermem: Command, here: Path
) -> None:
    spoil(here)
    found = check(tiermem, "--ticks", 3, "--json")
    assert (found.code, found.json["ok"]) == (0, True)
    (warning,) = found.json["warnings"]
    assert warning.startswith("Counter.observe() draws for agent_00 and for agent_01 from one")


@pytest.mark.slow
def test_a_world_that_draws_for_each_agent_from_its_own_stream_is_sound(
    tiermem: Command, here: Path
) -> None:
    spoil(here, "self.rng.randrange(100)", "self.rng.stream('sight', agent_id).randrange(100)")
    found = check(tiermem, "--ticks", 3, "--json")
    assert found.code == 0, found.err
    assert found.json["warnings"] == []


def test_a_world_that_fails_at_tick_0_is_told_that_no_run_was_made(
    tiermem: Command, tmp_path: Path
) -> None:
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "odd.yaml").write_text(
        "simulation: {world: 'odd:Odd', policy: 'odd:Idle', agents: 1, ticks: 2}\n"
    )
    failed = tiermem("run", "odd.yaml", "--out", "run")
    assert failed.is_one_error(1, "no run was made: Odd.metrics() raised KeyError in tick 0")
    assert "then give the same command again" in failed.err
    assert "resume" not in failed.err
    assert "tick before" not in failed.err
    assert not Path("run").exists()


ODD = """
class Odd:
    def setup(self, rng, agent_ids): pass
    def observe(self, agent_id): return "a day"
    def apply(self, agent_id, action): return None
    def end_tick(self): pass
    def metrics(self): return {}["x"]
    def get_state(self): return 0
    def set_state(self, state): pass

class Idle:
    def decide(self, observation, memories, rng): return []
"""
