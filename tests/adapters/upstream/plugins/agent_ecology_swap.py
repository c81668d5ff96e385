"""Puts TierMem's classes in the place of agent_ecology2's module of memory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tiermem import agent_ecology

THEIRS = ModuleType("src.agents.memory")
"""The names of our module, and of theirs those that its tests patch."""


class ArtifactMemory(agent_ecology.ArtifactMemory):
    """Ours. What ``config_get`` says of pins when it is first used is a setting of the bank."""

    def __init__(self, store: Any, max_history: int = 100) -> None:
        self._given = store, max_history

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "bank" in vars(self):
            raise AttributeError(name)
        store, most = self._given
        pins = THEIRS.config_get("memory.max_pinned")
        super().__init__(store, most, **({"max_pinned": pins} if pins else {}))
        return getattr(self, name)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a current folder of its own, where ``get_memory`` makes its bank."""
    monkeypatch.chdir(tmp_path)
    yield
    if Path(agent_ecology.FOLDER).exists():
        agent_ecology.get_memory().close()


vars(THEIRS).update({name: getattr(agent_ecology, name) for name in agent_ecology.__all__})
vars(THEIRS).update(ArtifactMemory=ArtifactMemory, config_get=lambda name: None, Memory=None)
sys.modules[THEIRS.__name__] = THEIRS
