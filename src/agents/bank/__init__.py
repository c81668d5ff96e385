"""What a program holds: a bank, an agent's view of it, and their async views."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .memory_bank import MemoryBank

__all__ = ["MemoryBank"]


def __getattr__(name: str) -> object:
    """Bring in the bank, and NumPy with it, when it is first asked for."""
    if name == "MemoryBank":
        from .memory_bank import MemoryBank

        return MemoryBank
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
