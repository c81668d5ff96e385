"""``tiermem inspect`` as a user calls it, and the file that it exports."""

import base64
import gzip
import importlib.util
import json
import re
import shutil
import signal
import socket
import subprocess
import webbrowser
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import Command
from http_service import COMMAND
from inspected_sites import ask, looked_at, make_run

from agents import MemoryBank
from agents.errors import NotInstalled
from agents.interfaces.inspector import server
from agents.interfaces.inspector.export import Nodes, exported
from agents.interfaces.inspector.page_files import hash_of
from agents.search.search import Search
from waiting import LONG, ended
from warm_children import Popen


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("small") / "small", "market", 4)


def _contents(text: str) -> dict[str, Any]:
    """The answers in an exported file."""
    (packed,) = re.findall(r'<script type="text/plain" id="inspector-data">(.*?)</script>', text)
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    nodes = data["nodes"]

    def value(place: int) -> Any:
        node = nodes[place]
        if isinstance(node, list):
            return [value(each) for each in node]
        if isinstance(node, dict):
            return {name: value(each) for name, each in node.items()}
        return node

    return {key: value(place) for key, place in data["answers"].items()}


def test_nodes_keep_equal_values_once() -> None:
    nodes = Nodes()
    first = nodes.put({"a": [1, "x", None, True, 1.0], "b": {"c": 1}})
    again = nodes.put({"a": [1, "x", None, True, 1.0], "b": {"c": 1}})
    assert first == again
    assert nodes.nodes.count("x") == 1
    assert nodes.put(True) != nodes.put(1)


@pytest.mark.slow
def test_an_export_holds_the_answers_of_the_server(
    small: Path, tiermem: Command, tmp_path: Path
) -> None:
    done = tiermem("inspect", small, "--export", "run.html", "-q")
    assert (done.code, done.out, done.err) == (0, "run.html\n", "")
    text = (tmp_path / "run.html").read_text()
    found = _contents(text)
    with looked_at(small) as site:
        about = found["about?"]
        assert about["runs"][0]["ticks"] == [0, 1, 2, 3, 4]
        last = about["runs"][0]["agents"][-1]
        ask(site, "memories", agent=last, tick=4)  # the last tick is read by then
        assert found["series?run=0"] == ask(site, "series")
        assert found["heat?of=loss&run=0"] == ask(site, "heat", of="loss")
        for agent in about["runs"][0]["agents"]:
            for tick in range(5):
                own = f"agent={agent}&run=0&tick={tick}"
                here = {"agent": agent, "tick": tick}
                assert found[f"agent?{own}"] == json.loads(json.dumps(ask(site, "agent", **here)))
                assert found[f"memories?{own}"] == ask(site, "memories", **here)
                if tick:
                    rows = ask(site, "explain", **here, when="deciding")["rows"]
                    assert found[f"explain?{own}"]["rows"] == rows
        memories = [key for key in found if key.startswith("memory?")]
        assert len(memories) == sum(
            ask(site, "memories", agent=agent, tick=4)["total"]
            for agent in about["runs"][0]["agents"]
        )
        identifier = found["memories?agent=agent_00&run=0&tick=4"]["rows"][0]["id"]
        assert found[f"memory?id={identifier}&run=0"] == ask(site, "memory", id=identifier)
        assert found["population?run=0&tick=4"] == ask(site, "population", tick=4)
        assert found["tick?run=0&tick=2"] == ask(site, "tick", tick=2)


@pytest.mark.slow
def test_an_export_searches_once_for_each_decision_and_says_how_far_it_is(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_run(tmp_path / "other", "market", 4, world_options={"scammers": 2})
    searches: list[object] = []
    run = Search.run

    def counted(self: Search, *given: Any, **options: Any) -> Any:
        searches.append(given)
        return run(self, *given, **options)

    monkeypatch.setattr(Search, "run", counted)
    told: list[tuple[int, int]] = []
    with looked_at(small, other) as site:
        found = _contents(exported(site, lambda *each: told.append(each)).decode())
        assert len(searches) == 2 * 5 * 4
        assert told == [(done, 50) for done in range(1, 51)]
        for tick in (0, 3):
            here = {"agent": "agent_01", "tick": tick}
            compared = json.loads(json.dumps(ask(site, "compare", **here)))
            assert found[f"compare?agent=agent_01&tick={tick}"] == compared


@pytest.mark.slow
def test_an_exported_file_needs_no_network_and_runs_only_its_own_scripts(
    small: Path, tiermem: Command, tmp_path: Path
) -> None:
    assert tiermem("inspect", small, "--export", "run.html", "-q").code == 0
    text = (tmp_path / "run.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert re.findall(r"<script(?! type=\"(?:module|text/plain)\")", text) == []
    assert dict(each.strip().split(" ", 1) for each in policy.split(";")) == {
        "default-src": "'none'",
        "script-src": hash_of(script),
        "style-src": " ".join(map(hash_of, styles)),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    refused = tiermem("inspect", small, "--export", "run.html", "-q")
    assert refused.is_one_error(2, "exists already", "--force")
    assert tiermem("inspect", small, "--export", "run.html", "-q", "--force").code == 0


def test_hostile_texts_stay_data_in_an_export(tiermem: Command, tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)> \u202e ${x} <!-- " + "A" * 100_000
    large = {"max_content_bytes": 200_000}
    with MemoryBank.open("bank", storage={"sync": "manual"}, memory=large) as bank:
        bank.agent("eve").add(hostile)
    assert tiermem("inspect", "bank", "--export", "bank.html", "-q").code == 0
    text = (tmp_path / "bank.html").read_text()
    assert "onerror" not in text
    last = _contents(text)["about?"]["runs"][0]["last_tick"]
    rows = _contents(text)[f"memories?agent=eve&run=0&tick={last}"]["rows"]
    assert [row["text"] for row in rows] == [hostile]


def test_a_bank_alone_is_looked_at_without_the_packages_of_simulations(
    small: Path, tiermem: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryBank.open("bank", storage={"sync": "manual"}) as bank:
        bank.agent("eve").add("the mill burns")
    find, lacking = importlib.util.find_spec, {"pyarrow", "scipy"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in lacking else find(name)
    )
    with looked_at(tmp_path / "bank") as site:
        assert ask(site, "memories", agent="eve", tick=0)["total"] == 1
        with pytest.raises(NotInstalled, match="to study a population"):
            ask(site, "population", tick=0)
    assert tiermem("inspect", "bank", "--export", "bank.html", "-q").code == 0
    found = _contents((tmp_path / "bank.html").read_text())
    assert "memories?agent=eve&run=0&tick=0" in found
    assert "population?run=0&tick=0" not in found
    refused = tiermem("inspect", small, "--export", "run.html", "-q")
    assert refused.is_one_error(1, "pyarrow", "pip install 'tiermem[simulation]'")


@pytest.mark.slow
def test_a_report_links_to_an_inspector_beside_it(tiermem: Command, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "market", 4)
    assert tiermem("report", run).code == 0
    assert "inspector.html" not in (run / "report.html").read_text()
    assert tiermem("inspect", run, "--export", run / "inspector.html", "-q").code == 0
    assert tiermem("report", run).code == 0
    links = re.findall(r'href="(inspector\.html#[^"]*)"', (run / "report.html").read_text())
    assert "inspector.html#/overview" in links
    assert any(each.startswith("inspector.html#/memory/") for each in links)


def test_what_can_t_be_looked_at_is_refused(tiermem: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    how = "tiermem run SCENARIO makes a run"
    assert tiermem("inspect", "nothing").is_one_error(1, "there is no folder nothing", how)
    refused = tiermem("inspect", "empty")
    assert refused.is_one_error(1, "there is no run, bank or sweep in empty", how)


def test_a_wrong_folder_is_answered_with_the_runs_near_it(
    small: Path, tiermem: Command, tmp_path: Path
) -> None:
    for name in ("alpha-1", "beta-2", "gamma-3", "market-7"):
        shutil.copytree(small, tmp_path / "runs" / name)
    refused = tiermem("inspect", "runs/market")
    assert refused.is_one_error(1, "there is no folder runs/market", "here are runs/market-7, ")
    assert "tiermem init" not in refused.err
    refused = tiermem("inspect", "runs")
    assert refused.is_one_error(1, "no run, bank or sweep in runs", "runs/alpha-1", "and 1 more")


def test_a_run_without_its_bank_is_told_apart_from_no_run(
    small: Path, tiermem: Command, tmp_path: Path
) -> None:
    shutil.copytree(small, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "bank")
    refused = tiermem("inspect", "run")
    assert refused.is_one_error(1, "the run in run has no bank", "run/bank is missing")
    assert "tiermem init" not in refused.err


def test_the_command_serves_until_it_is_stopped(small: Path) -> None:
    with Popen(
        [*COMMAND, "inspect", str(small)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[A-Za-z0-9_-]{32}/", url)
        with httpx.Client(timeout=LONG, trust_env=False) as client:
            assert client.get(f"{url}api/about").json()["name"] == "small"
        process.send_signal(signal.SIGINT)
        _, err = ended(process)
        assert "Traceback" not in err
        assert process.returncode == 0


def test_it_opens_the_browser_at_the_port_that_was_asked_for(
    small: Path, tiermem: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(server, "serve", lambda page, *_: page.close())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = tiermem("inspect", small, "--open", "--port", port)
    assert done.code == 0
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/[A-Za-z0-9_-]{{32}}/\n", done.out)
    assert opened == [done.out.strip()]
    assert tiermem("inspect", small, "-q").code == 0
    assert len(opened) == 1  # only where it is asked for
