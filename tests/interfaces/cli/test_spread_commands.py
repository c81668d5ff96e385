"""Commands that read a run say the same of a run that is spread over workers, and not finished."""

from pathlib import Path
from typing import Any

import pytest
from commands import Command, Done, run_command

from agents import MemoryBank
from agents.simulation.runs.run import Run
from agents.simulation.workers.cells import members
from spread_runs import engine, scenario

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2]
TICKS = 5
AGENTS = scenario().simulation.agent_ids()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with a run each, of 5 of its 6 ticks: in one process, and over three workers."""
    found = []
    for name, workers in (("local", 0), ("spread", 3)):
        place = tmp_path_factory.mktemp(name)
        settings = scenario(ticks=6)
        with Run.create(place / "run", settings, scenario=HERE, engine=engine(workers)) as run:
            list(run.advance(TICKS))
        found.append(place)
    assert (found[1] / "run" / "shards").is_dir()
    return found


@pytest.fixture
def both(places: list[Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A command, in both folders; what it says of both."""

    def run(*arguments: object) -> Done:
        said = []
        for place in places:
            monkeypatch.chdir(place)
            said.append(run_command(*arguments))
        assert said[0][:2] == said[1][:2]  # the third is how fast it goes
        return said[1]

    return run


def told(place: Path) -> tuple[str, int]:
    """A memory of agent_03 that an agent of another cell told: its id, and when it was told."""
    cell_of = {agent: at for at, own in enumerate(members(AGENTS, 8)) for agent in own}
    with MemoryBank.at(place / "run" / "bank") as bank:
        heard = [each for each in bank.agent("agent_03").all() if each.source is not None]
    apart = [each for each in heard if cell_of[each.source.teller] != cell_of["agent_03"]]
    return apart[0].id, apart[0].created_tick


def test_show_and_why_say_the_same(both: Command, places: list[Path]) -> None:
    memory, _ = told(places[0])
    for tick in (2, TICKS):
        assert both("show", "run", "-a", "agent_03", "-t", tick, "--json").code == 0
        assert both("why", "run", "-a", "agent_03", "-t", tick, "--json").code == 0
    assert both("show", "run", "-a", "agent_03", "--query", "drum", "--all").code == 0
    assert both("why", "run", "--memory", memory).code == 0
    assert both("analyse", "run", "--json").code == 0
    assert "equal" in both("replay", "run").out


def test_a_diff_finds_no_difference(places: list[Path], tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    done = run_command("diff", places[0] / "run", places[1] / "run", "--plot", plot)
    assert f"equal after every tick up to {TICKS}" in done.out


def test_branch_effect_and_inspect_give_the_same(both: Command, places: list[Path]) -> None:
    memory, heard = told(places[0])
    assert both("branch", "run", "--at", 3, "--out", "new", "--ticks", 5, "-q").code == 0
    same = [(place / "new" / "summary.json").read_bytes() for place in places]
    assert same[0] == same[1]
    change = ["--forget", f"agent_03:{memory}"]
    assert both("effect", "run", "--at", heard, *change, "--json").code == 0
    assert both("inspect", "run", "--export", "page.html").code == 0
    pages = [(place / "page.html").read_bytes() for place in places]
    assert pages[0] == pages[1]


def test_a_report_finishes_the_run_as_it_is(both: Command, places: list[Path]) -> None:
    assert both("report", "run").code == 0
    for name in ("summary.json", "ticks.parquet", "metrics.parquet", "decisions.parquet"):
        one, other = ((place / "run" / name).read_bytes() for place in places)
        assert one == other, name
