"""The inspector's page in a real browser: its views, its cursor, its numbers."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from browsers import Browser, served
from inspected_sites import ask

from agents.interfaces.inspector.inspection import Inspection
from agents.memory.tiers import TIER_NAMES
from agents.simulation.runs.record import past_bank
from agents.simulation.runs.why import decision, life
from waiting import until

AGENT = "agent_01"
VIEWS = {
    "overview": "#heat",
    "agent": "#memories .row",
    "memory": ".hint, #memory-text",
    "population": "#beliefs li, .circle",
    "compare": ".hint, #parted",
    "branch": "#command",
    "search": "#words",
}
SHIFT, FOCUS = "\ue008", "return document.activeElement.id"
ARROW_LEFT, ARROW_RIGHT, HOME, END = "\ue012", "\ue014", "\ue011", "\ue010"


@pytest.fixture(scope="module")
def page(market: Path, browser: Browser) -> Iterator[str]:
    with served(market) as address:
        yield address


def _a_memory(market: Path) -> str:
    with past_bank(market, 20) as bank:
        return bank.agent(AGENT).all()[0].id


@pytest.mark.slow
def test_every_view_opens_by_a_click(browser: Browser, page: str) -> None:
    browser.open(page)
    for view, seen in VIEWS.items():
        browser.click(f"nav a[data-tab={view}]")
        browser.shows(f".frame[data-view={view}] main :is({seen})")
        assert browser.hash.startswith(f"#/{view}")
        assert browser.run("return document.documentElement.scrollHeight <= innerHeight")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.all(".failed") == []
    assert browser.complaints() == []


@pytest.mark.slow
def test_every_view_opens_by_its_address(browser: Browser, page: str, market: Path) -> None:
    memory = _a_memory(market)
    for view, of in [*dict.fromkeys(VIEWS, "").items(), ("agent", AGENT), ("memory", memory)]:
        browser.open(page, f"#/{view}/{of}?t=20")
        browser.shows(f".frame[data-view={view}] main :is({VIEWS[view]})")
        assert browser.tick == 20
    assert browser.all(".failed") == []
    assert browser.complaints() == []


@pytest.mark.slow
def test_a_click_leads_from_an_event_to_the_memory_and_from_it_to_the_decision(
    browser: Browser, page: str
) -> None:
    browser.open(page, "#/overview?t=12")
    browser.click("#in-this-tick a.memory")
    browser.shows("#memory-text")
    browser.click("main .facts a.agent")
    browser.shows(".frame[data-view=agent] .decision, .frame[data-view=agent] .remark")


def test_the_events_of_a_tick_say_why(browser: Browser, page: str, site: Inspection) -> None:
    told = [event["detail"] for event in ask(site, "tick", tick=12)["events"] if event["detail"]]
    browser.open(page, "#/overview?t=12")
    browser.shows("#in-this-tick .detail", "as observation")
    assert browser.all("#in-this-tick .detail") == told


@pytest.mark.slow
def test_the_cursor_moves_every_view(browser: Browser, page: str, market: Path) -> None:
    shown = {
        "overview": "#in-this-tick h2",
        f"memory/{_a_memory(market)}": "#at-tick",
        "agent": "#tab-memories",
        "population": ".population",
        "branch": ".view-head h1",
    }
    browser.open(page, "#/overview?t=10")
    for view, css in shown.items():
        browser.go(f"#/{view}?t=10")
        browser.shows(f".frame[data-view={view.partition('/')[0]}] {css}")
        browser.press(ARROW_RIGHT)
        until("the cursor is at tick 11", lambda: browser.tick == 11)
        if view == "population":
            browser.shows(".population[data-tick='11']")
        else:
            browser.shows(css, "11")
    until("the address has the tick", lambda: "t=11" in browser.hash)


@pytest.mark.slow
def test_keys_buttons_field_line_and_play_move_the_cursor(browser: Browser, page: str) -> None:
    browser.open(page, "#/overview?t=20")
    browser.press(ARROW_LEFT)
    until("one back", lambda: browser.tick == 19)
    browser.press(HOME)
    until("the first", lambda: browser.tick == 0)
    browser.press(END)
    until("the last", lambda: browser.tick == 40)
    browser.click("button[aria-label='one tick back']")
    until("the button", lambda: browser.tick == 39)
    browser.write("#tick", "7\n")
    until("the field", lambda: browser.tick == 7)
    browser.run(
        "const line = document.querySelector('#ticks'); const box = line.getBoundingClientRect();"
        "const at = (kind, share) => line.dispatchEvent(new PointerEvent(kind, {bubbles: true,"
        " button: 0, clientX: box.left + share * box.width, clientY: box.top + 5}));"
        "at('pointerdown', 0.1); at('pointermove', 0.5); at('pointerup', 0.5);"
    )
    until("the middle of the line", lambda: browser.tick == 20)
    browser.click("#play")
    until("it plays", lambda: browser.tick > 21)
    browser.click("#play")


@pytest.mark.slow
def test_keys_change_agent_view_and_search(browser: Browser, page: str) -> None:
    browser.open(page, f"#/agent/{AGENT}?t=20")
    browser.shows(".frame[data-view=agent] #agent")
    browser.press("]")
    until("the next agent", lambda: browser.hash.startswith("#/agent/agent_02"))
    browser.press("[", "[")
    until("the agent before", lambda: browser.hash.startswith("#/agent/agent_00"))
    browser.press("b")
    browser.shows(".frame[data-view=branch] #command", "--at 20")
    for number, view in enumerate(VIEWS, start=1):
        browser.press(str(number))
        browser.shows(f".frame[data-view={view}]")
    browser.press(SHIFT + ARROW_LEFT)
    until("ten ticks back", lambda: browser.tick == 10)
    browser.press("/")
    until("the search has the focus", lambda: browser.run(FOCUS) == "search")
    browser.driver.switch_to.active_element.send_keys("cloth ]7\n")
    browser.shows(".frame[data-view=search] #words")
    assert browser.tick == 10
    browser.press(" ")
    until("it plays", lambda: browser.tick > 10)
    browser.press(" ")
    until("it stands", lambda: browser.attribute("#play", "aria-pressed") != "true")


@pytest.mark.long
def test_every_way_from_a_view_and_back_keeps_the_agent(browser: Browser, page: str) -> None:
    browser.open(page, "#/agent/agent_03?t=20")
    browser.shows(".frame[data-view=agent] .view-head")
    for view in ("overview", "population", "memory", "search"):
        browser.click(f"nav a[data-tab={view}]")
        browser.shows(f".frame[data-view={view}]")
        browser.click("nav a[data-tab=agent]")
        browser.shows(".decision[data-agent=agent_03]")
    browser.press("1", "2")
    until("a key keeps it", lambda: browser.hash.startswith("#/agent/agent_03"))
    browser.press("1", "b")
    until("b keeps it", lambda: browser.hash.startswith("#/branch/agent_03"))
    browser.press("1", "]")
    until("the next agent", lambda: browser.hash.startswith("#/agent/agent_04"))
    browser.press("1")
    browser.shows(".frame[data-view=overview]")
    browser.open(browser.driver.current_url)
    browser.click("nav a[data-tab=agent]")
    browser.shows(".decision[data-agent=agent_04]")


@pytest.mark.slow
def test_space_plays_with_the_chosen_speed(browser: Browser, page: str) -> None:
    browser.open(page, "#/search?t=1")
    browser.run("window.setInterval = (call, wait) => void (window.waited = wait)")
    browser.choose("#speed", "25")
    browser.press(" ")
    until("it plays", lambda: browser.run("return window.waited ?? null") == 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_are_those_of_the_python_api(
    browser: Browser, page: str, market: Path, site: Inspection, seed: int
) -> None:
    chance = random.Random(seed)
    tick, agent = chance.randrange(2, 40), f"agent_{chance.randrange(5):02}"
    with past_bank(market, tick) as bank:
        memories = bank.agent(agent).all()
        everyone = [memory for name in bank.agents() for memory in bank.agent(name).all()]
        explained = bank.agent(agent).explain("Who cheats?", context=True)
    browser.open(page, f"#/overview?t={tick}")
    browser.shows("[data-strip='memories by tier'] .num")
    for tier, name in TIER_NAMES.items():
        (shown,) = browser.values(f"[data-strip='memories by tier'] [data-curve={name}] .num")
        assert shown == sum(memory.tier == tier for memory in everyone)
    series = ask(site, "series")
    at = series["ticks"].index(tick)
    (loss,) = browser.values("[data-strip=loss] .num")
    assert loss == series["metrics"]["loss"][at]

    browser.go(f"#/agent/{agent}?t={tick}&sort=created")
    browser.shows(f".decision[data-tick='{tick}'][data-agent={agent}]")
    made = decision(market, agent, tick)
    assert browser.values(".decision [data-part=given] td:nth-child(1) .num") == [
        given.score for given in made.given
    ]
    assert browser.all(".decision [data-part=given] .memory") == [
        given.text for given in made.given
    ]
    browser.shows("[data-part=observed]", made.observed)
    browser.shows(f"#memories[data-ready=true][data-total='{len(memories)}'] .row")
    ids = browser.run(
        "return [...document.querySelectorAll('#memories .row')].map((one) => one.dataset.id)"
    )
    assert ids == [memory.id for memory in memories][: len(ids)]

    browser.go(f"#/agent/{agent}?t={tick}&tab=why-not&when=after")
    browser.write("#why-not", "Who cheats?\n")
    browser.shows("#explained td")
    assert browser.values("#explained td:nth-child(4) .num") == [
        row.boosted_score for row in explained[:200]
    ]
    assert browser.all("#explained .reason") == [row.reason for row in explained[:200]]


@pytest.mark.slow
def test_the_life_of_a_memory_is_that_of_the_python_api(
    browser: Browser, page: str, market: Path
) -> None:
    memory = _a_memory(market)
    told = life(market, memory)
    browser.open(page, f"#/memory/{memory}?t=20")
    browser.shows("#memory-text")
    shown = [int(text) for text in browser.all("#decisions tbody td:first-child")]
    assert shown == [moment.tick for moment in told.moments if "given" in moment.what]


@pytest.mark.slow
def test_memories_are_filtered_sorted_and_searched(
    browser: Browser, page: str, market: Path
) -> None:
    with past_bank(market, 40) as bank:
        memories = bank.agent(AGENT).all()
    browser.open(page, f"#/agent/{AGENT}?t=40")
    browser.shows("#memories[data-ready=true] .row")
    browser.write("#by-text", "offers")
    count = sum("offers" in memory.content for memory in memories)
    browser.shows(f"#memories[data-ready=true][data-total='{count}']")
    browser.click("#memories .sort[data-sort=text]")
    browser.shows("[aria-sort=ascending] .sort[data-sort=text]")
    browser.shows("#memories[data-ready=true] .row")
    texts = browser.all("#memories .c-text .line")
    assert len(texts) > 2
    assert texts == sorted(texts)
    browser.go(f"#/agent/{AGENT}?t=40&sort=-uses&tier=normal&temperature=warm")
    chosen = [own for own in memories if own.tier == 3 and own.temperature.name == "WARM"]
    browser.shows(f"#memories[data-ready=true][data-total='{len(chosen)}'] .row")
    chosen.sort(key=lambda own: (own.access_count, own.sequence), reverse=True)
    rows = [f"#memories .row[aria-rowindex='{place}']" for place in (1, 2, 3)]
    shown = [browser.attribute(row, "data-id") for row in rows]
    assert shown == [own.id for own in chosen[:3]]
    browser.write("#search", "cloth\n")
    browser.shows(".frame[data-view=search] #results[data-ready=true] .row", "cloth")


@pytest.mark.slow
def test_a_click_on_the_map_opens_the_agent_in_that_tick(browser: Browser, page: str) -> None:
    browser.open(page, "#/overview?t=5&heat=memories")
    browser.shows("#heat")
    until("it is drawn", lambda: browser.run("return document.querySelector('#heat').width") > 300)
    browser.run(
        "const map = document.querySelector('#heat'); const box = map.getBoundingClientRect();"
        "map.dispatchEvent(new MouseEvent('click', {bubbles: true,"
        " clientX: box.left + box.width * 20.5 / 41, clientY: box.top + 5}))"
    )
    browser.shows(".frame[data-view=agent] .view-head", "in tick 20")
    assert browser.hash.startswith("#/agent/agent_00")


@pytest.mark.slow
def test_a_branch_is_written_as_a_command_with_its_edits(
    browser: Browser, page: str, market: Path
) -> None:
    browser.open(page, f"#/branch/{AGENT}?t=20")
    browser.write("#new-memory", "NEVER trade with agent_02\n")
    browser.shows("#edits", "NEVER trade with agent_02")
    browser.shows("#edits-file", "NEVER trade with agent_02")
    browser.shows("#command", "--at 20")
    browser.click(".editable .delete")
    browser.shows("#edits-file", "delete")


@pytest.mark.slow
def test_edits_are_kept_at_their_tick_while_the_cursor_is_elsewhere(
    browser: Browser, page: str
) -> None:
    browser.open(page, f"#/branch/{AGENT}?t=20")
    browser.write("#new-memory", "NEVER trade with agent_02\n")
    browser.shows("#edits", "NEVER trade with agent_02")
    browser.press(ARROW_RIGHT)
    browser.shows("#elsewhere", "The changes after tick 20 are kept there")
    assert browser.all("#edits li") == []
    browser.shows("#command", "--at 21")
    assert browser.all("#edits-file") == []
    browser.click("#elsewhere .tick-link")
    browser.shows("#edits", "NEVER trade with agent_02")
    browser.shows("#edits-file", "NEVER trade with agent_02")
    assert browser.tick == 20
    assert browser.all("#elsewhere") == []


@pytest.mark.slow
def test_a_memory_is_pinned_and_put_into_another_tier_by_its_field(
    browser: Browser, page: str, site: Inspection
) -> None:
    rows = ask(site, "memories", agent=AGENT, tick=20)["rows"]
    one, other = [row["id"] for row in rows if row["tier"] == "normal"][:2]
    browser.open(page, f"#/branch/{AGENT}?t=20")
    browser.choose(f".editable li[data-id='{one}'] select", "pinned")
    browser.choose(f".editable li[data-id='{other}'] select", "low")
    browser.shows("#edits-file", other)
    edits = yaml.safe_load(browser.all("#edits-file")[0])
    assert edits == [
        {"agent": AGENT, "do": "pin", "memory": one},
        {"agent": AGENT, "do": "set_tier", "memory": other, "tier": "low"},
    ]
    browser.choose(f".editable li[data-id='{one}'] select", "critical")
    browser.shows("#edits", "set_tier critical")
    assert len(browser.all("#edits li")) == 2


@pytest.mark.long
def test_every_view_fits_a_larger_window(browser: Browser, page: str, market: Path) -> None:
    device = {"width": 1920, "height": 1080, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        for view in (*VIEWS, f"memory/{_a_memory(market)}"):
            browser.open(page, f"#/{view}?t=20")
            browser.shows(f"main :is({VIEWS[view.partition('/')[0]]})")
            assert browser.run("return innerWidth") == 1920
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
def test_every_view_fits_a_narrow_window(browser: Browser, page: str, market: Path) -> None:
    device = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        for view in (*VIEWS, f"memory/{_a_memory(market)}", f"agent/{AGENT}"):
            browser.open(page, f"#/{view}?t=20")
            browser.shows(f"main :is({VIEWS[view.partition('/')[0]]})")
            assert browser.run("return innerWidth") == 400, view
            assert browser.run("return document.documentElement.scrollWidth") == 400, view
        browser.shows(".decision[data-agent=agent_01] [data-part=given] .memory")
        rows = browser.run(_GIVEN_TO_READ)
        assert rows
        assert all(width > 250 and shown for width, shown in rows), rows
        browser.press("?")
        browser.shows("dialog", "Keys")
        assert browser.run("return document.documentElement.scrollWidth") == 400
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


_GIVEN_TO_READ = """
return [...document.querySelectorAll(".decision [data-part=given] .memory")].map((one) => {
  const own = one.getBoundingClientRect();
  const boxes = [];
  for (let box = one.parentElement; box !== document.body; box = box.parentElement) boxes.push(box);
  const inside = (box) => {
    const room = box.getBoundingClientRect();
    return own.left >= room.left && own.right <= room.right + 1 && own.bottom <= room.bottom + 1;
  };
  const cuts = boxes.filter((box) => getComputedStyle(box).overflowY !== "visible");
  return [own.width, cuts.every(inside)];
});
"""
"""The width of each memory that the agent was given, and whether no box hides a part of it."""


@pytest.mark.slow
def test_light_and_dark_and_keys_for_help(browser: Browser, page: str) -> None:
    browser.open(page)
    shown = {}
    for scheme in ("light", "dark"):
        browser.click("#scheme")
        browser.shows(f":root[data-scheme={scheme}]")
        shown[scheme] = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert shown["light"] != shown["dark"]
    browser.click("#scheme")
    browser.press("?")
    browser.shows("dialog", "Keys")
    browser.press("2")
    browser.shows(".frame[data-view=agent]")
