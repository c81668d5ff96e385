"""How a memory begins, and how it ends: temperature and lifetime first, expiry last."""

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from ..config.settings import Settings
from ..errors import InvalidInput
from ..memory.events import Start
from ..memory.records import NEVER
from ..memory.requests import PLAIN_OPTIONS, Options
from ..memory.tiers import Retention, Temperature, Tier, parse_temperature
from ..rules.lifetime import initial_temperature
from ..storage.state.ledger import Ledger


@final
class Starts:
    """How the new memories of a bank begin, as the bank's settings say."""

    def __init__(self, settings: Settings) -> None:
        own, ticks = settings.temperature, settings.clock.ticks
        self._initial = parse_temperature(own.initial)
        self._warm_below = None if own.ttl_warm_below is None else ticks(own.ttl_warm_below)
        self._cold_below = None if own.ttl_cold_below is None else ticks(own.ttl_cold_below)
        self._plain = self._start(Tier.NORMAL, PLAIN_OPTIONS, 0)
        """How a memory without options begins that is not pinned."""

    def starts(
        self, tiers: Sequence[Tier], options: Sequence[Options], tick: int
    ) -> Sequence[Start | None]:
        """How each new memory begins; None for a warm fact, or a hot pinned one, without tags."""
        if options.count(PLAIN_OPTIONS) == len(options) and Tier.PINNED not in tiers:
            return (self._plain,) * len(tiers)
        known: dict[tuple[Options, bool], Start | None] = {}
        found = []
        for tier, own in zip(tiers, options, strict=True):
            key = own, tier is Tier.PINNED
            if key not in known:  # most of a tick's memories have the same few options
                known[key] = self._start(tier, own, tick)
            found.append(known[key])
        return found

    def _start(self, tier: Tier, options: Options, tick: int) -> Start | None:
        kind, tags, asked, ttl, expires, *_ = options
        if expires is not None:
            ttl = expires - tick
            if ttl <= 0:
                raise InvalidInput(
                    f"expires_tick {expires} is not after the current tick, {tick}",
                    hint=f"name a tick from {tick + 1} on",
                )
        if ttl is not None and tier is Tier.PINNED:
            raise InvalidInput(
                "a pinned memory does not expire",
                hint="leave out its lifetime, or use another tier",
            )
        if ttl is not None and tick + ttl >= NEVER:
            raise InvalidInput(f"a lifetime of {ttl} ticks is too long", hint="leave it out")
        temperature = initial_temperature(
            tier, asked, ttl, self._initial, self._warm_below, self._cold_below
        )
        usual = Temperature.HOT if tier is Tier.PINNED else Temperature.WARM
        if temperature is usual and kind == "fact" and not tags and ttl is None and asked is None:
            return None
        return Start(int(temperature), kind, tags, None if ttl is None else tick + ttl)


def expire_of(ledger: Ledger, agents: Iterable[str]) -> None:
    """Delete the expired memories of these agents, as :func:`expire` does."""
    resident = ledger.state
    for agent_id in resident.blocks.may_end(agents, resident.tick):
        expire(ledger, agent_id)


def has_overdue_pin(ledger: Ledger, agents: Iterable[str]) -> bool:
    """Whether one of these agents has a pinned memory past its end.

    It goes as soon as another pinned memory pushes it down, and the next memory comes.
    """
    blocks, tick = ledger.state.blocks, ledger.state.tick
    for agent_id in agents:
        block = blocks.get(agent_id)
        if block is not None and (block.column("expires")[list(block.pinned)] <= tick).any():
            return True
    return False


def expire(ledger: Ledger, agent_id: str, *, everywhere: bool = False) -> None:
    """Delete an agent's expired memories that take a place in hot or in a capped tier.

    With ``everywhere``, the expired cold memories go as well. The caller holds the transaction.
    """
    resident = ledger.state
    if everywhere:
        for expired, _ in resident.shelf.due(resident.tick, -1, agent_id).values():
            ledger.retain(agent_id, expired, Retention.DELETED, "expire")
    block, tick = resident.blocks.get(agent_id), resident.tick
    if block is None or (block.next_expiry > tick and not block.has_extras):
        return
    elsewhere = [
        sequence for sequence, memory in block.critical_elsewhere.items() if memory.is_expired(tick)
    ]
    ledger.retain(agent_id, sorted(elsewhere), Retention.DELETED, "expire")
    if block.next_expiry > tick:
        return
    expires = np.where(block.tiers == Tier.PINNED, NEVER, block.column("expires"))
    rows = np.flatnonzero(expires <= tick).tolist()
    expired = [block.sequence(row) for row in rows]
    ledger.retain(block.agent_id, expired, Retention.DELETED, "expire")
    block.next_expiry = int(expires[expires > tick].min(initial=NEVER))
