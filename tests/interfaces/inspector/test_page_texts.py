"""The page over hostile texts: they are shown as texts, do nothing, and reorder nothing."""

import shutil
from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import looked_at, make_run

from agents import MemoryBank
from agents.interfaces.inspector.export import write_export
from waiting import until

pytestmark = pytest.mark.slow

AGENT = "agent_01"
REORDERED = "pay \u202edrawkcab\u202c \u2066now\u2069"
HOSTILE = (
    "<img src=x onerror='window.harmed = 1'>",
    "<script>window.harmed = 1</script>",
    "</script><svg onload='window.harmed = 1'>",
    REORDERED,
    "bell \x07 and escape \x1b[31m and a tab\t",
    "javascript:window.harmed=1",
    "${window.harmed = 1} {{harmed}} %3Cimg%3E &lt;b&gt;",
)


def test_hostile_texts_are_shown_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    options = {"storage": {"sync": "manual"}, "memory": {"max_content_bytes": 200_000}}
    with MemoryBank.open(tmp_path / "bank", **options) as bank:
        alice = bank.agent("alice")
        for text in HOSTILE:
            alice.add(text, "pinned" if "img src" in text else "normal")
        long = alice.add("x" * 100_000)
        bank.agent("bob").add(HOSTILE[0], metadata={"speaker": "<b>alice</b>"})
        for name in ("bob", "carol"):
            bank.agent(name).add(REORDERED, metadata={"speaker": "dave\u202e"})
        bank.advance(1)
    with served(tmp_path / "bank") as address:
        browser.open(address, "#/agent/alice")
        browser.shows("#memories[data-ready=true][data-total='8'] .row", HOSTILE[0])
        browser.shows("#memories .row", HOSTILE[1])
        browser.shows("#memories .mark", "RLO")
        browser.shows("#memories .mark", "U+0007")
        browser.go(f"#/memory/{long.id}")
        browser.shows("#memory-text", "x" * 4000)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        browser.click("#memory-text button")
        browser.shows("#memory-text", "x" * 100_000)
        for view in ("overview", "population", "search?q=harmed", "search?q=%3Cimg"):
            browser.go(f"#/{view}")
            browser.shows(f".frame[data-view={view.split('?')[0]}] main :not(.waiting)")
        browser.shows("#results .row", HOSTILE[0])
        browser.go("#/population")
        browser.shows(".circle text", "dave‹RLO›")
        browser.shows(".circle title", "dave‹RLO› told bob")
        assert (
            browser.attribute("#beliefs button", "title") == "pay ‹RLO›drawkcab‹PDF› ‹LRI›now‹PDI›"
        )
        assert "\u202e" not in browser.run(_SEEN)
        assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
        assert browser.run("return window.harmed ?? null") is None
        assert browser.complaints() == []


_SEEN = """
const titles = [...document.querySelectorAll("[title]")].map((one) => one.title);
return [document.title, document.body.textContent, ...titles].join("\\n");
"""
"""All that the page shows, also under the pointer."""


def test_a_hostile_text_reorders_no_command_and_no_file(
    browser: Browser, rumor: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(rumor, tmp_path / "run\u202e")
    with looked_at(folder) as site:
        write_export(site, tmp_path / "run.html")
    with served(folder) as address:
        for where in (address, (tmp_path / "run.html").as_uri()):
            browser.open(where, f"#/branch/{AGENT}?t=6")
            browser.run(_COPIES)
            browser.write("#new-memory", f"{REORDERED}\n")
            browser.shows("#command .mark", "RLO")
            browser.shows("#edits-file .mark", "RLO")
            assert "\u202e" not in browser.run(_SEEN)
            browser.click("#edits-file + .copy")
            until("it is copied", lambda: browser.run("return window.copied ?? null"))
            assert REORDERED in browser.run("return window.copied")
            assert browser.complaints() == []


_COPIES = "navigator.clipboard.writeText = async (text) => void (window.copied = text)"


_NAMES = """
from tiermem.simulation import Action, Observation

class Names:
    tick = 0
    def setup(self, rng, agent_ids):
        pass
    def observe(self, agent_id):
        return Observation(f"Day {self.tick} \\u3164.", facts={"fact\\u202e": 1})
    def apply(self, agent_id, action):
        return ""
    def end_tick(self):
        self.tick += 1
    def metrics(self):
        return {"metric\\u202e": float(self.tick)}
    def get_state(self):
        return self.tick
    def set_state(self, state):
        self.tick = state

class Walks:
    def decide(self, observation, memories, rng):
        return [Action("walk", {"way\\u202e": "north"})]
"""


def test_hostile_names_of_metrics_facts_and_arguments_are_shown(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostile_names.py").write_text(_NAMES)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = make_run(tmp_path / "run", "hostile_names:Names", 3, policy="hostile_names:Walks")
    with served(folder) as address:
        browser.open(address, "#/overview?t=3")
        browser.shows(".strip .mark", "RLO")
        browser.shows("#heat-of")
        assert "\u202e" not in browser.run(_SEEN)
        browser.go("#/agent/agent_00?t=3")
        browser.shows("[data-part=facts] .mark", "RLO")
        browser.shows("[data-part=did] .mark", "RLO")
        browser.shows("#memories .mark", "U+3164")
        assert "\u202e" not in browser.run(_SEEN)
        assert browser.complaints() == []
