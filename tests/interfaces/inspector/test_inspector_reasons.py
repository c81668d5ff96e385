"""Why an agent was given a memory, in a sentence."""

from pathlib import Path

from browsers import Browser, served
from inspected_sites import ask, looked_at

from agents.config.load import load_settings
from agents.simulation.runs.run import Run
from agents.simulation.runs.why import as_json, decision

_WORLD = """
from tiermem.simulation import Ask, Observation

class Room:
    def setup(self, rng, agent_ids):
        pass
    def observe(self, agent_id):
        return Observation("I am at the door.", query="where is the key of the door?")
    def apply(self, agent_id, action):
        return None
    def end_tick(self):
        pass
    def metrics(self):
        return {}
    def get_state(self):
        return {}
    def set_state(self, state):
        pass

class Asks:
    def decide(self, observation, memories, rng):
        return [] if observation.answers else [Ask("was the door painted?", 3, cold=True)]
"""


def test_the_reasons_are_pinned_ranked_and_cold(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text(_WORLD)
    memories = [
        {"content": "never open the red door", "tier": "pinned"},
        {"content": "the key is under the mat", "tier": "important"},
        {"content": "the door was painted long ago", "temperature": "cold"},
    ]
    world = {"world": "room:Room", "policy": "room:Asks", "agents": ["ann"], "ticks": 1}
    values = {"storage": {"sync": "manual"}, "simulation": {**world, "memories": memories}}
    with Run.create(tmp_path / "run", load_settings(values), scenario=tmp_path) as run:
        for _ in run.advance(1):
            pass
    with looked_at(tmp_path / "run") as site:
        found = ask(site, "agent", agent="ann", tick=1)
    given = {row["text"]: row for row in found["given"]}
    assert given["never open the red door"]["reason"].startswith("It is pinned: ")
    key = given["the key is under the mat"]
    assert key["reason"] == "It ranked by the boost of its tier and its score for the query."
    assert key["boost"] > 0
    asked = {row["text"]: row["reason"] for row in found["asked"][0]["found"]}
    assert asked["the door was painted long ago"].startswith("It was recalled from cold: ")
    assert asked["never open the red door"].endswith("its score for the question.")


def test_what_a_question_found_on_a_board_is_shown_with_its_writer(wells: Path) -> None:
    with looked_at(wells) as site:
        found = ask(site, "agent", agent="bob", tick=4)["asked"]
    expected = as_json(decision(wells, "bob", 4))["asked"]
    heard, on_board = found[0]["found"]
    assert heard["reason"].endswith("by its score alone for the question. ann said it.")
    assert on_board["reason"].startswith("It is on the board of guild, ")
    assert on_board["reason"].endswith(" ann wrote it.")
    for row in found[0]["found"]:
        del row["reason"]
    assert found == expected


def test_a_told_memory_names_its_teller(rumor: Path) -> None:
    with looked_at(rumor) as site:
        reasons = [
            row["reason"]
            for number in range(5)
            for row in ask(site, "agent", agent=f"agent_{number:02}", tick=12)["given"]
        ]
    assert any(" told it in tick " in each for each in reasons)


def test_the_page_shows_the_reasons(browser: Browser, wells: Path) -> None:
    with served(wells) as address:
        browser.open(address, "#/agent/bob?t=4")
        browser.shows(
            ".part[data-part=given] .reason", "It ranked by its score alone for the query"
        )
        browser.shows(".part[data-part=asked] .reason", "It is on the board of guild")
        assert browser.complaints() == []
