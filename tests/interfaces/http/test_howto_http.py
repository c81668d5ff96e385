"""The how-to for HTTP does what it says, against a real server."""

import re
from pathlib import Path

import pytest
from http_service import served

from agents.interfaces import tokens
from banks import ROOT

PAGE = (ROOT / "docs" / "howto" / "http.md").read_text()


def test_its_example_runs_and_prints_what_it_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    with served(tmp_path / "crew") as service:
        monkeypatch.setenv("TIERMEM_URL", service.url)
        monkeypatch.setenv("TIERMEM_TOKEN", tokens.create(service.folder, "alice", "write").token)
        exec(compile(code, "docs/howto/http.md", "exec"), {})
    promised = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# - ")]
    assert capsys.readouterr().out.splitlines() == promised
    assert len(promised) == 2


def test_its_curl_commands_are_routes_with_right_arguments(tmp_path: Path) -> None:
    asked = re.findall(r"curl http://127\.0\.0\.1:8765(\S+) .*?-d '(.*?)'", PAGE, re.DOTALL)
    with served(tmp_path / "crew") as service, service.agent("alice") as alice:
        answers = [
            alice.post(path, content=body, headers={"Content-Type": "application/json"})
            for path, body in asked
        ]
    assert [answer.status_code for answer in answers] == [201, 200]
