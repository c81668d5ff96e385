"""What becomes memories in a tick of a simulation."""

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidContent, InvalidInput, SimulationError, TierFull
from ...memory.checks import check_content
from ...memory.requests import Options
from ...memory.tiers import Tier
from ..protocols import Action, Observation, Outcome
from .actions import NOTE_ACTIONS, append_note, change_memory, memory_to_store
from .flushing import Contexts

__all__ = ["Recorder"]

_OBSERVED, _ACTED = Options("observation"), Options("action")


class Recorder:
    """Collects what becomes memories in a tick, to store it together.

    What comes of actions goes into ``contexts``, where they are counted.
    """

    def __init__(self, bank: MemoryBank, contexts: Contexts | None = None) -> None:
        self._bank = bank
        self._contexts = contexts
        memory = bank.settings.memory
        caps = {Tier.PINNED: memory.max_pinned, Tier.CRITICAL: memory.max_critical}
        reject = memory.on_tier_full == "reject"
        self._refusing = {tier for tier, cap in caps.items() if reject or cap == 0}
        self._most = memory.max_content_bytes
        self._new: list[tuple[object, ...]] = []

    def observed(self, seen: Observation) -> None:
        agent = seen.agent_id
        if seen.text and not seen.text.isspace():
            self._new.append((agent, seen.text, seen.tier, seen.metadata, _OBSERVED))
        for text, tier, metadata in seen.heard:
            self._new.append((agent, text, tier, metadata))

    def happened(self, agent: str, name: str, outcome: Outcome) -> None:
        if outcome.text and not outcome.text.isspace():
            own = {"action_type": name, "success": outcome.success}
            if outcome.metadata:
                own.update(outcome.metadata)
            self._new.append((agent, outcome.text, outcome.tier, own, _ACTED))
            if self._contexts is not None:
                self._contexts.saw(agent, outcome.text)

    def memory_action(self, agent: str, action: Action) -> None:
        if action.name in NOTE_ACTIONS:
            self.flush()
            append_note(self._bank.agent(agent), action, self._bank.tick)
            return
        if action.name != "store_memory":
            self.flush()
            change_memory(self._bank.agent(agent), action)
            return
        content, tier = memory_to_store(action)
        check_content(content, self._most)
        if tier in self._refusing:  # alone, so that a refusal is about this memory only
            self.flush()
            self._bank.agent(agent).add(str(content), tier)
        else:
            self._new.append((agent, content, tier))

    def flush(self) -> None:
        """Store what waits, in one batch."""
        waiting, self._new = self._new, []
        try:
            try:
                self._bank.add_many(waiting)
            except InvalidContent:
                self._bank.add_many(
                    [(item[0], self._keepable(item[1]), *item[2:]) for item in waiting]
                )
        except (InvalidInput, TierFull) as error:
            raise SimulationError(f"the world gave what can't become a memory: {error}") from error

    def _keepable(self, text: object) -> object:
        """The text, or what can be said of it: a world may repeat whatever an agent said."""
        try:
            return check_content(text, self._most)
        except InvalidContent as error:
            return f"(not kept: {error})"
