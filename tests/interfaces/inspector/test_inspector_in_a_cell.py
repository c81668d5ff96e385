"""The inspector's page in a notebook: it may be framed, and ends with its run."""

import base64
import gc
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import agents as tiermem
from agents.interfaces.inspector.page_files import policy
from agents.interfaces.notebook import inspecting
from agents.simulation.runs.run import Run
from waiting import LONG


@pytest.fixture
def run() -> Iterator[Run]:
    with tiermem.simulate("market", agents=5, ticks=2, seed=7) as made:
        yield made


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "is_notebook", lambda: True)


def headers_of(address: str) -> dict[str, str]:
    with urllib.request.urlopen(address, timeout=LONG) as answer:
        assert b"<title>" in answer.read()
        return dict(answer.headers)


@pytest.mark.usefixtures("notebook")
def test_a_cell_shows_the_page_which_may_be_framed(run: Run) -> None:
    page = run.inspect(height=500)
    html = page._repr_html_()
    assert f'<iframe src="{page.address}" width="100%" height="500"' in html
    headers = headers_of(page.address)
    assert "x-frame-options" not in {name.lower() for name in headers}
    assert "frame-ancestors" not in headers["content-security-policy"]
    assert run.inspect().address == page.address
    assert page.address in repr(page)


def test_a_page_of_the_command_is_never_framed() -> None:
    assert policy().endswith("; frame-ancestors 'none'")
    assert policy(framed=True) + "; frame-ancestors 'none'" == policy()


@pytest.mark.usefixtures("notebook")
def test_nobody_without_the_token_sees_a_page(run: Run) -> None:
    address = run.inspect().address
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address.rpartition("/")[0][:-1] + "/", timeout=LONG)


@pytest.mark.usefixtures("notebook")
def test_the_page_ends_with_its_run() -> None:
    run = tiermem.simulate("market", agents=5, ticks=2, seed=7)
    address = run.inspect().address
    headers_of(address)
    run.close()
    del run
    gc.collect()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=LONG)


def test_outside_a_notebook_the_address_is_printed(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.inspect() is None
    headers_of(capsys.readouterr().out.strip())


@pytest.mark.usefixtures("notebook")
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("where", ["no server", "hub", "asked for"])
def test_where_no_server_can_be_reached_the_page_is_all_in_itself(
    run: Run, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if where == "hub":
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ann/")
    if where == "no server":
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        for module in ("http.server", "inspector.server"):
            monkeypatch.delitem(sys.modules, f"tiermem.interfaces.{module}", raising=False)
            package, name = module.split(".")
            monkeypatch.delattr(f"tiermem.interfaces.{package}.{name}", raising=False)
    page = run.inspect(export=True if where == "asked for" else None)
    assert page.address == ""
    (packed,) = re.findall(r'src="data:text/html;base64,([^"]+)"', page._repr_html_())
    assert base64.b64decode(packed).startswith(b"<!doctype html>")
