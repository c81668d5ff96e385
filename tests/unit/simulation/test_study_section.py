"""The section of a run's report about what its population knows."""

from importlib import util
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.memory.words import number
from agents.simulation.analysis import study as studies
from agents.simulation.analysis.study import Study, section
from agents.simulation.protocols import Action, Observation
from agents.simulation.runs.study import study_run
from agents.simulation.tick.loop import Loop
from worlds import Diary, Mind

SETTINGS: dict[str, Any] = {"storage": {"sync": "manual"}}
KEY = "The cellar key hangs behind the <clock>"
QUERY = "Where does the cellar key hang, by the <clock>?"


def cells(row: dict[str, Any], texts: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    """A row of a table, as the page has it."""
    shown = [("text", row[name]) for name in texts]
    shown += [("number", number(row[name])) for name in numbers]
    made = "".join(f'<td class="{kind}">{text}</td>' for kind, text in shown)
    return f"<tr>{made}</tr>"


def titles(page: str) -> list[str]:
    return [part.split("</h3>")[0] for part in page.split("<h3>")[1:]]


@pytest.fixture
def told(tmp_path: Path) -> Study:
    """Alice told Bob and Dora of a fire."""
    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        one = bank.agent("alice").add("the mill burns")
        bank.agent("bob").add("I like tea")
        for listener in ("bob", "dora"):
            bank.agent("alice").social.tell(listener, one.id)
    return analysis.study(tmp_path / "bank")


def test_chains_with_the_same_text_are_one_row_of_what_spread_most(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        for teller, listeners in {"alice": ["bob", "dora"], "carol": ["erin"]}.items():
            one = bank.agent(teller).add("the mill burns")
            for listener in listeners:
                bank.agent(teller).social.tell(listener, one.id)
    found = analysis.study(tmp_path / "bank")
    assert found.spreads().num_rows == 2
    page = section(found)
    spread = page[page.index("What spread most") : page.index("</table>")]
    alike = 'the mill burns<span class="about">and 1 chain with the same text</span>'
    assert f'{alike}</td><td class="number">3</td>' in spread
    assert spread.count("the mill burns") == 1


def test_it_has_who_is_central_and_which_beliefs_are_common(told: Study) -> None:
    page = section(told)
    rows = told.centrality().to_pylist()
    assert len(rows) == 3
    for row in rows:
        assert cells(row, ("agent",), ("told", "heard", "pagerank", "betweenness")) in page
    rows = told.overlap().to_pylist()
    assert len(rows) == 3
    for row in rows:
        assert cells(row, ("agent", "other"), ("shared", "exact", "near")) in page
    assert titles(page)[-3:] == ["Who informs whom", "Who is central", "Beliefs in common"]


def test_without_networkx_nobody_is_central(told: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        studies, "find_spec", lambda name: None if name == "networkx" else util.find_spec(name)
    )
    assert titles(section(told))[-2:] == ["Who informs whom", "Beliefs in common"]


def test_it_has_what_was_forgotten_and_then_needed(tmp_path: Path) -> None:
    world = Diary()
    held: list[str] = []

    def does(seen: Observation) -> list[Action]:
        if seen.tick == 1:
            return [Action("store_memory", {"content": KEY})]
        return [Action("forget_memory", {"memory_id": held[0]})] if seen.tick == 2 else []

    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        loop = Loop(bank, world, Mind(does), ["alice"])
        loop.begin()
        loop.tick()
        held += [memory.id for memory in bank.agent("alice").all()]
        loop.tick()
        world.says = lambda agent: Observation("", QUERY)
        loop.tick()
    settings = load_settings(overrides={"simulation": {"agents": ["alice"]}})
    world.facts = lambda: {"key": {"the key is lost": True}}  # type: ignore[attr-defined]
    found = study_run(tmp_path, settings, world)
    (row,) = found.needed().to_pylist()
    escaped = {name: row[name].replace("<", "&lt;").replace(">", "&gt;") for name in _TEXTS}
    page = section(found)
    assert titles(page)[-1] == "Forgotten and then needed"
    assert cells({**row, **escaped}, _TEXTS, ("gone", "times", "score")) in page
    assert "<clock>" not in page


_TEXTS = ("text", "agent", "query")
