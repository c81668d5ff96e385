"""Interviews: agents of a run answer as they were after a tick, and the run does not learn it."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import ConfigError, InvalidInput, RunError, SimulationError, Untrusted
from agents.simulation.policies.costs import spent
from agents.simulation.policies.interview import asked, read_questions
from agents.simulation.runs.interviews import Survey, survey
from agents.simulation.runs.outputs import rows_of
from agents.simulation.runs.run import Run
from openai_server import OpenAIServer

TICKS = 3
CHOICE = asked("Who won?", name="won", choice=["ann", "bob"])
SCALE = asked("How sure?", name="sure", scale=(1, 7))
NUMBER = asked("How many?", name="many", number=True)
TEXT = asked("Why?", name="why")


def made(place: Path, url: str = "") -> Path:
    """A run whose agents follow rules; with a server, the run's settings name a model."""
    llm = {"base_url": url, "model": "m", "seed": 5}
    settings = load_settings(
        {
            "seed": 7,
            "storage": {"sync": "manual"},
            "llm": llm if url else {},
            "simulation": {
                "world": "market", "world_options": {"scammers": 1}, "agents": 4, "ticks": TICKS,
            },
        }
    )  # fmt: skip
    with Run.create(place / "run", settings) as run:
        list(run.advance(TICKS))
    return place / "run"


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, which no test changes."""
    return made(tmp_path_factory.mktemp("market"))


def files(folder: Path) -> dict[str, str]:
    """All that a run has beside its interviews."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "interviews" not in path.parts
    }


@pytest.mark.parametrize(
    ("question", "reply", "answer"),
    [
        (CHOICE, '{"answer": "bob"}', "bob"),
        (CHOICE, '```json\n{"answer": " Bob ", "reason": "x"}\n```', "bob"),
        (SCALE, '{"answer": 3}', 3),
        (SCALE, '{"answer": "7"}', 7),
        (NUMBER, '{"answer": -1.5}', -1.5),
        (TEXT, '{"answer": " so it is "}', "so it is"),
    ],
)
def test_a_reply_is_read_as_the_kind_that_was_asked(
    question: Any, reply: str, answer: object
) -> None:
    assert question.read(reply) == [answer]


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (CHOICE, '{"answer": "cat"}'),
        (CHOICE, '{"answer": true}'),
        (CHOICE, "ann"),
        (CHOICE, '["ann"]'),
        (SCALE, '{"answer": 0}'),
        (SCALE, '{"answer": 2.5}'),
        (SCALE, '{"answer": true}'),
        (NUMBER, '{"answer": NaN}'),
        (NUMBER, '{"answer": "many"}'),
        (NUMBER, '{"answer": 1e999}'),
        (NUMBER, '{"answer": 1%s}' % ("0" * 400)),
        (TEXT, '{"answer": ""}'),
        (TEXT, '{"answer": "\\ud800"}'),
    ],
)
def test_a_reply_of_another_kind_is_refused(question: Any, reply: str) -> None:
    with pytest.raises(ValueError, match=r"answer|none of|scale|Expecting|object|half a char"):
        question.read(reply)


@pytest.mark.parametrize(
    ("text", "options", "part"),
    [
        ("", {}, "a question is a text"),
        (3, {}, "a question is a text"),
        ("x" * 5_000, {}, "a question is a text"),
        ("a\0b", {}, "NUL"),
        ("q", {"choice": ["a"]}, "2 to 50 different texts"),
        ("q", {"choice": ["a", "a"]}, "2 to 50 different texts"),
        ("q", {"choice": [True, False]}, "2 to 50 different texts"),
        ("q", {"choice": "ab"}, "a list of texts"),
        ("q", {"scale": (7, 1)}, "the lower first"),
        ("q", {"scale": [1]}, "the lower first"),
        ("q", {"scale": (1.0, 7.0)}, "the lower first"),
        ("q", {"scale": (1, 7), "number": True}, "of one kind"),
        ("q", {"name": ""}, "a short text"),
    ],
)
def test_a_question_that_can_not_be_asked_is_refused(
    text: object, options: dict[str, Any], part: str
) -> None:
    with pytest.raises(InvalidInput, match=part):
        asked(text, **options)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a list of 1 to 200 questions"),
        ("questions: []", "a list of 1 to 200 questions"),
        ("[{ask: a, likert: 3}]", "'likert' is no part of a question"),
        ("[7]", "7 is no part of a question"),
        ("[{ask: a, choice: [yes, no]}]", "different texts"),
        ("[{ask: a, name: x}, {ask: b, name: x}]", "two questions have the name 'x'"),
    ],
)
def test_a_file_of_questions_says_where_it_is_wrong(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "q.yaml").write_text(text)
    with pytest.raises(ConfigError, match=part):
        read_questions(tmp_path / "q.yaml")


def test_questions_of_a_file_have_names(tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text("questions:\n- Why?\n- {ask: 'How sure?', scale: [1, 7]}\n")
    first, second = read_questions(tmp_path / "q.yaml")
    assert (first.name, first.kind) == ("question 1", "text")
    assert (second.name, second.kind, second.low, second.high) == ("question 2", "scale", 1, 7)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "no language model is configured"),
        ({"offline": True}, "no language model is configured"),
        ({"agents": ["zoe"]}, "no agent 'zoe'"),
        ({"ticks": [TICKS + 1]}, f"has {TICKS} ticks"),
        ({"ticks": [-1]}, "is no tick"),
        ({"ticks": []}, "a question and a tick"),
        ({"times": 0}, "times is 0"),
        ({"assignments": ["memory.max_pinned=3"]}, "changes nothing of a run"),
    ],
)
def test_an_interview_that_can_not_be_held_leaves_no_trace(
    market: Path, options: dict[str, Any], part: str
) -> None:
    before = files(market)
    with pytest.raises((SimulationError, InvalidInput, ConfigError), match=part):
        survey(market, [TEXT], **options)
    assert files(market) == before
    assert not (market / "interviews").exists()


def told(rows: list[tuple[int, str, Any]], question: Any = SCALE) -> Survey:
    """A survey of some agents with these answers: tick, agent and value."""
    kept = [
        {"tick": tick, "question": question.name, "agent": agent, "repetition": 1,
         "answer": str(value), "value": None if question.options else value, "problem": None}
        for tick, agent, value in rows
    ]  # fmt: skip
    names = list(dict.fromkeys(agent for _, agent, _ in rows))
    return Survey("run", [question], names, [1, 2], 1, kept)


def test_a_curve_has_the_mean_of_the_agents_and_an_interval_within_the_scale() -> None:
    first, second = told([(1, "a", 1), (1, "b", 1), (1, "c", 7), (2, "a", 4)]).curve()
    assert (first["tick"], first["n"], first["mean"]) == (1, 3, 3.0)
    assert (first["low"], first["high"]) == (1.0, 7.0)
    assert (second["mean"], second["low"]) == (4.0, None)  # one agent says nothing of others
    shares = {
        row["answer"]: row for row in told([(1, "a", "ann"), (1, "b", "ann")], CHOICE).curve()
    }
    assert {name: row["mean"] for name, row in shares.items()} == {"ann": 1.0, "bob": 0.0}


def answers(request: dict[str, Any]) -> str:
    """How much an agent remembers, as a place on the scale or in words."""
    prompt = request["messages"][-1]["content"]
    if "whole number" in prompt:
        return json.dumps({"answer": min(7, prompt.count("\n- "))})
    return json.dumps({"answer": f"{prompt.count(chr(10))} lines"})


@pytest.mark.slow
def test_an_agent_answers_as_it_was_and_the_answer_is_recorded(tmp_path: Path) -> None:
    with OpenAIServer(answers) as server:
        run = made(tmp_path, server.url)
        before = files(run)
        curve = survey(run, [SCALE, TEXT], ticks=[1, TICKS], times=2)
        asked_for = len(server.requests)
        prompts = [body["messages"][-1]["content"] for _, body in server.requests]
        again = survey(run, [SCALE, TEXT], ticks=[1, TICKS], times=2)
        assert len(server.requests) == asked_for == 2 * 2 * 4 * 2
    assert again == curve
    assert survey(run, [SCALE, TEXT], ticks=[1, TICKS], times=2, offline=True) == curve
    with pytest.raises(RunError, match="is not recorded"):
        survey(run, [SCALE], ticks=[2], offline=True)
    assert files(run) == before
    assert "It is after tick 1." in prompts[0]
    sums = {tick: sum(row["value"] or 0 for row in curve.rows if row["tick"] == tick)
            for tick in (1, TICKS)}  # fmt: skip
    assert sums[1] < sums[TICKS]  # they remember more by then
    assert {body["seed"] for _, body in server.requests} == {5, 6}  # a repetition has its own
    curve.write(tmp_path / "out")
    table = rows_of(tmp_path / "out" / "curve.parquet")
    assert table == curve.curve()
    assert (tmp_path / "out" / "answers.csv").read_text().count("\n") == 1 + len(curve.rows)
    assert "<svg" in (tmp_path / "out" / "survey.html").read_text()
    with pytest.raises(RunError, match=r"has a file answers.csv already"):
        curve.write(tmp_path / "out")


def test_a_strangers_run_asks_no_model_that_it_names(tmp_path: Path) -> None:
    run = made(tmp_path, "http://127.0.0.1:9/v1")
    (run / "run.seal").unlink()
    with pytest.raises(Untrusted, match="your API key"):
        survey(run, [TEXT])


@pytest.mark.slow
def test_an_open_run_is_asked_and_an_answer_of_another_kind_is_none(tmp_path: Path) -> None:
    with OpenAIServer(lambda _: '{"answer": "x"}') as server:
        run = made(tmp_path, server.url)
        with Run.open(run) as opened:
            said = opened.ask("Why?", agent="agent_00", tick=1)
            sure = opened.ask("How sure?", scale=(1, 7))
    assert said.answers == ["x"]
    assert sure.answers == []
    assert {row["problem"][:31] for row in sure.rows} == {"no usable reply in 3 attempts; "}
    assert sure.curve() == []


PRICES = "llm.prices=[{model: m, read: 1000, written: 4000}]"


@pytest.fixture
def copied(market: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be asked."""
    return shutil.copytree(market, tmp_path / "copied")


def by(server: OpenAIServer, *more: str) -> dict[str, Any]:
    """The options of an interview in which a server answers, one question at a time."""
    return {
        "assignments": [f"llm.base_url={server.url}", "llm.model=m", "llm.concurrency=1", *more]
    }


def test_an_interview_says_what_it_cost_and_a_recorded_one_costs_nothing(copied: Path) -> None:
    with OpenAIServer(answers) as server:
        asked_first = survey(copied, [TEXT, SCALE], times=2, **by(server, PRICES))
        again = survey(copied, [TEXT, SCALE], times=2, **by(server, PRICES))
        more = survey(copied, [NUMBER], agents=["agent_01"], **by(server, PRICES))
    assert {(call.kind, call.model) for call in asked_first.calls} == {("interview", "m")}
    whole = spent(asked_first.calls)
    assert whole.calls == 2 * 2 * 4
    assert whole.cost == pytest.approx((whole.read * 1000 + whole.written * 4000) / 1e6)
    assert asked_first.cost.startswith(f"16 calls: about {whole.read:,} tokens read")
    assert again.calls == ()
    assert again.cost == "nobody was asked: all answers were recorded"
    (kept,) = (copied / "interviews").glob("*/calls.parquet")
    rows = rows_of(kept)
    assert len(rows) == 16 + len(more.calls)
    assert {row["repetition"] for row in rows} == {1, 2}
    assert sum(row["read"] for row in rows) == whole.read + spent(more.calls).read


@pytest.mark.parametrize(
    ("budget", "most"),
    [
        ("llm.budget.tokens=300", 2),
        ("llm.budget.cost=0.4", 2),
        ("llm.budget.minutes=0.0000001", 0),
    ],
)
def test_a_budget_bounds_interviews_and_a_larger_one_asks_the_rest(
    copied: Path, budget: str, most: int
) -> None:
    with OpenAIServer(answers) as server:
        with pytest.raises(RunError, match=budget.partition("=")[0]) as stopped:
            survey(copied, [TEXT], **by(server, PRICES, budget))
        first = len(server.requests)
        assert first == most
        with pytest.raises(RunError, match="the interviews of this run spent"):
            survey(copied, [NUMBER], **by(server, PRICES, budget))  # they have it together
        assert len(server.requests) == first
        name = budget.partition("=")[0]
        told = survey(copied, [TEXT], **by(server, PRICES, f"{name}=1_000_000"))
        assert len(server.requests) == 4
    assert "--set llm.budget." in (stopped.value.hint or "")
    assert len(told.answers) == 4
    assert len(told.calls) == 4 - first


def test_a_bounded_cost_needs_the_price_of_the_model_that_answers(copied: Path) -> None:
    with OpenAIServer(answers) as server:
        with pytest.raises(ConfigError, match="no model has a price"):
            survey(copied, [TEXT], **by(server, "llm.budget.cost=1"))
        assert not (copied / "interviews").exists()
        other = "llm.prices=[{model: other, read: 1, written: 1}]"
        with pytest.raises(RunError, match="the model 'm' has no price"):
            survey(copied, [TEXT], **by(server, other, "llm.budget.cost=1"))
        assert len(server.requests) == 1
