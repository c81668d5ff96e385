"""Pictures of a society: agents have their places, ties are drawn, colours say what is true."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations
from math import dist
from pathlib import Path

import networkx as nx
import pytest

from agents import MemoryBank, analysis
from agents.errors import InvalidInput, RunError
from agents.simulation.analysis.study import Study, figures
from agents.simulation.reports.networks import layout, network
from agents.simulation.reports.plots import STYLE
from agents.simulation.society import Society

SIX = [f"agent_{number:02}" for number in range(6)]
TWO_CLIQUES = Society.of_graph(SIX, nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3)))


def discs(chart: str) -> list[tuple[str, str]]:
    """The colour and the title of each agent that is drawn."""
    return re.findall(r'<circle [^>]*fill="(#\w+)"[^>]*><title>([^<]*)</title>', chart)


def test_ties_pull_together_and_the_same_society_has_the_same_places() -> None:
    points = layout(TWO_CLIQUES)
    near = [dist(points[a], points[b]) for a, b in combinations(range(6), 2) if a // 3 == b // 3]
    far = [dist(points[a], points[b]) for a, b in combinations(range(6), 2) if a // 3 != b // 3]
    assert max(near) < min(far)
    assert layout(Society.of_edges(SIX, TWO_CLIQUES.edges)) == points
    assert all(0 <= each <= 1 for point in points for each in point)


def test_agents_of_a_space_are_where_they_are() -> None:
    society = Society.of_positions(SIX[:3], [[0, 0], [10, 0], [5, 5]], 1)
    assert layout(society) == [(0.0, 0.25), (1.0, 0.25), (0.5, 0.75)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_small_society_is_drawn_too(count: int) -> None:
    chart = network(Society.of_edges(SIX[:count], []), {"tick 1": {}})
    assert len(discs(chart)) == count
    ET.fromstring(chart)


def test_a_large_society_is_refused() -> None:
    many = [f"agent_{number:03}" for number in range(501)]
    with pytest.raises(InvalidInput, match="501 agents is not drawn"):
        network(Society.of_edges(many, []), {"tick 1": {}})


def test_each_panel_has_all_agents_and_ties_and_a_colour_for_each_kind() -> None:
    sides = {name: "open" if place < 3 else "closed" for place, name in enumerate(SIX[:5])}
    chart = network(TWO_CLIQUES, {"tick 1": {}, "tick 9": sides}, "the <bridge>")
    found = discs(chart)
    assert [title for _, title in found[:2]] == ["agent_00: –", "agent_01: –"]
    assert [title for _, title in found[6:]] == [
        *(f"agent_{number:02}: open" for number in range(3)),
        "agent_03: closed", "agent_04: closed", "agent_05: –",
    ]  # fmt: skip
    assert sorted(Counter(colour for colour, _ in found).values()) == [2, 3, 7]
    assert chart.count("<path") == 2 * 6
    assert "the &lt;bridge&gt;" in chart
    ET.fromstring(chart)


def test_numbers_have_the_colours_of_the_fifths_of_their_range() -> None:
    values = dict(zip(SIX, [0, 2.1, 4, 6.5, 10, 10], strict=True))
    colours = [colour for colour, _ in discs(network(TWO_CLIQUES, {"": values}))]
    assert len(set(colours)) == 5
    assert colours[4] == colours[5]
    alike = discs(network(TWO_CLIQUES, {"": dict.fromkeys(SIX, 3.0)}))
    assert len({colour for colour, _ in alike}) == 1


def test_every_colour_of_a_number_has_one_for_the_dark() -> None:
    values = dict(zip(SIX, [0, 2.1, 4, 6.5, 10, 10], strict=True))
    for colour, _ in discs(network(TWO_CLIQUES, {"": values})):
        assert f'[fill="{colour}"]' in STYLE


def test_a_study_draws_its_society_over_ticks(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        told = bank.agent(SIX[0]).add("the mill burned", tier="pinned")
        for name in SIX[1:]:
            bank.agent(name).add("the mill is fine")
        bank.advance(6)
        bank.agent(SIX[0]).social.tell(SIX[1], told.id)
    sides = {"mill": ["the mill burned", "the mill is fine"]}
    read = analysis.study(tmp_path / "bank", sides=sides)
    found = Study("b", read.columns, {}, 0, read._journal, TWO_CLIQUES, sides=read.sides)
    drawn = figures(found)
    assert {"network-spread", "network-tiers", "network-mill"} <= set(drawn)
    chart = drawn["network-spread"][1]
    assert re.findall(r">(tick \d)<", chart) == [f"tick {n}" for n in range(1, 7)]
    had = [title for _, title in discs(chart) if title.endswith("had it")]
    assert Counter(had) == {f"{SIX[0]}: had it": 6, f"{SIX[1]}: had it": 1}
    assert discs(drawn["network-mill"][1])[0][1] == "agent_00: the mill burned"
    assert discs(drawn["network-tiers"][1])[0][1] == "agent_00: 1"
    ET.fromstring(found.picture({"age": {SIX[0]: 3, SIX[1]: 9}}))
    assert not [name for name in figures(read) if name.startswith("network")]
    with pytest.raises(RunError, match="has no society"):
        read.picture({"age": {}})
