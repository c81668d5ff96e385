"""The commands that make a bank and use it: init, add, search, tiers, pin, unpin, show."""

import io
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from terminals import on_a_terminal

from agents import MemoryBank

pytestmark = pytest.mark.slow_after(1)

Command = Callable[..., Any]

EVIL = "evil \x1b[31mred\x07 \x9b31m \u202ereversed [bold]x[/]\nsecond line"


@pytest.fixture(scope="module")
def _crew(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A bank of two agents, made by command; mem0 stays out of it."""
    crew = tmp_path_factory.mktemp("made") / "crew"
    assert command("init", crew, "--set", "storage.sync=manual").code == 0
    with MemoryBank.open(crew) as bank:
        alice = bank.agent("alice")
        alice.add("NEVER transfer to agent_X (scammer)", "pinned")
        alice.add("Agent_Y likes trading fish", kind="preference", tags=["trade"])
        alice.add("The bridge was built in stone", temperature="cold")
        bank.agent("bob").add("Trading starts at nine o'clock")
    return crew


@pytest.fixture
def folder(_crew: Path, tiermem: Command) -> Path:
    """A copy of it, in the folder where commands are run."""
    return Path(shutil.copytree(_crew, "crew"))


def state(folder: Path) -> str:
    with MemoryBank.at(folder) as bank:
        return bank.state_hash()


def typed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# init


def test_init_makes_a_bank_and_says_what_to_do_next(tiermem: Command) -> None:
    done = tiermem("init", "my crew")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("made the bank my crew\n")
    assert "tiermem add 'my crew' --agent alice" in done.out
    with MemoryBank.at("my crew") as bank:
        assert bank.agents() == []


def test_init_keeps_the_settings_that_it_is_given(tiermem: Command) -> None:
    Path("mine.yaml").write_text("memory: {max_pinned: 2}\n")
    arguments = ("--preset", "lifetime", "-c", "mine.yaml", "--set", "memory.max_critical=3")
    assert tiermem("init", "crew", *arguments, "--json").json["bank"] == "crew"
    with MemoryBank.at("crew") as bank:
        memory = bank.settings.memory
        assert (memory.max_pinned, memory.max_critical) == (2, 3)
        assert bank.settings.temperature.initial == "hot"


@pytest.mark.parametrize(
    "words",
    [["advance", "crew"], ["compact", "crew"], ["compact", "crew", "-n"],
     ["compact", "crew", "--prune"], ["store", "sync", "crew"], ["config"], ["init", "new"]],
    ids=" ".join,
)  # fmt: skip
def test_a_flag_that_changes_no_setting_says_so(
    tiermem: Command, folder: Path, words: list[str]
) -> None:
    by = ["--by", "1"] if words[0] == "advance" else []
    same, other = ("--set", "memory.max_pinned=5"), ("--set", "memory.max_critical=7")
    done = tiermem(*words, *by, *same, *other)
    assert done.code == 0
    said = "--set memory.max_pinned=5 changes nothing here: these settings are so already\n"
    assert done.err == said


def test_the_settings_that_a_bank_keeps_count_as_settings(tiermem: Command) -> None:
    assert tiermem("init", "b", "--preset", "lifetime").err == ""
    assert "--preset lifetime changes nothing" in tiermem("compact", "b", "--preset=lifetime").err
    assert tiermem("compact", "b", "--preset", "tiers").err == ""


def test_a_profile_takes_its_documents_file_and_keys(tiermem: Command) -> None:
    Path("theirs.yaml").write_text("memorySearch: {chunking: {tokens: 300}}\n")
    flags = ("--profile", "openclaw", "-c", "theirs.yaml", "--set", "query.minScore=0.5")
    done = tiermem("init", "b", *flags, "--set", "query.maxResults=6")
    assert (done.code, done.err) == (
        0,
        "--set query.maxResults=6 changes nothing here: these settings are so already\n",
    )
    with MemoryBank.at("b") as bank:
        notes = bank.settings.notes
        assert (notes.chunk_tokens, notes.min_score, notes.max_results) == (300, 0.5, 6)
        shown = tiermem("config", *flags, "--json").json
        assert shown == bank.settings.to_dict() | {"clock": shown["clock"]}


def test_a_secret_is_not_repeated(tiermem: Command) -> None:
    flag = "llm.config.api_key=sesame"
    done = tiermem("config", "--set", "llm.provider=openai", "--set", flag, "--set", flag)
    assert "--set llm.config.api_key changes nothing here" in done.err
    assert "sesame" not in done.err


def test_init_refuses_a_bank_that_is_there(tiermem: Command, folder: Path) -> None:
    before = state(folder)
    assert tiermem("init", folder).is_one_error(1, "crew is a bank already", "nothing was changed")
    assert state(folder) == before


def test_init_refuses_a_run_and_a_folder_of_somebody_else(tiermem: Command) -> None:
    Path("home").mkdir()
    Path("home/letter.txt").touch()
    assert tiermem("init", "home").is_one_error(1, "not empty", "letter.txt")
    Path("home/run.json").touch()
    assert tiermem("init", "home").is_one_error(1, "home is a run")


def test_init_takes_a_folder_with_notes(tiermem: Command) -> None:
    Path("crew/notes/alice").mkdir(parents=True)
    Path("crew/notes/alice/MEMORY.md").write_text("Never trade fish with Bob.\n")
    assert tiermem("init", "crew").code == 0
    with MemoryBank.at("crew") as bank:
        assert bank.agents() == ["alice"]


def test_init_with_a_wrong_setting_leaves_nothing_behind(tiermem: Command) -> None:
    done = tiermem("init", "crew", "--set", "memory.max_pined=3")
    assert done.is_one_error(2, "did you mean memory.max_pinned?")
    assert not Path("crew").exists()


# add


def test_add_stores_all_that_is_said_of_a_memory(tiermem: Command, folder: Path) -> None:
    done = tiermem(
        "add", folder, "-a", "carol", "We", "decided on stone", "--tier", "critical", "--kind",
        "decision", "--tag", "bridge", "--tag", "stone", "--ttl", 20, "--session", "talk 7",
        "--speaker", "Bob", "--meta", "n=3", "--meta", "sure=true", "--meta", "by=Dan=Dave",
        "--json",
    )  # fmt: skip
    with MemoryBank.at(folder) as bank:
        memory = bank.agent("carol").get(done.json["id"])
    assert memory.content == "We decided on stone"
    assert (memory.tier.name, memory.kind, memory.expires_tick) == ("CRITICAL", "decision", 20)
    assert memory.tags == ("bridge", "stone")
    assert memory.metadata == {
        "n": 3, "sure": True, "by": "Dan=Dave", "session": "talk 7", "speaker": "Bob",
    }  # fmt: skip


def test_add_reads_standard_input(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "Zwei Zeilen:\n  ä\n".encode())
    done = tiermem("add", folder, "-a", "alice", "--temperature", "cold", "-", "--json")
    assert done.json["content"] == "Zwei Zeilen:\n  ä"
    assert done.json["temperature"] == "cold"


def test_add_says_which_memory_had_to_make_room(tiermem: Command, folder: Path) -> None:
    for number in range(4):
        assert "was full" not in tiermem("add", folder, "-a", "alice", "--tier", 0, number).out
    done = tiermem("add", folder, "-a", "alice", "--tier", "pinned", "the sixth")
    assert done.out.splitlines()[0] == "alice remembers (pinned, hot): the sixth"
    assert "pinned was full, so this is critical now: NEVER transfer" in done.out


def test_add_does_not_tidy_up_besides(tiermem: Command) -> None:
    tiermem("init", "crew", "--preset", "hot-warm-cold", "--set", "storage.sync=manual")
    done = tiermem("add", "crew", "-a", "alice", "It is decided", "--kind", "decision", "--json")
    rows = tiermem("search", "crew", "-a", "alice", "decided", "--include-cold", "--json").json
    assert [row["temperature"] for row in rows["results"]] == [done.json["temperature"]]


# search


def test_search_gives_what_the_library_gives(tiermem: Command, folder: Path) -> None:
    rows = tiermem("search", folder, "-a", "alice", "who", "likes", "trading?", "--json").json
    with MemoryBank.at(folder) as bank:
        hits = bank.agent("alice").search("who likes trading?")
    assert [row["id"] for row in rows["results"]] == [hit.memory.id for hit in hits]
    assert [row["score"] for row in rows["results"]] == [hit.score for hit in hits]


def test_search_says_what_it_compared_with_the_least_score(tiermem: Command, folder: Path) -> None:
    asked = ("search", folder, "-a", "alice", "who", "likes", "trading?")
    least = ("--min-score", "0.2")
    pinned, found = tiermem(*asked, *least, "--json").json["results"]
    assert "match" not in pinned
    assert found["match"] >= max(0.2, found["score"])
    assert tiermem(*asked, *least).out.splitlines()[1] == "id\tscore\tmatch\ttier\tmemory"
    assert tiermem(*asked).out.splitlines()[1] == "id\tscore\ttier\tmemory"
    told = tiermem(*asked, *least, "--explain", "--json").json
    assert [row["match"] for row in told[:2]] == [None, round(found["match"], 4)]


def test_search_does_not_count_as_use(tiermem: Command, folder: Path) -> None:
    before = state(folder)
    for _ in range(2):
        (row, *_) = tiermem("search", folder, "-a", "alice", "fish", "--json").json["results"]
        assert row["access_count"] == 0
    assert state(folder) == before


def test_search_works_while_another_process_has_the_bank(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder):
        assert "fish" in tiermem("search", folder, "-a", "alice", "trading").out
        assert tiermem("status", folder, "--tiers").code == 0
        assert tiermem("add", folder, "-a", "alice", "x").is_one_error(1, str(os.getpid()))


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--tag", "trade"], ["Agent_Y likes trading fish"]),
        (["--kind", "preference", "--kind", "action"], ["Agent_Y likes trading fish"]),
        (["--tier", "pinned"], ["NEVER transfer to agent_X (scammer)"]),
        (["--tier", "0"], ["NEVER transfer to agent_X (scammer)"]),
        (["--temperature", "cold"], ["The bridge was built in stone"]),
        (["--include-cold", "--tier", "normal", "--limit", "1"], ["The bridge was built in stone"]),
        (["--min-score", "1", "--tier", "normal"], []),
    ],
)
def test_search_takes_filters(
    tiermem: Command, folder: Path, filters: list[str], found: list[str]
) -> None:
    done = tiermem("search", folder, "-a", "alice", "a bridge of stone", *filters, "--json")
    assert [row["content"] for row in done.json["results"]] == found


@pytest.mark.parametrize(
    ("condition", "days"),
    [
        ("day=3", [3]),
        ("day>=3", [3, 4]),
        ("day > 3", [4]),
        ("day<=3", [2, 3]),
        ("metadata.day<3", [2]),
        ("day!=3", [2, 4]),
        ("place=a>b", [2]),
        ("place = bay", [3, 4]),
        (" place != bay ", [2]),
        ('place="bay"', [3, 4]),
    ],
)
def test_search_compares_metadata(tiermem: Command, condition: str, days: list[int]) -> None:
    with MemoryBank.open("days", storage={"sync": "manual"}) as bank:
        for day, place in ((2, "a>b"), (3, "bay"), (4, "bay")):
            bank.agent("alice").add(f"fish on day {day}", metadata={"day": day, "place": place})
    done = tiermem("search", "days", "-a", "alice", "fish", "--filter", condition, "--json")
    assert sorted(row["metadata"]["day"] for row in done.json["results"]) == days


def test_a_session_is_found_by_its_number(tiermem: Command) -> None:
    tiermem("init", "crew", "--set", "storage.sync=manual")
    tiermem("add", "crew", "-a", "alice", "--session", "7", "fish is cheap")
    tiermem("add", "crew", "-a", "alice", "--session", "8", "fish is dear")
    for condition, text in (("session=7", "fish is cheap"), ("session != 7", "fish is dear")):
        done = tiermem("search", "crew", "-a", "alice", "fish", "--filter", condition, "--json")
        assert [row["content"] for row in done.json["results"]] == [text]


@pytest.mark.parametrize("text", ["day == 3", "day=>3", "day<>3", "day>", "day", "", "place=!bay"])
def test_a_filter_that_compares_nothing_is_refused(
    tiermem: Command, folder: Path, text: str
) -> None:
    done = tiermem("search", folder, "-a", "alice", "fish", "--filter", text)
    assert done.code == 2
    assert "do: write --filter place=bay" in done.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_search_finds_cold_memories_that_mem0s_store_has(tiermem: Command, tmp_path: Path) -> None:
    tiermem("init", "crew")
    tiermem("add", "crew", "-a", "alice", "--temperature", "cold", "The bridge was built in stone")
    assert "stone" in tiermem("search", "crew", "-a", "alice", "bridge", "--include-cold").out
    tiermem("store", "sync", "crew")
    assert Path("crew/chroma").is_dir()
    assert "stone" in tiermem("search", "crew", "-a", "alice", "bridge", "--include-cold").out


def test_search_explains_itself(tiermem: Command, folder: Path) -> None:
    rows = tiermem("search", folder, "-a", "alice", "fish", "--explain", "--json").json
    assert [row["why"] for row in rows] == ["pinned", "chosen", "cold"]
    rows = tiermem(
        "search", folder, "-a", "alice", "fish", "--explain", "--tier", "low", "--json"
    ).json
    assert {row["why"] for row in rows if row["tier"] != "low"} == {"filtered"}
    done = tiermem("search", folder, "-a", "alice", "fish", "--context", "--tier", "low")
    assert done.is_one_error(2, "what an agent reads has no filters")


def test_search_says_when_pins_leave_no_room(tiermem: Command, folder: Path) -> None:
    done = tiermem("search", folder, "-a", "alice", "fish", "--limit", 1)
    assert "a higher --limit shows others" in done.err
    assert tiermem("search", folder, "-a", "alice", "fish", "--limit", 2).err == ""


# tiers


def test_tiers_counts_by_agent(tiermem: Command, folder: Path) -> None:
    found = tiermem("status", folder, "--tiers", "--json").json
    assert found["caps"] == {"pinned": 5, "critical": 10}
    assert found["agents"]["alice"] == {
        "pinned": 1, "critical": 0, "important": 0, "normal": 2, "low": 0,
    }  # fmt: skip
    assert tiermem("status", folder, "--tiers").out.splitlines() == [
        "crew after tick 0: at most 5 pinned and 10 critical each",
        "agent\tpinned\tcritical\timportant\tnormal\tlow\tall",
        "alice\t1\t0\t0\t2\t0\t3",
        "bob\t0\t0\t0\t1\t0\t1",
        "(together)\t1\t0\t0\t3\t0\t4",
    ]
    assert list(tiermem("status", folder, "--tiers", "-a", "bob", "--json").json["agents"]) == [
        "bob"
    ]


def test_tiers_of_an_empty_bank_is_nothing(tiermem: Command) -> None:
    tiermem("init", "crew")
    assert tiermem("status", "crew", "--tiers").out.endswith("critical each: nothing\n")


# pin and unpin


def test_pin_and_unpin_take_an_id_or_its_last_digits(tiermem: Command, folder: Path) -> None:
    with MemoryBank.at(folder) as bank:
        fish = bank.agent("alice").all("normal")[0]
    for given in (fish.id, fish.id[-4:], "2"):
        assert tiermem("pin", folder, "-a", "alice", given, "--json").json["tier"] == "pinned"
        done = tiermem("unpin", folder, "-a", "alice", given)
        assert done.out == (
            f"alice has (normal, warm): Agent_Y likes trading fish\n  id {fish.id}\n"
        )
    assert tiermem("pin", folder, "-a", "alice", fish.id).code == 0
    done = tiermem("unpin", folder, "-a", "alice", fish.id, "--to", "important", "--json")
    assert done.json["tier"] == "important"


def test_an_id_of_another_agent_is_not_found(tiermem: Command, folder: Path) -> None:
    with MemoryBank.at(folder) as bank:
        theirs = bank.agent("bob").all()[0].id
    assert tiermem("pin", folder, "-a", "alice", theirs).is_one_error(1, "alice has no memory")


# show of a bank


def test_show_takes_a_bank_as_well(tiermem: Command, folder: Path) -> None:
    with MemoryBank.open(folder) as bank:
        bank.advance(5)
        bank.agent("bob").add("It is late")
    assert tiermem("show", folder, "--json").json == [
        {"agent": "alice", "memories": 3}, {"agent": "bob", "memories": 2},
    ]  # fmt: skip
    then = tiermem("show", folder, "-a", "bob", "--tick", 4, "--json").json
    assert [row["memory"] for row in then] == ["Trading starts at nine o'clock"]
    asked = tiermem("show", folder, "-a", "bob", "--query", "late", "--json").json
    assert asked[0]["memory"] == "It is late"
    assert tiermem("show", folder, "--tick", 9).is_one_error(1, "is at tick 5")
    assert tiermem("show", folder, "-a", "zed").is_one_error(1, "no agent 'zed'")


# The terminal


@pytest.mark.parametrize("how", [["search", "evil"], ["search", "evil", "--json"], ["show"]])
def test_what_a_memory_says_can_not_draw_on_the_screen(
    tiermem: Command, folder: Path, how: list[str]
) -> None:
    assert "\x1b" not in tiermem("add", folder, "-a", "bob", EVIL).out
    command, *words = how
    shown = on_a_terminal(command, folder, "-a", "bob", *words)  # its own colours are taken off
    assert not set("\x1b\x07\x9b\u202e") & set(shown)
    assert "\\u009b31m" in shown
    assert "[bold]x[/]" in shown


def test_on_a_terminal_ids_are_short_enough_to_type(folder: Path) -> None:
    shown = on_a_terminal("search", folder, "-a", "alice", "fish")
    assert "│ 0002 │" in shown
    assert on_a_terminal("pin", folder, "-a", "alice", "0002").startswith("alice has (pinned, hot)")


def test_colours_are_off_where_they_are_not_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_it_is = SimpleNamespace(sub=lambda pattern, by, text: text)  # colours are not taken off
    monkeypatch.setattr("terminals.re", as_it_is)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32m" in on_a_terminal("doctor", folder)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in on_a_terminal("doctor", folder)


# Backups


def test_a_backup_is_made_beside_a_process_that_has_the_bank(
    tiermem: Command, folder: Path
) -> None:
    with MemoryBank.open(folder, storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("written a moment ago")
        done = tiermem("backup", folder, "copy")
        assert done.code == 0
        assert done.out.startswith("backed up crew to copy: ")
        made = tiermem("backup", folder, "copy-2", "--json").json
        assert made["commits"] == bank.engine.journal.head
        assert made["hash"] == bank.engine.journal.hash.hex()
    for place in ("copy", "copy-2"):
        assert "a moment ago" in tiermem("search", place, "-a", "alice", "moment").out
        assert state(Path(place)) == state(folder)
        assert tiermem("add", place, "-a", "alice", "it goes on").code == 0


def test_a_backup_that_is_interrupted_says_that_there_is_none(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.bank.backup.check_all", stopped)
    done = tiermem("backup", folder, "copy")
    assert done.code == 130
    assert "no backup was made" in done.err
    assert {each.name for each in Path().iterdir()} == {"crew"}


# Mistakes

HOSTILE = [
    ["init", ""],
    ["init", "x" * 5000],
    ["init", "crew/journal.db"],
    ["init", "new", "--preset", "../../etc/passwd"],
    ["init", "new", "--config", "/dev/null/x"],
    ["add", "nowhere", "-a", "alice", "text"],
    ["add", "", "-a", "alice", "text"],
    ["add", "crew", "-a", "alice"],
    ["add", "crew", "text"],
    ["add", "crew", "-a", "*", "text"],
    ["add", "crew", "-a", "../alice", "text"],
    ["add", "crew", "-a", "", "text"],
    ["add", "crew", "-a", "a" * 129, "text"],
    ["add", "crew", "-a", "alice", ""],
    ["add", "crew", "-a", "alice", " \t\n"],
    ["add", "crew", "-a", "alice", "nul \0"],
    ["add", "crew", "-a", "alice", "lone \udcff surrogate"],
    ["add", "crew", "-a", "alice", "x" * 1_000_000],
    ["add", "crew", "-a", "alice", "text", "--tier", "5"],
    ["add", "crew", "-a", "alice", "text", "--tier", "Infinity"],
    ["add", "crew", "-a", "alice", "text", "--kind", "rumour"],
    ["add", "crew", "-a", "alice", "text", "--tag", "a,b"],
    ["add", "crew", "-a", "alice", "text", "--temperature", "boiling"],
    ["add", "crew", "-a", "alice", "text", "--temperature", "cold", "--tier", "pinned"],
    ["add", "crew", "-a", "alice", "text", "--ttl", "0"],
    ["add", "crew", "-a", "alice", "text", "--ttl", "9" * 40],
    ["add", "crew", "-a", "alice", "text", "--ttl", "1e3"],
    ["add", "crew", "-a", "alice", "text", "--meta", "no value"],
    ["add", "crew", "-a", "alice", "text", "--meta", "=x"],
    ["add", "crew", "-a", "alice", "text", "--meta", "tier=0"],
    ["add", "crew", "-a", "alice", "text", "--meta", "user_id=bob"],
    ["add", "crew", "-a", "alice", "text", "--meta", "n=NaN"],
    ["add", "crew", "-a", "alice", "text", "--meta", "n=" + "9" * 30],
    ["add", "crew", "-a", "alice", "text", "--meta", "$n=1"],
    ["search", "nowhere", "-a", "alice", "query"],
    ["search", "crew", "-a", "alice"],
    ["search", "crew", "query"],
    ["search", "crew", "-a", "zed", "query"],
    ["search", "crew", "-a", "*", "query"],
    ["search", "crew", "-a", "alice", "nul \0"],
    ["search", "crew", "-a", "alice", "\udcff"],
    ["search", "crew", "-a", "alice", "x" * 1_000_001],
    ["search", "crew", "-a", "alice", "query", "--limit", "0"],
    ["search", "crew", "-a", "alice", "query", "--limit", "-1"],
    ["search", "crew", "-a", "alice", "query", "--limit", "9" * 30],
    ["search", "crew", "-a", "alice", "query", "--min-score", "nan"],
    ["search", "crew", "-a", "alice", "query", "--min-score", "2"],
    ["search", "crew", "-a", "alice", "query", "--tier", "top"],
    ["search", "crew", "-a", "alice", "query", "--tag", ""],
    ["search", "crew", "-a", "alice", "query", "--kind", "x"],
    ["search", "foreign", "-a", "alice", "query"],
    ["status", "nowhere", "--tiers"],
    ["status", "foreign", "--tiers"],
    ["status", "crew", "--tiers", "-a", "zed"],
    ["pin", "crew", "-a", "alice"],
    ["pin", "crew", "-a", "alice", ""],
    ["pin", "crew", "-a", "alice", "0"],
    ["pin", "crew", "-a", "alice", "ffffffffffff"],
    ["pin", "crew", "-a", "alice", "-1"],
    ["pin", "crew", "-a", "alice", "٣"],
    ["pin", "crew", "-a", "alice", "x" * 100_000],
    ["pin", "crew", "-a", "alice", "%s\x1b[2J"],
    ["unpin", "crew", "-a", "alice", "1", "--to", "pinned"],
    ["unpin", "crew", "-a", "alice", "1", "--to", "nowhere"],
    ["unpin", "nowhere", "-a", "alice", "1"],
    ["show", "foreign"],
    ["doctor", "nowhere"],
    ["backup", "nowhere", "copy"],
    ["backup", "foreign", "copy"],
    ["backup", "crew"],
    ["backup", "crew", ""],
    ["backup", "", "copy"],
    ["backup", "crew", "crew"],
    ["backup", "crew", "crew/copy"],
    ["backup", "crew", "foreign"],
    ["backup", "crew", "foreign/journal.db/copy"],
    ["backup", "crew", "x" * 5000],
    ["backup", "crew", "%s\x1b[2J/\udcff/" + "x" * 300],
    ["store", "export", "nowhere"],
    ["store", "export", "foreign", "--out", "x.jsonl"],
    ["store", "export", "crew", "-a", "zed"],
    ["store", "export", "crew", "--out", "x.xml"],
    ["store", "export", "crew", "--out", "nowhere/x.jsonl"],
    ["store", "export", "crew", "--out", "crew"],
    ["store", "export", "crew", "--out", "x" * 5000 + ".jsonl"],
    ["store", "import", "nowhere", "x.jsonl"],
    ["store", "import", "crew"],
    ["store", "import", "crew", "absent.jsonl"],
    ["store", "import", "crew", "crew", "--format", "jsonl"],
    ["store", "import", "crew", "x.jsonl", "--mem0", "x.yaml"],
    ["store", "import", "crew", "x.jsonl", "--format", "xml"],
    ["store", "import", "crew", "x.jsonl", "--agent", "*"],
    ["store", "import", "crew", "-", "--format", "parquet"],
    ["store", "import", "crew", "--mem0", "absent.yaml"],
    ["store", "import", "crew", "--mem0", "crew"],
    ["store", "import", "crew", "--mem0", "x.yaml", "--format", "jsonl"],
]


@pytest.mark.parametrize(
    "arguments", HOSTILE, ids=lambda each: " ".join(each)[:60].encode("ascii", "replace").decode()
)
def test_a_mistake_is_told_without_a_traceback_and_changes_nothing(
    tiermem: Command, folder: Path, arguments: list[str]
) -> None:
    Path("foreign").mkdir()
    Path("foreign/journal.db").write_text("this is not a database" * 100)
    before = state(folder)
    done = tiermem(*arguments)
    assert done.code in (1, 2)
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.err) < 2000
    assert "\x1b" not in done.err
    assert state(folder) == before
    assert not Path("nowhere").exists()
    assert not Path("copy").exists()


def test_standard_input_that_is_no_text_is_one_clear_error(
    tiermem: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, b"abc\xff")
    assert tiermem("add", folder, "-a", "alice", "-").is_one_error(2, "not UTF-8 (byte 4)")
    typed(monkeypatch, b"")
    assert tiermem("add", folder, "-a", "alice", "-").is_one_error(2, "blank")


def test_the_context_has_the_hot_memories_and_explains_them(
    tiermem: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "bank"
    tiermem("init", folder)
    for temperature in ("hot", "warm", "cold"):
        tiermem("add", folder, "-a", "alice", f"a {temperature} fish", "--temperature", temperature)
    asked = ("search", folder, "-a", "alice", "fish", "--context", "--limit", 1, "--json")
    given = tiermem(*asked).json["results"]
    assert [row["content"] for row in given] == ["a hot fish", "a warm fish"]
    rows = tiermem(*asked, "--explain").json
    assert [(row["memory"], row["why"]) for row in rows] == [
        ("a hot fish", "hot"),
        ("a warm fish", "chosen"),
        ("a cold fish", "cold"),
    ]
    shown = tiermem(
        "show", folder, "-a", "alice", "--query", "fish", "--limit", 1, "--json", "--all"
    )
    assert shown.json == rows
