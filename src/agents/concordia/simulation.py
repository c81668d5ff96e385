"""A Concordia simulation whose entities remember in one bank, and a prefab that pins."""

import copy
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import MemoryBank
from ..adapting import Names, TierLike, needed
from ..errors import InvalidInput
from .memory_bank import FORMATIVE, TIERS, AssociativeMemoryBank

with needed("tiermem.concordia", "concordia", otherwise=", with Python 3.12 or newer"):
    from concordia.components.game_master import make_observation
    from concordia.prefabs.game_master import formative_memories_initializer
    from concordia.prefabs.simulation import generic
    from concordia.typing import prefab as prefab_lib

_GAME_MASTERS = "game_masters"
"""The agent that all game masters share, as they share a memory bank in Concordia."""


class Simulation(generic.Simulation):  # type: ignore[misc]
    """Concordia's generic simulation, with all memories in the bank ``memories``.

    Each entity is an agent of the bank, with the entity's name as
    :func:`tiermem.adapting.agent_id_of` writes it; the game masters share the agent
    ``game_masters``. Each step is a tick. ``tiers`` is that of :class:`AssociativeMemoryBank`.
    """

    def __init__(
        self,
        config: Any,
        model: Any,
        embedder: Callable[[str], Any] | None = None,
        *args: Any,
        memories: MemoryBank,
        tiers: Mapping[str, TierLike] = TIERS,
        **options: Any,
    ) -> None:
        self.memories = memories
        self._tiers = tiers
        self._names = Names(memories)
        self._shared = AssociativeMemoryBank(
            embedder, True, memories=memories.agent(_GAME_MASTERS), tiers=tiers
        )
        prefabs = {name: _Remembering(prefab, self) for name, prefab in config.prefabs.items()}
        config = dataclasses.replace(config, prefabs=prefabs)
        super().__init__(config, model, embedder, *args, **options)

    def memory_bank(self, entity_name: str) -> AssociativeMemoryBank:
        """A memory bank with the memories of the entity of this name."""
        agent_id = self._names.agent_id(entity_name)
        if agent_id == _GAME_MASTERS:
            raise InvalidInput(f"no entity may be called {_GAME_MASTERS!r}", hint="rename it")
        self._names.keep(entity_name)
        return AssociativeMemoryBank(memories=self.memories.agent(agent_id), tiers=self._tiers)

    @property
    def game_master_memory_bank(self) -> AssociativeMemoryBank:
        """The memory bank of all game masters."""
        return self._shared

    @game_master_memory_bank.setter
    def game_master_memory_bank(self, original: object) -> None:
        """Leave the one that Concordia makes: it is empty."""

    def save_checkpoint(self, step: int, checkpoint_path: str) -> None:
        """End a step: Concordia calls it after each one. A tick of the bank passes."""
        self.memories.pass_time(self.memories.tick + 1)
        super().save_checkpoint(step, checkpoint_path)

    def make_checkpoint_data(self) -> dict[str, Any]:
        """Concordia's checkpoint, and the bank's tick."""
        return {**super().make_checkpoint_data(), "tick": self.memories.tick}

    def load_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go to a checkpoint's state. Nothing of ``checkpoint`` is shared with the simulation."""
        super().load_from_checkpoint(copy.deepcopy(checkpoint))
        if checkpoint.get("tick", 0) > self.memories.tick:
            self.memories.advance(checkpoint["tick"])


class FormativeMemories(formative_memories_initializer.GameMaster):  # type: ignore[misc]
    """Concordia's initializer prefab. The memories that it gives to the players are pinned.

    Each gets the tag ``[formative]``, which :class:`AssociativeMemoryBank` pins.
    """

    def build(self, model: Any, memory_bank: Any) -> Any:
        """The game master, which marks what the players will observe."""
        game_master = super().build(model, memory_bank)
        observations = game_master.get_component(
            make_observation.DEFAULT_MAKE_OBSERVATION_COMPONENT_KEY
        )
        observations.add_to_queue = _marking(observations.add_to_queue)
        return game_master


def _marking(queue: Callable[[str, str], None]) -> Callable[[str, str], None]:
    """The queue of observations, where each event gets the tag; blank ones are left out."""

    def add_to_queue(entity_name: str, event: str) -> None:
        text = re.sub(r"\n{3,}", "\n\n", event.strip())  # three would begin another memory
        if text:
            queue(entity_name, f"{FORMATIVE} {text}")

    return add_to_queue


class _Remembering(prefab_lib.Prefab):  # type: ignore[misc]
    """A prefab whose entities have a memory bank of the simulation."""

    description = "a prefab whose entities remember in TierMem"

    def __init__(self, prefab: Any, simulation: Simulation) -> None:
        super().__init__(prefab.params, prefab.entities)
        self.prefab = prefab
        self.simulation = simulation

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Remembering":
        return _Remembering(copy.deepcopy(self.prefab, memo), self.simulation)

    def build(self, model: Any, memory_bank: Any) -> Any:
        """The prefab's entity; only game masters keep the memory bank that Concordia gives."""
        self.prefab.params, self.prefab.entities = self.params, self.entities
        if memory_bank is not self.simulation.game_master_memory_bank:
            if "name" not in self.params:
                raise InvalidInput(
                    f"an entity of {type(self.prefab).__module__} has no name",
                    hint="give params['name']: its memories are stored under it",
                )
            memory_bank = self.simulation.memory_bank(self.params["name"])
        return self.prefab.build(model=model, memory_bank=memory_bank)
