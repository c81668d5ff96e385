"""TierMem for Concordia: ``from tiermem.concordia import AssociativeMemoryBank``."""

from typing import Any

from .adapters import concordia as _adapter
from .adapters.concordia import FORMATIVE as FORMATIVE
from .adapters.concordia import AssociativeMemoryBank as AssociativeMemoryBank
from .adapters.concordia import SentenceEmbedder as SentenceEmbedder

__all__ = _adapter.__all__


def __getattr__(name: str) -> Any:
    return getattr(_adapter, name)
