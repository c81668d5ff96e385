"""A bank with the profile openclaw and one without are in the same state after the same calls."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents import AgentMemory, MemoryBank
from agents.config.load import load_settings
from agents.tools.calling import run

NAMES = ("MEMORY.md", "memory/a.md", "memory/b.md")
WORDS = st.sampled_from(["the ferry", "leaves at noon", "Bob", "likes tea", "rain", "deployment"])
TEXTS = st.lists(WORDS, max_size=12).map("\n".join)
NUMBERS = st.one_of(st.none(), st.integers(-3, 2000), st.floats(-2, 9, allow_nan=False))

WRITES = st.tuples(st.just("write"), st.sampled_from(NAMES), TEXTS)
ADDS = st.tuples(st.just("add"), TEXTS.filter(str.strip))
SEARCHES = st.tuples(st.just("search"), TEXTS, NUMBERS, NUMBERS)
READS = st.tuples(st.just("get"), st.sampled_from([*NAMES, "memory/none.md"]), NUMBERS, NUMBERS)


def whole(value: float | None, most: int = 2**53) -> int | None:
    return None if value is None else min(max(1, int(value)), most)


def theirs(main: AgentMemory, call: tuple[Any, ...]) -> list[Any]:
    """Does a call under OpenClaw's names, and tells what it gave."""
    match call:
        case ("search", query, most, least):
            found = main.call("memory_search", query=query, maxResults=most, minScore=least)
            return [[row["path"], row["startLine"], row["score"]] for row in found["results"]]
        case ("get", path, first, lines):
            return [main.call("memory_get", path=path, **{"from": first, "lines": lines})["text"]]
    return ours(main, call)


def ours(main: AgentMemory, call: tuple[Any, ...]) -> list[Any]:
    """Does a call under our names."""
    match call:
        case ("write", path, text):
            main.notes.write(path, text)
        case ("add", text):
            main.add(text)
        case ("search", query, most, least):
            share = None if least is None else min(max(0.0, least), 1.0)
            given = {"query": query, "max_results": whole(most, 1000), "min_score": share}
            found = run(main, "memory_search", {**given, "kind": "note"})
            return [[row["path"], row["from"], row["score"]] for row in found["results"]]
        case ("get", path, first, lines):
            given = {"path": path, "from": whole(first), "lines": whole(lines)}
            return [run(main, "memory_get", given)["text"]]
    return []


@given(st.lists(st.one_of(WRITES, ADDS, SEARCHES, READS), max_size=12))
def test_the_profile_and_the_plain_calls_leave_the_same_state(calls: list[tuple[Any, ...]]) -> None:
    settings: dict[str, Any] = load_settings({"profile": "openclaw"}).to_dict()
    with (
        MemoryBank.ephemeral(profile="openclaw") as named,
        MemoryBank.ephemeral({**settings, "profile": None}) as plain,
    ):
        for call in calls:
            assert theirs(named.agent("main"), call) == ours(plain.agent("main"), call)
        assert named.state_hash() == plain.state_hash()
