"""What a pointer does in the page: it drags the curves, and reads the map's numbers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import ask

from agents.interfaces.inspector.inspection import Inspection
from waiting import until

pytestmark = pytest.mark.slow

_DRAG = """
const axis = document.querySelector(arguments[0]);
const plot = axis.querySelector(".strip-plot").getBoundingClientRect();
const scale = 52, left = plot.left + scale, width = plot.right - left;
const at = (kind, share) => axis.dispatchEvent(new PointerEvent(kind, {bubbles: true, button: 0,
  clientX: left + share * width, clientY: plot.top + 5}));
at("pointerdown", arguments[1]); at("pointermove", arguments[2]);
if (arguments[3]) at("pointerup", arguments[2]);
"""
_OVER = """
const map = document.querySelector("#heat"); const box = map.getBoundingClientRect();
map.dispatchEvent(new PointerEvent(arguments[2], {bubbles: true,
  clientX: box.left + box.width * arguments[0], clientY: box.top + box.height * arguments[1]}));
"""


@pytest.fixture(scope="module")
def page(market: Path, browser: Browser) -> Iterator[str]:
    with served(market) as address:
        yield address


def test_the_curves_are_dragged_to_a_tick(browser: Browser, page: str) -> None:
    browser.open(page, "#/overview?t=3")
    browser.shows(".strip .num")
    browser.run(_DRAG, ".on-axis", 10.5 / 41, 30.5 / 41, True)
    until("the cursor followed", lambda: browser.tick == 30)
    browser.run(_DRAG, ".on-axis", 5.5 / 41, 5.5 / 41, True)
    until("a click is enough", lambda: browser.tick == 5)
    browser.run("dispatchEvent(new PointerEvent('pointermove', {clientX: 900, clientY: 200}))")
    assert browser.tick == 5  # the pointer is up


def test_the_map_says_the_number_under_the_pointer(
    browser: Browser, page: str, site: Inspection
) -> None:
    ask(site, "memories", agent="agent_00", tick=40)  # the last tick is read by then
    heat = ask(site, "heat", of="memories")
    browser.open(page, "#/agent/agent_00?t=40")
    browser.shows("#memories[data-ready=true] .row")
    browser.go("#/overview?t=5&heat=memories")
    browser.shows("#heat")
    until("it is drawn", lambda: browser.run("return document.querySelector('#heat').width") > 300)
    for agent, tick in ((0, 20), (3, 40), (4, 1)):
        browser.run(_OVER, (tick + 0.5) / 41, (agent + 0.5) / 5, "pointermove")
        value = heat["values"][agent][heat["ticks"].index(tick)]
        browser.shows(".tip", f"{heat['agents'][agent]} tick {tick}: {value:g}")
    browser.run("document.querySelector('#heat').dispatchEvent(new PointerEvent('pointerleave'))")
    until("it goes with the pointer", lambda: browser.all(".tip") == [])
    known = [value for row in heat["values"] for value in row if value is not None]
    assert browser.all(".heat-scale > span:not(.ramp, .soft)") == [
        f"{min(known):g}",
        f"{max(known):g}",
    ]
