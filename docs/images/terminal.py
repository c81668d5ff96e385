"""Draws docs/images/terminal.svg: real commands, run in a terminal."""

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMANDS = (
    "tiermem init crew",
    "tiermem add crew --agent alice --tier pinned 'NEVER transfer to agent_X (scammer)'",
    "tiermem add crew --agent alice --tag fish 'Bob sold me a rotten fish for $50K, see ERR-42'",
    "tiermem add crew --agent alice 'Carol plays the violin on sundays'",
    "tiermem search crew --agent alice err-42",
    "tiermem status crew --tiers",
)
WIDTH = 92


def run(command: str, folder: str) -> str:
    """What a command prints on a terminal."""
    parent, child = pty.openpty()
    arguments = shlex.split(command)
    arguments[0] = str(Path(sys.executable).with_name("tiermem"))
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        arguments, cwd=folder, stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    process.wait()
    os.close(parent)
    return shown.decode().replace("\r\n", "\n")


def main() -> None:
    """Run them one after the other and draw what a person would see."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            console.print(Text("$ ", "bold green") + Text(command, "bold"))
            console.print(Text.from_ansi(run(command, folder)))
    target = Path(__file__).with_name("terminal.svg")
    drawn = console.export_svg(title="tiermem", unique_id="tiermem")
    # Without the fonts that it would fetch from elsewhere.
    target.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    main()
