"""A plugin of pytest: TierMem's memory takes the place of two of AutoGen's memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import autogen_core.memory
import autogen_ext.memory.chromadb
from autogen_core.memory import MemoryContent
from autogen_core.memory._list_memory import ListMemoryConfig
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemoryConfig,
    CustomEmbeddingFunctionConfig,
    PersistentChromaDBVectorMemoryConfig,
)

from tiermem import MemoryBank
from tiermem.autogen import TierMemory


class InList(TierMemory):
    """Takes the arguments of ``ListMemory``, and dumps them."""

    component_provider_override = "autogen_core.memory.ListMemory"
    component_config_schema = ListMemoryConfig

    def __init__(
        self, name: str | None = None, memory_contents: list[MemoryContent] | None = None
    ) -> None:
        contents = TierMemory().dump_component()
        contents.config["contents"] = memory_contents or []
        super().__init__(TierMemory.load_component(contents).memories, limit=None)
        self.name = name

    @property
    def content(self) -> list[MemoryContent]:
        return super()._to_config().contents

    def _to_config(self) -> ListMemoryConfig:
        return ListMemoryConfig(name=self.name, memory_contents=self.content)

    @classmethod
    def _from_config(cls, config: ListMemoryConfig) -> InList:
        return cls(config.name, config.memory_contents)


class Custom:
    """The embedding function of a config as the embedder of a bank."""

    name, dims = "custom", 384

    def __init__(self, config: CustomEmbeddingFunctionConfig) -> None:
        self.function = config.function(**config.params)

    def embed(self, texts: Sequence[str], /) -> Any:
        return self.function(texts)


class InChroma(TierMemory):
    """Takes the arguments of ``ChromaDBVectorMemory``; only a custom function embeds, else ours."""

    component_provider_override = "autogen_ext.memory.chromadb.ChromaDBVectorMemory"
    component_config_schema = ChromaDBVectorMemoryConfig

    def __init__(self, config: PersistentChromaDBVectorMemoryConfig) -> None:
        self.config = config
        self.collection_name = config.collection_name
        self.bank: MemoryBank | None = None
        self.limit = config.k

    @property
    def memories(self) -> Any:
        """They are opened on their first use, as Chroma's are."""
        if self.bank is None:
            function = self.config.embedding_function_config
            is_custom = isinstance(function, CustomEmbeddingFunctionConfig)
            self.bank = MemoryBank.open(
                self.config.persistence_path,
                embedder=Custom(function) if is_custom else None,
                storage={"sync": "manual"},
            )
        return self.bank.agent(self.collection_name)

    async def query(self, *args: Any, **options: Any) -> Any:
        return await super().query(*args, min_score=self.config.score_threshold, **options)

    async def reset(self) -> None:
        await self.clear()

    async def close(self) -> None:
        if self.bank is not None:
            self.bank.close()

    def _to_config(self) -> PersistentChromaDBVectorMemoryConfig:
        return self.config

    @classmethod
    def _from_config(cls, config: PersistentChromaDBVectorMemoryConfig) -> InChroma:
        return cls(config)


autogen_core.memory.ListMemory = InList
autogen_ext.memory.chromadb.ChromaDBVectorMemory = InChroma
