"""``tiermem`` on a terminal."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

from waiting import exit_code
from warm_children import Popen


def on_a_terminal(*arguments: object, columns: int = 100) -> str:
    """What ``tiermem`` shows on a terminal, without colours."""
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [str(Path(sys.executable).with_name("tiermem")), *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    with Popen(command, stdout=inside, stderr=inside, env=environment) as process:
        os.close(inside)
        shown = b""
        while True:
            try:
                part = os.read(outside, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(outside)
        assert exit_code(process) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
