"""The component of SolaraViz that shows an agent's memory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("mesa")

from mesa_models import Town, walked

from tiermem.mesa import make_memory_component


def test_without_solara_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "solara", None)
    with pytest.raises(ImportError, match=r"pip install 'mesa\[viz\]'"):
        make_memory_component()


@contextmanager
def page_of(town: Town, most: int = 50) -> Iterator[Any]:
    """The page as SolaraViz renders it."""
    solara = pytest.importorskip("solara")
    pytest.importorskip("altair")  # Mesa's own components import it
    component = make_memory_component(most)
    _, page = solara.render(component(town), handle_error=False)
    try:
        yield page
    finally:
        page.close()


def texts(page: Any) -> list[str]:
    import ipyvuetify

    found = page.find(ipyvuetify.Html).widgets
    return [str(child) for widget in found for child in widget.children]


def choice(page: Any) -> Any:
    import ipyvuetify

    return page.find(ipyvuetify.Select).widget


@pytest.mark.filterwarnings("default")
def test_the_page_shows_the_memory_of_the_chosen_agent() -> None:
    town = walked(2, n=3)
    with page_of(town) as page:
        assert choice(page).items == ["Walker_1", "Walker_2", "Walker_3"]
        one, two, _ = town.agents
        assert {memory.content for memory in one.memory.kept.all()} <= {*texts(page)}
        assert {hit.memory.content for hit in one.memory.recalled} <= {*texts(page)}
        choice(page).v_model = "Walker_2"
        assert {memory.content for memory in two.memory.kept.all()} <= {*texts(page)}


@pytest.mark.filterwarnings("default")
def test_the_page_follows_the_steps_and_shows_texts_as_text() -> None:
    town = walked(1, n=1)
    (agent,) = town.agents
    hostile = "<script>alert(1)</script> **bold**"
    with page_of(town, most=2) as page:
        from mesa.visualization.utils import force_update

        with town.memories.step():
            agent.memory.add(hostile)
        force_update()
        assert hostile in texts(page)
        assert "nothing" in texts(page)  # it recalled nothing in this step
        town.memories.close()
        force_update()
        assert hostile not in texts(page)


@pytest.mark.filterwarnings("default")
def test_a_model_without_memories_has_an_empty_page() -> None:
    import mesa

    with page_of(mesa.Model(rng=1)) as page:
        assert texts(page) == ["No agent has a memory."]


@pytest.mark.filterwarnings("default")
def test_solara_viz_takes_the_component() -> None:
    solara = pytest.importorskip("solara")
    pytest.importorskip("altair")
    from mesa.visualization import SolaraViz

    town = walked(2, n=2)
    _, page = solara.render(
        SolaraViz(town, components=[make_memory_component()]), handle_error=False
    )
    try:
        assert "I live here." in texts(page)
    finally:
        page.close()
