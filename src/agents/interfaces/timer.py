"""Lets the time pass in a bank that a server keeps open."""

import asyncio
import logging

from ..bank.async_bank import AsyncMemoryBank
from ..errors import TierMemError

logger = logging.getLogger(__name__)

_LONGEST, _SHORTEST = 60.0, 1.0
"""Seconds between two looks at the wall clock."""
_SECONDS_PER_DAY = 86_400


async def keep_time(bank: AsyncMemoryBank) -> None:
    """Follow the wall clock until cancelled; for a bank whose ticks calls move, do nothing."""
    clock = bank.settings.clock
    pause = min(_LONGEST, max(_SHORTEST, _SECONDS_PER_DAY / clock.ticks_per_day))
    while clock.mode == "wall":
        await asyncio.sleep(pause)
        try:
            await bank.follow_clock()
        except TierMemError as error:  # each operation will say so, too
            logger.error("the clock stands still: %s", error)
