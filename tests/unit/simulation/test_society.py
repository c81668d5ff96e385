"""A society says who can hear whom: graphs, spaces, places with hours; for worlds and scenarios."""

import json
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest

from agents import MemoryBank, SimulationError
from agents.config.load import load_settings
from agents.errors import ConfigError, InvalidInput
from agents.simulation import small_world
from agents.simulation.protocols import Action, Say
from agents.simulation.runs.branch import branch
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.scenario import make_world, society_of
from agents.simulation.society import Place, Society, society_at
from agents.simulation.tick.loop import Loop
from spread_runs import engine, results

FOUR = ["ann", "bob", "cat", "dan"]
LINE = [("ann", "bob"), ("bob", "cat"), ("cat", "dan")]


# The value


def test_edges_go_both_ways_unless_they_are_directed() -> None:
    both = Society.of_edges(FOUR, LINE)
    assert both.near("bob") == ["ann", "cat"]
    assert both.distances("ann") == {"ann": 0, "bob": 1, "cat": 2, "dan": 3}
    one_way = Society.of_edges(FOUR, LINE, directed=True)
    assert one_way.near("bob") == ["cat"]
    assert one_way.may_tell("ann", "bob")
    assert not one_way.may_tell("bob", "ann")
    assert one_way.distances("cat") == {"cat": 0, "dan": 1}


def test_nobody_hears_itself_and_an_edge_counts_once() -> None:
    society = Society.of_edges(FOUR, [("ann", "ann"), ("ann", "bob", 3), ("bob", "ann")])
    assert society.edges == [("ann", "bob"), ("bob", "ann")]


def test_the_nodes_of_a_graph_are_agents_or_are_taken_in_their_order() -> None:
    assert Society.of_graph(FOUR, nx.path_graph(4)).edges == Society.of_edges(FOUR, LINE).edges
    named = nx.DiGraph([("dan", "ann")])
    assert Society.of_graph(FOUR, named).edges == [("dan", "ann")]
    with pytest.raises(InvalidInput, match="5 nodes, and there are 4 agents"):
        Society.of_graph(FOUR, nx.path_graph(5))


@pytest.mark.parametrize(
    ("metric", "near"),
    [("euclidean", ["bob"]), ("moore", ["bob", "cat"]), ("von_neumann", ["bob"])],
)
def test_in_a_space_those_who_are_near_hear(metric: str, near: list[str]) -> None:
    points = [[0, 0], [0, 1], [1, 1], [0, 9]]
    society = Society.of_positions(FOUR, points, 1, metric=metric)
    assert society.near("ann") == near
    assert [name for name in FOUR if society.may_tell("ann", name)] == near
    round_about = Society.of_positions(FOUR, points, 1, metric=metric, torus=(10, 10))
    assert round_about.near("ann") == [*near, "dan"]


def test_a_society_moves_and_keeps_all_else() -> None:
    society = Society.of_positions(FOUR, np.zeros((4, 2)), 2).talking(0.5, 3)
    moved = society.moved([[0, 0], [5, 5], [5, 6], [9, 9]])
    assert (moved.near("bob"), moved.talk, moved.turns) == (["cat"], 0.5, 3)
    assert society.near("bob") == ["ann", "cat", "dan"]
    assert moved.positions == [[0, 0], [5, 5], [5, 6], [9, 9]]


def test_places_have_hours_and_the_first_that_holds_counts() -> None:
    work = {"ann": "1", "bob": "1", "cat": "2"}
    places = [
        Place("market", every=10),
        Place("work", work, (9, 17)),
        Place("home", {"ann": "1", "bob": "2", "cat": "2", "dan": "2"}, (22, 6)),
    ]
    society = Society.of_places(FOUR, places)
    assert [society.at(9).where(name) for name in FOUR] == ["work 1", "work 1", "work 2", ""]
    assert society.at(9).near("ann") == ["bob"]
    assert society.at(10).near("ann") == ["bob", "cat", "dan"]
    assert society.at(17).edges == []
    assert [society.at(hour).near("bob") for hour in (23, 29, 31)] == [["cat", "dan"]] * 2 + [[]]
    assert not society.at(17).may_tell("dan", "ann")  # both are nowhere


def test_all_talk_in_pairs_of_those_who_hear_each_other() -> None:
    names = [f"a{number}" for number in range(9)]
    ring = Society.of_graph(names, nx.cycle_graph(9)).talking(1)
    pairs = list(ring.pairs(Random(3)))
    assert len(pairs) >= 3
    assert len({name for pair in pairs for name in pair}) == 2 * len(pairs)
    assert all(ring.may_tell(*pair) for pair in pairs)
    assert list(ring.talking(0).pairs(Random(3))) == []
    one_way = Society.of_edges(names, [("a1", "a2")], directed=True).talking(1)
    assert list(one_way.pairs(Random(3))) == []


def test_a_chance_of_talk_is_how_many_begin() -> None:
    names = [f"a{number}" for number in range(400)]
    pairs = Society.of_edges(names, [(a, b) for a, b in zip(names[::2], names[1::2])])  # noqa: B905
    found = sum(len(list(pairs.talking(0.2).pairs(Random(seed)))) for seed in range(20))
    assert found / 4000 == pytest.approx(1 - 0.8**2, abs=0.03)


def test_mesas_spaces_are_societies() -> None:
    mesa = pytest.importorskip("mesa")
    from mesa.discrete_space import CellAgent, Network, OrthogonalVonNeumannGrid
    from mesa.space import ContinuousSpace, HexSingleGrid, MultiGrid

    class Model(mesa.Model):
        pass

    model = Model(rng=1)
    cells = [(0, 0), (0, 1), (1, 1), (4, 0)]

    def placed(space: Any) -> dict[str, Any]:
        agents = {name: mesa.Agent(model) for name in FOUR}
        for agent, cell in zip(agents.values(), cells, strict=True):
            space.place_agent(agent, cell)
        return agents

    def in_cells(space: Any, at: list[Any]) -> dict[str, Any]:
        agents = {name: CellAgent(model) for name in FOUR}
        for agent, cell in zip(agents.values(), at, strict=True):
            agent.cell = space[cell]
        return agents

    grid, flat = MultiGrid(5, 5, True), ContinuousSpace(5, 5, False)
    assert Society.of_mesa(placed(grid), grid).near("ann") == ["bob", "cat", "dan"]
    assert Society.of_mesa(placed(flat), flat, 1.2).near("ann") == ["bob"]
    neumann = OrthogonalVonNeumannGrid((5, 5), random=Random(1))
    assert Society.of_mesa(in_cells(neumann, cells), neumann).near("ann") == ["bob"]
    network = Network(nx.path_graph(4), random=Random(1))
    on_path = Society.of_mesa(in_cells(network, [0, 1, 1, 3]), network)
    assert (on_path.near("ann"), on_path.near("bob")) == (["bob", "cat"], ["ann", "cat"])
    hexes = HexSingleGrid(5, 5, False)
    with pytest.raises(InvalidInput, match="HexSingleGrid has no distances"):
        Society.of_mesa(placed(hexes), hexes)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Society.of_edges(FOUR, [("ann", "zoe")]), "no agent 'zoe'"),
        (lambda: Society.of_positions(FOUR, [[1, 2]], 1), "shape"),
        (lambda: Society.of_positions(FOUR, [["a", 2]] * 4, 1), "rows of numbers"),
        (lambda: Society.of_positions(FOUR, [[float("nan")]] * 4, 1), "finite"),
        (lambda: Society.of_positions(FOUR, [[1]] * 4, -1), "below 0"),
        (lambda: Society.of_positions(FOUR, [[1]] * 4, 1, metric="taxi"), "metric is 'taxi'"),
        (lambda: Society.of_positions(FOUR, [[1]] * 4, 1, torus=(3, 3)), "torus"),
        (lambda: Society.of_edges(FOUR, LINE).moved([[1]] * 4), "no positions to move from"),
        (lambda: Society.of_edges(FOUR, LINE).near("zoe"), "no agent 'zoe'"),
    ],
)
def test_what_is_no_society_is_refused(make: Any, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        make()


# In a world


@small_world.world
def inn(tick: small_world.Tick) -> None:
    """Agents know whom they are near."""
    for agent in tick.agents:
        tick.sees(agent, f"I am near {' and '.join(tick.near(agent))}")


class Inn(inn):
    """An inn that has a society of its own, where agents move."""

    def setup(self, rng: Any, agent_ids: Any, personas: Any = None) -> None:
        super().setup(rng, agent_ids)
        self.state["at"] = [[0], [5], [6], [9]]

    @property
    def society(self) -> Society:
        return Society.of_positions(self.agents, self.state["at"], 1)

    def end_tick(self) -> None:
        self.state["at"] = [[0], [1], [6], [9]]
        super().end_tick()


class Loud:
    """Tells everybody who can hear its first memory, and says hello."""

    def decide(self, observation: Any, memories: Any, rng: Any) -> Any:
        own = [hit.memory for hit in memories if hit.memory.source is None]
        return [Action("broadcast", {"memory_id": own[0].id})] if own else []

    def say(self, observation: Any, memories: Any, rng: Any, talk: Any) -> Any:
        return Say("Hello")


def ran(world: Any, ticks: int = 2) -> MemoryBank:
    bank = MemoryBank.ephemeral(seed=3)
    loop = Loop(bank, world, Loud(), FOUR)
    loop.begin([("ann", "The mill burned", "important")])
    for _ in range(ticks):
        loop.tick()
    return bank


def heard(bank: MemoryBank) -> dict[str, set[str]]:
    return {
        name: {each.source.teller for each in bank.agent(name).all() if each.source}
        for name in FOUR
    }


def test_agents_tell_those_of_the_society_and_no_others() -> None:
    world = inn()
    world.society = Society.of_edges(FOUR, LINE, directed=True)
    assert heard(ran(world, 3)) == {"ann": set(), "bob": {"ann"}, "cat": {"bob"}, "dan": {"cat"}}
    assert heard(ran(inn(), 3)) == {name: {*FOUR} - {name} for name in FOUR}


def test_who_is_not_near_can_not_be_told() -> None:
    class Tells(Loud):
        def decide(self, observation: Any, memories: Any, rng: Any) -> Any:
            own = [hit.memory for hit in memories if hit.memory.content.startswith("The mill")]
            to = [{"to": name, "memory_id": own[0].id} for name in ("bob", "dan") if own]
            return [Action("tell", each) for each in to]

    world, policy, errors = inn(), Tells(), []
    world.society = Society.of_edges(FOUR, LINE, directed=True)
    bank = MemoryBank.ephemeral(seed=3)
    loop = Loop(bank, world, policy, FOUR)
    loop.begin([("ann", "The mill burned", "important")])
    loop.tick()
    decide = policy.decide

    def noted(observation: Any, memories: Any, rng: Any) -> Any:
        errors.extend(observation.errors)
        return decide(observation, memories, rng)

    policy.decide = noted  # type: ignore[method-assign]
    loop.tick()
    assert heard(bank)["bob"] == {"ann"}
    assert heard(bank)["dan"] == set()
    assert [each for each in errors if "dan can't hear you now" in each]


def test_a_society_that_is_state_of_the_world_changes_with_it() -> None:
    bank = ran(Inn(), 3)
    assert heard(bank) == {"ann": {"bob"}, "bob": {"ann"}, "cat": set(), "dan": set()}
    texts = {name: [each.content for each in bank.agent(name).all()] for name in FOUR}
    assert "I am near cat" in texts["bob"]
    assert "I am near ann" in texts["bob"]


def test_what_the_world_says_comes_before_its_society() -> None:
    class Deaf(inn):
        society = Society.of_edges(FOUR, LINE)

        def may_tell(self, teller: str, listener: str) -> bool:
            return False

    assert heard(ran(Deaf())) == {name: set() for name in FOUR}


def test_those_who_are_near_talk_if_the_society_says_so() -> None:
    world = inn()
    world.society = Society.of_edges(FOUR, LINE[:1]).talking(1, turns=2)
    said = [each.content for each in ran(world, 1).agent("bob").all() if each.kind == "message"]
    assert sorted(said) == ["ann: Hello", "bob: Hello"]
    world = inn()
    world.society = Society.of_edges(FOUR, LINE)
    assert not [each for each in ran(world, 1).agent("bob").all() if each.kind == "message"]


def test_what_is_no_society_ends_the_run() -> None:
    world = inn()
    world.society = [("ann", "bob")]
    with pytest.raises(SimulationError, match=r"inn\.society"):
        ran(world)
    with pytest.raises(InvalidInput, match="it is a Society, or None"):
        society_at(world, 1)


# In a scenario


def scenario(society: Any, **more: Any) -> Any:
    own = {"world": "society_worlds:hall", "agents": 8, "ticks": 6, "society": society, **more}
    return load_settings({"seed": 5, "storage": {"sync": "manual"}, "simulation": own})


HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("society", "ties"),
    [
        ({"graph": "watts_strogatz", "k": 4, "p": 0}, 32),
        ({"graph": "complete"}, 56),
        ({"graph": "grid_2d", "m": 2, "n": 4}, 20),
        ({"edges": [["agent_00", "agent_01"]]}, 2),
        ({"edges": [["agent_00", "agent_01"]], "directed": True}, 1),
        ({"grid": [2, 4]}, 32),
        ({"grid": [2, 4], "neighbours": "von_neumann"}, 20),
        ({"space": [1, 1], "radius": 2}, 56),
        ({"places": [{"place": "work", "groups": 4, "hours": [9, 17]}, {"place": "home"}]}, 56),
        ({"places": [{"place": "home", "groups": 4}]}, 8),
        ({"places": [{"place": "inn", "groups": {"red": ["agent_00", "agent_03"]}}]}, 2),
    ],
    ids=str,
)
def test_a_scenario_names_a_society(society: Any, ties: int) -> None:
    made = society_of(scenario(society))
    assert made is not None
    assert len(made.at(1).edges) == ties


@pytest.mark.parametrize(
    "society",
    [
        {"graph": "erdos_renyi", "p": 0.3},
        {"grid": [4, 4], "radius": 2},
        {"space": [10, 10], "radius": 4},
        {"places": [{"place": "home", "groups": 3}]},
    ],
    ids=str,
)
def test_the_seed_draws_it(society: Any) -> None:
    def edges(seed: int) -> Any:
        own = {"world": "market", "agents": 12, "society": society}
        made = society_of(load_settings({"seed": seed, "simulation": own}))
        return made and made.edges

    assert edges(5) == edges(5) != edges(6)


FILES = {
    "edges.csv": "teller,listener,weight\nagent_00,agent_01,2\nagent_01,2,1\n",
    "edges.edgelist": "# of a village\nagent_00 agent_01\n1 2 {}\n",
    "edges.json": json.dumps(
        {
            "directed": False,
            "nodes": [{"id": number} for number in range(3)],
            "edges": [{"source": 0, "target": 1}, {"source": 1, "target": 2}],
        }
    ),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    nx.write_graphml(nx.path_graph(3), tmp_path / "edges.graphml")
    pq.write_table(pa.table({"a": [0, 1], "b": [1, 2]}), tmp_path / "edges.parquet")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "edgelist", "json", "graphml", "parquet"])
def test_a_file_has_the_edges(ending: str, files: Path) -> None:
    made = society_of(scenario({"file": f"edges.{ending}"}), files)
    assert made is not None
    assert made.edges == [
        ("agent_00", "agent_01"), ("agent_01", "agent_00"),
        ("agent_01", "agent_02"), ("agent_02", "agent_01"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("society", "why"),
    [
        ({}, "nothing that says who can hear whom"),
        ({"grid": [2, 2], "space": [1, 1]}, "grid and space"),
        ({"grid": [2, 2], "raduis": 2}, "no 'raduis'"),
        ({"grid": [2]}, "two numbers"),
        ({"grid": [2, 2], "radius": -1}, "not below 0"),
        ({"grid": [2, 2], "neighbours": "hex"}, "moore or von_neumann"),
        ({"grid": [2, 2], "torus": 1}, "true or false"),
        ({"space": [2, 2]}, "radius is None"),
        ({"graph": "friends"}, "no generator 'friends'"),
        ({"graph": "write_gml"}, "no generator 'write_gml'"),
        ({"graph": "watts_strogatz", "q": 4}, "watts_strogatz of networkx"),
        ({"graph": "karate_club"}, "34 nodes, and there are 8 agents"),
        ({"edges": [["agent_00"]]}, r"edges\[0\]"),
        ({"edges": [["agent_00", "zoe"]]}, "no agent 'zoe'"),
        ({"edges": [], "directed": 1}, "true or false"),
        ({"edges": [], "talk": 2}, "from 0 to 1"),
        ({"edges": [], "turns": -1}, "from 0 to 1000"),
        ({"file": "../edges.csv"}, "not a file of the scenario"),
        ({"file": "gone.csv"}, "no file 'gone.csv'"),
        ({"file": "edges.txt"}, "not a file of the scenario"),
        ({"file": "stranger.csv"}, "stranger.csv, line 3: there is no agent 'zoe'"),
        ({"file": "short.csv"}, "short.csv can't be read.*line 2 has one column"),
        ({"file": "broken.json"}, "broken.json can't be read"),
        ({"file": 3}, "file is 3"),
        ({"places": [{"groups": 2}]}, r"places\[0\]"),
        ({"places": [{"place": "home", "groups": 9}]}, "number up to 8"),
        ({"places": [{"place": "home", "groups": {"a": ["zoe"]}}]}, "give an agent"),
        ({"places": [{"place": "home", "hour": [1, 2]}]}, r"places\[0\]\.hour"),
        ({"places": [{"place": "home", "hours": [1]}]}, "two hours"),
        ({"places": [{"place": "home", "every": 0}]}, r"places\[0\]\.every"),
    ],
    ids=str,
)
def test_an_entry_that_says_nothing_sound_is_refused(society: Any, why: str, files: Path) -> None:
    (files / "stranger.csv").write_text("a,b\nagent_00,agent_01\nagent_00,zoe\n")
    (files / "short.csv").write_text("a,b\nagent_00\n")
    (files / "broken.json").write_text("{")
    with pytest.raises(ConfigError, match=why) as error:
        society_of(scenario(society), files)
    assert f"{error.value}".startswith("simulation.society")


def test_a_world_with_a_society_of_its_own_takes_none_of_the_scenario() -> None:
    with pytest.raises(ConfigError, match="has a society of its own"):
        make_world(scenario({"grid": [3, 3]}, world="society_worlds:Moving"), HERE)


def test_a_program_takes_no_society_of_the_scenario() -> None:
    with pytest.raises(ConfigError, match="a program of your own says itself"):
        make_world(scenario({"grid": [3, 3]}, world=None, model="village:make"), HERE)


def created(folder: Path, society: Any, workers: int = 0, ticks: int = 6) -> Path:
    with Run.create(folder, scenario(society), scenario=HERE, engine=engine(workers)) as run:
        list(run.advance(ticks))
        run.finish(report=False)
    return folder


def test_a_run_keeps_the_edges_of_a_drawn_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = created(tmp_path / "run", {"graph": "erdos_renyi", "p": 0.3, "talk": 0.5})

    def newer(n: int, p: float, seed: int) -> Any:
        return nx.complete_graph(n)

    newer.__module__ = "networkx.generators.random_graphs"
    monkeypatch.setattr(nx, "erdos_renyi_graph", newer)
    assert set(Replay(whole).ticks()) == {None}
    branch(whole, 3, tmp_path / "branch")
    with Run.open(tmp_path / "branch") as run:
        list(run.advance(6))
        run.finish(report=False)
    last = [
        json.loads((each / "summary.json").read_text()) for each in (whole, tmp_path / "branch")
    ]
    assert last[0]["state_hash"] == last[1]["state_hash"]


@pytest.mark.slow
def test_over_workers_a_society_is_the_same(tmp_path: Path) -> None:
    society = {"places": [{"place": "home", "groups": 2}], "talk": 0.5}
    folders = [created(tmp_path / f"{workers}", society, workers) for workers in (0, 2)]
    assert results(folders[0]) == results(folders[1])
