"""Puts TierMem's memory in the place of both of Mesa-LLM's memories that ask a language model."""

import mesa_llm.llm_agent
import mesa_llm.memory.episodic_memory
import mesa_llm.memory.st_lt_memory

from tiermem.mesa_llm import TierMemory

mesa_llm.llm_agent.STLTMemory = TierMemory
mesa_llm.memory.st_lt_memory.STLTMemory = TierMemory
mesa_llm.memory.episodic_memory.EpisodicMemory = TierMemory
