"""Personas: who agents are, from a list, a table or distributions, for worlds, rules and models."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agents import ConfigError
from agents.config.load import load_settings
from agents.simulation.policies.template import DEFAULT
from agents.simulation.protocols import Persona
from agents.simulation.runs.branch import branch
from agents.simulation.runs.personas import personas_of
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from spread_runs import engine

WORLD = """
from tiermem.simulation import Action, Observation

class Hut:
    def setup(self, rng, agent_ids, personas):
        self.left, self.jobs = 0, {who: own.attributes["job"] for who, own in personas.items()}
    def observe(self, agent_id):
        return f"{agent_id} waits"
    def apply(self, agent_id, action):
        self.left += 1
        return f"I left, being a {self.jobs[agent_id]}: {action.arguments['said']}"
    def end_tick(self):
        pass
    def metrics(self):
        return {"left": self.left}
    def get_state(self):
        return {"left": self.left}
    def set_state(self, state):
        self.left = state["left"]

class Leaves:
    def decide(self, observation, memories, rng):
        who = observation.persona
        if who.attributes["patience"] >= observation.tick:
            return []
        return [Action("leave", {"said": who.text})]
"""
TABLE = """\
text,agent,patience,job,kind

"I bake, and sing",ann,3,baker,true
I forge,bob,1.5,smith,
"""
ANN = Persona("I bake, and sing", {"patience": 3, "job": "baker", "kind": True})
BOB = Persona("I forge", {"patience": 1.5, "job": "smith"})


def scenario(place: Path, personas: Any = "people.csv", **simulation: Any) -> Any:
    (place / "hut.py").write_text(WORLD)
    (place / "people.csv").write_text(TABLE)
    own = {"world": "hut:Hut", "policy": "hut:Leaves", "agents": ["bob", "ann"], "ticks": 4}
    values = {**own, "personas": personas, **simulation}
    return load_settings({"seed": 3, "storage": {"sync": "manual"}, "simulation": values})


def made(place: Path, name: str, workers: int = 0) -> Path:
    settings = scenario(place)
    with Run.create(place / name, settings, scenario=place, engine=engine(workers)) as run:
        list(run.advance(4))
        run.finish(report=False)
    return place / name


def of(given: Any, agents: Any = ("ann", "bob"), seed: int = 3) -> dict[str, Persona]:
    values = {"seed": seed, "simulation": {"agents": agents, "personas": given}}
    return personas_of(load_settings(values))


@pytest.mark.slow
def test_a_run_keeps_its_table_and_goes_on_without_the_original(tmp_path: Path) -> None:
    folder = made(tmp_path, "run")
    (tmp_path / "people.csv").unlink()
    assert (folder / "code" / "people.csv").read_text() == TABLE
    with Run.open(folder) as run:
        texts = [each.content for each in run.bank.agent("bob").all()]
        assert "I left, being a smith: I forge" in texts
        assert run.summary()["metrics"]["left"] == 4  # bob in ticks 2, 3, 4; ann in tick 4
        run.extend(5)
        list(run.advance(5))
    assert set(Replay(folder).ticks()) == {None}
    branch(folder, 2, tmp_path / "branch")
    with Run.open(tmp_path / "branch") as other:
        list(other.advance(5))
        assert other.summary()["state_hash"] == Run.open(folder).summary()["state_hash"]


@pytest.mark.slow
def test_workers_know_the_personas(tmp_path: Path) -> None:
    results = [made(tmp_path, name, workers) for name, workers in (("local", 0), ("spread", 2))]
    (tmp_path / "people.csv").unlink()
    one, other = [(each / "decisions.parquet").read_bytes() for each in results]
    assert one == other
    with Run.open(results[1], engine=engine(2)) as run:
        run.extend(6)
        assert [each["metrics"]["left"] for each in run.advance(6)] == [6, 8]


def test_a_run_keeps_the_template_of_its_prompts(tmp_path: Path) -> None:
    options = {"template": "own.md"}
    settings = scenario(tmp_path, policy="llm", policy_options=options)
    settings = load_settings(
        settings, overrides={"llm": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    )
    with pytest.raises(ConfigError, match=r"template: there is no file 'own\.md' in "):
        Run.create(tmp_path / "run", settings, scenario=tmp_path)
    (tmp_path / "own.md").write_text(DEFAULT + "{roll}")
    with pytest.raises(ConfigError, match=r"template: there is no part \{roll\}"):
        Run.create(tmp_path / "run", settings, scenario=tmp_path)
    (tmp_path / "own.md").write_text(DEFAULT)
    Run.create(tmp_path / "run", settings, scenario=tmp_path).close()
    (tmp_path / "own.md").unlink()
    assert (tmp_path / "run" / "code" / "own.md").read_text() == DEFAULT
    Run.open(tmp_path / "run").close()


def test_a_list_a_csv_and_a_parquet_file_say_the_same(tmp_path: Path) -> None:
    rows = [
        {"agent": "ann", "text": ANN.text, "patience": 3, "job": "baker", "kind": True},
        {"agent": "bob", "text": BOB.text, "patience": 1.5, "job": "smith"},
    ]
    assert of(rows) == {"ann": ANN, "bob": BOB}
    assert personas_of(scenario(tmp_path), tmp_path) == {"bob": BOB, "ann": ANN}
    columns = {name: [row.get(name) for row in rows] for name in ("agent", "text", "job", "kind")}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    found = personas_of(scenario(tmp_path, "people.parquet"), tmp_path)
    assert found["bob"] == Persona("I forge", {"job": "smith"})
    unnamed = [{"job": "smith"}, {"job": "baker"}, {"job": "nobody's"}]
    assert [each.attributes["job"] for each in of(unnamed).values()] == ["smith", "baker"]


def test_what_is_drawn_depends_on_seed_attribute_and_agent_alone() -> None:
    draws = {
        "age": {"normal": [40, 30], "least": 18, "most": 90, "digits": 0},
        "luck": {"uniform": [0, 1], "digits": 2},
        "children": {"integers": [0, 4]},
        "job": {"choice": ["baker", "smith", "king"], "weights": [2, 1, 0]},
        "town": "Elm",
    }
    agents = [f"a{number}" for number in range(50)]
    found = of({**draws, "text": "I am {agent}, {age}, a {job} of {town}"}, agents)
    for agent, (text, own) in found.items():
        assert text == f"I am {agent}, {own['age']}, a {own['job']} of Elm"
        assert type(own["age"]) is int
        assert 18 <= own["age"] <= 90
        assert own["luck"] == round(own["luck"], 2)
        assert own["children"] in range(5)
    assert {own["job"] for _, own in found.values()} == {"baker", "smith"}
    ages = {agent: own["age"] for agent, (_, own) in found.items()}
    fewer = of({"age": draws["age"]}, agents[::-3])
    assert {agent: own["age"] for agent, (_, own) in fewer.items()}.items() <= ages.items()
    assert {agent: own["age"] for agent, (_, own) in of(draws, agents, seed=4).items()} != ages


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([{"age": 3}], r"simulation\.personas has 1 personas for 2 agents"),
        ([{"agent": "ann"}, {"age": 3}], r"simulation\.personas\[1\] names no agent"),
        ([{"agent": "ann"}, {"agent": "eve"}], r"personas\[1\]: there is no agent 'eve'"),
        ([{"agent": "ann"}, {"agent": "ann"}], r"personas\[1\]: ann has a persona already"),
        ([{"agent": "ann"}], "has no persona for 'bob'"),
        ([{"age": [3]}, {}], r"personas\[0\], age: \(3,\) is no value of an attribute"),
        ([{"text": 3}, {}], r"personas\[0\]: text is 3"),
        ({"age": {}}, r"simulation\.personas\.age: \{\} is no distribution"),
        ({"age": {"normal": [1, 2], "uniform": [1, 2]}}, "is no distribution"),
        ({"age": {"normal": [1, -2]}}, r"age: .* is no normal distribution"),
        ({"age": {"normal": [1, 2], "least": 4, "most": 3}}, "is no normal distribution"),
        ({"age": {"normal": [0, 1], "least": 99}}, "of 1000 numbers none is from 99 to inf"),
        ({"age": {"uniform": [2, 1]}}, r"age: uniform is \[2, 1\]"),
        ({"age": {"uniform": [1]}}, r"age: uniform is \[1\]"),
        ({"age": {"uniform": [1, 2], "most": 3}}, "age: uniform takes no 'most'"),
        ({"age": {"uniform": [1, 2], "digits": 9}}, "age: digits is 9"),
        ({"age": {"integers": [1, 2.5]}}, "age: integers is"),
        ({"job": {"choice": []}}, "job: choice has no values"),
        ({"job": {"choice": [1, [2]]}}, r"job.choice\[1\]: \[2\] is no value"),
        ({"job": {"choice": ["a", "b"], "weights": [1]}}, "job: weights are not as many"),
        ({"job": {"choice": ["a", "b"], "weights": [0, 0]}}, r"job: weights are \[0, 0\]"),
        ({"text": "I am {age}"}, r"personas\.text: there is no attribute 'age'"),
        ({"text": 3}, r"personas\.text: 3 is not a text"),
        ({"agent": "ann"}, r"personas\.agent is no attribute"),
        ("people.txt", "'people.txt' is not a file of the scenario"),
        ("../people.csv", "'../people.csv' is not a file of the scenario"),
        ("/people.csv", "'/people.csv' is not a file of the scenario"),
        ("none.csv", "there is no file 'none.csv' in no folder"),
    ],
)
def test_what_is_wrong_is_named(given: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        of(given)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (b"agent,age\nann,1\nbob,2,3\n", r"people\.csv, line 3: 3 values, and 2 columns"),
        (b"agent,age\nann,1\n\neve,2\n", r"people\.csv, line 4: there is no agent 'eve'"),
        (b"agent,agent\n", r"people\.csv, line 1: .* are not names of columns"),
        (b"agent,age\nann,1\nb\xffb,2\n", r"people\.csv, line 3: it is not UTF-8"),
        (b'agent,age\nann,"1\nbob,2\n', r"people\.csv, line 3: unexpected end of data"),
        (b"", "people.csv has 0 personas for 2 agents"),
    ],
)
def test_what_is_wrong_in_a_table_is_named_with_its_line(
    tmp_path: Path, table: bytes, why: str
) -> None:
    settings = scenario(tmp_path)
    (tmp_path / "people.csv").write_bytes(table)
    with pytest.raises(ConfigError, match=why):
        Run.create(tmp_path / "run", settings, scenario=tmp_path)
    (tmp_path / "people.parquet").write_bytes(table)
    with pytest.raises(ConfigError, match=r"^people\.parquet can't be read"):
        personas_of(scenario(tmp_path, "people.parquet"), tmp_path)
