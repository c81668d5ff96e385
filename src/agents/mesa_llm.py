"""TierMem for Mesa-LLM: ``from tiermem.mesa_llm import TierMemory``."""

from .adapters.mesa_llm import TierMemory as TierMemory
from .adapters.mesa_llm import record as record

__all__ = ["TierMemory", "record"]
