"""The name ``agents`` for ``tiermem`` in a checkout: the same modules.

The folder ``agents`` imports this file when it is imported by its own name. A wheel has no such
folder, and not this file: there, ``agents`` is whatever others call so.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType

import tiermem


class _OtherName:
    """Finds ``tiermem.x`` for an import of ``agents.x``, as long as ``agents`` is ours."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("agents.") or sys.modules.get("agents") is not tiermem:
            return None
        real = find_spec(_real_name(fullname))
        if real is None or real.origin is None:
            return None
        package = real.submodule_search_locations is not None
        loader = _SameModule(fullname, real.origin)
        return ModuleSpec(fullname, loader, origin=real.origin, is_package=package)


class _SameModule(SourceFileLoader):
    """Reads the file only for ``python -m agents.x``."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the real module in the place of the new one; the import goes on with that."""
        sys.modules[module.__name__] = import_module(_real_name(module.__name__))


def _real_name(name: str) -> str:
    return name.replace("agents", "tiermem", 1)


sys.meta_path.insert(0, _OtherName)
if __name__ == "agents":
    sys.modules["agents"] = tiermem
