"""Flushes in simulations: contexts fill, agents save what should last, contexts are compacted."""

import functools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.load import load_settings
from agents.config.settings import LlmSettings, Settings
from agents.errors import (
    ChatFailed,
    ConfigError,
    Diverged,
    EmbedderError,
    NoteRefused,
    RunError,
    SimulationError,
)
from agents.errors import InvalidAction as Refused
from agents.notes import files
from agents.notes.flush import FLUSH_PROMPT
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.policies.cassette import Cassette
from agents.simulation.policies.clients import Mem0Model
from agents.simulation.policies.llm import Llm
from agents.simulation.protocols import Action, Flushing, Observation, Outcome, Remark
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay, verify_files
from agents.simulation.runs.run import Run, go_back
from agents.simulation.tick import actions
from agents.simulation.tick.flush import Contexts
from agents.simulation.tick.loop import Loop
from agents.storage.mem0.models import ChatModel
from banks import contents
from embedders import Directions
from openai_server import OpenAIServer
from waiting import LONG

pytestmark = [
    pytest.mark.slow_after(1),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MakeBank = Callable[..., MemoryBank]
FLUSH: dict[str, Any] = {
    "enabled": True, "context_window": 100, "reserve_tokens": 20, "soft_threshold": 30,
    "summary_tokens": 40,
}  # fmt: skip
"""A flush is due above 50 tokens; above 80 a context is compacted."""
NOTHING = "(No relevant memories)"


class Street:
    """Every agent sees a text in each tick, and may wave."""

    actions: Mapping[str, str] = {"wave": "greet somebody: to"}

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.tick = 0
        self.waves = 0
        self.heard: Sequence[Remark] = ()

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None: ...

    def observe(self, agent_id: str) -> Observation:
        return Observation(self.texts[self.tick] if self.texts else "", heard=self.heard)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        if action.name != "wave":
            raise Refused("only waving is allowed here")
        self.waves += 1
        return Outcome(str(action.arguments.get("says", "waved")))

    def end_tick(self) -> None:
        self.tick += 1

    def metrics(self) -> Mapping[str, float]:
        return {"waves": self.waves}

    def get_state(self) -> Any:
        return [self.tick, self.waves]

    def set_state(self, state: Any) -> None:
        self.tick, self.waves = state


class Idle:
    """Does the same actions in each tick."""

    def __init__(self, *actions: Any) -> None:
        self.actions = list(actions)
        self.errors: list[str] = []

    def decide(self, observation: Observation, memories: Any, rng: Any) -> list[Any]:
        self.errors += observation.errors
        return self.actions


class Saver(Idle):
    """Gives the actions of the test; raises an error of the test."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[tuple[Observation, list[str], str]] = []

    def flush(self, observation: Observation, memories: Any, rng: Random, prompt: str) -> Any:
        rng.random()
        self.asked.append((observation, [hit.memory.content for hit in memories], prompt))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def say(tokens: int, letter: str = "x") -> str:
    """A text that fills a context to a number of tokens, together with the line for no memories."""
    return letter * 4 * (tokens - 6)


def begun(
    bank: MemoryBank, world: Any, policy: Any = None, agents: Sequence[str] = ("alice",)
) -> Loop:
    loop = Loop(bank, world, policy or Idle(), agents)
    loop.begin()
    return loop


def counts(record: Mapping[str, Any]) -> tuple[int, int]:
    return record["flushes"], record["flush_failures"]


def context(bank: MemoryBank, agent: str = "alice") -> Any:
    return ticks_of(bank).state()["contexts"][agent]


def flushing(make_bank: MakeBank, **changed: Any) -> MemoryBank:
    """A bank in which searches find nothing, so that observations alone fill a context."""
    return make_bank(flush={**FLUSH, **changed}, memory={"default_limit": 0})


# How a context fills


def test_without_flush_nothing_is_counted_or_recorded(bank: MemoryBank) -> None:
    record = begun(bank, Street("x" * 10_000)).tick()
    assert "flushes" not in record
    assert "flush_failures" not in record
    assert ticks_of(bank).state().keys() == {"world", "errors"}
    assert bank.agent("alice").notes.paths() == []


def test_what_is_seen_heard_remembered_and_told_fills_a_context(make_bank: MakeBank) -> None:
    bank = make_bank(flush={**FLUSH, "context_window": 1000}, count_tokens=len)
    bank.agent("alice").add("the well is dry")
    world = Street("12345 <1>")
    world.heard = (Remark("hello"), Remark("you"))
    policy = Idle(Action("wave", {"says": "hi"}), Action("fly"))
    begun(bank, world, policy).tick()
    (refused,) = ticks_of(bank).state()["errors"]["alice"]
    texts = ["12345 <1>", "hello", "you", "- the well is dry", "hi", refused]
    assert context(bank)["tokens"] == len("".join(texts))


def test_a_flush_is_due_above_the_threshold_and_once_until_the_context_overflows(
    make_bank: MakeBank,
) -> None:
    bank = flushing(make_bank)
    loop = begun(bank, Street(say(50, "a"), say(7, "b"), say(23, "c"), say(7, "d"), say(7, "e")))
    recorded = [(*counts(loop.tick()), context(bank)["tokens"]) for _ in range(5)]
    assert recorded == [(0, 0, 50), (1, 0, 57), (0, 0, 80), (0, 0, 0), (0, 0, 7)]
    assert context(bank)["cycle"] == 1


def test_a_context_that_fills_at_once_is_flushed_before_it_is_compacted(
    make_bank: MakeBank,
) -> None:
    bank = flushing(make_bank, summary_tokens=1000)
    loop = begun(bank, Street(say(200, "a"), say(200, "b")))
    assert [counts(loop.tick()) for _ in range(2)] == [(1, 0), (1, 0)]
    assert context(bank)["cycle"] == 2
    assert bank.agent("alice").notes.paths() == ["memory/tick-000001.md", "memory/tick-000002.md"]


def test_each_agent_has_a_context_of_its_own(make_bank: MakeBank) -> None:
    bank = flushing(make_bank, summary_tokens=100)

    class Corner(Street):
        def observe(self, agent_id: str) -> Observation:
            return Observation(say(60) if agent_id == "bob" else say(10))

    record = begun(bank, Corner(), agents=["alice", "bob", "carol"]).tick()
    assert counts(record) == (1, 0)
    assert [bool(bank.agent(each).notes.paths()) for each in ("alice", "bob", "carol")] == [
        False, True, False,
    ]  # fmt: skip


def test_sizes_that_leave_no_context_are_a_mistake_in_the_settings(make_bank: MakeBank) -> None:
    bank = make_bank(flush={**FLUSH, "context_window": 50})
    with pytest.raises(ConfigError, match=r"section flush: context_window \(50\) must be more"):
        Loop(bank, Street(), Idle(), ["alice"])


def test_a_count_of_numpy_can_be_kept(make_bank: MakeBank) -> None:
    import numpy as np

    bank = make_bank(flush=FLUSH, count_tokens=lambda text: np.int64(len(text)))
    begun(bank, Street("rain")).tick()
    assert context(bank)["tokens"] == len("rain") + len(NOTHING)


# A policy without flush()


def test_a_summary_goes_into_the_note_of_the_tick(make_bank: MakeBank) -> None:
    bank = flushing(make_bank)
    alice = bank.agent("alice")
    alice.add("NEVER trade with Bob", "pinned")
    alice.add("Grain is dear", "important")
    alice.notes.write("MEMORY.md", "It was written down\n")
    begun(bank, Street(say(30, "a")), Idle(Action("wave", {"says": "w" * 80}))).tick()
    assert alice.notes.read("memory/tick-000001.md") == (
        f"## Before compaction\n\n- [important] Grain is dear\n- {'w' * 80}\n"
    )  # no room for what was seen, and what is pinned or noted is not lost


def test_a_summary_is_of_what_came_since_the_last_compaction(make_bank: MakeBank) -> None:
    bank = flushing(make_bank, summary_tokens=1000)
    loop = begun(bank, Street(say(81, "a"), say(51, "b"), say(50, "c"), say(81, "d")))
    for _ in range(4):
        loop.tick()
    notes = bank.agent("alice").notes
    found = {path: notes.read(path).split()[-1][0] for path in notes.paths()}
    assert found == {
        "memory/tick-000001.md": "a",
        "memory/tick-000002.md": "b",
        "memory/tick-000004.md": "d",
    }
    assert len(notes.read("memory/tick-000002.md").splitlines()) == 3


def test_where_nothing_would_be_lost_no_note_is_made(make_bank: MakeBank) -> None:
    bank = flushing(make_bank, summary_tokens=0)
    assert counts(begun(bank, Street(say(60))).tick()) == (1, 0)
    assert bank.agent("alice").notes.paths() == []


def test_the_summary_comes_after_what_the_agent_noted_in_the_tick(make_bank: MakeBank) -> None:
    bank = flushing(make_bank, summary_tokens=100)
    policy = Idle(Action("append_note", {"text": "my own"}))
    begun(bank, Street(say(51)), policy).tick()
    text = bank.agent("alice").notes.read("memory/tick-000001.md")
    assert text.startswith("my own\n## Before compaction\n\n")


def test_the_note_is_of_the_tick_whatever_day_it_is(make_bank: MakeBank) -> None:
    bank = make_bank(flush={**FLUSH, "summary_tokens": 100}, notes={"daily": "date"})
    begun(bank, Street(say(60)), Idle(Action("append_note", {"text": "my own"}))).tick()
    notes = bank.agent("alice").notes
    assert notes.paths() == ["memory/tick-000001.md"]
    assert "Before compaction" in notes.read(notes.paths()[0])


def test_where_notes_are_only_read_nothing_is_flushed_and_contexts_are_compacted(
    make_bank: MakeBank,
) -> None:
    bank = make_bank(flush=FLUSH, memory={"default_limit": 0}, notes={"read_only": True})
    saver = Saver([])
    loop = begun(bank, Street(say(60), say(60)), saver)
    assert [counts(loop.tick()) for _ in range(2)] == [(0, 0), (0, 0)]
    assert saver.asked == []
    assert context(bank)["cycle"] == 1


# A policy with flush()


def test_the_policy_is_asked_with_what_it_saw_and_what_would_be_lost(make_bank: MakeBank) -> None:
    bank = make_bank(flush={**FLUSH, "summary_tokens": 8})
    bank.agent("alice").add_many([("Grain is dear", "important"), ("the sky <1>",)])
    saver = Saver([Action("store_memory", {"content": "saved", "tier": "critical"})])
    assert isinstance(saver, Flushing)
    assert counts(begun(bank, Street(say(60) + "<1>"), saver).tick()) == (1, 0)
    ((seen, memories, prompt),) = saver.asked
    assert (seen.agent_id, seen.tick, seen.text) == ("alice", 1, say(60) + "<1>")
    assert "the sky <1>" in memories
    assert prompt.endswith(FLUSH_PROMPT)
    assert "- [important] Grain is dear\n" in prompt
    assert "saved" in contents(bank)
    assert bank.agent("alice").notes.paths() == []


def test_memory_and_note_actions_are_done_and_others_refused(make_bank: MakeBank) -> None:
    bank = flushing(make_bank)
    known = bank.agent("alice").add("Grain is dear")
    world = Street(say(60), "")
    saver = Saver(
        [
            Action("wave"),
            Action("append_note", {"text": "to do", "path": "MEMORY.md"}),
            Action("pin_memory", {"memory_id": known.id}),
            Action("pin_memory", {"memory_id": "nope"}),
            Action("no_op"),
            {"name": "store_memory", "arguments": {"content": "kept"}},
            7,
        ]
    )
    loop = begun(bank, world, saver)
    record = loop.tick()
    assert (counts(record), record["errors"], record["no_ops"]) == ((1, 0), 4, 0)
    assert world.waves == 0
    assert bank.agent("alice").notes.read() == "to do\n"
    assert [each.content for each in bank.agent("alice").get_pinned_memories()] == ["Grain is dear"]
    loop.tick()
    assert [told.split(":")[0] for told in saver.errors] == [
        "wave was refused", "pin_memory was refused", "no_op was refused", "an action was refused",
    ]  # fmt: skip
    assert "only store_memory" in saver.errors[0]
    assert not any("refused" in each for each in contents(bank))


def test_nothing_to_save_is_a_flush_too(make_bank: MakeBank) -> None:
    bank = flushing(make_bank)
    assert counts(begun(bank, Street(say(60)), Saver([])).tick()) == (1, 0)


@pytest.mark.parametrize(
    "error",
    [ChatFailed("Timeout", "late"), EmbedderError("gone"), NoteRefused("no"), Refused("no")],
)
def test_a_flush_that_fails_is_tried_once_more(make_bank: MakeBank, error: Exception) -> None:
    bank = flushing(make_bank)
    saver = Saver(error, [Action("store_memory", {"content": "kept"})])
    assert counts(begun(bank, Street(say(60)), saver).tick()) == (1, 0)
    assert len(saver.asked) == 2
    assert contents(bank).count("kept") == 1


def test_a_flush_that_fails_twice_is_given_up_until_the_next_cycle(make_bank: MakeBank) -> None:
    bank = flushing(make_bank)
    saver = Saver(ChatFailed("Timeout", "late"))
    loop = begun(bank, Street(say(60), say(10), say(20), say(60)), saver)
    assert [counts(loop.tick()) for _ in range(4)] == [(0, 1), (0, 0), (0, 0), (0, 1)]
    assert len(saver.asked) == 4


class Fragile(Directions):
    """An embedder that fails on the word break."""

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        if any("break" in text for text in texts):
            raise EmbedderError("no vector for that")
        return super().embed(texts)


BREAK = Action("store_memory", {"content": "break"})


def fragile(folder: Path) -> MemoryBank:
    return MemoryBank.open(
        folder,
        embedder=Fragile(),
        flush=FLUSH,
        memory={"default_limit": 0},
        storage={"sync": "manual"},
    )


def test_nothing_half_done_of_a_failed_flush_stays(tmp_path: Path) -> None:
    ends = []
    for name in ("failed", "quiet"):
        with fragile(tmp_path / name) as bank:
            known = bank.agent("alice").add("Grain is dear")
            half_done = [
                Action("append_note", {"text": "half"}),
                Action("pin_memory", {"memory_id": known.id}),
                Action("fly"),
                Action("store_memory", {"content": "half"}),
                BREAK,
            ]
            saver = Saver(half_done if name == "failed" else [])
            loop = begun(bank, Street(say(60), "later"), saver)
            record = loop.tick()
            assert counts(record) == ((0, 1) if name == "failed" else (1, 0))
            assert record["errors"] == 0
            loop.tick()
            assert saver.errors == []
            ends.append((bank.state_hash(), ticks_of(bank).state()))
            assert not list((tmp_path / name).rglob("*.md*"))
    assert ends[0] == ends[1]


def test_after_a_failure_the_retry_writes_the_note_to_disk(tmp_path: Path) -> None:
    with fragile(tmp_path / "bank") as bank:
        notes = bank.agent("alice").notes
        notes.write("MEMORY.md", "before\n")
        append = Action("append_note", {"text": "kept", "path": "MEMORY.md"})
        saver = Saver([append, append, BREAK], [append])
        assert counts(begun(bank, Street(say(60)), saver).tick()) == (1, 0)
        file = tmp_path / "bank" / "notes" / "alice" / "MEMORY.md"
        assert file.read_text() == notes.read() == "before\nkept\n"


@pytest.mark.parametrize(
    "error", [Diverged("no"), RunError("full disk"), SimulationError("no key"), ZeroDivisionError()]
)
def test_what_ends_a_run_ends_it_in_a_flush_too(make_bank: MakeBank, error: Exception) -> None:
    loop = begun(flushing(make_bank), Street(say(60)), Saver(error))
    with pytest.raises(SimulationError):
        loop.tick()


@pytest.mark.parametrize("answer", [None, "wave", Action("wave"), 5])
def test_an_answer_that_is_no_list_ends_the_run(make_bank: MakeBank, answer: object) -> None:
    loop = begun(flushing(make_bank), Street(say(60)), Saver(answer))
    with pytest.raises(SimulationError, match=r"Saver\.flush\(\) gave .* a list of actions"):
        loop.tick()


# The action append_note


def test_append_note_adds_lines_to_a_note(bank: MemoryBank) -> None:
    policy = Idle(
        Action("append_note", {"text": "one"}),
        Action("append_note", {"text": "two", "path": "memory/plans.md"}),
        Action("append_note", {"text": "three", "path": "MEMORY.md"}),
        Action("append_note", {"text": "four", "path": None}),
    )
    begun(bank, Street(), policy).tick()
    notes = bank.agent("alice").notes
    assert {path: notes.read(path) for path in notes.paths()} == {
        "MEMORY.md": "three\n",
        "memory/plans.md": "two\n",
        "memory/tick-000001.md": "one\nfour\n",
    }


def test_a_note_comes_after_what_was_stored_before_it(bank: MemoryBank) -> None:
    store = [Action("store_memory", {"content": text}) for text in ("first", "last")]
    policy = Idle(store[0], Action("append_note", {"text": "middle"}), store[1])
    begun(bank, Street(), policy).tick()
    assert [text.strip() for text in contents(bank)] == ["first", "middle", "last"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "text is missing; append_note takes text and path"),
        ({"text": ""}, "blank"),
        ({"text": " \n"}, "blank"),
        ({"text": 5}, "text, not int"),
        ({"text": None}, "text, not NoneType"),
        ({"text": "nul \0"}, "NUL"),
        ({"text": "half \ud800"}, "surrogate"),
        ({"text": "x" * (1 << 20)}, "over 1048576 bytes"),
        ({"text": "hi", "tier": "low"}, "'tier'"),
        ({"text": "hi", "path": 5}, "5 is not a note"),
        ({"text": "hi", "path": "notes.md"}, "'notes.md' is not a note that you can write"),
        ({"text": "hi", "path": "extra/a.md"}, "is not a note that you can write"),
        ({"text": "hi", "path": "/etc/passwd"}, "is not a note that you can write"),
        ({"text": "hi", "path": "memory/../../a.md"}, "not a note's path"),
        ({"text": "hi", "path": "memory/a.txt"}, "not a note's path"),
        ({"text": "# A <!-- tier: shiny -->"}, "'shiny' is not a tier"),
    ],
)
@pytest.mark.parametrize("kept", ["in memory", "on disk"])
def test_a_malformed_append_note_is_told_wherever_notes_are_kept(
    request: pytest.FixtureRequest, kept: str, arguments: Mapping[str, Any], part: str
) -> None:
    make: MakeBank = request.getfixturevalue("make_bank" if kept == "in memory" else "open_bank")
    bank = make()
    policy = Idle(Action("append_note", arguments))
    loop = begun(bank, Street(), policy)
    assert loop.tick()["errors"] == 1
    policy.actions = []
    loop.tick()
    (told,) = policy.errors
    assert told.startswith("append_note was refused: ")
    assert part in told
    assert contents(bank) == []
    assert bank.agent("alice").notes.paths() == []


def test_a_note_that_is_full_is_told_wherever_notes_are_kept(
    make_bank: MakeBank, open_bank: MakeBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (actions, files):
        monkeypatch.setattr(module, "MOST_BYTES", 100)
    told = []
    for bank in (make_bank(), open_bank()):
        bank.agent("alice").notes.write("MEMORY.md", "x" * 60)
        policy = Idle(Action("append_note", {"text": "y" * 40, "path": "MEMORY.md"}))
        begun(bank, Street(), policy).tick()
        told += ticks_of(bank).state()["errors"]["alice"]
    assert told[0] == told[1]
    assert "over 100 bytes" in told[0]


def test_where_notes_are_only_read_append_note_is_refused(make_bank: MakeBank) -> None:
    bank = make_bank(notes={"read_only": True})
    begun(bank, Street(), Idle(Action("append_note", {"text": "hi"}))).tick()
    (told,) = ticks_of(bank).state()["errors"]["alice"]
    assert "notes.read_only is true" in told


@pytest.mark.parametrize("write", ["append", "write", "edit"])
def test_notes_that_are_only_read_are_read(open_bank: MakeBank, write: str) -> None:
    open_bank().agent("alice").notes.append("as it was", "MEMORY.md")
    notes = open_bank(notes={"read_only": True}).agent("alice").notes
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: notes.append("new"),
        "write": lambda: notes.write("MEMORY.md", "new"),
        "edit": lambda: notes.edit("MEMORY.md", "as", "was"),
    }
    with pytest.raises(NoteRefused, match=r"can't be written: notes\.read_only is true"):
        calls[write]()
    assert notes.read() == "as it was\n"
    assert notes.paths() == ["MEMORY.md"]


# Runs


def market(**more: Any) -> Settings:
    values = {
        "seed": 3,
        "storage": {"sync": "manual"},
        "checkpoint": {"every": 5, "keep": 2},
        "flush": {**FLUSH, "context_window": 400, "reserve_tokens": 50, "soft_threshold": 80},
        "simulation": {"world": "market", "agents": 5, "ticks": 16},
    }
    return load_settings({**values, **more})


def notes_on_disk(folder: Path) -> dict[str, str]:
    place = folder / "bank" / "notes"
    files = sorted(path for path in place.rglob("*.md") if ".replaced-" not in str(path))
    return {str(path.relative_to(place)): path.read_text() for path in files}


def finished(folder: Path, settings: Settings | None = None) -> tuple[list[Any], Any, Any]:
    """The records, the journal's hash and the notes of a finished run."""
    opened = Run.open(folder) if settings is None else Run.create(folder, settings)
    with opened as run:
        for _ in run.advance(run.settings.simulation.ticks):
            pass
        run.finish(report=False)
        records = [record for record, _ in ticks_of(run.bank).records()]
        journal = ticks_of(run.bank).hash()
    return records, journal, notes_on_disk(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    folder = tmp_path_factory.mktemp("market") / "run"
    return folder, finished(folder, market())


def divergences(folder: Path, start: int | None = None) -> list[str]:
    replay = Replay(folder, start)
    try:
        return [str(each) for each in replay.ticks() if each]
    finally:
        replay.close()


def test_a_run_flushes_into_notes_on_disk(whole: tuple[Path, Any]) -> None:
    folder, (records, _, notes) = whole
    assert counts(records[0]) == (0, 0)
    assert sum(record["flushes"] for record in records) == len(notes) > 10
    assert sum(record["flush_failures"] for record in records) == 0
    for path, text in notes.items():
        agent, name = path.split("/memory/")
        assert agent.startswith("agent_0")
        assert records[int(name[5:11])]["flushes"] > 0
        assert text.startswith("## Before compaction\n\n- ")
    assert list(verify_files(folder)) == []


def test_the_same_run_again_is_the_same(whole: tuple[Path, Any], tmp_path: Path) -> None:
    assert finished(tmp_path / "again", market()) == whole[1]


@pytest.mark.parametrize("stop", [1, 6, 7, 8, 11])
def test_a_run_that_was_stopped_goes_on_as_it_would_have(
    whole: tuple[Path, Any], tmp_path: Path, stop: int
) -> None:
    folder = tmp_path / "run"
    with Run.create(folder, market()) as run:
        for _ in run.advance(stop):
            pass
    assert finished(folder) == whole[1]


def test_a_tick_that_is_interrupted_after_its_flushes_leaves_nothing(
    whole: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    tick = next(record["tick"] for record in whole[1][0] if record["flushes"])
    run = Run.create(folder, market())
    for _ in run.advance(tick - 1):
        pass

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Contexts, "get_state", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(run.advance(tick))
    run.close()
    Run.open(folder).close()
    assert notes_on_disk(folder) == {}
    assert not list((folder / "bank" / "notes").rglob(".*.new"))
    assert finished(folder) == whole[1]


def test_a_run_that_goes_back_forgets_its_notes_and_writes_them_again(
    whole: tuple[Path, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    go_back(folder, 7)
    Run.open(folder).close()
    assert all(int(path[-9:-3]) <= 7 for path in notes_on_disk(folder))
    assert finished(folder) == whole[1]


@pytest.mark.parametrize("start", [None, 3, 7])
def test_a_run_is_replayed_without_its_notes_on_disk(
    whole: tuple[Path, Any], start: int | None
) -> None:
    assert divergences(whole[0], start) == []


def test_a_branch_goes_on_with_its_parents_contexts(
    whole: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, (records, _, notes) = whole
    branch(folder, 7, tmp_path / "branch")
    again = finished(tmp_path / "branch")
    assert (again[0], again[2]) == (records, notes)
    assert divergences(tmp_path / "branch") == []


def test_a_branch_may_have_another_window(whole: tuple[Path, Any], tmp_path: Path) -> None:
    branch(whole[0], 7, tmp_path / "branch", assignments=["flush.context_window=100000"])
    records, _, _ = finished(tmp_path / "branch")
    assert sum(record["flushes"] for record in records[8:]) == 0
    assert divergences(tmp_path / "branch") == []


def test_a_branch_may_be_the_first_to_flush(tmp_path: Path) -> None:
    finished(tmp_path / "run", market(flush={"enabled": False}))
    assert notes_on_disk(tmp_path / "run") == {}
    flush = [f"flush.{key}={value}" for key, value in market().to_dict()["flush"].items()]  # type: ignore[attr-defined]
    branch(tmp_path / "run", 7, tmp_path / "branch", assignments=flush)
    records, _, notes = finished(tmp_path / "branch")
    assert "flushes" not in records[7]
    assert sum(record["flushes"] for record in records[8:]) == len(notes) > 0
    assert divergences(tmp_path / "branch") == []


def test_a_run_from_a_checkpoint_alone_has_its_notes(
    whole: tuple[Path, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    with Run.create(folder, market()) as run:
        for _ in run.advance(10):
            pass
    shutil.rmtree(folder / "bank")
    with Run.open(folder) as run:
        assert run.tick == 10
    records, _, notes = finished(folder)
    assert (records[10:], notes) == (whole[1][0][10:], whole[1][2])


# Agents that ask a language model

SAVES = json.dumps(
    {
        "actions": [
            {"name": "store_memory", "arguments": {"content": "Bob waves back"}},
            {"name": "append_note", "arguments": {"text": "wave to Bob", "path": "MEMORY.md"}},
        ]
    }
)
WAVES = json.dumps({"actions": [{"name": "wave", "arguments": {"says": "w" * 400}}]})
NOBODY = "http://127.0.0.1:9/v1"
LLM_FLUSH = {**FLUSH, "context_window": 300}


@pytest.fixture(scope="module")
def one_server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def server(one_server: OpenAIServer) -> OpenAIServer:
    one_server.requests = []
    return one_server


def is_flush(request: Mapping[str, Any]) -> bool:
    return FLUSH_PROMPT in str(request["messages"][-1]["content"])


def saying(*replies: object) -> Callable[[dict[str, Any]], Any]:
    """Waves; answers each flush with the next reply, or raises it. The last reply repeats."""
    left = list(replies)

    def reply(request: dict[str, Any]) -> Any:
        if not is_flush(request):
            return WAVES
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return given

    return reply


@functools.cache
def chat_model(url: str) -> Mem0Model:
    """One model for all tests, since making a client takes a while."""
    config = {"openai_base_url": url, "api_key": "hush-hush", "model": "m"}
    return Mem0Model(ChatModel(LlmSettings("openai", config, timeout=LONG)))


def llm(url: str, path: Path, *, replay: bool = False) -> Llm:
    cassette = Cassette(path / "cassette.jsonl", replay)
    settings = LlmSettings(timeout=LONG)
    return Llm(chat_model(url), cassette, Street.actions, llm=settings, pause=0.0)


def asked(policy: Llm, ticks: int = 3) -> tuple[list[dict[str, Any]], list[str], str]:
    """The records of a run of one agent, its memories and its long-term note."""
    with MemoryBank.ephemeral(embedder=Directions(), flush=LLM_FLUSH, seed=7) as bank:
        loop = begun(bank, Street(*["a street"] * ticks), policy)
        records = [loop.tick() for _ in range(ticks)]
        return records, contents(bank), bank.agent("alice").notes.read()


def flush_requests(server: OpenAIServer) -> list[dict[str, Any]]:
    return [request for _, request in server.requests if is_flush(request)]


def attempts(path: Path) -> list[int]:
    lines = map(json.loads, (path / "cassette.jsonl").read_text().splitlines())
    return [line["attempt"] for line in lines if is_flush(line)]


@pytest.mark.slow
def test_a_model_saves_with_actions(server: OpenAIServer, tmp_path: Path) -> None:
    server.reply = saying(SAVES)
    records, memories, note = asked(llm(server.url, tmp_path), ticks=2)
    assert [counts(record) for record in records] == [(0, 0), (1, 0)]
    assert "Bob waves back" in memories
    assert note == "wave to Bob\n"
    (request,) = flush_requests(server)
    (usual,) = {r["messages"][0]["content"] for _, r in server.requests}
    assert "- append_note: " in usual
    text = request["messages"][1]["content"]
    assert text.startswith("You are alice.\n\nYour memories, each with its memory_id:\n")
    assert "\n\nTick 2. What you see:\na street\n\n" in text
    assert text.endswith(FLUSH_PROMPT)
    assert "What your context holds, the most important first:\n- a street\n" in text


@pytest.mark.slow
@pytest.mark.parametrize("silence", ["NO_REPLY", " no_reply\n", '{"actions": []}'])
def test_a_model_may_have_nothing_to_save(
    server: OpenAIServer, tmp_path: Path, silence: str
) -> None:
    server.reply = saying(silence)
    records, memories, note = asked(llm(server.url, tmp_path), ticks=2)
    assert counts(records[-1]) == (1, 0)
    assert len(flush_requests(server)) == 1
    assert (len(memories), note) == (4, "")


@pytest.mark.slow
def test_silence_is_no_answer_to_the_usual_question(server: OpenAIServer, tmp_path: Path) -> None:
    server.reply = lambda _: "NO_REPLY"
    records, _, _ = asked(llm(server.url, tmp_path), ticks=1)
    assert records[0]["no_ops"] == 1


@pytest.mark.parametrize("bad", ["I save Bob.", "NO_REPLY, thank you"])
def test_a_model_is_asked_once_more(server: OpenAIServer, tmp_path: Path, bad: object) -> None:
    server.reply = saying(bad, SAVES)
    records, memories, _ = asked(llm(server.url, tmp_path), ticks=2)
    assert counts(records[-1]) == (1, 0)
    assert memories.count("Bob waves back") == 1
    assert attempts(tmp_path) == [0, 1]
    first, second = flush_requests(server)
    if isinstance(bad, str):  # it is told what was wrong
        told = (
            second["messages"][1].pop("content").removeprefix(first["messages"][1].pop("content"))
        )
        assert told.startswith("\n\nYour last reply was no use: ")
    assert first == second


def test_a_model_that_fails_twice_is_left_alone_and_the_tick_goes_on(
    server: OpenAIServer, tmp_path: Path
) -> None:
    server.reply = saying("I save Bob.", "I save Bob, too.", SAVES)
    records, memories, note = asked(llm(server.url, tmp_path), ticks=2)
    assert [counts(record) for record in records] == [(0, 0), (0, 1)]
    assert records[-1]["metrics"] == {"waves": 2}
    assert ("Bob waves back" in memories, note) == (False, "")
    assert attempts(tmp_path) == [0, 1]
    assert len(flush_requests(server)) == 2


@pytest.mark.parametrize("replies", [[SAVES], ["NO_REPLY"], ["x", SAVES], ["x", "y", SAVES]])
def test_flushes_are_replayed_offline_from_the_cassette(
    server: OpenAIServer, tmp_path: Path, replies: list[str]
) -> None:
    server.reply = saying(*replies)
    first = asked(llm(server.url, tmp_path), ticks=6)
    assert sum(sum(counts(record)) for record in first[0]) > 1
    before = len(server.requests)
    assert asked(llm(NOBODY, tmp_path, replay=True), ticks=6) == first
    assert len(server.requests) == before


def test_a_flush_that_is_missing_in_the_cassette_is_a_divergence(
    server: OpenAIServer, tmp_path: Path
) -> None:
    server.reply = saying(SAVES)
    asked(llm(server.url, tmp_path), ticks=2)
    cassette = tmp_path / "cassette.jsonl"
    lines = cassette.read_text().splitlines(keepends=True)
    cassette.write_text("".join(line for line in lines if not is_flush(json.loads(line))))
    with pytest.raises(Diverged, match="tick 2, agent 'alice'"):
        asked(llm(NOBODY, tmp_path, replay=True), ticks=2)


@pytest.mark.slow
def test_a_whole_run_with_a_model_replays_when_the_model_is_gone(tmp_path: Path) -> None:
    wait = json.dumps({"actions": []})
    replies = iter([SAVES, "NO_REPLY", "x", "y", "z", SAVES] * 20)
    with OpenAIServer(lambda request: next(replies) if is_flush(request) else wait) as server:
        config = {"openai_base_url": server.url, "api_key": "hush-hush", "model": "m"}
        settings = market(
            llm={"provider": "openai", "config": config},
            simulation={
                "world": "market", "agents": 5, "ticks": 8, "policy": "llm",
                "policy_options": {"pause": 0},
            },
        )  # fmt: skip
        folder = tmp_path / "run"
        records, _, notes = finished(folder, settings)
    assert sum(record["flushes"] for record in records) > 2
    assert sum(record["flush_failures"] for record in records) > 0
    assert "agent_00/MEMORY.md" in notes
    assert divergences(folder) == []
    assert divergences(folder, 4) == []
