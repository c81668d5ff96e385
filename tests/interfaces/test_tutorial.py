"""What the tutorial tells its reader to do works, and a terminal shows what the page shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import on_a_terminal

from banks import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs/tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"^```(?:console|\w+ file=(?P<file>\S+))\n(?P<text>.*?)^```", re.M | re.S)


def shown_by(command: str) -> list[str]:
    """The lines that a command of the page shows."""
    program, *arguments = shlex.split(command.removeprefix("$ "))
    if program == "python":
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    assert program == "tiermem"
    return [line.rstrip() for line in on_a_terminal(*arguments, columns=80).splitlines()]


def test_each_step_of_the_tutorial_shows_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in BLOCK.finditer(PAGE):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"], "utf-8")
            continue
        command, *promised = block["text"].splitlines()
        shown = iter(shown_by(command))
        for line in promised:  # each after the one before it
            assert line.strip() == "…" or line in shown, f"{command}: {line}"
        commands += 1
    assert commands == 7
