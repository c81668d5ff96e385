"""How the model keeps tiers and hot within their limits."""

from collections.abc import Collection, Iterable

from .model_memories import ACTIVE, COLD, HOT, OFTEN, PINNED, WARM, Kept, Refused
from .model_state import ModelState


class ModelLimits(ModelState):
    """Room in a tier or in hot: who has to leave it, and where to."""

    def _in_tier(self, agent: str, tier: int, without: int | None) -> list[Kept]:
        return [m for m in self.of(agent) if m.tier == tier and m.sequence != without]

    def _make_room(self, agent: str, tier: int, newcomer: int | None) -> None:
        cap = self.rules.cap(tier)
        present = self._in_tier(agent, tier, newcomer)
        if cap is None or len(present) < cap:
            return
        if self.rules.reject or cap == 0:
            raise Refused("full")
        self._push_down(present, newcomer)

    def _push_down(self, present: list[Kept], newcomer: int | None) -> None:
        """Move the oldest one tier down, and the oldest of that tier too where it was full."""
        while present:
            falling = min(present, key=lambda memory: memory.entered)
            target = falling.tier + 1
            while self.rules.cap(target) == 0:
                target += 1
            cap = self.rules.cap(target)
            below = self._in_tier(falling.agent_id, target, newcomer)
            self._enter(falling, target)
            present = below if cap is not None and len(below) >= cap else []

    def _enter(self, memory: Kept, tier: int) -> None:
        if tier == PINNED:
            memory.temperature, memory.retention = HOT, ACTIVE
        elif memory.tier == PINNED:
            memory.temperature = WARM
        memory.tier, memory.tier_tick = tier, self.tick
        self._enters(memory)

    def _enters(self, memory: Kept) -> None:
        self.entries = memory.entered = self.entries + 1

    def fits(self, memory: Kept) -> bool:
        """Whether hot could hold it beside what is pinned."""
        pinned = [m for m in self.pinned(memory.agent_id) if m is not memory]
        room = self.rules.hot_tokens - sum(each.cost for each in pinned)
        return memory.cost <= room and len(pinned) < self.rules.hot_facts

    def _relieve_hot(self, agent: str, newcomers: Collection[int]) -> None:
        """Newcomers that hot can never hold leave it, then the least relevant while it is over."""
        if not self.rules.auto_spill:
            return
        new = [m for m in self._least_relevant(agent) if m.sequence in newcomers]
        self._leave_hot(memory for memory in new if not self.fits(memory))
        self._leave_hot(self._over(agent, newcomers), newcomers)

    def _over(self, agent: str, newcomers: Collection[int] = ()) -> list[Kept]:
        """What leaves hot until it is within its limits: the newcomers last.

        But the most relevant one stays even longer, if it was promoted.
        """
        hot, leaving = self.hot(agent), []
        order = self._least_relevant(agent)
        staying = [memory for memory in order[-1:] if memory.is_promoted]
        order.sort(key=lambda m: (m in staying, m.sequence in newcomers))
        for memory in order:
            if len(hot) > self.rules.hot_facts or sum(m.cost for m in hot) > self.rules.hot_tokens:
                leaving.append(memory)
                hot.remove(memory)
        return leaving

    def _least_relevant(self, agent: str) -> list[Kept]:
        hot = [memory for memory in self.hot(agent) if memory.tier != PINNED]
        return sorted(hot, key=lambda m: (-m.missing, m.created_tick, m.sequence))

    def _leave_hot(
        self, memories: Iterable[Kept], newcomers: Collection[int] = ()
    ) -> dict[int, int]:
        """Warm if it was used often, or was never hot in earnest; else cold."""
        moved = {}
        for memory in list(memories):
            is_new = memory.sequence in newcomers
            stays_near = memory.access_count >= OFTEN or is_new or not self.fits(memory)
            memory.temperature = moved[memory.sequence] = WARM if stays_near else COLD
        return moved
