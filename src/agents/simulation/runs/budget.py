"""Budgets: what a run may cost, checked between two ticks, and what its interviews may cost."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, final

from ...config.settings import LlmSettings, Settings
from ...errors import ConfigError, RunError, RunPaused
from ..policies.cassette import read_from
from ..policies.costs import Call, calls_of
from ..workers.cells import CASSETTE, SHARDS


def check_prices(settings: Settings) -> None:
    """Refuse a bound on the cost of a model without a price."""
    if settings.llm.budget.cost is not None and not settings.llm.prices:
        raise ConfigError(
            "llm.budget.cost is set, and no model has a price",
            hint="set llm.prices, for example [{model: gpt-4.1-mini, read: 0.4, written: 1.6}]",
        )


@final
class Purse:
    """What a run has spent, tick by tick, by the cassettes in its folder.

    A branch counts what it asked itself: in ticks of its own, and behind the ``cassette`` bytes
    that its cassette has from its parent. At least one tick is run, because nobody knows what the
    first one costs.
    """

    def __init__(self, folder: Path, settings: Settings, about: Mapping[str, Any]) -> None:
        self._folder = folder
        self._settings = settings.llm
        self._read: dict[Path, int] = {}
        self._known: set[Any] = set()
        self._spent: dict[str, dict[int, float]] = {"tokens": {}, "cost": {}}
        self._began = self._tick_began = time.monotonic()
        self._longest = 0.0
        parent = about.get("parent") or {}
        self._after: int = parent.get("tick", 0)
        if free := parent.get("cassette", 0):
            own = folder / CASSETTE
            exchanges, self._read[own] = read_from(own, 0, free)
            self._known.update(exchange.key for exchange in exchanges)

    def check(self, *, is_after_tick: bool) -> None:
        """Pause the run if the next tick would exceed the budget, going by the dearest so far."""
        now = time.monotonic()
        if is_after_tick:
            self._longest = max(self._longest, now - self._tick_began)
        self._tick_began = now
        budget = self._settings.budget
        if budget.tokens is None and budget.cost is None and budget.minutes is None:
            return
        self._count()
        minutes = ((now - self._began) / 60, self._longest / 60) if is_after_tick else (0.0, 0.0)
        for name, (spent, dearest) in {
            "tokens": self._sums("tokens"), "cost": self._sums("cost"), "minutes": minutes
        }.items():  # fmt: skip
            limit = getattr(budget, name)
            if limit is not None and spent + dearest > limit:
                raise RunPaused(
                    f"llm.budget.{name} is {limit:,g}: {spent:,.6g} is spent, and the dearest tick "
                    f"so far took {dearest:,.6g}",
                    hint=f"give it more: tiermem resume {quote(str(self._folder))} "
                    f"--set llm.budget.{name}=NUMBER",
                )

    def _sums(self, name: str) -> tuple[float, float]:
        """What all ticks took, and the dearest."""
        ticks = self._spent[name].values()
        return sum(ticks), max(ticks, default=0)

    def _count(self) -> None:
        """Add the calls that were recorded since the last time."""
        for path in self._cassettes():
            exchanges, self._read[path] = read_from(path, self._read.get(path, 0))
            new = [
                exchange
                for exchange in exchanges
                if exchange.tick > self._after and exchange.key not in self._known
            ]
            self._known.update(exchange.key for exchange in new)
            for call in calls_of(new, self._settings):
                cost = call.cost
                if cost is None and self._settings.budget.cost is not None and call.read:
                    raise RunPaused(
                        f"llm.budget.cost is set, and the model {call.model!r:.80} has no price",
                        hint=f"give it one: tiermem resume {quote(str(self._folder))} "
                        "--set 'llm.prices=[{model: NAME, read: PRICE, written: PRICE}]'",
                    )
                for name, value in (("tokens", call.read + call.written), ("cost", cost or 0.0)):
                    ticks = self._spent[name]
                    ticks[call.tick] = ticks.get(call.tick, 0) + value

    def _cassettes(self) -> Iterator[Path]:
        """The run's own, and those of its cells while it is spread over workers."""
        yield self._folder / CASSETTE
        yield from sorted((self._folder / SHARDS).glob(f"cell-*/{CASSETTE}"))


@final
class InterviewBudget:
    """How many questions of interviews may be asked within ``llm.budget``, by those so far.

    The interviews of a run have it together, and apart from the run. ``minutes`` are those of one
    interview.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._began = time.monotonic()
        self._spent = {"tokens": 0.0, "cost": 0.0}
        self._dearest = {"tokens": 0.0, "cost": 0.0}

    @property
    def is_set(self) -> bool:
        """Whether there is a bound."""
        budget = self._settings.budget
        return not (budget.tokens is None and budget.cost is None and budget.minutes is None)

    def add(self, calls: Iterable[Call]) -> None:
        """Count calls."""
        for call in calls:
            for name, value in (("tokens", call.read + call.written), ("cost", call.cost or 0.0)):
                self._spent[name] += value
                self._dearest[name] = max(self._dearest[name], value)

    def check_price(self, calls: Iterable[Call]) -> None:
        """Refuse to go on with a model that has no price, if what it costs is bounded."""
        bare = next((call for call in calls if call.cost is None and call.read), None)
        if self._settings.budget.cost is not None and bare is not None:
            raise RunError(
                f"llm.budget.cost is set, and the model {bare.model!r:.80} has no price",
                hint="give it one: --set 'llm.prices=[{model: NAME, read: PRICE, written: PRICE}]'",
            )

    def room(self, at_once: int) -> int:
        """How many questions may be asked next, up to ``at_once``; RunError if none.

        One that nobody can estimate, because there was none before, is asked alone.
        """
        if not self.is_set:
            return sys.maxsize
        most, minutes = at_once, (time.monotonic() - self._began) / 60
        for name, spent, dearest in (
            *((name, self._spent[name], self._dearest[name]) for name in self._spent),
            ("minutes", minutes, 0.0),
        ):
            limit = getattr(self._settings.budget, name)
            if limit is None:
                continue
            if spent + dearest > limit:
                took = f", and the dearest question took {dearest:,.6g}" if dearest else ""
                raise RunError(
                    f"llm.budget.{name} is {limit:,g}: the interviews of this run spent "
                    f"{spent:,.6g}{took}",
                    hint="the answers that came are kept; the same interview asks for the rest "
                    f"with more: --set llm.budget.{name}=NUMBER",
                )
            if name != "minutes":
                most = min(most, int((limit - spent) / dearest) if dearest else 1)
        return max(1, most)
