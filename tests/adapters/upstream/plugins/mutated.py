"""A plugin of pytest: a module of TierMem is loaded with one place of its code broken.

``TIERMEM_MUTATION`` has the module's name, the code, and what stands in its place, as JSON. What
does is given two names: ``oldest``, a search that finds the oldest memories, and ``Hits``.
"""

import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

MODULE, CODE, INSTEAD = json.loads(os.environ["TIERMEM_MUTATION"])
_NAMES = f"\nfrom {__name__} import Hits, oldest\n"


class _Broken(SourceFileLoader):
    """Compiles the file anew, and keeps nothing of it on the disk."""

    def get_code(self, fullname: str) -> CodeType:
        source = Path(self.path).read_text()
        if source.count(CODE) != 1:
            raise ImportError(f"{fullname} has {source.count(CODE)} times: {CODE}")
        return compile(source.replace(CODE, INSTEAD) + _NAMES, self.path, "exec")


class _Finder:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == MODULE else None  # type: ignore[arg-type]
        if spec is not None and spec.origin is not None:
            spec.loader = _Broken(name, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder)


def __getattr__(name: str) -> object:
    """The names for broken code; only then is TierMem imported."""
    if name == "oldest":
        return _oldest
    if name == "Hits":
        from tiermem import Hits

        return Hits
    raise AttributeError(name)


def _oldest(memories: object, limit: int | None) -> object:
    """Of an agent, the oldest memories, as the hits of a search."""
    from tiermem import Hit, Hits

    kept: list[object] = memories.all()  # type: ignore[attr-defined]
    return Hits([Hit(memory, 0.5, 0.0, 0.5) for memory in kept[:limit]])
