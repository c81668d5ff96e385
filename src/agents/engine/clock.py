"""The bank's time: the tick moves by a call, or where ``clock.mode`` is wall, as time passes.

The journal keeps each tick as an event, so a replay reads no clock.
"""

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ..errors import BankError, CommitFailed, CommitUnknown, InvalidInput
from ..memory.records import NEVER, TimePassed
from ..memory.requests import check_whole
from . import upkeep
from .engine import Engine

logger = logging.getLogger(__name__)

_MS_PER_DAY = 86_400_000
_FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, with which dates end."""
_LAST = NEVER - 1
"""The last tick there is: in a later one, what never expires would expire."""


def now_ms() -> int:
    """The wall clock in milliseconds. Nothing else reads it for a bank's tick."""
    return time.time_ns() // 1_000_000


class Anchor(NamedTuple):
    """A tick, and the wall clock at that tick: later ticks are counted from both."""

    tick: int
    ms: int
    ticks_per_day: int

    def tick_at(self, ms: int) -> int:
        """The tick when the wall clock shows ``ms``."""
        return self.tick + max(0, ms - self.ms) * self.ticks_per_day // _MS_PER_DAY


def anchor_of(bank: Engine) -> Anchor | None:
    """The bank's anchor; None for a bank that no wall clock ever moved."""
    journal = bank.journal
    with journal.reading():  # whoever made the journal can have written anything
        kept = journal.get("clock")
        return Anchor(*map(int, kept)) if kept else None


def ms_of(bank: Engine, tick: int) -> int:
    """When a tick was, in milliseconds since 1970.

    Where the wall clock moves the bank, the wall clock showed it. Else the ticks are counted from
    the beginning of 1970, so that the same run gives the same times.
    """
    first = _first(bank)
    ms = first.ms + (tick - first.tick) * _MS_PER_DAY // first.ticks_per_day
    return min(max(0, ms), _LAST_MS)


def _first(bank: Engine) -> Anchor:
    """A tick of the bank, and when it was."""
    settings = bank.settings.clock
    kept = anchor_of(bank) if settings.mode == "wall" else None
    return Anchor(0, 0, settings.ticks_per_day) if kept is None else kept


def date_of(bank: Engine, tick: int) -> str:
    """When a tick was, as :func:`ms_of` counts, in ISO 8601."""
    when = _FIRST_DAY + timedelta(milliseconds=ms_of(bank, tick))
    return when.isoformat(timespec="milliseconds")


def tick_of_date(bank: Engine, text: str) -> int:
    """The first tick that is not before a date in ISO 8601, of UTC unless it says otherwise.

    ``ValueError`` for what is no date.
    """
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return tick_of(bank, (when - _FIRST_DAY) // timedelta(milliseconds=1))


def tick_of(bank: Engine, ms: int) -> int:
    """The first tick that is not before these milliseconds since 1970, as :func:`ms_of` counts."""
    first = _first(bank)
    return first.tick - (first.ms - ms) * first.ticks_per_day // _MS_PER_DAY


def advance(bank: Engine, tick: int) -> None:
    """:meth:`MemoryBank.advance`."""
    check_whole("tick", tick, most=_LAST)
    with bank.changing():
        if tick < bank.tick:
            raise InvalidInput(
                f"the bank is at tick {bank.tick} and can't go back to {tick}",
                hint="MemoryBank.at() looks at an earlier tick",
            )
        if bank.settings.clock.mode == "wall":
            now = now_ms()
            if tick > bank.tick or not _is_right(bank, now):
                bank.ledger.advance(tick, _anchored(bank, tick, now))
        elif tick > bank.tick:
            bank.ledger.advance(tick, _anchored_before(bank, tick))


def pass_time(bank: Engine, tick: int) -> TimePassed:
    """:meth:`MemoryBank.pass_time`."""
    with bank.changing():
        if bank.journal.attachments.exist():
            raise BankError(
                "this is the bank of a simulation, whose run moves its ticks",
                hint="make the run longer with: tiermem resume RUN --ticks N",
            )
        before, pending = bank.tick, bank.ledger.pending()
        advance(bank, tick)
        _do_what_is_due(bank, before)
        done = bank.ledger.pending()
    names = ("expired", "purged", "promoted", "cooled", "archived")
    return TimePassed(before, tick, *[getattr(done, n) - getattr(pending, n) for n in names])


def chosen_tick(
    bank: Engine, to: int | None = None, by: int | None = None, days: int | None = None
) -> int:
    """The tick that a caller of :func:`pass_time` names in one of three ways."""
    given = [each for each in (to, by, days) if each is not None]
    if len(given) != 1:
        raise InvalidInput("say how far, once: to a tick, by ticks, or days")
    if to is not None:
        return to
    return bank.tick + (by if by is not None else bank.settings.clock.ticks(f"{days}d"))


def follow(bank: Engine) -> None:
    """:meth:`MemoryBank.follow_clock`."""
    with bank.using():
        if bank.settings.clock.mode != "wall" or bank.ledger.in_transaction:
            return
        try:
            _follow(bank, now_ms())
        except CommitUnknown:
            raise
        except CommitFailed as error:  # a bank that can't be written can still be read
            logger.warning("the clock stands still at tick %d: %s", bank.tick, error)


def _follow(bank: Engine, now: int) -> None:
    kept, before = anchor_of(bank), bank.tick
    # A wall clock that was set back does not move the tick back: the tick waits for it.
    tick = before if kept is None else max(before, min(kept.tick_at(now), _LAST))
    is_new = kept is None or kept.ticks_per_day != bank.settings.clock.ticks_per_day
    anchor = _anchored(bank, tick, now) if is_new else None
    if tick > before:
        with bank.changing():
            bank.ledger.advance(tick, anchor)
            _do_what_is_due(bank, before)
    elif anchor is not None:
        bank.journal.set(clock=anchor)


def _is_right(bank: Engine, now: int) -> bool:
    """Whether the bank's tick goes on as it should: a new anchor would lose a part of a tick.

    It does not if the wall clock was set back: the tick would wait for it.
    """
    kept = anchor_of(bank)
    rate = bank.settings.clock.ticks_per_day
    return kept is not None and kept.ticks_per_day == rate and kept.tick_at(now) >= bank.tick


def _anchored(bank: Engine, tick: int, now: int) -> Anchor:
    return Anchor(tick, now, bank.settings.clock.ticks_per_day)


def _anchored_before(bank: Engine, tick: int) -> Anchor | None:
    """A new anchor for a bank that follows the wall clock in other openings; None for no change.

    Without one, the tick would wait until the wall clock comes to it.
    """
    kept = anchor_of(bank)
    if kept is None or kept.tick_at(now := now_ms()) >= tick:
        return None
    return Anchor(tick, now, kept.ticks_per_day)


def _do_what_is_due(bank: Engine, before: int) -> None:
    """Do what a simulation does at the end of a tick, for all ticks after ``before``."""
    ticks, tick = bank.settings.clock.ticks, bank.tick
    fade_every = max(1, ticks(bank.settings.decay.every))
    if tick > before:
        upkeep.sweep_tick(bank, fade_every, before)
    if tick - before >= 2 * fade_every:  # what faded to warm may have faded to cold
        upkeep.sweep_tick(bank, fade_every, before)
    every = bank.settings.temperature.compact_every
    compact_every = every and ticks(every)
    if compact_every and tick // compact_every > before // compact_every:
        upkeep.compact(bank, None, dry_run=False)
