"""Imports OASIS, which opens files in a folder ``log`` below the current one: not here."""

import os
import tempfile
from importlib import import_module
from pathlib import Path

_here = Path.cwd()
with tempfile.TemporaryDirectory() as _elsewhere:
    os.chdir(_elsewhere)
    try:
        Path("log").mkdir()
        import_module("oasis")
    finally:
        os.chdir(_here)
