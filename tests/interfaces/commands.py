"""``tiermem`` in this process, and scenarios for it."""

import contextlib
import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from agents.interfaces.cli.app import run

WORLDS = Path(__file__).with_name("worlds_for_tests.py")
_PROGRESS = re.compile(r"tick \d+/\d+ \(")


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_error(self, code: int, *parts: str) -> bool:
        """It failed with three lines that hold all ``parts``, and without a traceback.

        On a busy machine a run says before how far it is.
        """
        assert "Traceback" not in self.err
        assert self.code == code, self
        assert self.out == ""
        lines = [line for line in self.err.splitlines() if not _PROGRESS.match(line)]
        assert len(lines) == 3, self.err
        for line, label in zip(lines, ("tiermem: ", "    why: ", "     do: "), strict=True):
            assert line.startswith(label), self.err
            assert line.removeprefix(label).strip(), self.err
        for part in parts:
            assert part in self.err
        return True


Command = Callable[..., Done]

Write = Callable[..., Path]


def run_command(*arguments: object) -> Done:
    """``tiermem`` with these arguments, in this process: to start Python anew takes a second."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["tiermem", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run()
    finally:
        sys.argv = before
    return Done(code, out.getvalue(), err.getvalue())


def write_scenario(folder: Path, name: str = "stones", **simulation: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(WORLDS, folder)
    values = {
        "seed": 3,
        "storage": {"sync": "manual"},
        "checkpoint": {"every": 4, "keep": 3},
        "simulation": {
            "world": "worlds_for_tests:Stones",
            "agents": ["alice", "bob"],
            "ticks": 12,
            **simulation,
        },
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path
