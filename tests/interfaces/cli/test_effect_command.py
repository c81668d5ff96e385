"""``tiermem effect`` as a user types it, with rules and with a language model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openai_server import OpenAIServer

Command = Callable[..., Any]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

WORLD = '''
from tiermem.simulation import Action, Observation, Remark

class Wells:
    """Ann hears in tick 2 from Bob that the north well is dry."""
    actions = {"go": "go to a well: where"}
    def setup(self, rng, agent_ids):
        self.tick, self.thirst = 1, 0
    def observe(self, agent_id):
        told = self.tick == 2 and agent_id == "ann"
        heard = [Remark("the north well is dry", tier="pinned", speaker="bob")] if told else []
        return Observation("Which well today?", heard=heard)
    def apply(self, agent_id, action):
        self.thirst += action.arguments["where"] == "north"
        return f"I went {action.arguments['where']}"
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"thirst": self.thirst}
    def get_state(self):
        return [self.tick, self.thirst]
    def set_state(self, state):
        self.tick, self.thirst = state

class Walks:
    def decide(self, observation, memories, rng):
        known = any("is dry" in hit.memory.content for hit in memories)
        return [Action("go", {"where": "south" if known else "north"})]
'''
SCENARIO = """
seed: 7
storage: {sync: manual}
simulation:
  world: wells:Wells
  policy: wells:Walks
  agents: [ann, bob]
  ticks: 5
"""
FORGET = ("effect", "run", "--at", 3, "--forget", "ann:north well is dry")


@pytest.fixture
def wells(tiermem: Command, tmp_path: Path) -> Command:
    """The command, in a folder with a scenario of two agents."""
    (tmp_path / "wells.py").write_text(WORLD)
    (tmp_path / "wells.yaml").write_text(SCENARIO)
    return tiermem


@pytest.mark.slow
def test_an_effect_is_told_and_is_json_on_request(wells: Command) -> None:
    assert wells("run", "wells.yaml", "--out", "run", "-q").code == 0
    told = wells(*FORGET)
    assert told.code == 0, told
    assert "changed: ann forgets 'the north well is dry' after tick 3" in told.out
    assert "thirst\t7\t9\t2" in told.out
    assert "first decision that differs: ann in tick 4" in told.out
    found = wells(*FORGET, "--metrics", "thirst", "--json").json
    assert [(row["metric"], row["mean"]) for row in found["statistics"]] == [("thirst", 2)]
    assert found["first_decision"]["was"] == ["go(where='south'): done"]
    ranked = wells(
        "effect", "run", "--which", "--metric", "thirst", "--budget", 1, "-w", 1, "--json"
    ).json
    assert ranked["tested"][0]["text"] == "the north well is dry"


def test_a_branch_takes_the_same_changes(wells: Command) -> None:
    assert wells("run", "wells.yaml", "--out", "run", "-q").code == 0
    other = wells("branch", "run", "--at", 0, "--block", "bob->ann", "--out", "other", "--json")
    assert other.json["metrics"] == {"thirst": 10}
    rules = json.loads(Path("other/run.json").read_text())["rules"]
    assert rules == [{"do": "block", "from": "bob", "to": "ann", "after": 0}]
    assert wells("replay", "other", "--verify", "--json").json["equal"] is True
    late = wells("branch", "run", "--at", 3, "--never-heard", "ann:well is dry", "--out", "late")
    assert late.is_one_error(1, "in tick 2 already", "branch at tick 1 or before")
    assert not Path("late").exists()


def test_a_branch_takes_the_last_digits_of_an_id(wells: Command) -> None:
    assert wells("run", "wells.yaml", "--out", "run", "-q").code == 0
    rows = wells("show", "run", "-a", "ann", "--json").json
    (dry,) = (row["id"] for row in rows if row["memory"] == "the north well is dry")
    made = ("branch", "run", "--at", 3, "--make-only", "-q", "--out")
    for name, given in (("whole", dry), ("short", dry[-4:])):
        assert wells(*made, name, "--forget", f"ann:{given}").code == 0
        left = wells("show", name, "-a", "ann", "-t", 3, "--json").json
        assert "the north well is dry" not in {row["memory"] for row in left}


def test_digits_that_are_an_id_and_a_text_are_an_error_that_names_both(wells: Command) -> None:
    assert wells("run", "wells.yaml", "--out", "run", "-q").code == 0
    edits = Path("edits.yaml")
    edits.write_text("- {agent: ann, do: add, content: well 0001 is far}")
    assert wells("branch", "run", "--at", 3, "--out", "b", "--edit", edits, "-q").code == 0
    both = wells("branch", "b", "--at", 3, "--forget", "ann:0001", "--out", "c")
    assert both.is_one_error(2, "0001 is the end of an id of ann, and a part", "-000000000001")
    text = wells("branch", "b", "--at", 3, "--forget", "ann:001 is far", "--out", "c", "-q")
    assert text.code == 0, text.err


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["--which"], 2, ["needs a metric"]),
        (["--which", "--metric", "thirst", "--forget", "ann:x"], 2, ["by itself"]),
        (["--metric", "thirst"], 2, ["belong to --which"]),
        (["--at", 3, "--forget", "ann:x", "--budget", 3], 2, ["belong to --which"]),
        (["--which", "--metric", "thirst", "--at", 9], 1, ["nothing can change after tick 9"]),
        ([], 2, ["an experiment changes something"]),
        (["--at", 3, "--set", "memory.max_pinned=5"], 2, ["changes nothing: the run has"]),
        (["--at", 3, "--forget", "eve:x"], 2, ["names no memory of an agent"]),
        (["--at", 9, "--forget", "ann:x"], 1, ["nothing can change after tick 9"]),
    ],
)
def test_wrong_use_is_one_error(
    wells: Command, arguments: list[object], code: int, parts: list[str]
) -> None:
    assert wells("run", "wells.yaml", "--out", "run", "-q").code == 0
    assert wells("effect", "run", *arguments).is_one_error(code, *parts)


def _goes(request: dict[str, Any]) -> str:
    known = "the north well is dry" in request["messages"][-1]["content"]
    where = "south" if known else "north"
    return json.dumps({"actions": [{"name": "go", "arguments": {"where": where}}]})


@pytest.mark.slow
def test_only_prompts_that_changed_are_asked_again(wells: Command) -> None:
    with OpenAIServer(_goes) as server:
        config = f"llm.config={{openai_base_url: '{server.url}', model: m}}"
        key = "llm.config.api_key=hush-hush"
        policy = ("--set", "simulation.policy=llm", "--set", "simulation.policy_options={pause: 0}")
        llm = ("--set", "llm.provider=openai", "--set", config, "--set", key)
        assert wells("run", "wells.yaml", "--out", "run", "-q", *policy, *llm).code == 0
        assert len(server.requests) == 10
        cost = wells(*FORGET, "--dry-run", "--json").json
        assert (cost["calls"], cost["branches"]) == (8, 3)
        assert cost["prompt_tokens"] > cost["reply_tokens"] > 0
        assert wells(*FORGET).is_one_error(2, "cost money", "--out")

        offline = wells(*FORGET, "--offline", "--out", "offline", "--json").json
        assert len(server.requests) == 10
        assert offline["until"] == 3
        assert "ended after tick 3" in offline["notes"][0]
        assert "'ann'" in offline["notes"][0]

        seeds = wells(*FORGET, "--offline", "--seeds", 3, "--out", "seeds", "--set", key)
        assert len(server.requests) == 10
        assert seeds.is_one_error(2, "other seeds has no recorded answers", "--offline")
        assert not Path("seeds").exists()

        found = wells(*FORGET, "--out", "found", "--set", key, "--json").json
        asked = [body["messages"][-1]["content"] for _, body in server.requests[10:]]
        assert found["statistics"][0]["mean"] == 2
        assert found["placebo"] == {"decisions": 4, "differing": 0, "reached": 0}
        # Ann in ticks 4 and 5, since Bob's prompts are the same; and both of them in the placebo.
        assert ["You are ann" in text for text in asked[:2]] == [True, True]
        assert len(asked) == 6
    kept = "".join(p.read_text(errors="replace") for p in Path().rglob("*") if p.is_file())
    assert "hush-hush" not in kept


@pytest.mark.slow
def test_what_is_said_of_a_missing_answer_names_no_folder_that_is_gone(wells: Command) -> None:
    with OpenAIServer(_goes) as server:
        config = f"llm.config={{openai_base_url: '{server.url}', model: m, api_key: k}}"
        policy = ("--set", "simulation.policy=llm", "--set", "simulation.policy_options={pause: 0}")
        llm = ("--set", "llm.provider=openai", "--set", config)
        assert wells("run", "wells.yaml", "--out", "run", "-q", *policy, *llm).code == 0
    futures = wells(*FORGET, "--offline", "--futures", 2, "--out", "offline")
    assert futures.is_one_error(2, "another future has no recorded answers", "--offline")
    said = wells(*FORGET, "--offline", "--out", "offline").out
    assert "agent 'ann', attempt 1: cassette.jsonl holds no exchange" in said
    assert ".tmp" not in said + Path("offline/effect.json").read_text()
    assert ".tmp" not in Path("offline/report.html").read_text()


@pytest.mark.slow
def test_memories_that_mattered_are_sought_with_a_language_model(wells: Command) -> None:
    which = (
        "effect",
        "run",
        "--which",
        "--metric",
        "thirst",
        "--budget",
        2,
        "--agent",
        "ann",
        "-w",
        1,
    )
    key = ("--set", "llm.config.api_key=hush-hush")
    with OpenAIServer(_goes) as server:
        config = f"llm.config={{openai_base_url: '{server.url}', model: m}}"
        policy = ("--set", "simulation.policy=llm", "--set", "simulation.policy_options={pause: 0}")
        llm = ("--set", "llm.provider=openai", "--set", config, *key)
        assert wells("run", "wells.yaml", "--out", "run", "-q", *policy, *llm).code == 0
        assert len(server.requests) == 10
        assert wells(*which, *key).is_one_error(2, "cost money", "--out")
        assert wells(*which, "--seeds", 3).is_one_error(2, "--which tries memories by itself")
        other = wells(*which, "--out", "x", "--set", "memory.max_pinned=2")
        assert other.is_one_error(2, "nothing else is changed", "max_pinned")
        cost = wells(*which, "--dry-run", "--json").json
        assert cost["branches"] == 4
        assert cost["prompt_tokens"] > cost["reply_tokens"] > 0
        offline = wells(*which, "--offline", "--out", "offline", "--json").json
        assert len(server.requests) == 10
        assert any("no answer" in line or "recorded" in line for line in offline["failed"])

        found = wells(*which, *key, "--out", "found", "--json").json
        asked = [body["messages"][-1]["content"] for _, body in server.requests[10:]]
        assert 0 < len(asked) <= cost["calls"]
        assert sum("You are bob" in text for text in asked) == 4  # in the placebo alone
        assert found["failed"] == []
        assert max(each["difference"] for each in found["tested"]) > 0
    kept = "".join(p.read_text(errors="replace") for p in Path().rglob("*") if p.is_file())
    assert "hush-hush" not in kept
