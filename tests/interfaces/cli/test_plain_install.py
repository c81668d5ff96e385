"""What a plain ``pip install tiermem`` can do: all worlds and commands, without any extra.

The environment is a new one that has the built wheel and the packages that the wheel asks for,
directly or not, in the versions that are here. Nothing is hidden: other packages are not there, for
child processes neither. A process for each command, since one may import what the next forgot to.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from agents.interfaces.cli.app import COMMANDS
from agents.simulation.worlds import WORLDS
from banks import ROOT
from waiting import LONG

pytestmark = pytest.mark.slow

SWEEP = """
scenario: simulations/market.yaml
set: {simulation.ticks: 3}
grid: {memory.default_limit: [3, 5]}
seeds: 2
"""
FIT = """
scenario: simulations/rumor.yaml
set: {simulation.ticks: 3}
ranges: {simulation.world_options.liars: [0, 3]}
runs: 40
accept: 0.5
"""
SEEN = "tick,accuracy\n1,0.0\n2,0.08\n3,0.1\n"

LINES = """
init crew
add crew -a bob "The well is dry"
add crew -a alice --key well "The well is in the north" --json
update crew ID -a alice --text "The well is in the south" --json
show crew -a alice --key well
search crew -a alice "where is the well?"
social tell crew ID -a alice --to bob
social believe crew alice 0.5 -a bob
social group crew guild --join bob
show crew -a bob
pin crew ID -a alice
unpin crew ID -a alice
forget crew ID -a alice
update crew ID -a alice --retention active
status crew -a alice --tiers
call crew memory_status -a alice
status crew
backup crew crew-2
advance crew --by 3
compact crew
compact crew --prune
store export crew --out crew.parquet
store import crew crew.parquet
notes crew -a alice append "The bridge is closed"
demo --seeds 3 --quiet
run simulations/rumor.yaml --ticks 4 --out rumor
resume rumor --ticks 6
replay rumor
branch rumor --at 3 --out branch
effect rumor --at 3 --set memory.default_limit=2
why rumor -a agent_00 -t 3
analyse rumor --out study
inspect rumor --export page.html
diff rumor branch
report rumor
run simulations/market.yaml --ticks 2 --engine processes --workers 2 --out spread
store merge spread --out merged
sweep small.yaml --out swept
fit fit.yaml --to seen.csv --out fitted
paper rumor --out paper
world new ferry
world check ferry:Ferry --scenario ferry.yaml --ticks 4
token create crew -a alice
token list crew
token revoke crew alice
doctor crew
config
store sync crew
store rebuild crew
store reembed crew --embedder none --dry-run
store vacuum crew
store trust --list
"""
"""What works. ID is the id that the last command printed."""

NEEDS = {
    "serve crew -a alice": "tiermem[http]",
    "mcp crew -a alice": "tiermem[mcp]",
    "ask rumor Why?": "llm.model",
    "survey rumor simulations/surveys/village.yaml": "llm.model",
}
"""What needs an extra or a language model, and says which."""


NAMES = {name for entries in COMMANDS.values() for name, *_ in entries}


def command_of(words: list[str]) -> str:
    """The command, of one word or of two."""
    return " ".join(words[:2]) if " ".join(words[:2]) in NAMES else words[0]


def asked_for(requirements: list[str], extra: str = "") -> Iterator[Requirement]:
    for each in map(Requirement, requirements):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            yield each


def packages(requirements: list[str], own: str) -> dict[str, metadata.Distribution]:
    """The packages that pip installs for them, by name."""
    found: dict[tuple[str, str], metadata.Distribution] = {}
    wanted = [*asked_for(requirements), *asked_for(requirements, own)]
    while wanted:
        one = wanted.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        for extra in ("", *one.extras):
            if (name, extra) not in found:
                found[name, extra] = metadata.distribution(name)
                wanted += asked_for(found[name, extra].requires or [], extra)
    return {name: package for (name, _), package in found.items()}


def link(package: metadata.Distribution, site: Path) -> None:
    """Put the files of a package into another environment, and what Python compiled of them."""
    for file in package.files or ():
        if ".." in file.parts or file.suffix == ".pyc":
            continue
        here, there = Path(str(package.locate_file(file))), site / file
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(here)
        compiled = Path(util.cache_from_source(str(here)))
        if file.suffix == ".py" and compiled.is_file():
            own = Path(util.cache_from_source(str(there)))
            own.parent.mkdir(exist_ok=True)
            own.symlink_to(compiled)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with `tiermem[simulation]` and no other extra."""
    return installed(tmp_path_factory.mktemp("plain"), "simulation")


@pytest.fixture(scope="module")
def memory_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment into which pip installed TierMem without extras."""
    return installed(tmp_path_factory.mktemp("alone"), "")


def installed(folder: Path, extra: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        capture_output=True, check=True, timeout=LONG, cwd=ROOT,
    )  # fmt: skip
    venv.create(folder / "venv", symlinks=True)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (own,) = metadata.distributions(name="tiermem", path=[str(site)])
    found = packages(own.requires or [], extra)
    assert {"mem0ai", "chromadb", "numpy"} <= found.keys()
    assert {"pyarrow", "scipy"} & found.keys() == ({"pyarrow", "scipy"} if extra else set())
    assert found.keys().isdisjoint({"pandas", "networkx", "starlette", "mcp", "pytest"})
    for package in found.values():
        link(package, site)
    return folder / "venv" / "bin" / "python"


def tiermem(plain: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [plain, "-I", "-m", "tiermem", *arguments],
        capture_output=True, text=True, check=False, timeout=LONG, cwd=folder,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_simulation_without_its_packages_says_so_before_it_begins(
    memory_alone: Path, tmp_path: Path
) -> None:
    (tmp_path / "small.yaml").write_text(json.dumps({"simulation": {"world": "market"}}))
    for line in ("run small.yaml --out run", "sweep small.yaml --out swept", "demo"):
        done = tiermem(memory_alone, tmp_path, *line.split())
        assert done.returncode == 1
        assert "pip install 'tiermem[simulation]'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]
    for line in ("init crew", "add crew -a ann hello", "search crew -a ann hello", "status crew"):
        assert tiermem(memory_alone, tmp_path, *line.split()).returncode == 0


@pytest.mark.long
def test_every_built_in_world_runs_without_extras(plain: Path, tmp_path: Path) -> None:
    for world in WORLDS:
        scenario = {"simulation": {"world": world, "agents": 8, "ticks": 3}}
        (tmp_path / f"{world}.yaml").write_text(json.dumps(scenario))
        done = tiermem(plain, tmp_path, "run", f"{world}.yaml", "--out", world)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / world / "report.html").is_file()


@pytest.mark.long
def test_every_command_works_without_extras_or_names_its_own(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "simulations", tmp_path / "simulations")
    (tmp_path / "small.yaml").write_text(SWEEP)
    (tmp_path / "fit.yaml").write_text(FIT)
    (tmp_path / "seen.csv").write_text(SEEN)
    called, last = set(), ""
    for line in LINES.strip().splitlines():
        words = [last if word == "ID" else word for word in shlex.split(line)]
        done = tiermem(plain, tmp_path, *words)
        assert done.returncode == 0, f"{line}: {done.stderr}{done.stdout}"
        called.add(command_of(words))
        if words[-1] == "--json":
            told = json.loads(done.stdout)
            last = told.get("updated", [told])[0]["id"]
    for line, extra in NEEDS.items():
        done = tiermem(plain, tmp_path, *line.split())
        assert done.returncode == 2
        assert extra in done.stderr
        called.add(command_of(line.split()))
    assert called == NAMES
