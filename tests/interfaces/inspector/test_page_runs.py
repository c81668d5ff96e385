"""The page over runs that go on, are compared, exported or damaged."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import SIMULATIONS, ask, looked_at, make_run

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.interfaces.inspector.export import write_export
from agents.simulation.runs.branch import branch
from agents.simulation.runs.compare import compare_runs
from agents.simulation.runs.placement import LOCAL
from agents.simulation.runs.record import past_bank
from agents.simulation.runs.run import Run
from agents.simulation.sweeps.run_sweep import run_all, write_results
from agents.simulation.sweeps.sweep import read_sweep
from asking import asker
from openai_server import OpenAIServer
from waiting import until

AGENT = "agent_01"
ARROW_RIGHT, ENTER, SHIFT = "\ue014", "\ue007", "\ue008"


@pytest.mark.long
def test_a_long_table_draws_the_rows_in_sight(browser: Browser, tmp_path: Path) -> None:
    count = 50_000
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add_many([f"memory number {number}" for number in range(count)])
        bank.advance(1)
    with served(tmp_path / "bank") as address:
        browser.open(address, "#/agent/alice?sort=created")
        browser.shows(f"#memories[data-ready=true][data-total='{count}'] .row")
        browser.run(_WATCH)
        for share in (0.001, 0.1, 0.5, 0.98, 0.3):
            row = int(share * count)
            browser.run(f"document.querySelector('#memories').scrollTop = {row * 26}")
            browser.shows("#memories .row", f"memory number {row}")
        browser.run("document.querySelector('#memories').scrollTop = 1e9")
        browser.shows("#memories .row", f"memory number {count - 1}")
        assert browser.run("return window.most") < 100
        assert len(browser.all("#memories *")) < 2_000


@pytest.mark.slow
def test_the_events_of_a_tick_are_shown_page_by_page(browser: Browser, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        bank.agent("alice").add_many([f"memory number {number}" for number in range(450)])
        bank.advance(1)
        memory = bank.agent("alice").add("a memory of the next tick")
        bank.agent("alice").set_tier(memory.id, "critical")
        bank.advance(1)
    with looked_at(tmp_path / "bank") as site:
        write_export(site, tmp_path / "bank.html")
    with served(tmp_path / "bank") as address:
        for where in (address, (tmp_path / "bank.html").as_uri()):
            browser.open(where, "#/overview?t=0")
            browser.shows("#in-this-tick .events li", "memory number 0")
            assert len(browser.all("#in-this-tick .events li")) == 200
            browser.shows("#in-this-tick label", "of 450")
            browser.choose("#events-from", "400")
            browser.shows("#in-this-tick .events li", "memory number 449")
            assert len(browser.all("#in-this-tick .events li")) == 50
            browser.go("#/overview?t=1")
            browser.shows("#in-this-tick .events li", "a memory of the next tick")
            browser.shows("#in-this-tick .detail", "critical now, by a call or an action")
            assert browser.all("#events-from") == []
            assert browser.complaints() == []


_WATCH = """
const table = document.querySelector("#memories");
window.most = 0;
const count = () => {
  window.most = Math.max(window.most, table.querySelectorAll(".row").length);
};
new MutationObserver(count).observe(table, { childList: true, subtree: true });
"""
"""Counts the rows after each change of the table."""


def test_the_line_of_a_life_goes_on_where_a_memory_is_active_again(
    browser: Browser, tmp_path: Path
) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        bank.advance(1)
        memory = alice.add("the mill burns")
        for tick, act in (
            (3, asker(alice, "archive")),
            (5, asker(alice, "restore")),
            (7, alice.delete),
        ):
            bank.advance(tick)
            act(memory.id)
        bank.advance(9)
    with served(tmp_path / "bank") as address:
        browser.open(address, f"#/memory/{memory.id}")
        browser.shows("#life", "active again")
        ends = browser.run(
            "return [...document.querySelectorAll('.life-line .alive')]"
            ".map((one) => [one.dataset.from, one.dataset.until].map(Number))"
        )
        assert ends == [[1, 3], [5, 7]]


@pytest.mark.slow
def test_an_unfinished_run_is_followed(browser: Browser, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "market", 4)
    text = (folder / "config.yaml").read_text().replace("ticks: 4", "ticks: 12")
    (folder / "config.yaml").write_text(text)
    with Run.open(folder) as run, served(folder) as address:
        browser.open(address)
        browser.shows("#live", "following")
        assert browser.tick == 4
        ticks = run.advance(12)
        next(ticks)
        until("the page is at tick 5", lambda: browser.tick == 5)
        browser.shows("#in-this-tick h2", "In tick 5")
        browser.write("#tick", "2\n")
        until("the reader is at tick 2", lambda: browser.tick == 2)
        for _ in ticks:
            pass
        browser.shows(".tick-field", "of 12")
        assert browser.tick == 2
        until("the run is finished", lambda: browser.all("#live") == [])


@pytest.mark.slow
def test_a_bank_is_followed_while_its_tick_stands_still(browser: Browser, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        alice = bank.agent("alice")
        alice.add("the first boat")
        with served(tmp_path / "bank") as address:
            browser.open(address, "#/agent/alice")
            browser.shows("#memories[data-ready=true][data-total='1'] .row", "the first boat")
            alice.add("the second boat")
            browser.shows("#memories[data-ready=true][data-total='2'] .row", "the second boat")


@pytest.mark.slow
def test_edits_stay_while_an_unfinished_run_goes_on(browser: Browser, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "market", 4)
    text = (folder / "config.yaml").read_text().replace("ticks: 4", "ticks: 12")
    (folder / "config.yaml").write_text(text)
    with Run.open(folder) as run, served(folder) as address:
        browser.open(address, f"#/branch/{AGENT}")
        browser.shows("#live", "following")
        browser.write("#new-memory", "NEVER trade\n")
        browser.shows("#edits", "NEVER trade")
        next(run.advance(12))
        browser.shows(".tick-field", "of 5")
        browser.shows("#command", "--at 4")
        assert "NEVER trade" in browser.all("#edits")[0]
        assert browser.tick == 4


@pytest.mark.slow
def test_an_exported_file_has_the_same_views(browser: Browser, rumor: Path, tmp_path: Path) -> None:
    with looked_at(rumor) as site:
        write_export(site, tmp_path / "run.html")
    file = (tmp_path / "run.html").as_uri()
    seen: list[dict[str, list[object]]] = []
    with served(rumor) as address:
        for where in (address, file):
            shown: dict[str, list[object]] = {}
            browser.open(where, "#/overview?t=7")
            browser.shows("#heat")
            browser.shows("#in-this-tick .events li")
            shown["overview"] = browser.values(".num")
            browser.go(f"#/agent/{AGENT}?t=7")
            browser.shows(".decision[data-tick='7']")
            browser.shows("#memories[data-ready=true] .row")
            shown["agent"] = [*browser.values(".num"), *browser.all("main .line")]
            browser.go("#/population?t=7")
            browser.shows(".population[data-tick='7']")
            shown["population"] = [*browser.values(".num"), *browser.all(".circle title")]
            browser.click("#beliefs button")
            browser.go("#/search?q=herald")
            browser.shows("#results[data-ready=true] .row", "herald")
            browser.click("#results a.memory")
            browser.shows("#memory-text", "herald")
            browser.go(f"#/branch/{AGENT}?t=7")
            browser.shows("#command", "--at 7")
            seen.append(shown)
    assert seen[0] == seen[1]
    browser.go(f"#/agent/{AGENT}?t=7&tab=why-not")
    browser.shows("#explained td")
    browser.write("#why-not", "something else\n")
    browser.shows(".failed", "needs the server")
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []


@pytest.mark.slow
@pytest.mark.long_after(1)
@pytest.mark.parametrize("tick", [12, 6])
def test_the_population_shows_who_brought_a_belief_to_whom(
    browser: Browser, rumor: Path, tmp_path: Path, tick: int
) -> None:
    with looked_at(rumor) as site:
        write_export(site, tmp_path / "run.html")
    study = analysis.study(rumor, tick)
    spread = study.spread(study.spreads()["origin"][0].as_py())
    tellers = [name for name in spread.table["teller"].to_pylist() if name]
    agents = [line.split(",")[0].strip() for line in spread.lines()]
    chosen = f"#beliefs li[data-origin='{spread.origin}']"
    with served(rumor) as address:
        for page in (address, (tmp_path / "run.html").as_uri()):
            browser.open(page, f"#/population?t={tick}")
            browser.shows(f".population[data-tick='{tick}'] .circle")
            assert len(browser.all(".thread")) == study.tells().num_rows
            browser.shows(chosen, spread.text)
            browser.click(f"{chosen} button")
            browser.shows(f"{chosen} .figures", f"{spread.holders} held it")
            until("the address has it", lambda: spread.origin in browser.hash)
            assert len(browser.all(".thread")) == len(tellers)
            assert browser.all("#tree li .agent:nth-of-type(1)") == agents
            browser.click("#tree li a.memory")
            browser.shows("#memory-text", spread.text)
            assert browser.complaints() == []


@pytest.mark.slow
def test_what_agents_have_in_common_is_shown_page_by_page(browser: Browser, tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        for number in range(130):
            bank.agent(f"agent_{number:03}").add(f"belief {number % 4}")
        bank.advance(1)
    with looked_at(tmp_path / "bank") as site:
        write_export(site, tmp_path / "bank.html")
    with served(tmp_path / "bank") as address:
        browser.open(address, "#/population")
        browser.shows("#overlap[data-first=agent_000][data-agents='60']")
        circle = browser.all(".circle title")
        browser.choose("#overlap-from", "120")
        browser.shows("#overlap[data-first=agent_120][data-agents='10']")
        until("the address has it", lambda: "from=120" in browser.hash)
        assert browser.all(".circle title") == circle
        browser.choose("#overlap-from", "0")
        browser.shows("#overlap[data-first=agent_000]")
    browser.open((tmp_path / "bank.html").as_uri(), "#/population?from=120")
    browser.shows(".overlap .note", "the first 60 of 130 agents")
    browser.shows("#overlap[data-first=agent_000][data-agents='60']")
    assert browser.complaints() == []


@pytest.mark.slow
def test_agents_of_the_circle_are_chosen_and_opened_by_keys(browser: Browser, rumor: Path) -> None:
    with served(rumor) as address:
        browser.open(address, "#/population?t=12")
        node = f".circle .node[data-agent={AGENT}]"
        browser.shows(node)
        browser.run(f"document.querySelector('{node}').focus()")
        browser.driver.switch_to.active_element.send_keys(ENTER)
        browser.shows(f"{node}.chosen[aria-pressed=true]")
        browser.shows("#told h2", f"Told by or to {AGENT}")
        browser.driver.switch_to.active_element.send_keys(ENTER)
        browser.shows(f"{node}:not(.chosen)")
        browser.driver.switch_to.active_element.send_keys(SHIFT + ENTER)
        browser.shows(".frame[data-view=agent] .decision")
        assert browser.hash.startswith(f"#/agent/{AGENT}")
        assert browser.complaints() == []


@pytest.mark.slow
def test_an_exported_file_refuses_scripts_that_somebody_adds(
    browser: Browser, rumor: Path, tmp_path: Path
) -> None:
    with looked_at(rumor) as site:
        write_export(site, tmp_path / "run.html")
    added = (
        "<script>window.bad = 1</script>"
        "<script type=module src='data:text/javascript,window.bad = 2'></script>"
        "<img src=x onerror='window.bad = 3'><style>body { display: none }</style>"
    )
    text = (tmp_path / "run.html").read_text().replace("</body>", f"{added}</body>")
    (tmp_path / "run.html").write_text(text)
    browser.open((tmp_path / "run.html").as_uri(), "#/overview?t=7")
    browser.shows("#in-this-tick .events li")
    assert browser.run("return window.bad ?? null") is None
    assert browser.run("return getComputedStyle(document.body).display") != "none"
    refused = [each for each in browser.complaints() if "Content Security Policy" in each]
    assert len(refused) >= 4


@pytest.mark.slow
def test_a_damaged_run_says_so(browser: Browser, market: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(market, folder)
    database = sqlite3.connect(folder / "bank" / "journal.db")
    with database:
        database.execute(
            "UPDATE commits SET events = replace(events, 'offers', 'offerz') WHERE tick = 20"
        )
    database.close()
    with served(folder) as address:
        browser.open(address, f"#/agent/{AGENT}?t=10")
        browser.shows(".damaged", "is not what was written")
        with past_bank(market, 10) as bank:
            count = bank.agent(AGENT).count()
        browser.shows(f"#memories[data-ready=true][data-total='{count}']")
        browser.go(f"#/agent/{AGENT}?t=25")
        browser.shows(".failed", "damaged")


@pytest.mark.slow
def test_two_runs_are_compared_from_where_they_part(
    browser: Browser, market: Path, tmp_path: Path
) -> None:
    edit = {"agent": AGENT, "do": "add", "content": "NEVER accept anything", "tier": "pinned"}
    branch(market, 20, tmp_path / "what-if", edits=[edit])
    with Run.open(tmp_path / "what-if") as run:
        for _ in run.advance(40):
            pass
    found = compare_runs(market, tmp_path / "what-if")
    with served(market, tmp_path / "what-if") as address:
        browser.open(address, f"#/compare/{AGENT}?t=30")
        browser.shows("#parted")
        assert browser.attribute("#parted", "data-tick") == str(found.parted)
        browser.shows("[data-side='1'] .decision[data-tick='30']")
        browser.click("#parted .tick-link")
        until("the cursor is there", lambda: browser.tick == found.parted)
        browser.press(ARROW_RIGHT)
        browser.shows(".view-head h1", f"in tick {found.parted + 1}")
        for side in (0, 1):
            browser.shows(f"[data-side='{side}'] .decision[data-tick='{found.parted + 1}']")
        browser.click(".runs .run-1")
        browser.shows(".frame")
        browser.go(f"#/agent/{AGENT}?t=30&run=1&tier=pinned")
        browser.shows("#memories .row", "NEVER accept anything")
        assert browser.complaints() == []


@pytest.mark.slow
def test_the_page_runs_a_branch_and_compares(browser: Browser, rumor: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(rumor, folder)
    with served(folder, allow_branch=True) as address:
        browser.open(address, f"#/branch/{AGENT}?t=6")
        browser.write("#new-memory", "The mill is closed\n")
        browser.shows("#edits-file", "The mill is closed")
        browser.click("#run-branch")
        browser.shows(".frame[data-view=compare] #parted")
        browser.shows("[data-side='1'] .only", "The mill is closed")


@pytest.mark.slow
def test_the_page_asks_an_agent_what_it_thinks(browser: Browser, tmp_path: Path) -> None:
    with OpenAIServer(lambda _: '{"answer": "the <b>mill</b> burns"}') as model:
        llm = {"base_url": model.url, "model": "m"}
        simulation = {"world": "market", "agents": 5, "ticks": 3}
        settings = load_settings(
            {"storage": {"sync": "manual"}, "llm": llm, "simulation": simulation}
        )
        with Run.create(tmp_path / "run", settings) as run:
            list(run.advance(3))
        with served(tmp_path / "run", allow_ask=True) as address:
            browser.open(address, "#/agent/agent_00?t=2")
            browser.write("#question", "What worries you?\n")
            browser.shows(".panel.ask", "the <b>mill</b> burns")
            browser.shows("#answer-cost", "1 call: about ")
            assert browser.all("[data-tab=costs]") == []  # none was asked when the page was opened
            browser.open(address, "#/costs?t=2")
            browser.shows("#costs-by-kind [data-of=interview]", "interview")
            browser.shows(".strip[data-strip=tokens] canvas")
            assert browser.complaints() == []
    ((_, body),) = model.requests
    assert "It is after tick 2. The question:\nWhat worries you?" in body["messages"][-1]["content"]


@pytest.mark.slow
def test_an_exported_file_says_what_a_model_cost(browser: Browser, tmp_path: Path) -> None:
    with looked_at(SIMULATIONS / "recorded" / "market_llm") as site:
        write_export(site, tmp_path / "run.html")
    browser.open((tmp_path / "run.html").as_uri(), "#/costs?t=3")
    browser.shows("#costs-all", "24 calls")
    browser.click("#costs-by-agent a")
    browser.shows(".frame[data-view=agent]")
    assert browser.complaints() == []


@pytest.mark.slow
def test_a_sweep_is_a_grid_that_leads_to_its_runs_and_back(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "market.yaml").write_text(
        "storage: {sync: manual}\nsimulation: {world: market, agents: 5, ticks: 4}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "scenario: market.yaml\nseeds: 2\ngrid: {memory.max_pinned: [1, 3]}\n"
    )
    plan, folder = read_sweep(tmp_path / "sweep.yaml"), tmp_path / "swept"
    cells = run_all(plan, folder, LOCAL, force=False, keep_runs=True)
    done = {cell.name: result for cell, result in cells if not isinstance(result, str)}
    results = write_results(plan, folder, done)
    means = [row["mean"] for row in results.statistics if row["metric"] == "loss"]
    with served(folder) as address:
        browser.open(address, "#/sweep?metric=loss")
        browser.shows("#grid")
        assert browser.values("#grid .num") == pytest.approx(means)
        browser.press("?")
        browser.shows("dialog", "Keys")
        browser.press("?")
        browser.press(ARROW_RIGHT, "b", " ")
        browser.go("#/nothing?metric=loss")
        browser.press("1")
        until("the sweep", lambda: browser.hash == "#/sweep")
        assert browser.all("dialog, .failed") == []
        browser.click("#grid .cell-button")
        browser.click("#runs .tick-link")
        browser.shows(".frame[data-view=overview] #heat")
        assert browser.tick == 4
        name = browser.all(".brand b")[0]
        assert f"cell={name}" in browser.hash.replace("%3D", "=")
        browser.click("nav a[data-tab=agent]")
        browser.shows("#memories[data-ready=true] .row")
        link = browser.hash
        browser.driver.back()
        browser.shows(".frame[data-view=overview] #heat")
        browser.driver.back()
        browser.shows(".frame[data-view=sweep] #grid")
        browser.driver.forward()
        browser.shows(".frame[data-view=overview] #heat")
        browser.click("#to-sweep")
        browser.shows(".frame[data-view=sweep] #grid")
        browser.open(address, link)
        browser.shows(".frame[data-view=agent] #memories[data-ready=true] .row")
        assert browser.all(".brand b") == [name]
        other = next(each for each in done if each != name)
        browser.go(f"#/overview?cell={other}")
        browser.shows(".brand b", other)
        browser.shows(".frame[data-view=overview] #heat")
        browser.open(address, "#/sweep")
        browser.shows(".frame[data-view=sweep] #grid")
        assert browser.complaints() == []
        browser.go("#/overview?cell=nothing")
        browser.shows(".failed", "the sweep has no run 'nothing'")
        browser.driver.back()
        browser.shows(".frame[data-view=sweep] #grid")


@pytest.mark.slow
def test_agents_of_the_population_have_the_colours_of_a_number_in_the_tick(
    browser: Browser, small_world: Path, tmp_path: Path
) -> None:
    with looked_at(small_world) as site:
        found = {
            (of, tick): ask(site, "numbers", of=of, tick=tick)
            for of in ("accuracy", "pinned or critical")
            for tick in (4, 12)
        }
        write_export(site, tmp_path / "run.html")
    fills = "return [...document.querySelectorAll('.node circle')].map((one) => one.style.fill)"
    with served(small_world) as address:
        for page in (address, (tmp_path / "run.html").as_uri()):
            browser.open(page, "#/population?t=12")
            browser.shows(".circle .node")
            assert set(browser.run(fills)) == {""}
            browser.click("#beliefs li button")
            browser.shows(".colours .holds", "holds the belief")
            browser.click("#beliefs li button")
            for (of, tick), given in found.items():
                browser.choose("#colour-by", of)
                browser.choose("#tick", str(tick))
                browser.shows(f".colours[data-of='{of}'][data-tick='{tick}']")
                said = browser.all(".node title")
                colours = browser.run(fills)
                for agent, value, title, colour in zip(
                    given["agents"], given["values"], said, colours, strict=True
                ):
                    shown = "–" if value is None else f"{value:.4g}"
                    assert title.startswith(f"{agent}, {of} {shown} in tick {tick}:")
                    ends = {given["low"]: "rgb(0, 34, 78)", given["high"]: "rgb(254, 232, 56)"}
                    assert value in ends or value is None or colour not in ends.values()
                    assert colour == ends.get(value, "" if value is None else colour)
                scale = [f"{given[end]:.4g}" for end in ("low", "high")]
                assert browser.all(".colours .heat-scale > span:not(.ramp, .soft)") == scale
            browser.click("#colour-range")
            known = [value for value in given["values"] if value is not None]
            browser.shows(".colours .heat-scale", f"{max(known):.4g}")
            until("the address has it", lambda: "range=tick" in browser.hash)
            lightest = browser.run(fills)[given["values"].index(max(known))]
            assert lightest == "rgb(254, 232, 56)"
            browser.choose("#colour-by", "")
            browser.shows(".colours", "Choose a belief")
            assert set(browser.run(fills)) == {""}
            assert browser.complaints() == []
