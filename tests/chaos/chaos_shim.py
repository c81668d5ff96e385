"""Faults at system calls: a shim in C, built where there is a compiler. A process arms its own."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

FAIL, KILL_BEFORE, KILL_AFTER, KILL_HALFWAY = 1, 2, 3, 4
ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO}
_SHIM = "TIERMEM_CHAOS_SHIM"


def start_with_shim(scratch: Path) -> None:
    """Start this program again with the shim loaded; go on without it if it can't be built."""
    compiler = shutil.which("cc")
    if _SHIM in os.environ or compiler is None or not sys.platform.startswith("linux"):
        return
    library = scratch / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return
    preload = {"LD_PRELOAD": str(library), _SHIM: str(scratch)}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **preload})


def scratch_of_shim() -> Path | None:
    """The folder that the program made before it started again."""
    return Path(os.environ[_SHIM]) if _SHIM in os.environ else None


def is_loaded() -> bool:
    return hasattr(ctypes.CDLL(None), "chaos_arm")


def arm(below: Path, kind: int, at: int, length: int = 1, error: int = 0) -> None:
    """From the ``at``-th call that changes a file below this folder on, let the fault happen."""
    number = ctypes.c_long
    ctypes.CDLL(None).chaos_arm(os.fsencode(below), kind, number(at), number(length), error)


def set_clock(offset: int) -> None:
    """The wall clock of this process is off by so many seconds."""
    ctypes.CDLL(None).chaos_clock(ctypes.c_long(offset))
