"""Every command with arguments that nobody should give: one clear error, and nothing is changed."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import run_command, write_scenario

from agents import MemoryBank
from agents.interfaces.cli.app import COMMANDS

Command = Callable[..., Any]

BYTES = os.fsdecode(b"\xff\xfe")
"""What a shell passes on that is not a UTF-8."""
ANSI = "\x1b[2J\x1b]0;title\x07"
LONG = "x" * 5000
HUGE = "9" * 40

FOLDERS = ["", "nowhere", "..", "a\nb", ANSI, BYTES, LONG, "plain.txt", "/dev/null", "foreign"]
"""None of them is a bank or a run."""
AGENTS = ["", "*", "../alice", "a\nb", ANSI, BYTES, LONG, "zed"]


def hostile() -> Iterator[list[str]]:
    for folder in FOLDERS:
        yield ["status", folder]
        yield ["advance", folder, "--by", "1"]
        yield ["compact", folder]
        yield ["compact", folder, "--dry-run"]
        yield ["compact", folder, "--prune"]
        yield ["store", "vacuum", folder]
        yield ["store", "sync", folder]
        yield ["store", "rebuild", folder]
        yield ["store", "reembed", folder, "--embedder", "none"]
        yield ["store", "reembed", folder, "--embedder", "none", "--dry-run"]
        yield ["doctor", folder]
        yield ["status", folder, "--tiers"]
        yield ["show", folder]
        yield ["store", "export", folder]
        yield ["backup", folder, "copy"]
        yield ["notes", folder, "-a", "alice"]
        yield ["notes", folder, "-a", "alice", "sync"]
        yield ["add", folder, "-a", "alice", "text"]
        yield ["search", folder, "-a", "alice", "query"]
        yield ["call", folder, "-a", "alice", "memory_status"]
        yield ["pin", folder, "-a", "alice", "1"]
        yield ["update", folder, "-a", "alice", "1", "--text", "text"]
        yield ["show", folder, "-a", "alice", "--key", "diet"]
        yield ["unpin", folder, "-a", "alice", "1"]
        yield ["forget", folder, "-a", "alice", "1"]
        yield ["forget", folder, "-a", "alice", "1", "--purge"]
        yield ["update", folder, "-a", "alice", "1", "--retention", "active"]
        yield ["store", "import", folder, "rows.jsonl"]
        if folder != "foreign":  # whether a journal is one, a token does not ask
            yield ["token", "create", folder, "-a", "alice"]
        yield ["token", "revoke", folder, "alice"]
        yield ["serve", folder, "-a", "alice", "--port", "0"]
        yield ["mcp", folder, "-a", "alice"]
        yield ["resume", folder]
        yield ["replay", folder]
        yield ["report", folder]
        yield ["paper", folder]
        yield ["branch", folder, "--at", "1", "--out", "new"]
        yield ["store", "merge", folder, "--out", "new"]
        yield ["why", folder, "-a", "alice", "-t", "1"]
        yield ["effect", folder, "--at", "1", "--forget", "alice:x"]
        yield ["effect", folder, "--which", "--metric", "x"]
        yield ["analyse", folder]
        yield ["ask", folder, "Why?", "--offline"]
        yield ["survey", folder, "questions.yaml", "--offline"]
        yield ["survey", "run", folder, "--offline"]
        yield ["social", "tell", folder, "-a", "alice", "--to", "bob", "1"]
        yield ["social", "believe", folder, "-a", "alice", "bob", "0.5"]
        yield ["social", "group", folder, "guild"]
        yield ["why", folder, "--memory", "x"]
        yield ["why", "run", "-a", "alice", "-t", "1", "--diff", folder]
        yield ["inspect", folder, "--export", "new.html"]
        yield ["inspect", "run", folder, "--export", "new.html"]
        yield ["diff", folder, "run"]
        yield ["diff", "run", folder]
        yield ["run", folder, "--out", "new"]
        yield ["sweep", folder, "--out", "new"]
        yield ["sweep", "mine/sweep.yaml", "--plan", "--like", folder]
        yield ["fit", folder, "--to", "data.csv", "--out", "new"]
        yield ["fit", "mine/fit.yaml", "--to", folder, "--out", "new"]
        if folder != "/dev/null":  # a file without settings
            yield ["config", "--config", folder]
        if folder not in ("", "nowhere", "..", "a\nb", ANSI, BYTES):  # where a bank could be made
            yield ["init", folder]
    for agent in AGENTS:
        yield ["ask", "run", "Why?", "-a", agent, "--offline"]
        yield ["survey", "run", "questions.yaml", "--agents", agent, "--offline"]
        for name in ("status", "compact"):
            yield [name, "crew", "--agent", agent]
        yield ["notes", "crew", "-a", agent]
        yield ["notes", "crew", "-a", agent, "sync"]
        yield ["serve", "crew", "-a", agent, "--host", "0.0.0.0"]
        if agent != "zed":
            yield ["token", "create", "crew", "-a", agent]
            yield ["mcp", "crew", "-a", agent]
    for text in ("", "..", "../../etc/passwd", "/etc/passwd", "a\nb", ANSI, BYTES, LONG):
        yield ["notes", "crew", "-a", "alice", "get", text]
        yield ["notes", "crew", "-a", "alice", "write", text, "x"]
        yield ["notes", "crew", "-a", "alice", "append", "x", "--path", text or ".."]
        yield ["notes", "crew", "-a", "alice", "edit", text, "x", "y"]
        yield ["config", "--preset", text or "x"]
        yield ["config", "--set", text]
        yield ["config", "--set", f"memory.max_pinned={text or 'x'}"]
        yield ["advance", "crew", "--to", text or "x"]
        yield ["advance", "crew", "--by", "1", "--set", text]
        yield ["compact", "crew", "--set", text]
        yield ["compact", "crew", "--preset", text or "x"]
        yield ["compact", "crew", "--prune", "--config", text or "nowhere.yaml"]
        yield ["store", "sync", "crew", "--set", text]
        yield ["store", "rebuild", "crew", "--set", text]
        yield ["store", "reembed", "crew", "--set", text]
        yield ["token", "revoke", "crew", text]
        yield ["run", "mine/stones.yaml", "--out", "new", "--set", text]
        yield ["resume", "run", "--set", text]
        yield ["resume", "run", "--engine", text or "none"]
        yield ["sweep", "mine/sweep.yaml", "--out", "new", "--preset", text or "x"]
        yield ["fit", "mine/stones.yaml", "--to", "data.csv", "--out", "new", "--range", text]
        yield ["branch", "run", "--at", "1", "--out", "new", "--edit", text or "nowhere.yaml"]
        yield ["branch", "run", "--at", "1", "--out", "new", "--set", text]
        yield ["branch", "run", "--at", "1", "--out", "new", "--forget", text]
        yield ["effect", "run", "--at", "1", "--forget", text]
        yield ["effect", "run", "--never-heard", text]
        yield ["effect", "run", "--at", "1", "--block", text]
        yield ["effect", "run", "--at", "1", "--pin", f"alice:{text}~"]
        yield ["effect", "run", "--which", "--metric", text]
    for text in ("a b", "x" * 129, ".dot", "a\nb", ANSI, BYTES):
        yield ["token", "create", "crew", "-a", "alice", "--name", text]
    for number in ("-1", HUGE, f"-{HUGE}", "1e3", "nan", "٣x", "", ANSI, BYTES):
        yield ["show", "run", "--tick", number]
        yield ["why", "run", "-a", "alice", "--tick", number]
        yield ["notes", "crew", "-a", "alice", "search", "query", "--limit", number]
        yield ["notes", "crew", "-a", "alice", "search", "query", "--min-score", f"{number}9"]
        yield ["demo", "--out", "new", "--seeds", number]
        yield ["run", "mine/stones.yaml", "--out", "new", "--seed", number]
        yield ["run", "mine/stones.yaml", "--out", "new", "--ticks", number]
        yield ["resume", "run", "--from-tick", number]
        yield ["resume", "run", "--ticks", number]
        yield ["replay", "run", "--from-tick", number]
        yield ["branch", "run", "--out", "new", "--at", number]
        yield ["effect", "run", "--forget", "alice:x", "--at", number]
        yield ["effect", "run", "--forget", "alice:x", "--at", "1", "--seeds", number]
        yield ["serve", "crew", "--port", number]
        yield ["inspect", "crew", "--port", number]
        if number != HUGE:  # more lines than there are, and more processes than are needed
            yield ["notes", "crew", "-a", "alice", "get", "MEMORY.md", "--from", number]
            yield ["sweep", "mine/sweep.yaml", "--out", "new", "--workers", number]
            yield ["sweep", "mine/sweep.yaml", "--plan", "--difference", number, "--spread", "1"]
        yield ["fit", "mine/fit.yaml", "--to", "data.csv", "--out", "new", "--runs", number]
    for out in ("plain.txt", "crew", "plain.txt/new", "/dev/null", "mine"):
        yield ["demo", "--seeds", "3", "--out", out]
        yield ["run", "mine/stones.yaml", "--out", out]
        yield ["branch", "run", "--at", "1", "--out", out]
        yield ["sweep", "mine/sweep.yaml", "--out", out]
        yield ["fit", "mine/fit.yaml", "--to", "data.csv", "--out", out]
    for plot in ("nowhere/x.svg", "crew", "/dev/null/x.svg", f"{LONG}.svg"):
        yield ["diff", "run", "run", "--plot", plot]
    for path in ("nowhere", "plain.txt", "foreign", "mine", "a\nb", ANSI, BYTES, LONG):
        yield ["store", "trust", path]
        yield ["store", "trust", path, "--remove"]
    yield from (
        ["token", "list", "nowhere"],
        ["token", "steal", "crew"],
        ["notes", "crew"],
    )
    yield from (["resume", "run", "--from-tick", "99"], ["branch", "run", "--out", "new"])
    yield from (["notes", "crew", "-a", "alice", "search"], ["notes", "crew", "-a", "alice", "eat"])
    yield from (
        ["replay", "run", "--from-tick", "99"],
        ["diff", "run"],
        ["why", "run"],
        ["world", "check"],
        ["world", "check", ANSI],
        ["world", "check", "nowhere:World"],
        ["world", "check", "json:loads"],
        ["world", "check", "market", "--policy", BYTES],
        ["world", "new"],
        ["world", "new", ANSI],
        ["world", "new", "../other"],
        ["world", "new", "class"],
        ["show", "crew", "-a", "zed", "--key", "diet"],
        ["show", "crew", "-a", "alice", "--key", LONG],
        ["show", "crew", "-a", "alice", "--key", ""],
        ["update", "crew", "-a", "alice", "99", "--text", "text"],
        ["update", "crew", "-a", "alice", "1", "--text", " "],
        ["update", "crew", "-a", "alice", "1", "--text", "text", "--tier", ANSI],
        ["add", "crew", "-a", "alice", "text", "--key", LONG],
        ["search", "crew", "-a", "alice", "text", "--filter", ANSI],
        ["search", "crew", "-a", "alice", "text", "--filter", '{"' + '$not":{"' * 900],
        ["why", "run", "-a", ANSI, "-t", "1"],
        ["why", "run", "--memory", ANSI],
        ["store", "vacuum"],
        ["store", ANSI],
        [ANSI],
        [BYTES],
    )


CASES = list(hostile())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank, a run and a sweep's plan, and what is none of them."""
    place = tmp_path_factory.mktemp("place")
    with MemoryBank.open(place / "crew", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add("The well is in the north", "pinned")
        bank.agent("alice").notes.append("Never trade fish with Bob.", "MEMORY.md")
    scenario = write_scenario(place / "mine", ticks=2)
    (place / "mine" / "sweep.yaml").write_text("scenario: stones.yaml\nseeds: 1\n")
    ranges = "{memory.max_pinned: [1, 9]}"
    (place / "mine" / "fit.yaml").write_text(f"scenario: stones.yaml\nranges: {ranges}\n")
    (place / "data.csv").write_text("tick,steps\n1,2\n")
    assert run_command("run", scenario, "--out", place / "run", "-q").code == 0
    (place / "questions.yaml").write_text("- {ask: Why?}\n")
    (place / "plain.txt").write_text("this is text")
    (place / "rows.jsonl").write_text('{"agent_id": "alice", "content": "x"}\n')
    (place / "foreign").mkdir()
    (place / "foreign" / "journal.db").write_text("this is not a database" * 100)
    return place


def stamps(place: Path) -> dict[str, tuple[int, int]]:
    """All files but the locks, which who looks at a bank may leave behind."""
    found = (path for path in place.rglob("*") if path.suffix != ".lock")
    # A lock in a folder may make the folder larger.
    return {
        str(path): (0 if path.is_dir() else path.stat().st_size, path.stat().st_ino)
        for path in found
    }


def test_every_command_is_tried() -> None:
    known = [name.split() for entries in COMMANDS.values() for name, _, _ in entries]
    assert [
        words for words in known if not any(case[: len(words)] == words for case in CASES)
    ] == []


@pytest.mark.slow_after(1)
@pytest.mark.long_after(14)
@pytest.mark.parametrize("name", sorted({case[0] for case in CASES if case[0].isalpha()}))
def test_it_is_one_clear_error_and_nothing_is_changed(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    before = stamps(place)
    for case in CASES:
        if case[0] != name:
            continue
        done = run_command(*case)
        told = f"{case!a:.200} gave {done!r:.600}"
        assert done.code in (1, 2), told
        assert "Traceback" not in done.err, told
        assert not set("\x1b\x07") & set(done.err), told
        assert len(done.err) < 6000, told
        if case[0] != "doctor":
            assert done.out == "" or case == told
            labels = [
                line[:8] for line in done.err.splitlines() if line[:1] != " " or line[:9].strip()
            ]
            assert labels[:1] == ["tiermem:"], told
        assert stamps(place) == before, told
    shutil.rmtree(place / "new", ignore_errors=True)


@pytest.mark.parametrize("case", [[ANSI], [BYTES]], ids=["ansi", "bytes"])
def test_a_command_that_is_none_is_an_error(tiermem: Command, case: list[str]) -> None:
    done = tiermem(*case)
    assert done.code == 2
    assert "\x1b" not in done.err
    assert done.err.startswith("tiermem: that is not how tiermem is used")
