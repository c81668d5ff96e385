"""The package is imported as ``tiermem``; in a checkout ``agents`` is the same.

Each test imports in processes of their own, once from the checkout and once from a built wheel.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

import tiermem

pytestmark = pytest.mark.slow_after(1)

ROOT = Path(__file__).parents[2]
PATIENCE = 300
"""Seconds that a child may take; on a busy machine all of it is slow."""

WORLD = '''
from PACKAGE.simulation import InvalidAction, Observation
from agents import WANTED

class Field:
    """Agents look at a field; its state is a count of ticks."""
    actions = {"look": "look around"}

    def setup(self, rng, agent_ids):
        self.tick = 0

    def observe(self, agent_id):
        return Observation(f"{WANTED.__name__} was here in tick {self.tick}")

    def apply(self, agent_id, action):
        raise InvalidAction("there is nothing to do")

    def end_tick(self):
        self.tick += 1

    def metrics(self):
        return {"ticks": self.tick}

    def get_state(self):
        return {"tick": self.tick}

    def set_state(self, state):
        self.tick = state["tick"]

class Idle:
    def decide(self, observation, memories, rng):
        return []
'''


def built(folder: Path) -> Path:
    """The wheel, installed by pip into a folder."""
    site = folder / "site"
    for command in (
        ["hatchling", "build", "-t", "wheel", "-d", str(folder)],
        ["pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)],
    ):
        wheels = [str(each) for each in folder.glob("*.whl")] if command[0] == "pip" else []
        done = subprocess.run(
            [sys.executable, "-m", *command, *wheels],
            capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(scope="session")
def wheel_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(params=["checkout", "wheel"])
def site(request: pytest.FixtureRequest) -> Path:
    """A folder from which ``tiermem`` is imported."""
    if request.param == "checkout":
        return ROOT / "src"
    folder: Path = request.getfixturevalue("wheel_site")
    return folder


the_checkout = pytest.mark.parametrize("site", ["checkout"], indirect=True)
"""Of a test of the other name."""

from_the_wheel_first = pytest.mark.parametrize(
    "site", [pytest.param("checkout", marks=pytest.mark.long), "wheel"], indirect=True
)
"""Of a test that takes long in both: the wheel is what a user has."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder, whose file agents.py has nothing to do with TierMem."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "agents.py").write_text("class Wolf:\n    pass\n")
    return made


def python(*arguments: str, path: list[Path], cwd: Path) -> str:
    """What a new Python prints that looks for modules in the folders of ``path`` first."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()


def script(folder: Path, code: str, site: Path) -> str:
    """What a file prints that lies in the folder, and is run from there."""
    (folder / "script.py").write_text(code)
    return python("script.py", path=[site], cwd=folder)


def openai_agents(site: Path) -> Path:
    """A package like that of openai-agents; some of its modules are called as ours are."""
    package = site / "agents"
    (package / "memory").mkdir(parents=True)
    (package / "__init__.py").write_text("from .run import Runner\n")
    (package / "run.py").write_text("class Runner:\n    pass\n")
    (package / "version.py").write_text("__version__ = 'theirs'\n")
    (package / "memory" / "__init__.py").write_text("class Session:\n    pass\n")
    return site


# The same objects


def test_both_names_are_one_package() -> None:
    import agents.simulation.worlds.market
    import tiermem.simulation.worlds.market

    assert agents is tiermem
    assert agents.MemoryBank is tiermem.MemoryBank
    assert agents.simulation is tiermem.simulation
    assert agents.simulation.worlds.market is tiermem.simulation.worlds.market
    assert sys.modules["agents.simulation.worlds.market"] is tiermem.simulation.worlds.market


@the_checkout
@pytest.mark.parametrize("order", ["agents tiermem", "tiermem agents"])
def test_whichever_name_comes_first_the_objects_are_the_same(
    site: Path, tmp_path: Path, order: str
) -> None:
    first, second = order.split()
    code = f"""
import {first}.memory.tiers, {first}.tools
import {second}.memory.tiers, {second}.simulation.worlds.market, {first}.simulation.worlds.market
from {first} import MemoryBank as one
from {second} import MemoryBank as other
assert one is other and agents is tiermem
assert agents.tools is tiermem.tools and agents.memory.tiers.Tier is tiermem.Tier
assert agents.simulation.worlds.market is tiermem.simulation.worlds.market
print(tiermem.__file__, one.__module__)
"""
    file = site / "tiermem" / "__init__.py"
    assert script(tmp_path, code, site) == f"{file} tiermem.bank.memory_bank"


def test_a_module_that_does_not_exist_is_missing_by_the_name_that_was_asked_for() -> None:
    for name in ("tiermem", "agents"):
        with pytest.raises(ModuleNotFoundError, match=f"'{name}.nothing'") as caught:
            __import__(f"{name}.nothing")
        assert caught.value.name == f"{name}.nothing"


def test_what_was_pickled_as_of_agents_is_read() -> None:
    import pickle

    assert pickle.loads(b"cagents.memory.tiers\nTier\n.") is tiermem.Tier
    assert b"tiermem.memory.tiers" in pickle.dumps(tiermem.Tier)


def test_a_module_runs_by_its_name(site: Path, tmp_path: Path) -> None:
    command = ["-m", "tiermem.interfaces.cli.app", "--version"]
    assert python(*command, path=[site], cwd=tmp_path) == f"tiermem {tiermem.__version__}"


@the_checkout
@pytest.mark.long
def test_a_module_runs_by_its_other_name(site: Path, tmp_path: Path) -> None:
    command = ["-m", "agents.interfaces.cli.app", "--version"]
    assert python(*command, path=[site], cwd=tmp_path) == f"tiermem {tiermem.__version__}"


@the_checkout
def test_loggers_are_named_for_tiermem(site: Path, tmp_path: Path) -> None:
    code = """
import logging
import agents.tools.calling, agents.simulation.runs.run, agents.interfaces.cli.commands.serving
names = sorted(logging.root.manager.loggerDict)
assert "tiermem.tools.calling" in names and "tiermem.storage.store_sync" in names, names
assert not [name for name in names if name.partition(".")[0] == "agents"], names
"""
    script(tmp_path, code, site)


# Another module called agents

ORDERS = ["import agents; import tiermem", "import tiermem; import agents"]
REMEMBER = """
from tiermem import MemoryBank, tools
with MemoryBank.ephemeral() as bank:
    bank.agent("alice").add("The well is in the north")
    assert "the north" in bank.agent("alice").get_relevant_memories("Where is the well?")
import tiermem.simulation.worlds.market, tiermem.memory.tiers, tiermem.version
assert tiermem.tools is tools and not hasattr(agents, "MemoryBank")
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_file_agents_beside_the_script_and_tiermem_work_in_one_process(
    site: Path, folder: Path, order: str
) -> None:
    code = f"{order}\n{REMEMBER}\nfrom agents import Wolf\nprint(Wolf.__module__, agents.__file__)"
    assert script(folder, code, site) == f"agents {folder / 'agents.py'}"


@pytest.mark.long_after(3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", ["before it", "in the same folder"])
def test_openai_agents_and_tiermem_work_in_one_process(
    site: Path, tmp_path: Path, order: str, place: str
) -> None:
    theirs = tmp_path / "theirs"
    if place == "in the same folder" and site != ROOT / "src":
        shutil.copytree(site, theirs)  # as pip does, into one folder site-packages
        site = theirs
    openai_agents(theirs)
    code = f"""
{order}
{REMEMBER}
import agents.memory, agents.version
from agents import Runner
assert tiermem.version.__version__ == tiermem.__version__ != agents.version.__version__
assert not hasattr(agents.memory, "tiers") and not hasattr(tiermem.memory, "Session")
print(Runner.__module__, agents.memory.Session.__module__, tiermem.Tier.__module__)
"""
    (tmp_path / "script.py").write_text(code)
    printed = python("script.py", path=[theirs, site], cwd=tmp_path)
    assert printed == "agents.run agents.memory tiermem.memory.tiers"


@pytest.mark.slow
def test_the_wheel_leaves_the_name_agents_to_others(wheel_site: Path, tmp_path: Path) -> None:
    installed = {each.name for each in wheel_site.iterdir() if each.suffix != ".dist-info"}
    assert installed - {"bin"} == {"tiermem"}
    code = f"""
import sys
sys.path = [each for each in sys.path if each != {str(ROOT / "src")!r}]  # of an editable install
import tiermem.simulation.worlds.market, tiermem.tools
assert tiermem.__file__.startswith({str(wheel_site)!r})
try:
    import agents
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert script(tmp_path, code, wheel_site) == "agents"


# Child processes, beside a file agents.py


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_values_and_errors_travel_between_processes(site: Path, folder: Path, method: str) -> None:
    code = f"""
import multiprocessing
import agents
from tiermem import InvalidInput, Tier
from tiermem.simulation import Action

def back(action):
    assert agents.Wolf
    return action, InvalidInput("no", hint="yes"), Tier.LOW

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        ((action, error, tier),) = pool.map(back, [Action("go", {{"place": "north"}})])
    assert action == Action("go", {{"place": "north"}}) and type(action) is Action
    assert type(error) is InvalidInput and tier is Tier.LOW
    print(type(action).__module__)
"""
    assert script(folder, code, site) == "tiermem.simulation.protocols"


@pytest.mark.long
@from_the_wheel_first
def test_the_store_is_probed_and_rebuilt(site: Path, folder: Path) -> None:
    code = """
import agents
from tiermem import MemoryBank
with MemoryBank.open("bank") as bank:
    bank.agent("alice").add("The well is in the north")
    bank.sync()
    bank.vacuum()
with MemoryBank.open("bank") as bank:
    bank.repair_store()
print(agents.Wolf.__name__)
"""
    assert script(folder, code, site) == "Wolf"


def scenario(folder: Path, package: str, wanted: str, sync: str = "manual") -> None:
    (folder / "field.py").write_text(WORLD.replace("PACKAGE", package).replace("WANTED", wanted))
    settings = {
        "storage": {"sync": sync},
        "simulation": {
            "world": "field:Field",
            "policy": "field:Idle",
            "agents": 2,
            "ticks": 2,
        },
    }
    (folder / "field.yaml").write_text(yaml.safe_dump(settings))
    (folder / "sweep.yaml").write_text(yaml.safe_dump({"scenario": "field.yaml", "seeds": 2}))


@pytest.mark.slow
@from_the_wheel_first
def test_a_run_and_a_sweep_of_code_that_has_its_own_agents(site: Path, folder: Path) -> None:
    scenario(folder, "tiermem", "Wolf")
    python("-m", "tiermem", "run", "field.yaml", "--out", "run", path=[site], cwd=folder)
    kept = sorted(each.name for each in (folder / "run" / "code").iterdir())
    assert kept == ["agents.py", "field.py"]
    python("-m", "tiermem", "replay", "run", path=[site], cwd=folder)
    command = ["-m", "tiermem", "sweep", "sweep.yaml", "--out", "sweep", "--workers", "2"]
    python(*command, path=[site], cwd=folder)
    assert len(list((folder / "sweep" / "cells").glob("*/summary.json"))) == 2


@the_checkout
@pytest.mark.slow
def test_a_run_of_code_that_imports_tiermem_by_its_other_name(site: Path, tmp_path: Path) -> None:
    scenario(tmp_path, "agents", "Tier")
    python("-m", "tiermem", "run", "field.yaml", "--out", "run", path=[site], cwd=tmp_path)
    assert [each.name for each in (tmp_path / "run" / "code").iterdir()] == ["field.py"]


@pytest.mark.slow
def test_the_command_works_beside_a_file_agents(folder: Path) -> None:
    command = Path(sys.executable).with_name("tiermem")
    for arguments in (["init", "bank"], ["add", "bank", "--agent", "alice", "one"]):
        done = subprocess.run(
            [str(command), *arguments],
            capture_output=True, text=True, timeout=PATIENCE, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


# Types

TYPED = """
from tiermem import AgentMemory, MemoryBank, Tier, tools
from tiermem.simulation import Action, Observation, World


def agent(bank: MemoryBank) -> AgentMemory:
    return bank.agent("alice")


def tier(memory: AgentMemory) -> Tier:
    tools.call(memory, "count_memories")
    return Tier.PINNED


action: Action | World | Observation | None = None
wrong: int = MemoryBank.ephemeral()
"""


@pytest.mark.long
def test_a_strict_type_checker_knows_the_names(site: Path, tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(TYPED)
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "tiermem.pth").write_text(f"{site}\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable",
         str(environment / "bin" / "python"), "use.py"],
        capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path,
    )  # fmt: skip
    (line, summary) = done.stdout.splitlines()
    assert line.startswith("use.py:16: error: Incompatible types in assignment")
    assert '"MemoryBank", variable has type "int"' in line
    assert summary.startswith("Found 1 error")
