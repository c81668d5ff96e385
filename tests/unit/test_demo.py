"""The README's table, the picture and the shipped scenarios say what `tiermem demo` measures."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from banks import ROOT
from tiermem import InvalidInput
from tiermem.config.load import load_settings
from tiermem.interfaces.cli.commands.demo import demo as command
from tiermem.simulation import demo

README = (ROOT / "README.md").read_text()
WORLDS = (ROOT / "docs/architecture/worlds.md").read_text()


def rows_in(text: str) -> list[list[str]]:
    """The rows of the demo's table of memories, as cells."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if (row[0], row[1]) in PLACES]


SCENARIOS = [
    path
    for path in sorted((ROOT / "simulations").glob("*.yaml"))
    if not path.stem.endswith(("sweep", "classics", "llm", "society"))
    and path.stem not in ("helping", "minority")  # of papers in which agents remember more or less
]


PLACES = [(regime.name, memory) for regime in demo.REGIMES for memory in regime.memories]
ROWS = rows_in(WORLDS)


def test_the_page_of_the_worlds_has_a_row_for_each_memory_of_the_demo() -> None:
    assert [(row[0], row[1]) for row in ROWS] == PLACES
    assert demo.SEEDS >= 10  # docs/results.md has 20; the demo is to take two minutes
    assert f"`make demo`, {demo.SEEDS} seeds" in README
    assert f"the {len(demo.cells())} runs" in README


def test_the_readme_names_what_does_as_well_and_where_tiers_harm() -> None:
    shown = rows_in(README)
    assert all(row in ROWS for row in shown)
    found = {(row[0], row[1]): row for row in shown}
    market, harm = demo.REGIMES[0].name, demo.REGIMES[-1].name
    for other in ("flat, well worded", "importance"):
        low, high = re.findall(r"[−+][\d.]+(?= to|\))", found[market, other][4])
        assert (low[0], high[0]) == ("−", "+")  # not told apart from tiers
    assert found[harm, "flat"][4].startswith("−")
    assert "they harm" in README


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_leaves_search_limit_and_budget_as_they_are(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    assert scenario.keys() <= {"seed", "checkpoint", "simulation", "clock"}
    assert scenario["simulation"]["policy"] == "rules"
    assert scenario["simulation"].get("policy_options") in ({"tiers": True}, {"recall": True}, None)
    assert "memories" not in scenario["simulation"]


def test_a_memory_of_the_demo_changes_what_it_is_named_for_and_nothing_else() -> None:
    defaults = load_settings(ROOT / "simulations/market.yaml").to_dict()
    changed = {
        memory: {
            section
            for section, value in demo.Cell(demo.REGIMES[0], memory, 7).settings().to_dict().items()
            if value != defaults[section]
        }
        for memory in demo.DESIGNS
    }
    assert changed["tiers"] == set()
    assert changed["flat"] == changed["flat, well worded"] == {"simulation"}
    assert changed["no memory"] == changed["flat, as many tokens"] == {"simulation", "memory"}
    assert changed["importance"] >= {"retrieval", "memory"}
    assert "simulation" not in changed["importance"]  # it has the rules of tiers


def test_flat_with_as_many_tokens_has_no_fewer_than_tiers() -> None:
    tokens = {row[1]: int(row[3]) for row in ROWS if row[0] == demo.REGIMES[0].name}
    assert tokens["flat, as many tokens"] >= tokens["tiers"] > tokens["flat"]


def test_the_picture_shows_the_means_of_the_table() -> None:
    picture = (ROOT / "docs/images/demo.svg").read_text()
    figures = re.findall(r">([\d,]+\.\d)</text>", picture)
    assert figures == [row[2] for row in ROWS]
    assert all(regime.name in picture for regime in demo.REGIMES)


def test_the_table_has_means_and_paired_intervals() -> None:
    rows = [
        {"regime": "r", "memory": memory, "noise": "", "seed": seed, "result": each, "tokens": 9}
        for memory, results in (("flat", [9.0, 11.0, 13.0, 15.0]), ("tiers", [4.0, 5.0, 6.0, 7.0]))
        for seed, each in enumerate(results)
    ]
    *_, flat, tiers = demo.markdown(demo.table(rows), 2)
    assert tiers == "| r | tiers | 5.5 | 9 |  |"
    assert flat.startswith("| r | flat | 12.0 | 9 | +6.5 (+")


@pytest.mark.long
def test_a_run_of_the_demo_gives_the_same_again() -> None:
    cell = demo.Cell(demo.REGIMES[1], "flat", 3)
    first = demo.run(cell)
    assert first == demo.run(cell)
    assert first["result"] > 0


def test_the_folder_has_the_scenarios_and_may_be_used_again(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "demo"
    demo.prepare(folder)
    demo.write(folder, [{"seed": 1}])
    (folder / "market.yaml").write_text("seed: 9\n")  # what a user changed stays
    demo.prepare(folder)
    assert (folder / "market.yaml").read_text() == "seed: 9\n"
    shipped = (ROOT / "simulations/household.yaml").read_bytes()
    assert (folder / "household.yaml").read_bytes() == shipped
    assert json.loads((folder / demo.FIGURES).read_text()) == [{"seed": 1}]


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match=r"thesis\.txt is in it"):
        demo.prepare(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_a_killed_demo_left_does_not_keep_the_next_one_away(tmp_path: Path) -> None:
    demo.prepare(tmp_path)
    (tmp_path / f".{demo.FIGURES}.4194305.0a1b2c3d.tmp").write_text("[")
    demo.prepare(tmp_path)
    demo.write(tmp_path, [])
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "household.yaml", "market.yaml", demo.FIGURES
    ]  # fmt: skip


def test_the_command_says_how_to_look_at_a_run_whatever_the_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made_up(planned: Sequence[demo.Cell]) -> Iterator[tuple[int, dict[str, object]]]:
        for place, cell in enumerate(planned):
            row = {**cell._asdict(), "regime": cell.regime.name, "result": place % 7, "tokens": 9.0}
            yield place, row

    monkeypatch.setattr(demo, "run_all", made_up)
    folder = tmp_path / "two words"
    command(seeds=3, out=folder, quiet=False, as_json=False)
    (told,) = re.findall("tiermem (run .+)", capsys.readouterr().out)
    assert shlex.split(told)[:2] == ["run", str(folder / "household.yaml")]


def test_fewer_seeds_are_the_first_of_all() -> None:
    few = demo.cells(3)
    assert all(cell in demo.cells() for cell in few)
    assert {cell.seed for cell in few} == {1, 2, 3}
    assert {cell.seed for cell in demo.cells() if cell.noise} == set(range(1, 7))


def printed_by(folder: Path, *arguments: str) -> list[str]:
    """What the command prints, started in the folder, without lines between heads and rows."""
    command = [str(Path(sys.executable).with_name("tiermem")), "demo", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=3_600, check=True
    )
    printed = [line for line in done.stdout.splitlines() if line.startswith("|")]
    return [line for line in printed if not line.startswith("|---")]  # other tables have these


@pytest.mark.long
def test_the_command_prints_what_its_runs_came_to(tmp_path: Path) -> None:
    rows = printed_by(tmp_path, "--seeds", "3", "--out", "tried")
    runs = json.loads((tmp_path / "tried" / demo.FIGURES).read_text())
    assert [demo.Cell(*of_run(run)) for run in runs] == demo.cells(3)
    assert runs[0] == demo.run(demo.cells(3)[0])
    tables = [*demo.markdown(demo.table(runs), 2), *demo.markdown(demo.noise_table(runs), 1)]
    assert rows == [line for line in tables if not line.startswith("|---")]


def of_run(run: dict[str, object]) -> tuple[object, ...]:
    """What says which run of the demo it is."""
    (regime,) = (each for each in demo.REGIMES if each.name == run["regime"])
    return (regime, *(run[key] for key in ("memory", "seed", "noise", "share")))


@pytest.mark.long
def test_the_numbers_are_those_of_a_fresh_run(tmp_path: Path) -> None:
    rows = printed_by(tmp_path)
    assert rows == [line for line in WORLDS.splitlines() if line in rows]
    assert len(rows) == 1 + len(ROWS) + 1 + len(demo.NOISE)
    figures = tmp_path / "runs" / "demo" / demo.FIGURES
    assert len(json.loads(figures.read_text())) == len(demo.cells())
