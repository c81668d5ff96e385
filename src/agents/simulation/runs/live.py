"""Worlds and programs that are given as objects: the names by which settings say them.

What a module has is named ``module:Name``, and a run copies the module: every process can run it
again. What only this process has, because it was made in a notebook, in the script itself or in a
function, is named ``here:Name``.
"""

import sys
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from ...config.settings import Settings
from ...errors import ConfigError

HERE = "here"
"""Stands in the place of a module."""

_live: dict[str, Any] = {}
"""What was given in this process. Another thing of a name has a number: a run keeps its own."""


def name_of(thing: Any) -> tuple[str, Path | None]:
    """The name of a class or function in settings, and the folder of its module if it is the
    user's own.
    """
    if not callable(thing):
        raise ConfigError(
            f"{thing!r:.60} makes nothing: it is no class and no function",
            hint="give the class or the function itself, not what it made",
        )
    name = getattr(thing, "__qualname__", "")
    module = sys.modules.get(getattr(thing, "__module__", ""))
    is_of_module = "." not in name and getattr(module, name, None) is thing
    if not is_of_module or module is None or module.__name__ == "__main__":
        return f"{HERE}:{_kept(getattr(thing, '__name__', type(thing).__name__), thing)}", None
    return f"{module.__name__}:{name}", _folder_of(module)


def _kept(name: str, thing: Any) -> str:
    for number in count(1):
        own = name if number == 1 else f"{name}~{number}"
        if _live.setdefault(own, thing) is thing:
            break
    return own


def live(key: str, name: str) -> Any:
    """What was given by this name in this process; :class:`ConfigError` in any other."""
    if name not in _live:
        raise ConfigError(
            f"{key}: {name} was made in the program or notebook that made the run, and is not here",
            hint="run it again there; or put it into a module of its own, so that every process "
            "can import it",
        )
    return _live[name]


def is_live(name: str | None) -> bool:
    """Whether only this process has what settings name so."""
    return name is not None and name.startswith(f"{HERE}:")


def only_here(settings: Settings) -> bool:
    """Whether other processes can't run what settings name."""
    simulation = settings.simulation
    return any(map(is_live, (simulation.world, simulation.model, simulation.policy)))


def _folder_of(module: ModuleType) -> Path | None:
    """The folder from which a module is imported; None for an installed one."""
    file = module.__file__
    if file is None or "site-packages" in Path(file).parts or file.startswith(sys.prefix):
        return None
    depth = module.__name__.count(".") + (Path(file).name == "__init__.py")
    return Path(file).absolute().parents[depth]
