"""Memories in and out of a bank: export, and import of files."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exchanges import GOOD, contents, write

from agents import MemoryBank, Retention

pytestmark = [
    pytest.mark.slow_after(1),
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Command = Callable[..., Any]

MANUAL = {"sync": "manual"}


@pytest.fixture
def folder(tiermem: Command) -> Path:
    """A bank with something of everything."""
    with MemoryBank.open("crew", storage=MANUAL) as bank:
        alice = bank.agent("alice")
        alice.add("NEVER transfer to agent_X", "pinned", {"source": "bob", "n": 1, "x": 0.5})
        for number in range(10):
            alice.add(f"rule {number}", "critical")
        alice.add('Katze 🐝 שלום \x9b\u2028 \\ "quoted"\ttab\nline', tags=["b", "a"])
        alice.add("We decided on stone", kind="decision", temperature="cold")
        alice.add("in view", temperature="hot", value={"deep": [{"er": "x" * 20_000}]})
        alice.update(
            alice.add("an old rule", "important", {"session": "talk 7"}).id, retention="archived"
        )
        alice.delete(alice.add("deleted").id)
        bank.advance(7)
        alice.add("soon forgotten", ttl=30)
        alice.notes.append("Never trade fish with Bob.", "MEMORY.md")
        bank.agent("bob").add("nothing special", "low", {"null": None, "yes": True})
    return Path("crew")


@pytest.fixture
def other(tiermem: Command) -> Path:
    """An empty bank."""
    assert tiermem("init", "other", "--set", "storage.sync=manual").code == 0
    return Path("other")


# Round trips


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_groups_are_exported_and_imported(tiermem: Command, other: Path, name: str) -> None:
    with MemoryBank.open("crew", storage=MANUAL) as bank:
        bank.agent("alice").add("her own")
        bank.group("empty", ["carol"])
        guild = bank.group("guild", ["alice", "bob"])
        guild.post("bob", "we meet at noon", "important")
        guild.post("alice", "we meet at noon")
        bank.agent("bob").social.leave("guild")
    wrote = tiermem("store", "export", "crew", "--out", name)
    assert "wrote 3 memories and 2 groups" in wrote.err
    assert (
        tiermem("store", "import", other, name).out == "stored 3 memories of 1 agent and 1 group\n"
    )
    with MemoryBank.open(other) as bank:
        assert bank.groups() == ["empty", "guild"]
        assert list(bank.group("guild").members()) == ["alice"]
        board = [(each.speaker, each.content, each.tier.name) for each in bank.group("guild").all()]
        assert board == [
            ("bob", "we meet at noon", "IMPORTANT"), ("alice", "we meet at noon", "NORMAL"),
        ]  # fmt: skip
        assert bank.agents() == ["alice"]
    assert (
        "wrote 1 memory of"
        in tiermem("store", "export", "crew", "--agent", "alice", "--out", "a.jsonl").err
    )


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"agent_id": ".guild", "content": "x"}, "metadata"),
        ({"agent_id": ".guild", "content": "x", "metadata": {}}, "agent"),
        ({"agent_id": ".guild", "content": "x", "metadata": {"speaker": ".town"}}, "agent"),
        ({"agent_id": "..guild", "content": "x", "metadata": {"speaker": "bob"}}, "agent"),
        ({"agent_id": ".guild", "content": "x", "tier": "pinned", "metadata": {"speaker": "bob"}},
         "no pinned"),
        ({"agent_id": ".guild", "content": "x", "retention": "archived",
          "metadata": {"speaker": "bob"}}, "archived"),
        ({"agent_id": ".guild", "kind": "members", "metadata": {"*": 0}}, "agent"),
        ({"agent_id": ".guild", "kind": "members", "metadata": ["bob"]}, "metadata"),
    ],
)  # fmt: skip
def test_a_wrong_row_of_a_group_is_refused(
    tiermem: Command, other: Path, row: dict[str, Any], why: str
) -> None:
    Path("in.jsonl").write_text(json.dumps(row) + "\n")
    assert tiermem("store", "import", other, "in.jsonl").is_one_error(2, "line 1", why)
    with MemoryBank.open(other) as bank:
        assert (bank.groups(), bank.agents()) == ([], [])


@pytest.mark.parametrize("name", ["out.jsonl", "out.ndjson", "out.parquet"])
def test_what_is_exported_is_imported_as_it_was(
    tiermem: Command, folder: Path, other: Path, name: str
) -> None:
    assert tiermem("store", "export", folder, "--out", name, "--all").err == (
        f"wrote 17 memories of crew to {name}\n"
    )
    done = tiermem("store", "import", other, name)
    assert (done.out, done.err) == ("stored 17 memories of 2 agents, 1 of them archived\n", "")
    assert contents(other, archived=True) == contents(folder, archived=True)


def test_archived_memories_are_exported_only_if_asked_for(tiermem: Command, folder: Path) -> None:
    rows = [json.loads(line) for line in tiermem("store", "export", folder).out.splitlines()]
    assert {row["retention"] for row in rows} == {"active"}
    assert len(rows) == 16
    assert len(tiermem("store", "export", folder, "--all").out.splitlines()) == 17


def test_chunks_of_notes_are_left_out(tiermem: Command, folder: Path) -> None:
    assert "trade fish" not in tiermem("store", "export", folder, "--all").out


def test_an_export_has_the_fields_of_a_memory_and_its_agent(tiermem: Command, folder: Path) -> None:
    (line,) = tiermem("store", "export", folder, "-a", "bob").out.splitlines()
    row = json.loads(line)
    assert list(row) == [
        "agent_id", "id", "content", "tier", "temperature", "retention", "kind", "tags",
        "metadata", "created_tick", "expires_tick", "access_count", "last_access_tick",
    ]  # fmt: skip
    assert (row["agent_id"], row["tier"], row["created_tick"]) == ("bob", "low", 7)
    tiermem("store", "export", folder, "-a", "bob", "--out", "bob.parquet")
    table = pq.read_table("bob.parquet")
    assert table.column_names == list(row)
    assert json.loads(table["metadata"][0].as_py()) == {"null": None, "yes": True}


def test_an_export_can_not_draw_on_a_terminal(tiermem: Command, folder: Path) -> None:
    text = tiermem("store", "export", folder).out
    assert not set("\x9b\u2028\x1b") & set(text)
    assert "Katze 🐝 שלום \\u009b\\u2028" in text


def test_an_export_does_not_replace_a_file_unless_told_to(tiermem: Command, folder: Path) -> None:
    path = write("mine", "out.jsonl")
    done = tiermem("store", "export", folder, "--out", path)
    assert done.is_one_error(2, "out.jsonl exists already", "--force")
    assert path.read_text() == "mine"
    assert tiermem("store", "export", folder, "--out", path, "--force").code == 0
    assert len(path.read_text().splitlines()) == 16


def test_a_bank_in_use_can_be_exported_and_not_imported_into(
    tiermem: Command, folder: Path
) -> None:
    with MemoryBank.open(folder):
        assert tiermem("store", "export", folder, "--out", "out.jsonl").code == 0
        assert tiermem("store", "import", folder, "out.jsonl").is_one_error(1, "one writer")
        assert tiermem("store", "import", folder, "out.jsonl", "--dry-run").code == 0


def test_an_import_of_nothing_is_nothing(tiermem: Command, other: Path) -> None:
    assert tiermem("store", "import", other, write("\n\n")).out == "stored 0 memories of 0 agents\n"


# Importing


def test_rows_without_an_agent_are_the_one_that_is_named(tiermem: Command, other: Path) -> None:
    path = write('{"content": "mine"}\r\n\n{"content": "yours", "agent_id": "bob"}')
    assert tiermem("store", "import", other, path).is_one_error(2, "line 1", "--agent")
    done = tiermem("store", "import", other, path, "--agent", "alice", "--json")
    assert done.json["agents"] == {"alice": 1, "bob": 1}


def test_an_import_reads_standard_input(
    tiermem: Command, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b'\xef\xbb\xbf{"content": "piped", "tier": 1}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert tiermem("store", "import", other, "-", "-a", "alice").code == 0
    assert tiermem("status", other, "--tiers", "--json").json["agents"]["alice"]["critical"] == 1


def test_a_dry_run_checks_all_and_stores_nothing(tiermem: Command, other: Path) -> None:
    good = '{"content": "good", "agent_id": "a"}\n'
    done = tiermem("store", "import", other, write(good * 3), "--dry-run")
    assert done.out == "would store 3 memories of 1 agent\n"
    assert tiermem("store", "import", other, write(good + "{}\n"), "-n").is_one_error(2, "line 2")
    assert contents(other) == []


def test_an_import_is_one_commit(tiermem: Command, other: Path) -> None:
    rows = [{"content": f"m{n}", "agent_id": f"a{n % 7}"} for n in range(5000)]
    path = write("\n".join(map(json.dumps, rows)))
    assert tiermem("store", "import", other, path).out == "stored 5,000 memories of 7 agents\n"
    with MemoryBank.at(other) as bank:
        assert bank.engine.journal.head == 1


def test_an_import_says_how_many_the_caps_moved(tiermem: Command, other: Path) -> None:
    rows = [{"content": f"m{n}", "agent_id": "a", "tier": "pinned"} for n in range(7)]
    path = write("\n".join(map(json.dumps, rows)))
    done = tiermem("store", "import", other, path)
    assert "2 memories moved to a lower tier" in done.out
    assert "7 memories moved to a lower tier" in tiermem("store", "import", other, path).out


def test_archived_rows_take_nobodys_place(tiermem: Command, folder: Path) -> None:
    before = contents(folder)
    row = {"agent_id": "alice", "retention": "archived", "tier": "critical", "temperature": "hot"}
    path = write("\n".join(json.dumps({**row, "content": f"m{n}"}) for n in range(30)))
    assert tiermem("store", "import", folder, path).code == 0
    assert contents(folder) == before
    with MemoryBank.at(folder) as bank:
        hidden = bank.agent("alice").all(retention=Retention.ARCHIVED)
    assert [memory.tier.name for memory in hidden[-30:]] == ["CRITICAL"] * 30


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "torn": (b'{"content": "goo', "was the file cut short?"),
    "no JSON": (b"hello\n", "not JSON"),
    "bad UTF-8": (b'{"content": "\xff"}\n', "not UTF-8 (byte 14)"),
    "UTF-16": ('{"content": "x"}'.encode("utf-16") + b"\n", "not UTF-8"),
    "a list": (b'["content"]\n', "not an object"),
    "a number": (b"42\n", "not an object"),
    "deep": (b"[" * 100_000 + b"\n", "not JSON"),
    "many digits": (b'{"content": ' + b"9" * 5000 + b"}\n", "not JSON"),
    "a million characters": (b'{"content": "' + b"x" * 1_000_000 + b'"}\n', "max_content_bytes"),
    "ten million": (b'{"content": "' + b"x" * 10_000_000 + b'"}\n', "longer than"),
    "no content": (b'{"tier": "low"}\n', "no content"),
    "null content": (b'{"content": null}\n', "no content"),
    "blank": (b'{"content": "  "}\n', "blank"),
    "content is a number": (b'{"content": 5}\n', "text, not int"),
    "NUL": (b'{"content": "a\\u0000b"}\n', "NUL"),
    "surrogate": (b'{"content": "\\ud800"}\n', "surrogate"),
    "unknown field": (b'{"content": "x", "tags ": []}\n', "did you mean tags?"),
    "another name": (b'{"text": "x"}\n', "'text' is not a field"),
    "tier": (b'{"content": "x", "tier": "top"}\n', "is not a tier"),
    "tier is true": (b'{"content": "x", "tier": true}\n', "is not a tier"),
    "kind": (b'{"content": "x", "kind": ["fact"]}\n', "not a kind"),
    "tags": (b'{"content": "x", "tags": "a"}\n', "tags are a list"),
    "metadata": (b'{"content": "x", "metadata": [1]}\n', "metadata is a mapping"),
    "nested": (b'{"content": "x", "metadata": {"a": {}}}\n', "values are text"),
    "NaN": (b'{"content": "x", "metadata": {"a": NaN}}\n', "finite"),
    "reserved": (b'{"content": "x", "metadata": {"user_id": "bob"}}\n', "reserved"),
    "agent": (b'{"content": "x", "agent_id": "*"}\n', "not an agent id"),
    "agent is a number": (b'{"content": "x", "agent_id": 7}\n', "not an agent id"),
    "temperature": (b'{"content": "x", "temperature": "boiling"}\n', "boiling"),
    "retention": (b'{"content": "x", "retention": "deleted"}\n', "active or archived"),
    "cold pin": (b'{"content": "x", "tier": 0, "temperature": "cold"}\n', "active and hot"),
    "archived pin": (b'{"content": "x", "tier": 0, "retention": "archived"}\n', "active and hot"),
    "lifetime": (b'{"content": "x", "expires_tick": 5}\n', "needs created_tick"),
    "no lifetime": (b'{"content": "x", "expires_tick": 5, "created_tick": 5}\n', "not after"),
    "half a tick": (b'{"content": "x", "expires_tick": 5.5, "created_tick": 1}\n', "whole number"),
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_is_named_and_nothing_is_stored(
    tiermem: Command, other: Path, what: str
) -> None:
    line, message = BAD_LINES[what]
    path = write(GOOD * 3 + line)
    for dry_run in ([], ["--dry-run"]):
        done = tiermem("store", "import", other, path, "-a", "alice", *dry_run)
        assert done.is_one_error(2, "in.jsonl, line 4: ", message)
        assert len(done.err) < 1000
    assert contents(other) == []


def test_a_bad_line_far_down_undoes_what_came_before(tiermem: Command, other: Path) -> None:
    assert tiermem("store", "import", other, write(GOOD * 4500 + b"{}")).is_one_error(
        2, "line 4501"
    )
    assert contents(other) == []


def test_a_full_tier_that_rejects_stores_nothing(tiermem: Command) -> None:
    tiermem("init", "strict", "--set", "memory.on_tier_full=reject", "--set", "storage.sync=manual")
    rows = [{"content": f"m{n}", "agent_id": "a", "tier": "pinned"} for n in range(6)]
    path = write("\n".join(map(json.dumps, rows)))
    assert tiermem("store", "import", "strict", path).is_one_error(1, "pinned")
    assert contents(Path("strict")) == []
    assert tiermem("store", "import", "strict", path, "--set", "memory.max_pinned=6").code == 0


NOWHERE = pa.timestamp("us", tz="Mars/Olympus_Mons")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"text": ["x"]}), "'text' is not a field"),
        (pa.table({"content": ["x", "y"], "metadata": ["{}", "{"]}), "row 2: column metadata: not"),
        (pa.table({"content": ["x"], "metadata": ["[]"]}), "row 1: column metadata: not an object"),
        (pa.table({"content": ["x"], "tier": [1.5]}), "row 1: "),
        (pa.table({"content": pa.array([0], NOWHERE)}), "the column 'content' is timestamp"),
        (pa.table({"content": [b"x"]}), "row 1: a memory is text, not bytes"),
        (pa.table({"content": [3]}), "row 1: a memory is text, not int"),
        (pa.table({"content": ["x"], "tags": [[1]]}), "row 1: "),
        (pa.table({"content": ["x"], "created_tick": [1.5], "expires_tick": [9.5]}), "row 1: "),
    ],
)
def test_a_bad_row_of_parquet_is_named(
    tiermem: Command, other: Path, table: pa.Table, message: str
) -> None:
    pq.write_table(table, "in.parquet")
    assert tiermem("store", "import", other, "in.parquet", "-a", "alice").is_one_error(2, message)
    assert contents(other) == []


def test_a_broken_cell_of_parquet_is_not_taken_for_a_file_that_was_cut_short(
    tiermem: Command, other: Path
) -> None:
    pq.write_table(pa.table({"content": ["x"], "metadata": ['{"a": ']}), "in.parquet")
    done = tiermem("store", "import", other, "in.parquet", "-a", "alice")
    assert done.is_one_error(2, "in.parquet, row 1: column metadata: not JSON")
    assert "cut short" not in done.err


def test_a_column_that_is_read_over_may_be_of_any_type(tiermem: Command, other: Path) -> None:
    columns = {"content": ["x"], "last_access_tick": pa.array([0], NOWHERE), "kind": pa.nulls(1)}
    pq.write_table(pa.table(columns), "in.parquet")
    assert tiermem("store", "import", other, "in.parquet", "-a", "alice").code == 0


def test_whole_numbers_may_be_floats_in_parquet(tiermem: Command, other: Path) -> None:
    columns = {
        "content": ["kept", "fades"],
        "tier": [1.0, None],
        "created_tick": [3.0, 3.0],
        "expires_tick": [None, 8.0],
    }
    pq.write_table(pa.table(columns), "in.parquet")
    assert tiermem("store", "import", other, "in.parquet", "-a", "alice").code == 0
    assert [(row[1], row[2].name, row[-1]) for row in contents(other)] == [
        ("fades", "NORMAL", 5),
        ("kept", "CRITICAL", None),
    ]


@pytest.mark.parametrize("keep", [0, 3, 100, 0.5, 0.99])
def test_a_torn_parquet_file_is_one_clear_error(
    tiermem: Command, folder: Path, other: Path, keep: float
) -> None:
    tiermem("store", "export", folder, "--out", "out.parquet")
    data = Path("out.parquet").read_bytes()
    write(data[: int(keep if keep == 0 or keep >= 1 else keep * len(data))], "torn.parquet")
    done = tiermem("store", "import", other, "torn.parquet")
    assert done.is_one_error(2, "torn.parquet is not a Parquet file that can be read")
    assert contents(other) == []


def test_the_format_can_be_named(tiermem: Command, other: Path) -> None:
    path = write(GOOD, "in.txt")
    assert tiermem("store", "import", other, path).is_one_error(2, "end it with .jsonl or .parquet")
    assert tiermem("store", "import", other, path, "--format", "jsonl").code == 0
    assert tiermem("store", "import", other, path, "--format", "parquet").is_one_error(
        2, "not a Parquet file"
    )
