"""Runs for the tests of the inspector, and a way to ask for its answers."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from agents.config.load import load_settings
from agents.interfaces.http.server import address, listen
from agents.interfaces.inspector.parameters import Reading
from agents.interfaces.inspector.server import Page, new_token, serve
from agents.interfaces.inspector.site import Site
from agents.simulation.runs.run import Run
from waiting import LONG

SIMULATIONS = Path(__file__).parents[2] / "simulations"


def make_run(folder: Path, world: str, ticks: int, **simulation: object) -> Path:
    """A finished run of a built-in world."""
    settings = {
        "seed": 5,
        "storage": {"sync": "manual"},
        "temperature": {"hot_max_facts": 2},
        "simulation": {"world": world, "agents": 5, "ticks": ticks, **simulation},
    }
    with Run.create(folder, load_settings(settings)) as run:
        for _ in run.advance(ticks):
            pass
    return folder


def ask(site: Site, name: str, /, **given: object) -> dict[str, Any]:
    """An answer; a question that comes too early is asked again, as the page does."""
    end = time.monotonic() + LONG
    texts: Mapping[str, str] = {key: str(value) for key, value in given.items()}
    while True:
        try:
            return site.answer(name, texts)
        except Reading:
            assert time.monotonic() < end
            time.sleep(0.02)


@contextlib.contextmanager
def looked_at(*folders: Path, **options: bool) -> Iterator[Site]:
    """A site over these folders."""
    with Site(folders, **options) as site:
        yield site


class Door(NamedTuple):
    """A page that is served, and a client of it."""

    url: str
    token: str
    client: httpx.Client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(f"/{self.token}/{path}", **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.client.post(f"/{self.token}/{path}", **options)


@contextlib.contextmanager
def opened(folder: Path, **options: bool) -> Iterator[Door]:
    """The page over a folder, served by uvicorn in a thread."""
    token, stop = new_token(), threading.Event()
    with listen("127.0.0.1", 0) as sock, looked_at(folder, **options) as site:
        url = address("127.0.0.1", sock)
        page = Page(site, token, "127.0.0.1")
        thread = threading.Thread(target=serve, args=(page, sock, stop.is_set))
        thread.start()
        try:
            with httpx.Client(base_url=url, timeout=LONG, trust_env=False) as client:
                yield Door(url, token, client)
        finally:
            stop.set()
            thread.join()
