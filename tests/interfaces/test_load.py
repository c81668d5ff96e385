"""Seconds of ``make load``: clients over HTTP and MCP, and hostile ones."""

import subprocess
import sys

import pytest

from banks import ROOT
from waiting import ended

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_clients_and_hostile_clients_lose_nothing_and_get_no_error_of_the_server() -> None:
    options = ["--minutes", "0.17", "--clients", "8", "--sessions", "200"]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "load.py"), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, _ = ended(process)
    assert process.returncode == 0, said
    assert "0 lost, 0 of the purged are back" in said
    for way in ("HTTP memory_add", "MCP memory_add", "sessions opened and left: 200"):
        assert way in said
