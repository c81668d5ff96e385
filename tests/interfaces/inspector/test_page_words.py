"""The words of the page: each says what it means, and the help lists all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import ask

from agents.interfaces.inspector.inspected import COUNTED
from agents.interfaces.inspector.inspection import Inspection
from agents.memory.tiers import TEMPERATURE_NAMES, TIER_NAMES
from agents.search import explain
from agents.simulation.runs.record import past_bank

pytestmark = pytest.mark.slow

AGENT = "agent_01"
LATER = ("flushes", "flush_failures", "reflections", "insights")
"""Counts that only a run with flushes or reflections has."""


@pytest.fixture(scope="module")
def page(market: Path, browser: Browser) -> Iterator[str]:
    with served(market) as address:
        yield address


def test_the_help_has_every_word_that_the_page_counts_or_gives_as_a_reason(
    browser: Browser, page: str, site: Inspection
) -> None:
    counts = ask(site, "tick", tick=12)["counts"]
    memory = ask(site, "memories", agent=AGENT, tick=12)["rows"][0]
    told = {"id", "text", "kind", "created", "tags", "metadata"}
    reasons = {explain.OVER_BUDGET, explain.BELOW, "over the limits of hot", "filtered", "expired"}
    wanted = {*counts, *LATER, *COUNTED, *(memory.keys() - told), *reasons}
    wanted |= {*TIER_NAMES.values(), *TEMPERATURE_NAMES.values(), "candidates", "score", "boost"}
    browser.open(page)
    browser.press("?")
    browser.shows("#glossary dt")
    assert {name.replace("_", " ") for name in wanted} <= {*browser.all("#glossary dt")}
    assert all(browser.all("#glossary dd"))
    assert browser.run("return document.activeElement.localName") == "dialog"


def test_words_say_what_they_mean_where_they_stand(
    browser: Browser, page: str, market: Path
) -> None:
    browser.open(page, "#/overview?t=20")
    browser.shows("[data-count=hit_rate] .word", "hit rate")
    assert "temperature.min_score" in str(browser.attribute("[data-count=hit_rate] .word", "title"))
    browser.go(f"#/agent/{AGENT}?t=20")
    browser.shows("[data-part=given] th .word", "boost")
    browser.shows("[data-part=given] p .word", "candidates")
    titles = browser.run(
        "return [...document.querySelectorAll('.word')].map((one) => one.title || one.textContent)"
    )
    assert [title for title in titles if len(title) < 20] == []
    browser.go(f"#/agent/{AGENT}?t=20&tab=why-not")
    browser.shows("#explained .reason .word", "below the cut")
    assert browser.complaints() == []


def test_decisions_that_are_no_uses_are_explained(
    browser: Browser, page: str, market: Path
) -> None:
    with past_bank(market, 40) as bank:
        pinned = next(memory for memory in bank.agent(AGENT).all() if memory.tier == 0)
    assert pinned.access_count == 0
    browser.open(page, f"#/memory/{pinned.id}?t=40")
    browser.shows("[data-fact=uses] .num", "0")
    browser.shows("#no-uses", "because it is pinned or hot is no use")
    shown = len(browser.all("#decisions tbody tr"))
    browser.shows("#no-uses", f"{shown} decisions, and 0 uses")
