"""A plugin of pytest: OASIS's agents have TierMem's memory, and CAMEL's stub as their model."""

import os
from typing import Any

import oasis.social_agent.agent
from camel.models import ModelFactory
from camel.types import ModelPlatformType, ModelType

from tiermem import MemoryBank
from tiermem.oasis import SocialMemory

os.environ.setdefault("OPENAI_API_KEY", "none")  # a test makes a client that it does not use
_create, _plain = ModelFactory.create, oasis.social_agent.agent.SocialAgent.__init__


def _stub(*_: Any, **__: Any) -> Any:
    return _create(ModelPlatformType.OPENAI, ModelType.STUB)


def _with_memory(self: Any, agent_id: int, *arguments: Any, **options: Any) -> None:
    _plain(self, agent_id, *arguments, **{"model": _stub(), **options})
    creator = self.memory.get_context_creator()
    memories = MemoryBank.ephemeral().agent(f"user_{agent_id}")
    self.memory = SocialMemory(creator, memories, agent_id=self.agent_id)


ModelFactory.create = _stub
oasis.social_agent.agent.SocialAgent.__init__ = _with_memory
