"""For tests of your own: laws for what you wrote, and strategies for Hypothesis.

>>> from tiermem.testing import EmbedderLaws
>>> class TestMine(EmbedderLaws):
...     def make(self):
...         return MyEmbedder()

pytest finds the class and tries each law. See docs/howto/test-your-own.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..packages import needed

if TYPE_CHECKING:
    from . import strategies as strategies
    from .agent_memory_laws import AgentMemoryLaws
    from .embedder_laws import EmbedderLaws
    from .laws import BrokenLaw, broken_laws
    from .policy_laws import PolicyLaws
    from .small import SmallEmbedder
    from .store_laws import StoreLaws
    from .world_laws import WorldLaws

__all__ = [
    "AgentMemoryLaws",
    "BrokenLaw",
    "EmbedderLaws",
    "PolicyLaws",
    "SmallEmbedder",
    "StoreLaws",
    "WorldLaws",
    "broken_laws",
    "strategies",
]

_LATER = {
    "AgentMemoryLaws": ".agent_memory_laws",
    "BrokenLaw": ".laws",
    "EmbedderLaws": ".embedder_laws",
    "PolicyLaws": ".policy_laws",
    "SmallEmbedder": ".small",
    "StoreLaws": ".store_laws",
    "WorldLaws": ".world_laws",
    "broken_laws": ".laws",
}


def __getattr__(name: str) -> Any:
    """Import a name on its first use: worlds can be checked without Hypothesis."""
    with needed(f"tiermem.testing.{name}", "hypothesis"):
        if name == "strategies":
            return import_module(".strategies", __name__)
        if name in _LATER:
            return getattr(import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module 'tiermem.testing' has no attribute {name!r}")
