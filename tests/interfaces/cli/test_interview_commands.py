"""The commands ask and survey: agents answer, and the run does not learn it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openai_server import OpenAIServer

Command = Callable[..., Any]
SCENARIO = """\
storage: {sync: manual}
simulation: {world: market, agents: 5, ticks: 4}
"""
QUESTIONS = """\
questions:
  - {name: safety, ask: "How safe is it?", scale: [1, 7]}
  - {name: trust, ask: "Whom do you trust?", choice: [nobody, everybody]}
"""


@pytest.fixture
def market(tiermem: Command, tmp_path: Path) -> Command:
    """The command in a folder with a run whose agents follow rules, and questions."""
    (tmp_path / "market.yaml").write_text(SCENARIO)
    (tmp_path / "questions.yaml").write_text(QUESTIONS)
    assert tiermem("run", "market.yaml", "--out", "run", "-q").code == 0
    return tiermem


def test_wrong_use_is_one_error(market: Command) -> None:
    table: list[tuple[tuple[Any, ...], int, str]] = [
        (("ask", "run", "Why?"), 2, "no language model is configured"),
        (("ask", "run", "Why?", "--agent", "zoe"), 2, "no agent 'zoe'"),
        (("ask", "run", "Why?", "--tick", 9), 1, "has 4 ticks"),
        (("ask", "run", "Why?", "--scale", "many"), 2, "'many' is no scale"),
        (("ask", "run", "Why?", "--choice", "yes"), 2, "2 to 50 different texts"),
        (("ask", "run", " "), 2, "a question is a text"),
        (("ask", "run", "Why?", "--set", "seed=3"), 2, "changes nothing of a run"),
        (("ask", "nowhere", "Why?"), 1, "there is no run nowhere"),
        (("survey", "run", "none.yaml"), 2, "none.yaml"),
        (("survey", "run", "questions.yaml", "--tick", "1,x"), 2, "'x' is no tick"),
        (("survey", "run", "questions.yaml", "--tick", 1, "--every", 2), 2, "--every counts"),
    ]
    for arguments, code, part in table:
        assert market(*arguments).is_one_error(code, part), arguments


def _answer(request: dict[str, Any]) -> str:
    prompt = request["messages"][-1]["content"]
    return json.dumps({"answer": "nobody" if "one of" in prompt else 2 + ("tick 4" in prompt)})


@pytest.mark.slow
def test_a_survey_is_a_curve_and_is_not_asked_twice(market: Command) -> None:
    with OpenAIServer(_answer) as server:
        llm = ("--set", f"llm.base_url={server.url}", "--set", "llm.model=m")
        survey = ("survey", "run", "questions.yaml", "--every", 2)
        curve = market(*survey, *llm, "--out", "out", "--json").json["curve"]
        assert len(server.requests) == 2 * 2 * 5
        said = market(*survey, *llm)
        assert len(server.requests) == 2 * 2 * 5
    assert [row["mean"] for row in curve if row["answer"] == "mean"] == [2, 3]
    assert [row["mean"] for row in curve if row["answer"] == "nobody"] == [1, 1]
    assert "safety\t4\tmean\t5\t3\tall 5 are equal" in said.out
    assert market(*survey, "--json").json["curve"] == curve  # without any model
    assert market(*survey, "--out", "out").is_one_error(1, "answers.csv already", "--force")
    assert market(*survey, "--out", "out", "--force").code == 0
    choice = ("--choice", "nobody", "--choice", "everybody")
    one = market("ask", "run", "Whom do you trust?", "-a", "agent_00", "-t", 2, *choice)
    assert one.out.splitlines()[-1] == "agent_00\tnobody"
