"""How new memories begin: how warm they are, and when they expire."""

from collections.abc import Sequence
from typing import final

from ..config.settings import Settings
from ..errors import InvalidInput
from ..memory.events import Start
from ..memory.records import NEVER
from ..memory.requests import PLAIN_OPTIONS, Options
from ..memory.temperature import Temperature, parse_temperature
from ..memory.tiers import Tier
from ..rules.lifetime import initial_temperature

__all__ = ["Starts"]

_MOST_STARTS = 4096


@final
class Starts:
    """How the new memories of a bank begin, as its settings say."""

    def __init__(self, settings: Settings) -> None:
        own, ticks = settings.temperature, settings.clock.ticks
        self._initial = parse_temperature(own.initial)
        self._warm_below = None if own.ttl_warm_below is None else ticks(own.ttl_warm_below)
        self._cold_below = None if own.ttl_cold_below is None else ticks(own.ttl_cold_below)
        self._known: dict[tuple[Options, bool], Start | None] = {}
        """How memories with these options begin: most of a tick's are alike."""
        self._plain = self.start(Tier.NORMAL, PLAIN_OPTIONS, 0)
        """How a memory begins of which nothing is said, and that is not pinned."""

    def starts(
        self, tiers: Sequence[Tier], options: Sequence[Options], tick: int
    ) -> Sequence[Start | None]:
        """How new memories begin; None for one that begins as its tier alone says."""
        plain = self._plain
        if options.count(PLAIN_OPTIONS) == len(options) and Tier.PINNED not in tiers:
            return (plain,) * len(tiers)
        return [
            plain if tier and own is PLAIN_OPTIONS else self.start(tier, own, tick)
            for tier, own in zip(tiers, options, strict=True)
        ]

    def start(self, tier: Tier, options: Options, tick: int) -> Start | None:
        """How a new memory begins, as in :meth:`starts`."""
        key = (options, tier is Tier.PINNED)
        if key in self._known:
            return self._known[key]
        kind, tags, asked, ttl, expires = options
        if asked is None and ttl is None and expires is None:
            temperature = Temperature.HOT if tier is Tier.PINNED else self._initial
            start = None
            if temperature != _usual(tier) or kind != "fact" or tags:
                start = Start(int(temperature), kind, tags, None)
            if len(self._known) < _MOST_STARTS:
                self._known[key] = start
            return start
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
        return Start(int(temperature), kind, tags, None if ttl is None else tick + ttl)


def _usual(tier: Tier) -> Temperature:
    return Temperature.HOT if tier is Tier.PINNED else Temperature.WARM
