"""Imports LlamaIndex, which needs the package ``banks``: our own tests/banks.py has its name."""

import sys
from importlib import import_module
from pathlib import Path

_ours, _path = sys.modules.pop("banks", None), list(sys.path)
sys.path[:] = [each for each in _path if not (Path(each) / "banks.py").is_file()]
try:
    import_module("llama_index.core.memory")
finally:
    sys.path[:] = _path
    sys.modules.pop("banks", None)
    if _ours is not None:
        sys.modules["banks"] = _ours
