"""What the calls of a language model cost: tokens, seconds and money, by the cassette of a run."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from ...config.settings import LlmSettings
from ...memory.context import approximate_tokens
from ...memory.words import counted, cut
from .cassette import Exchange

_MOST_PROBLEMS = 10
_LONGEST = 300
_LONGEST_PROBLEM = 100
_QUOTED = re.compile(r"[{\[].*", re.S)


class Call(NamedTuple):
    """One call of a model, or a question that was passed over: a row of ``calls.parquet``."""

    tick: int
    agent: str
    kind: str
    """What was asked for: decision, flush, questions, insights, importance, talk or interview."""
    model: str | None
    attempt: int
    """Counted from 1."""
    read: int
    """The tokens of the prompt, cached ones included."""
    cached: int
    """The tokens of the prompt that the model had read before."""
    written: int
    """The tokens of the answer."""
    estimated: bool
    """Whether the model counted no tokens, so that they are estimated from the texts."""
    seconds: float | None
    """How long the answer took."""
    cost: float | None
    """What it cost, by ``llm.prices``; None for a model without a price."""
    usable: bool
    problem: str | None
    """Why the answer was not usable, or why there was none."""


def calls_of(exchanges: Iterable[Exchange], settings: LlmSettings) -> list[Call]:
    """The calls of a run by tick and agent; those of an agent in a tick as they were answered."""
    prices = {price["model"]: price for price in settings.prices}
    calls = [_call(exchange, prices) for exchange in exchanges]
    return sorted(calls, key=attrgetter("tick", "agent"))


def _call(exchange: Exchange, prices: Mapping[str, Any]) -> Call:
    read, cached, written = exchange.read, exchange.cached or 0, exchange.written
    problem = exchange.problem
    is_estimated = False
    if exchange.reply is None:  # nobody answered, and nobody counted
        read, cached, written = 0, 0, 0
        problem = f"{exchange.kind}: {exchange.error}"
    elif exchange.shared:  # another call of the tick got the answer
        read, cached, written = 0, 0, 0
    elif read is None or written is None:
        is_estimated = True
        texts = "".join(message.get("content", "") for message in exchange.messages)
        read = approximate_tokens(texts) if read is None else read
        written = approximate_tokens(exchange.reply) if written is None else written
    price = prices.get(exchange.model or "")
    cost = None
    if price is not None:
        again = price.get("cached", price["read"])
        cost = ((read - cached) * price["read"] + cached * again + written * price["written"]) / 1e6
    return Call(
        exchange.tick, exchange.agent, exchange.purpose or "decision", exchange.model,
        exchange.attempt + 1, read, cached, written, is_estimated, exchange.seconds, cost,
        problem is None, problem,
    )  # fmt: skip


def line_of(exchange: Exchange, settings: LlmSettings) -> str:
    """What a call was for and what it cost, in a line for people."""
    (call,) = calls_of([exchange], settings)
    about = "about " if call.estimated else ""
    parts = [
        call.kind if call.model is None else f"{call.kind} by {call.model}",
        f"{about}{call.read:,} tokens read ({call.cached:,} cached), {call.written:,} written",
        "" if call.seconds is None else f"{call.seconds:g} s",
        "" if call.cost is None else f"cost {call.cost:,.3g}",
        "the answer of another agent to the same question" if exchange.shared else "",
        "" if call.problem is None else f"not usable: {call.problem}",
    ]
    return "; ".join(filter(None, parts))


class Spent(NamedTuple):
    """What calls came to."""

    calls: int
    read: int
    cached: int
    written: int
    cost: float | None
    """None if a model has no price."""
    seconds: float
    """All answers together; half of them took up to ``median_seconds``."""
    median_seconds: float

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.read + self.written


def spent(calls: Sequence[Call]) -> Spent:
    """The sums over calls."""
    answered = [call for call in calls if call.read or call.written]
    costs = [call.cost for call in answered]
    seconds = [call.seconds for call in calls if call.seconds is not None]
    return Spent(
        len(answered),
        sum(call.read for call in calls),
        sum(call.cached for call in calls),
        sum(call.written for call in calls),
        None if None in costs else round(math.fsum(cost for cost in costs if cost), 9),
        round(math.fsum(seconds), 3),
        round(median(seconds), 3) if seconds else 0.0,
    )


def spent_in_words(calls: Sequence[Call]) -> str:
    """What calls came to, in a line for people."""
    return in_words({**spent(calls)._asdict(), "estimated": any(call.estimated for call in calls)})


def in_words(sums: Mapping[str, Any]) -> str:
    """The sums of a summary, in a line for people."""
    about = "about " if sums["estimated"] else ""
    cost = "" if sums["cost"] is None else f", cost {sums['cost']:,.6g}"
    return (
        f"{counted(sums['calls'], 'call')}: {about}{sums['read']:,} tokens read "
        f"({sums['cached']:,} cached), {sums['written']:,} written, "
        f"{sums['median_seconds']:g} s each{cost}"
    )


def spent_by(calls: Sequence[Call], column: str) -> dict[Any, Spent]:
    """The sums by tick, agent, kind or model."""
    key = attrgetter(column)
    rows = sorted((call for call in calls if key(call) is not None), key=key)
    return {value: spent(list(own)) for value, own in groupby(rows, key)}


def summary_of_calls(exchanges: Sequence[Exchange], settings: LlmSettings) -> dict[str, Any]:
    """What a run's calls came to, as JSON values, with why answers were not usable."""
    calls = calls_of(exchanges, settings)
    problems = Counter(alike(call.problem) for call in calls if call.problem is not None)
    most = sorted(problems.items(), key=lambda each: (-each[1], each[0]))[:_MOST_PROBLEMS]
    return {
        **spent(calls)._asdict(),
        "estimated": any(call.estimated for call in calls),
        "usable": sum(call.usable for call in calls),
        "unusable": sum(problems.values()),
        "problems": dict(most),
        "example": _example(exchanges),
        **{
            f"by_{column}": {name: own._asdict() for name, own in spent_by(calls, column).items()}
            for column in ("kind", "model", "agent")
        },
    }


def _example(exchanges: Iterable[Exchange]) -> dict[str, Any] | None:
    """The first answer that was not usable, by tick and agent."""
    found = (each for each in exchanges if each.problem is not None)
    first = min(found, key=attrgetter("tick", "agent", "attempt"), default=None)
    return first and {
        "tick": first.tick,
        "agent": first.agent,
        "problem": first.problem,
        "reply": cut(first.reply or "", _LONGEST),
    }


def alike(problem: str) -> str:
    """A problem without what differs from reply to reply: numbers, and what is quoted."""
    plain = re.sub(r"\d+", "N", _QUOTED.sub("", problem)).rstrip(" :(")
    return cut(plain or problem, _LONGEST_PROBLEM)
