"""What a change did where a language model decides: the model's own chance is no effect."""

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.errors import InvalidInput
from agents.simulation.effects import Effect, effect, which
from agents.simulation.effects.chance import (
    ALIKE,
    NOT_TOLD_APART,
    TOLD_APART,
    Placebo,
    with_chance,
)
from agents.simulation.policies.cassette import Cassette, Exchange
from agents.simulation.runs.branch import branch
from agents.simulation.runs.found_effects import effects_section
from agents.simulation.runs.run import Run
from openai_server import OpenAIServer

WORLD = '''
from tiermem.simulation import Observation, Remark

class Wells:
    """Ann knows that the north well is dry; whoever goes there is thirsty."""
    actions = {"go": "go to a well; arguments: where"}
    def setup(self, rng, agent_ids):
        self.tick, self.thirst = 1, 0
    def observe(self, agent_id):
        dry = Remark("the north well is dry", tier="pinned")
        is_told = (self.tick, agent_id) == (1, "ann")
        return Observation("Which well?", heard=[dry] if is_told else [])
    def apply(self, agent_id, action):
        self.thirst += action.arguments["where"] == "north"
        return "I went"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"thirst": self.thirst}
    def get_state(self):
        return {"tick": self.tick, "thirst": self.thirst}
    def set_state(self, state):
        self.tick, self.thirst = state["tick"], state["thirst"]
    def rules(self):
        return self
    def decide(self, observation, memories, rng):
        return []
'''
TICKS, AT = 6, 2
FORGET: dict[str, Any] = {
    "at": AT, "forget": "ann:north well is dry", "workers": 1,
}  # fmt: skip
PLACEBO = Placebo(decisions=8, differing=3, reached=2)
SAME = Placebo(decisions=8, differing=0, reached=0)


def go(where: str) -> str:
    return json.dumps({"actions": [{"name": "go", "arguments": {"where": where}}]})


def obeys(request: dict[str, Any]) -> str:
    return go("south" if "north well is dry" in request["messages"][-1]["content"] else "north")


def coin() -> Callable[[dict[str, Any]], str]:
    luck = Random(3)
    return lambda _: go(luck.choice(["north", "south"]))


def made(place: Path, url: str = "") -> Path:
    (place / "wells.py").write_text(WORLD)
    model = {"base_url": url, "model": "m", "seed": 5, "concurrency": 1}
    llm = {"policy": "llm", "policy_options": {"pause": 0}} if url else {}
    settings = load_settings(
        {
            "storage": {"sync": "manual"},
            "llm": model if url else {},
            "simulation": {
                "world": "wells:Wells", "agents": ["ann", "bob"], "ticks": TICKS, **llm,
            },
        }
    )  # fmt: skip
    with Run.create(place / "run", settings, scenario=place) as run:
        list(run.advance(TICKS))
    return place / "run"


@pytest.mark.parametrize(
    ("p_holm", "mean", "placebo", "again", "verdict"),
    [
        (0.01, 3.0, PLACEBO, 2.0, TOLD_APART),
        (0.2, 3.0, PLACEBO, 2.0, NOT_TOLD_APART),
        (0.2, 3.0, SAME, 0.0, NOT_TOLD_APART),
        (None, 3.0, PLACEBO, 0.0, NOT_TOLD_APART),
        (None, 3.0, SAME, 2.0, NOT_TOLD_APART),  # of another pair
        (None, 3.0, None, None, NOT_TOLD_APART),
        (None, 3.0, SAME, 0.0, ALIKE),
        (None, 0.0, SAME, 0.0, NOT_TOLD_APART),
    ],
)
def test_only_an_interval_tells_a_change_apart_from_chance(
    p_holm: float | None, mean: float, placebo: Placebo | None, again: float | None, verdict: str
) -> None:
    row = {"metric": "thirst", "n": 6, "mean": mean, "p_holm": p_holm}
    pair = (
        {"metric": "thirst"} if again is None else {"metric": "thirst", "placebo_difference": again}
    )
    (told,) = with_chance([row], [pair], placebo)
    assert told["verdict"] == verdict
    assert (told["placebo_least"], told["placebo_most"]) == (again, again)


def test_a_branch_that_asks_anew_keeps_the_answers_of_its_past(tmp_path: Path) -> None:
    run = made(tmp_path)
    answers = Cassette(run / "cassette.jsonl")
    for tick in (1, AT, AT + 1):
        answers.record(Exchange(tick, "ann", 0, [{"role": "user", "content": "?"}], "yes"))
    for name, asks_anew, ticks in (("same", False, [1, 2, 3]), ("anew", True, [1, 2])):
        branch(run, AT, tmp_path / name, asks_anew=asks_anew)
        kept = Cassette(tmp_path / name / "cassette.jsonl", replay=True)
        assert [exchange.tick for exchange in kept] == ticks


def told(found: Effect, place: Path) -> str:
    """All that people and programs read of an effect."""
    return json.dumps(found.to_dict()) + (place / "effect" / "report.html").read_text()


@pytest.mark.slow
def test_a_coin_is_not_told_apart_from_its_own_chance(tmp_path: Path) -> None:
    with OpenAIServer(coin()) as server:
        run = made(tmp_path, server.url)
        found = effect(run, **FORGET, out=tmp_path / "effect")
    assert [row["verdict"] for row in found.statistics] == [NOT_TOLD_APART]
    assert found.placebo is not None
    assert (found.placebo.decisions, found.placebo.differing > 0) == (2 * (TICKS - AT), True)
    (row,) = found.pairs
    assert row["placebo_difference"] == row["placebo"] - row["as-it-was"]
    assert "exact" not in told(found, tmp_path)
    assert "placebo: the model asked anew" in told(found, tmp_path)
    assert escape(NOT_TOLD_APART) in effects_section(run)


@pytest.mark.slow
def test_each_future_has_answers_of_its_own_and_its_changed_branch_begins_with_them(
    tmp_path: Path,
) -> None:
    with OpenAIServer(coin()) as server:
        run = made(tmp_path, server.url)
        effect(run, **FORGET, futures=3, out=tmp_path / "effect")

    def answers(folder: Path) -> dict[Any, str | None]:
        return {
            each.key: each.reply
            for each in Cassette(folder / "cassette.jsonl", replay=True)
            if each.tick > AT
        }

    runs = [answers(run)]
    for future in ("future-1", "future-2"):
        was, changed = (
            answers(tmp_path / "effect" / future / arm) for arm in ("as-it-was", "changed")
        )
        assert was.items() <= changed.items()
        assert len(changed) > len(was)
        runs.append(was)
    firsts = [sorted(key for key in own if key[0] == AT + 1) for own in runs]
    assert firsts[0] == firsts[1] == firsts[2]  # the prompts of the first tick are the same
    assert len({tuple(own.values()) for own in runs}) == 3


@pytest.mark.slow
def test_a_model_without_chance_shows_its_effect_in_one_run_and_in_a_ranking(
    tmp_path: Path,
) -> None:
    with OpenAIServer(obeys) as server:
        run = made(tmp_path, server.url)
        found = effect(run, **FORGET, out=tmp_path / "effect")
        seeds = {body["seed"] for _, body in server.requests}
        ranked = which(run, "thirst", budget=1, out=tmp_path / "which", workers=1)
    assert seeds == {5, 6}  # a model with a seed would repeat itself in the placebo
    assert found.difference("thirst")["mean"] == TICKS - AT
    assert found.difference("thirst")["verdict"] == ALIKE
    assert found.placebo == (2 * (TICKS - AT), 0, 0)
    assert "exact" not in told(found, tmp_path)
    assert (ranked.asks, ranked.placebo) == (True, 0.0)
    assert "asked anew with nothing removed" in (tmp_path / "which" / "report.html").read_text()


@pytest.mark.parametrize("many", [{"seeds": 3}, {"futures": 3}])
def test_other_seeds_and_futures_need_new_answers(tmp_path: Path, many: dict[str, int]) -> None:
    run = made(tmp_path)
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("policy: rules", "policy: llm"))
    with pytest.raises(InvalidInput, match="no recorded answers"):
        effect(run, at=AT, pin="ann:dry", offline=True, out=tmp_path / "x", **many)  # type: ignore[arg-type]
