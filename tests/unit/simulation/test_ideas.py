"""Ideas, disputes and networks of a population, against numbers that are known by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.errors import InvalidInput, RunError
from agents.simulation.analysis import ideas
from agents.simulation.analysis.networks import homophily
from agents.simulation.analysis.study import Study
from agents.simulation.runs.run import Run
from agents.simulation.society import Society

FIVE = ["ann", "bob", "cat", "dan", "eve"]
BURNED, FINE = "the mill burned", "the mill is fine"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[MemoryBank]:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as opened:
        yield opened


def study(bank: MemoryBank, society: Society | None = None, **more: Any) -> Study:
    assert bank.folder is not None
    found = analysis.study(bank.folder, **more)
    facts: dict[str, dict[str, bool]] = {}
    return Study("b", found.columns, facts, 0, found._journal, society, sides=found.sides)


# Ideas


def test_an_idea_is_one_text_whether_it_was_told_or_thought_again(bank: MemoryBank) -> None:
    first = bank.agent("ann").add(BURNED)
    bank.agent("cat").add(BURNED)
    bank.advance(1)
    bank.agent("ann").social.tell("bob", first.id)
    bank.agent("dan").add(FINE)
    (row,) = study(bank).ideas("text").to_pylist()
    assert (row["idea"], row["text"], row["agent"], row["tick"]) == (first.id, BURNED, "ann", 0)
    assert (row["texts"], row["holders"], row["believers"]) == (1, 3, 3)
    assert (row["most"], row["most_tick"], row["half_life"]) == (3, 1, None)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (BURNED, "I heard that the mill burned", True),
        ("The north bridge has been opened", "the bridge in the north is open again", True),
        ("the bridge is open", "the bridge is closed", False),
        (
            "There is a concert at the mill on day 3",
            "There is a concert at the mill on day 5",
            False,
        ),
        ("bob cheated me", "carol cheated me", False),
    ],
)
def test_by_meaning_other_words_are_one_idea_and_other_numbers_are_not(
    bank: MemoryBank, one: str, other: str, is_same: bool
) -> None:
    bank.agent("ann").add(one)
    bank.agent("bob").add(other)
    found = study(bank).ideas(least=1).to_pylist()
    assert [(row["text"], row["texts"], row["holders"]) for row in found] == (
        [(one, 2, 2)] if is_same else [(one, 1, 1), (other, 1, 1)]
    )
    assert study(bank).ideas("text", least=1).num_rows == 2


def test_a_text_joins_the_nearest_of_the_ideas_before_it(bank: MemoryBank) -> None:
    texts = [
        BURNED,
        "the bridge is open",
        "the bridge in the north is open again",
        BURNED + " down",
    ]
    for text in texts:
        bank.agent("ann").add(text)
    columns = study(bank).columns
    assert ideas.same_ideas(columns, "meaning").tolist() == [0, 1, 1, 0]
    assert ideas.same_ideas(columns, "meaning", 0.999).tolist() == [0, 1, 2, 3]


def test_observations_and_forgotten_texts_are_no_ideas(bank: MemoryBank) -> None:
    for name in ("ann", "bob"):
        bank.agent(name).add(BURNED, kind="observation")
        bank.agent(name).forget(bank.agent(name).add(FINE).id)
    assert study(bank).ideas().num_rows == 0


def test_the_half_life_of_a_belief_is_the_median_of_how_long_agents_hold_it(
    bank: MemoryBank,
) -> None:
    for tick in range(6):
        bank.advance(tick)
        if tick == 0:
            held = {name: bank.agent(name).add(BURNED) for name in FIVE[:4]}
        if tick in (2, 4):
            name = FIVE[tick // 2 - 1]
            bank.agent(name).delete(held[name].id)
    (row,) = study(bank).ideas().to_pylist()
    assert (row["holders"], row["believers"], row["most"]) == (4, 2, 4)
    assert row["half_life"] == 4  # 3 of 4 hold it longer than 2 ticks, 2 of 4 longer than 4
    assert study(bank, tick=3).ideas().to_pylist()[0]["half_life"] is None


def test_who_came_late_to_a_belief_counts_as_long_as_it_is_known(bank: MemoryBank) -> None:
    held = {name: bank.agent(name).add(BURNED) for name in ("ann", "bob")}
    bank.advance(3)
    for name in ("cat", "dan"):
        bank.agent(name).add(BURNED)  # held for 2 ticks, until the end is no more known
    bank.advance(4)
    bank.agent("ann").delete(held["ann"].id)
    bank.advance(5)
    (row,) = study(bank).ideas().to_pylist()
    assert row["half_life"] == 4  # of the two at risk at age 4, one is lost


# Disputes


@pytest.mark.parametrize(
    ("counts", "divided"),
    [
        ([2, 2], 1), ([4, 0], 0), ([3, 1], 0.75), ([1, 0], 0), ([3, 3, 3], 1), ([2, 2, 0], 0.75),
        ([5], 0),
    ],
)  # fmt: skip
def test_polarisation_is_0_for_one_side_and_1_for_even_ones(
    counts: list[int], divided: float
) -> None:
    assert ideas.polarisation(np.array([counts])).tolist() == [divided]
    assert np.isnan(ideas.polarisation(np.array([[0] * len(counts)]))).all()


def test_polarisation_of_two_sides_is_the_variance_of_their_opinions() -> None:
    for for_, against in ((1, 6), (3, 4), (2, 9)):
        (divided,) = ideas.polarisation(np.array([[for_, against]]))
        assert divided == pytest.approx(np.var([1] * for_ + [-1] * against))


def test_an_agent_is_on_the_side_that_most_of_its_memories_say(bank: MemoryBank) -> None:
    ann, bob = bank.agent("ann"), bank.agent("bob")
    told = ann.add(BURNED)
    bob.add(f"I am sure that {FINE}")
    bank.agent("cat").add(f"{BURNED}, or {FINE}")
    bank.advance(1)
    ann.social.tell("bob", told.id)  # it came through a hand, and weighs half
    bank.agent("dan").add(FINE)
    bank.agent("dan").add(BURNED)
    bank.advance(2)
    bank.agent("dan").add(f"Yes, {BURNED}")
    found = study(bank, sides={"mill": [BURNED, FINE]})
    assert found.opinions() == {"mill": {"ann": BURNED, "bob": FINE, "dan": BURNED}}
    rows = found.polarisation().to_pylist()
    assert [(row["tick"], row["agents"]) for row in rows] == [(0, 2), (1, 2), (2, 3)]
    assert [row["polarisation"] for row in rows] == [1, 1, round(8 / 9, 9)]


def opinions(*ticks: str) -> ideas.Opinions:
    """One letter an agent: a, b, or - for no side."""
    held = [["ab".index(each) if each in "ab" else -1 for each in tick] for tick in ticks]
    return ideas.Opinions(("a", "b"), np.array(held))


@pytest.mark.parametrize(
    ("found", "side", "share", "tick"),
    [
        (opinions("aabb", "aaab", "aaaa", "aaaa"), "a", 1.0, 2),
        (opinions("aaaa", "aaab", "aaaa", "aaaa"), "a", 1.0, 2),
        (opinions("aaaa", "aaaa"), "a", 1.0, 0),
        (opinions("aaaa", "aaab"), "a", 0.75, None),
        (opinions("aabb", "aabb"), None, 0.5, None),
        (opinions("aaa-", "aaa-"), "a", 0.75, None),
        (opinions("----", "----"), None, 0.0, None),
        (opinions("bbbb", "aaaa"), "a", 1.0, 1),
    ],
)
def test_consensus_is_when_all_agree_for_good(
    found: ideas.Opinions, side: str | None, share: float, tick: int | None
) -> None:
    assert ideas.consensus(found, 4, 0.9) == (side, share, tick)


def test_consensus_of_a_lower_share_comes_earlier() -> None:
    found = opinions("aabb", "aaab", "aaab", "aaaa")
    assert ideas.consensus(found, 4, 0.75).tick == 1
    assert ideas.consensus(found, 4, 1).tick == 3


# Networks


def ties(graph: Any) -> list[tuple[str, str]]:
    return Society.of_graph([f"n{each}" for each in graph], graph).edges


@pytest.mark.parametrize(
    ("graph", "of", "alike"),
    [
        (nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3)), [1] * 3 + [2] * 3, 1),
        (nx.complete_bipartite_graph(3, 3), [1] * 3 + [2] * 3, -1),
        (nx.path_graph(4), [1, 1, 2, 2], 1 / 3),
        (nx.path_graph(4), [1, 1, 1, 1], None),
        (nx.empty_graph(4), [1, 2, 1, 2], None),
    ],
    ids=["two cliques", "bipartite", "path", "all alike", "no ties"],
)
def test_homophily_is_1_between_equals_and_minus_1_between_others(
    graph: Any, of: list[int], alike: float | None
) -> None:
    names = [f"n{each}" for each in graph]
    wanted = None if alike is None else pytest.approx(alike)
    assert homophily(ties(graph), dict(zip(names, map(str, of), strict=True))) == wanted
    assert homophily(ties(graph), dict(zip(names, of, strict=True))) == wanted


def test_homophily_is_networkxs_assortativity() -> None:
    graph = nx.karate_club_graph()
    names = {node: f"n{node}" for node in graph}
    clubs = nx.get_node_attributes(graph, "club")
    found = homophily(ties(graph), {names[node]: club for node, club in clubs.items()})
    assert found == pytest.approx(nx.attribute_assortativity_coefficient(graph, "club"))
    ages = {node: (node * 7) % 11 for node in graph}
    nx.set_node_attributes(graph, ages, "age")
    found = homophily(ties(graph), {names[node]: age for node, age in ages.items()})
    assert found == pytest.approx(nx.numeric_assortativity_coefficient(graph, "age"))


def test_agents_without_a_value_do_not_count() -> None:
    line = Society.of_edges(FIVE, [("ann", "bob"), ("bob", "cat"), ("cat", "dan")])
    assert homophily(line.edges, {"ann": "x", "bob": "x", "dan": "y"}) is None  # one tie is left
    assert homophily(line.edges, {"eve": "x"}) is None


def test_reach_is_told_by_the_distance_from_the_first(bank: MemoryBank) -> None:
    told = bank.agent("ann").add(BURNED)
    society = Society.of_edges(FIVE, [("ann", "bob"), ("ann", "cat"), ("bob", "dan")])
    for tick, (teller, listener) in enumerate([("ann", "bob"), ("bob", "dan")], start=1):
        bank.advance(tick)
        told = bank.agent(listener).get(bank.agent(teller).social.tell(listener, told.id).memory_id)
    for name in ("cat", "eve"):
        bank.agent(name).add("the sun shines")
    rows = study(bank, society).reach(told.id).to_pylist()
    assert [tuple(row.values())[1:] for row in rows] == [
        (0, 1, 1, 1.0, 0, 1.0),
        (1, 2, 1, 0.5, 1, 1.0),
        (2, 1, 1, 1.0, 2, 0.0),
        (None, 1, 0, 0.0, None, None),
    ]


def test_homophily_of_a_study_compares_attributes_opinions_and_ideas(bank: MemoryBank) -> None:
    for name in ("ann", "bob"):
        bank.agent(name).add(BURNED)
    for name in ("cat", "dan"):
        bank.agent(name).add(FINE)
    society = Society.of_edges(FIVE[:4], [("ann", "bob"), ("cat", "dan")])
    found = study(bank, society, sides={"mill": [BURNED, FINE]})
    rows = {row["of"]: row["homophily"] for row in found.homophily().to_pylist()}
    assert rows == {"mill": 1, BURNED: 1, FINE: 1}
    own = found.homophily({"age": {"ann": 1, "bob": 3, "cat": 1, "dan": 3}}).to_pylist()
    assert own == [{"of": "age", "homophily": -1, "agents": 4}]
    assert {"homophily", "polarisation", "consensus", "ideas"} <= set(found.tables())


def test_without_a_society_nobody_can_tell_who_is_like_whom(bank: MemoryBank) -> None:
    told = bank.agent("ann").add(BURNED)
    for ask in (lambda: study(bank).homophily(), lambda: study(bank).reach(told.id)):
        with pytest.raises(RunError, match="has no society"):
            ask()
    assert not {"homophily", "reach", "polarisation"} & set(study(bank).tables())


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda found: found.ideas("sound"), "by is 'sound'"),
        (lambda found: found.ideas(same=0), "same is 0"),
        (lambda found: found.consensus(0.5), "share is 0.5"),
        (lambda found: analysis.study(found.name, sides={"mill": [BURNED]}), "two sentences"),
        (lambda found: analysis.study(found.name, sides={"mill": BURNED}), "two sentences"),
    ],
)
def test_what_can_not_be_asked_is_refused(bank: MemoryBank, ask: Any, why: str) -> None:
    bank.agent("ann").add(BURNED)
    with pytest.raises(InvalidInput, match=why):
        ask(analysis.study(bank.folder or ""))


# The society of a run


def of_run(folder: Path, world: str, **more: Any) -> None:
    own = {"world": f"society_worlds:{world}", "agents": 6, "ticks": 3, **more}
    settings = load_settings({"seed": 5, "storage": {"sync": "manual"}, "simulation": own})
    with Run.create(folder, settings, scenario=Path(__file__).parents[2]) as run:
        list(run.advance(3))
        run.finish()


def test_the_society_of_a_study_is_that_of_its_tick(tmp_path: Path) -> None:
    of_run(tmp_path / "run", "Moving")
    at = [analysis.study(tmp_path / "run", tick).society for tick in (1, 3)]
    assert [each and each.positions for each in at] == [
        [[float((number * number + tick + 1) % 8)] for number in range(6)] for tick in (1, 3)
    ]


def test_the_society_and_the_personas_of_a_scenario_are_those_of_its_study(tmp_path: Path) -> None:
    edges = [["agent_00", "agent_01"]]
    personas = [{"village": each} for each in "aabbcc"]
    of_run(tmp_path / "run", "hall", society={"edges": edges}, personas=personas)
    found = analysis.study(tmp_path / "run")
    assert found.society is not None
    assert found.society.edges == [("agent_00", "agent_01"), ("agent_01", "agent_00")]
    assert found.attributes["village"]["agent_02"] == "b"
    assert analysis.study(tmp_path / "run" / "bank").society is None
