"""Runs that the tests of the inspector look at, and a browser; no test changes the runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import Browser, browsing
from inspected_sites import looked_at, make_run, make_wells

from agents.interfaces.inspector.inspection import Inspection


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspected") / "market"
    return make_run(folder, "market", 40, world_options={"scammers": 2})


@pytest.fixture(scope="session")
def rumor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspected") / "rumor"
    return make_run(folder, "rumor", 12, world_options={"liars": 1})


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspected") / "small_world"
    society = {"graph": "watts_strogatz", "k": 4, "p": 0.1}
    return make_run(
        folder, "rumor", 12, agents=9, society=society, world_options={"liars": 1, "claims": 3}
    )


@pytest.fixture(scope="session")
def wells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wells(tmp_path_factory.mktemp("inspected"))


@pytest.fixture(scope="session")
def site(market: Path) -> Iterator[Inspection]:
    with looked_at(market) as opened:
        yield opened


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests, because to start it takes seconds; each test loads its page anew."""
    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
