"""A page that is stopped while it runs a branch: the branch is kept, and nothing is hidden."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from inspected_sites import make_run, opened

from agents.errors import RunError
from agents.interfaces.inspector import comparing, server
from agents.interfaces.inspector.inspection import Inspection
from agents.simulation.runs.run import Run
from waiting import LONG

TICKS = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("stops") / "run", "market", TICKS)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a site is told to stop."""
    event, stop = threading.Event(), Inspection.stop

    def noted(site: Inspection) -> None:
        stop(site)
        event.set()

    monkeypatch.setattr(Inspection, "stop", noted)
    return event


def _posted(run: Path, began: threading.Event, then: Callable[[], object]) -> httpx.Response:
    """The answer to a branch of the run, on a page that is stopped once the branch ``began``."""
    answers: list[httpx.Response] = []

    def post(address: str) -> None:
        with httpx.Client(timeout=LONG, trust_env=False) as client:
            answers.append(client.post(address, json={"tick": 5}))
        then()

    with opened(run, allow_branch=True) as door:
        thread = threading.Thread(target=post, args=(f"{door.url}/{door.token}/api/branch",))
        thread.start()
        assert began.wait(LONG)
    thread.join(LONG)
    (answer,) = answers
    return answer


def test_a_branch_stops_after_its_tick_and_can_be_resumed(
    run: Path,
    stopped: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    began, advance = threading.Event(), Run.advance

    def slowly(self: Run, until: int) -> Iterator[dict[str, Any]]:
        for record in advance(self, until):
            began.set()
            assert stopped.wait(LONG)
            yield record

    monkeypatch.setattr(Run, "advance", slowly)
    with caplog.at_level(logging.ERROR):
        answer = _posted(run, began, lambda: None)
    out = run.parent / "run-branch-5"
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert "stopped after tick 6" in error["message"]
    assert error["hint"] == f"tiermem resume {out} goes on"
    assert caplog.records == []
    monkeypatch.undo()
    with Run.open(out) as resumed:
        assert resumed.tick == 6
        assert len(list(resumed.advance(TICKS))) == TICKS - 6


def test_who_waits_for_what_can_not_be_stopped_gets_an_answer(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began, answered = threading.Event(), threading.Event()

    def stuck(*given: object, **options: object) -> None:
        began.set()
        assert answered.wait(LONG)
        raise RunError("the disk is gone")

    monkeypatch.setattr(comparing, "branch_with", stuck)
    monkeypatch.setattr(server, "_GRACE", 0)
    with caplog.at_level(logging.ERROR):
        answer = _posted(run, began, answered.set)
    assert answer.status_code == 503
    assert "was stopped" in answer.json()["error"]["message"]
    assert [each for each in caplog.records if each.exc_info] == []
