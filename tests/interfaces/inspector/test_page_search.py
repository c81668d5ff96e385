"""A search finds memories, and what agents asked and did; an export finds what the server finds."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at

from agents import MemoryBank
from agents.interfaces.inspector import page_files, run_view
from agents.interfaces.inspector.export import exported
from agents.interfaces.inspector.inspection import Inspection
from agents.interfaces.inspector.parameters import WrongParameter
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.why import RESULTS
from agents.simulation.tick.decision_log import unpack
from waiting import until

AGENTS = [f"agent_{number:02}" for number in range(5)]

_SCRIPT = """
import { readFileSync } from "node:fs";
import { openEmbedded } from "#embedded";
const provider = await openEmbedded(readFileSync("data.txt", "utf8"));
const found = [];
for (const [q, of] of JSON.parse(process.argv[2])) {
  found.push(await provider.get("search", { run: 0, q, of }));
}
console.log(JSON.stringify(found));
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_an_export_finds_words_agents_and_ids_as_the_server_does(
    rumor: Path, tmp_path: Path
) -> None:
    with looked_at(rumor) as site:
        memory = ask(site, "memories", agent="agent_02", tick=12)["rows"][3]
        first, *_, last = memory["text"].split()
        texts = [f"{last} {first.upper()}", memory["id"], "AGENT_03", "zz top", "", '" OR *']
        queries = [*((each, "") for each in texts), ("TELL agent_01", "decisions"), ("e", "agents")]
        expected = [ask(site, "search", q=each, of=of) for each, of in queries]
        file = exported(site).decode()
    _finds_the_same(file, queries, expected, tmp_path)
    is_found = [True, True, True, False, False, False, True, True]
    assert [each["total"] > 0 for each in expected] == is_found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_short_words_of_any_alphabet_are_found_in_either_case(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        for text in ("Ärger im Hafen", "ÉTÉ à Óbidos", "Ωμέγα και άλφα", "plain words"):
            bank.agent("emile").add(text)
    queries = [
        (each, "memories")
        for each in ("är", "ÄR", "ä", "été", "É", "ω", "ΩΜ", "ήα", "im är", "PL", "ärger", "ö")
    ]
    with looked_at(tmp_path / "bank") as site:
        expected = [ask(site, "search", q=each, of=of) for each, of in queries]
        file = exported(site).decode()
    _finds_the_same(file, queries, expected, tmp_path)
    assert [each["total"] for each in expected] == [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0]


def _finds_the_same(
    file: str, queries: list[tuple[str, str]], expected: list[Any], tmp_path: Path
) -> None:
    """Check that the page in an export finds what the server found."""
    data = re.search(r'id="inspector-data">(.*?)</script>', file, re.DOTALL)
    assert data is not None
    (tmp_path / "data.txt").write_text(data[1])
    names = ("embedded", "lists", "refused")
    for name in names:
        found = page_files.page_file(f"{name}.js")
        assert found is not None
        (tmp_path / f"{name}.js").write_bytes(found.data)
    modules = {f"#{name}": f"./{name}.js" for name in names}
    package = {"type": "module", "imports": modules}
    (tmp_path / "package.json").write_text(json.dumps(package))
    (tmp_path / "asking.js").write_text(_SCRIPT)
    command = ["node", "asking.js", json.dumps(queries)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for query, own, found in zip(queries, expected, json.loads(done.stdout), strict=True):
        assert found["total"] == own["total"], query
        key = ["what", "agent", "tick", "memory_id", "text"]
        rows = [
            sorted([str(row[name]) for name in key] for row in each["rows"])
            for each in (own, found)
        ]
        assert rows[0] == rows[1], query


def _deeds(folder: Path, last: int) -> list[tuple[int, str, str, str]]:
    """What the journal has of what agents asked and did: tick, agent, what and text."""
    found = []
    with MemoryBank.at(folder / "bank") as bank:
        for tick in range(1, last + 1):
            data, row = ticks_of(bank).log(tick), ticks_of(bank).tick(tick)
            assert data is not None
            assert row is not None
            for agent, kept in zip(AGENTS, unpack(data, row.retrieved, AGENTS), strict=True):
                texts = [] if kept.query is None else [("query", kept.query)]
                texts += [("asked", each[0]) for each in kept.asked]
                for place, (name, arguments, result, _) in enumerate(kept.did):
                    words = f"{name} {orjson.dumps(arguments).decode()}" if arguments else name
                    if (reason := kept.reason(place)) is not None:
                        words = f"{words}, because: {reason}"
                    texts.append(("did" if result == 0 else RESULTS[result], str(words)))
                found += [(tick, agent, *each) for each in texts]
    return found


@pytest.mark.parametrize(
    "text", ["accept", "STORE_memory tier", "cc", "e o", "{", "nobody does this"]
)
def test_search_finds_what_agents_asked_and_did(site: Inspection, market: Path, text: str) -> None:
    words = text.lower().split()
    expected = [row for row in _deeds(market, 40) if all(word in row[3].lower() for word in words)]
    found = ask(site, "search", q=text, of="decisions")
    names = ("tick", "agent", "what", "text")
    rows = [tuple(row[name] for name in names) for row in found["rows"]]
    assert rows == expected
    assert (found["total"], found["more"]) == (len(expected), False)
    assert all(row["memory_id"] is None for row in found["rows"])


def test_queries_questions_and_actions_are_found(wells: Path) -> None:
    with looked_at(wells) as site:
        found = {
            q: [
                (row["what"], row["tick"], row["agent"]) for row in ask(site, "search", q=q)["rows"]
            ]
            for q in ("birthday", "the dry? is", "go south", "guild post_to")
        }
        with pytest.raises(WrongParameter, match="of is"):
            ask(site, "search", q="well", of="everything")
    every = [(tick, agent) for tick in range(1, 5) for agent in ("ann", "bob")]
    assert found["birthday"] == [("query", *each) for each in every]
    assert found["the dry? is"] == [("asked", *each) for each in every]
    assert found["go south"] == [("did", *each) for each in every]
    assert found["guild post_to"] == [("did", 2, "ann")]


def test_of_much_that_is_found_the_first_is_shown(
    site: Inspection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(site, "search", q="accept", of="decisions")["rows"][:7]
    monkeypatch.setattr(run_view, "_MOST_FOUND", 7)
    found = ask(site, "search", q="accept  ")
    assert (found["total"], found["more"]) == (14, True)
    assert found["rows"][7:] == first


@pytest.mark.slow
def test_the_page_leads_from_words_to_the_decision(browser: Browser, market: Path) -> None:
    with served(market) as address:
        browser.open(address, "#/search?q=accept")
        browser.choose("#search-in", "decisions")
        browser.shows("#found", "result")
        browser.shows("#results .row .c-what", "did")
        until("the address says where", lambda: "in=decisions" in browser.hash)
        browser.click("#results .row .c-text a")
        browser.shows(".agent-view .part[data-part=did]", "accept")
        assert browser.complaints() == []
