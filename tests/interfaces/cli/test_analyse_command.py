"""``tiermem analyse``: what a population knows, as a user asks for it."""

import shutil
import sqlite3
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.simulation.analysis import study as studies
from agents.simulation.runs.run import Run

Command = Callable[..., Any]
TICKS = 62


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town") / "run"
    simulation = {"world": "town", "agents": 8, "ticks": TICKS, "world_options": {"talk": 60}}
    settings = load_settings(overrides={"simulation": simulation, "storage": {"sync": "manual"}})
    with Run.create(folder, settings) as run:
        for _ in run.advance(TICKS):
            pass
        run.finish()
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_tells_every_table_and_changes_nothing(tiermem: Command, town: Path) -> None:
    before = files(town)
    done = tiermem("analyse", town)
    assert done.code == 0
    for part in (
        f"8 agents, {len(analysis.study(town).columns)} memories up to tick {TICKS}",
        "spread most",
        "There is a concert at the ",
        "who informs whom: the first 10 of ",
        "who is central",
        "agent\ttold\theard\tpagerank\tbetweenness",
        "beliefs in common: the first 10 of 28",
        "how long memories lasted: none was lost",
        "forgotten and then needed: nothing",
        "truth and rumour: agents that believe each at the end",
    ):
        assert part in done.out
    assert files(town) == before


def test_chains_with_the_same_text_are_one_row_for_a_person_and_two_in_json(
    tiermem: Command, tmp_path: Path
) -> None:
    with MemoryBank.open(tmp_path / "bank", {"storage": {"sync": "manual"}}) as bank:
        for teller, listeners in {"alice": ["bob", "dora"], "carol": ["erin"]}.items():
            one = bank.agent(teller).add("the mill burns")
            for listener in listeners:
                bank.agent(teller).social.tell(listener, one.id)
    lines = tiermem("analyse", tmp_path / "bank").out.splitlines()
    row, idea = (line.split("\t") for line in lines if line.endswith("the mill burns"))
    assert (row[1], row[3], row[-2]) == ("alice", "3", "1")
    assert (idea[1], idea[4]) == ("alice", "5")  # an idea is one, however often it began
    assert lines[2].endswith("half_life\tmore chains\tmemory")
    assert tiermem("analyse", tmp_path / "bank", "--json").json["tables"]["spreads"]["rows"] == 2


def test_sides_divide_agents_and_what_names_none_is_refused(
    tiermem: Command, tmp_path: Path
) -> None:
    with MemoryBank.open(tmp_path / "bank", {"storage": {"sync": "manual"}}) as bank:
        for name, text in {"ann": "it burned", "bob": "it burned", "cat": "it is fine"}.items():
            bank.agent(name).add(text)
    done = tiermem("analyse", tmp_path / "bank", "--sides", "mill=it burned | it is fine")
    assert "mill\tit burned\t0.6667\t–\t0.8889" in done.out
    refused = tiermem("analyse", tmp_path / "bank", "--sides", "mill")
    assert refused.code == 2
    assert "--sides 'mill' names no sides" in refused.err


def test_json_has_the_tables_of_python(tiermem: Command, town: Path) -> None:
    told = tiermem("analyse", town, "--tick", 50, "--json").json
    study = analysis.study(town, 50)
    assert (told["tick"], told["agents"], told["memories"]) == (50, 8, len(study.columns))
    assert set(told["tables"]) == set(study.tables())
    for name, table in study.tables().items():
        assert told["tables"][name] == {
            "rows": table.num_rows,
            "first": table.slice(0, 1000).to_pylist(),
        }


def test_one_memory_is_a_tree(tiermem: Command, town: Path) -> None:
    most = analysis.study(town).spreads().to_pylist()[0]
    done = tiermem("analyse", town, "--memory", most["origin"])
    first, numbers, *lines = done.out.splitlines()
    assert first == f"{most['origin']}: {most['text']}"
    assert numbers.startswith(f"{most['holders']} agents had it, it was told {most['tells']} times")
    assert len(lines) == most["holders"]
    assert lines[0] == f"  {most['agent']}, tick {most['tick']}"
    told = tiermem("analyse", town, "--memory", most["origin"], "--json").json
    assert (told["by"], told["holders"]) == ("source", most["holders"])
    assert len(told["table"]) == most["holders"]


@pytest.mark.slow
def test_out_writes_all_tables_and_plots_once(tiermem: Command, town: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "tables"
    done = tiermem("analyse", town, "--out", out)
    study = analysis.study(town)
    for name, table in {"memories": study.memories(), **study.tables()}.items():
        assert pq.read_table(out / f"{name}.parquet").to_pylist() == table.to_pylist()
        assert f"wrote {out / name}.parquet" in done.out
    assert {path.name for path in out.glob("*.svg")} == {
        "spread.svg",
        "truth-concert.svg",
        "truth-play.svg",
    }
    tiermem("analyse", town, "--out", out).is_one_error(2, "exists already", "--force")
    assert tiermem("analyse", town, "--out", out, "--force").code == 0
    (tmp_path / "file").write_text("")
    tiermem("analyse", town, "--out", tmp_path / "file").is_one_error(2, "is not a folder")


def test_the_report_has_a_section_of_it(town: Path) -> None:
    page = (town / "report.html").read_text()
    for part in (
        "What went round",
        "Truth and rumour",
        "What spread most",
        "Who informs whom",
        "Who is central",
        "Beliefs in common",
    ):
        assert f">{part}<" in page
    assert "Forgotten and then needed" not in page  # nothing was


def test_without_networkx_it_says_what_is_missing(
    tiermem: Command, town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        studies, "find_spec", lambda name: None if name == "networkx" else util.find_spec(name)
    )
    done = tiermem("analyse", town)
    assert "who is central: networkx is not installed" in done.out
    assert "pagerank" not in done.out


def test_a_board_is_no_agent(tiermem: Command, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        one = bank.agent("alice").add("the mill burns")
        bank.group("guild", ["alice", "bob"]).post("alice", "the mill burns")
        bank.agent("alice").social.tell("bob", one.id)
    done = tiermem("analyse", tmp_path / "bank")
    assert "2 agents, 2 memories up to tick 0" in done.out
    assert "guild" not in done.out
    told = tiermem("analyse", tmp_path / "bank", "--json")
    assert (told.json["agents"], "guild" in told.out) == (2, False)


def test_a_bank_is_asked_as_a_run_is(tiermem: Command, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        one = bank.agent("alice").add("the \x1b[31mmill burns")
        bank.agent("alice").social.tell("bob", one.id)
    done = tiermem("analyse", tmp_path / "bank")
    assert "\nalice\tbob\t1\t1\t0\t0\n" in done.out
    assert "keeps no decisions" in done.out
    assert "\x1b" not in done.out
    assert tiermem("analyse", tmp_path / "bank", "--json").json["tables"]["spreads"]["rows"] == 1


def test_an_empty_bank_has_nothing_to_tell(tiermem: Command, tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}).close()
    done = tiermem("analyse", tmp_path / "bank")
    assert (done.code, "0 agents, 0 memories" in done.out) == (0, True)
    assert tiermem("analyse", tmp_path / "bank", "--out", tmp_path / "out").code == 0


@pytest.mark.parametrize(
    ("options", "code", "parts"),
    [
        (("--memory", "nonsense"), 1, ("has no memory 'nonsense'",)),
        (("--memory", "0" * 36), 1, ("has no memory",)),
        (("--tick", TICKS + 1), 1, (f"no tick {TICKS + 1}", f"from 0 to {TICKS}")),
        (("--tick", -1), 2, ("--tick",)),
        (("--memory", "x", "--out", "y"), 2, ("--memory tells of one memory",)),
    ],
)
def test_a_wrong_question_is_three_lines(
    tiermem: Command, town: Path, options: tuple[object, ...], code: int, parts: tuple[str, ...]
) -> None:
    assert tiermem("analyse", town, *options).is_one_error(code, *parts)


def test_a_folder_that_is_neither_run_nor_bank_is_named(tiermem: Command, tmp_path: Path) -> None:
    assert tiermem("analyse", tmp_path / "nowhere").is_one_error(1, "no bank")
    (tmp_path / "run.json").write_text("{")
    assert tiermem("analyse", tmp_path).is_one_error(1, "run.json can't be read")


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("UPDATE decisions SET data = x'00' WHERE tick = 1", "decisions of tick 1"),
        ("UPDATE commits SET events = '[' WHERE id = 9", "commit 9 is not what was written"),
        ("UPDATE commits SET vectors = x'' WHERE id = 9", "commit 9 is not what was written"),
        ("DELETE FROM commits WHERE id = 9", "commit 9 is not what was written"),
        ("DELETE FROM meta WHERE key = 'bank'", "no bank was made"),
    ],
)
def test_damage_is_three_lines(
    tiermem: Command, town: Path, tmp_path: Path, sql: str, part: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(town, folder)
    with sqlite3.connect(folder / "bank" / "journal.db") as database:
        database.execute(sql)
        database.commit()
    database.close()
    assert tiermem("analyse", folder, "--json").is_one_error(1, part)


def test_a_run_without_decisions_is_told_apart(
    tiermem: Command, town: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(town, folder)
    with sqlite3.connect(folder / "bank" / "journal.db") as database:
        database.execute("DELETE FROM decisions")
        database.commit()
    database.close()
    done = tiermem("analyse", folder)
    assert "forgotten and then needed: it keeps no decisions" in done.out
    assert "needed" not in tiermem("analyse", folder, "--json").json["tables"]
