"""Ideas: beliefs that say the same, by text or by meaning; who holds them, and who is divided.

An idea begins with its first memory, in the order of the journal, and has the text of that one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...storage.embedding import norms, product_dtype
from .beliefs import beliefs, weight_of
from .columns import NOT_GONE, Columns, Numbers
from .forgetting import kaplan_meier

if TYPE_CHECKING:
    import pyarrow as pa

By = Literal["text", "meaning"]
SAME = 0.85
"""From this cosine on, two texts are one idea, if no number in them differs."""
_MOST_TEXTS = 10_000
"""Texts that are compared by meaning, the first of the run; later ones are ideas of their own."""
_BLOCK = 256
_NUMBERS = re.compile(r"[0-9]+")


def same_ideas(columns: Columns, by: By = "text", same: float = SAME) -> Numbers:
    """For each memory the row of the first one of its idea; -1 for what is no belief.

    By meaning, each new text joins the idea whose first text it is nearest to, with a cosine of
    ``same`` at least and the same numbers in it; otherwise it begins an idea.
    """
    idea = np.full(len(columns), -1)
    is_known = np.array([text is not None for text in columns.text], np.bool_)
    rows = np.flatnonzero(beliefs(columns) & is_known)
    _, first, text = np.unique(columns.same_words()[rows], return_index=True, return_inverse=True)
    leads = rows[first]
    if by == "meaning":
        order = np.argsort(leads)[:_MOST_TEXTS]
        leads[order] = _leaders(columns, leads[order], same)
    idea[rows] = leads[text]
    return idea


def _leaders(columns: Columns, rows: Numbers, same: float) -> Numbers:
    """For each of some memories with different texts, in order of birth, the first of its idea."""
    vectors = columns.vectors()[rows]
    lengths = norms(vectors)
    wide = vectors.astype(product_dtype(columns.dims))
    numbers = [tuple(_NUMBERS.findall(columns.text[row] or "")) for row in rows.tolist()]
    found = rows.copy()
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, own in enumerate(numbers):
        if lengths[place]:  # without a vector, a text is an idea of its own
            groups.setdefault(own, []).append(place)
    for places in groups.values():
        for place, leader in _joined(wide, lengths, places, same):
            found[place] = rows[leader]
    return found


def _joined(
    wide: NDArray[Any], lengths: NDArray[np.float64], places: Sequence[int], same: float
) -> Iterator[tuple[int, int]]:
    """Each text that joins an idea, and the first text of that idea.

    Products of whole numbers are exact, so they may be made for a block of texts at a time.
    """
    leaders: list[int] = []
    for begin in range(0, len(places), _BLOCK):
        block = places[begin : begin + _BLOCK]
        near = wide[block] @ wide[[*leaders, *block]].T / lengths[[*leaders, *block]]
        near /= lengths[block][:, None]
        columns = list(range(len(leaders)))  # of near: those of the leaders so far
        for number, place in enumerate(block):
            cosines = near[number, columns]
            nearest = int(np.argmax(cosines)) if columns else 0
            if columns and cosines[nearest] >= same:
                yield place, leaders[nearest]
            else:
                columns.append(near.shape[1] - len(block) + number)
                leaders.append(place)


class Held(NamedTuple):
    """From when to when agents held an idea, an agent after the other."""

    agents: Numbers
    since: Numbers
    until: Numbers
    """:data:`NOT_GONE` for an agent that holds it at the end."""


def held(columns: Columns, rows: Numbers) -> Held:
    """Who held the idea of these memories: from the first one to the end of the last one."""
    agents, place = np.unique(columns.agent[rows], return_inverse=True)
    since = np.full(len(agents), columns.last_tick)
    np.minimum.at(since, place, columns.born[rows])
    ends = np.where(columns.is_there()[rows], np.iinfo(np.int64).max, columns.gone[rows])
    until = np.zeros(len(agents), np.int64)
    np.maximum.at(until, place, ends)
    until[until == np.iinfo(np.int64).max] = NOT_GONE
    return Held(agents, since, until)


def half_life(columns: Columns, own: Held) -> int | None:
    """The ticks after which half of those who came to hold an idea hold it no more.

    It is the median of Kaplan and Meier: who holds it at the end counts as long as it did. None if
    more than half still hold it.
    """
    is_gone = own.until != NOT_GONE
    ages = np.where(is_gone, own.until, columns.last_tick) - own.since
    lost_at, _, _, share, *_ = kaplan_meier(ages, is_gone)
    over = np.flatnonzero(share <= 0.5)
    return int(lost_at[over[0]]) if len(over) else None


def most(columns: Columns, own: Held) -> tuple[int, int]:
    """How many agents held an idea at one time at most, and the first tick of that."""
    change = np.zeros(columns.last_tick + 2, np.int64)
    np.add.at(change, own.since, 1)
    np.add.at(change, own.until[own.until != NOT_GONE], -1)
    holders = np.cumsum(change[:-1])
    peak = int(np.argmax(holders))
    return int(holders[peak]), peak


def members(idea: Numbers, least: int, agents: Numbers) -> Iterator[Numbers]:
    """The memories of each idea that ``least`` agents held or more, in order of first birth."""
    order = np.argsort(idea, kind="stable")
    order = order[idea[order] >= 0]
    starts = np.flatnonzero(np.diff(idea[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        if len(rows) and len(np.unique(agents[rows])) >= least:
            yield rows


def table(columns: Columns, by: By = "text", same: float = SAME, least: int = 2) -> "pa.Table":
    """The ideas that ``least`` agents held at some time, those that most held first."""
    import pyarrow as pa

    found: list[dict[str, Any]] = []
    words = columns.same_words()
    for rows in members(same_ideas(columns, by, same), least, columns.agent):
        own = held(columns, rows)
        peak, when = most(columns, own)
        first = int(rows[0])
        found.append(
            {
                "idea": columns.id_of(first),
                "agent": columns.agents[int(columns.agent[first])],
                "tick": int(columns.born[first]),
                "text": columns.text[first],
                "texts": len(np.unique(words[rows])),
                "holders": len(own.agents),
                "believers": int((own.until == NOT_GONE).sum()),
                "most": peak,
                "most_tick": when,
                "half_life": half_life(columns, own),
            }
        )
    found.sort(key=lambda row: -row["holders"])
    texts = {name: pa.string() for name in ("idea", "agent", "text")}
    numbers = ("texts", "holders", "believers", "most", "most_tick", "half_life")
    kinds = {"idea": texts["idea"], "agent": texts["agent"], "tick": pa.int64(),
             "text": texts["text"], **dict.fromkeys(numbers, pa.int64())}  # fmt: skip
    return pa.Table.from_pylist(found, pa.schema(kinds))


# Sides: what agents believe of a subject, where several things can be believed


class Opinions(NamedTuple):
    """What agents believe of a subject, in each tick."""

    sides: tuple[str, ...]
    """The sentences between which they are divided."""
    held: NDArray[np.int64]
    """For each tick and agent the place of its side; -1 for none, or for none more than another."""

    def counts(self) -> NDArray[np.int64]:
        """For each tick and side, how many agents are on it."""
        return np.array([(self.held == side).sum(axis=1) for side in range(len(self.sides))]).T


def opinions(columns: Columns, sides: tuple[str, ...]) -> Opinions:
    """On which side each agent is: the one that most of its memories say.

    A memory says a sentence if that is in its text, and no other one is; it weighs 1 / (1 + hands).
    """
    is_belief = beliefs(columns)
    says: dict[str, int] = {}
    side_of = np.full(len(columns), -1)
    for row in np.flatnonzero(is_belief).tolist():
        text = columns.text[row]
        if text is None:
            continue
        if text not in says:
            found = [place for place, sentence in enumerate(sides) if sentence in text]
            says[text] = found[0] if len(found) == 1 else -1
        side_of[row] = says[text]
    balance = np.array(
        [weight_of(columns, (side_of == place).astype(np.int64)) for place in range(len(sides))]
    )
    best = balance.max(axis=0)
    is_clear = (best > 0) & ((balance == best).sum(axis=0) == 1)
    return Opinions(sides, np.where(is_clear, balance.argmax(axis=0), -1))


def polarisation(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """How divided those are who are on a side, from 0 (all on one) to 1 (equally many on each).

    It is the chance that two of them are on different sides, as a part of its greatest value. For
    two sides it is the variance of their opinions, -1 and 1. It is NaN where nobody is on a side.
    """
    sides = counts.shape[1]
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = (counts * counts).sum(axis=1) / (total * total)
    if sides < 2:
        return np.where(total > 0, 0.0, np.nan)
    return np.where(total > 0, ((1 - alike) * sides / (sides - 1)).round(9), np.nan)


class Consensus(NamedTuple):
    """The end of a dispute."""

    side: str | None
    """The sentence that most agents believe at the end; None if no side is ahead."""
    share: float
    """Of all agents, how many believe it at the end."""
    tick: int | None
    """The first tick from which on, until the end, the wanted share of all believed it."""


def consensus(found: Opinions, agents: int, share: float) -> Consensus:
    """When agents came to agree for good: so many of all of them are on one side until the end."""
    counts = found.counts()
    last = counts[-1]
    best = int(last.max(initial=0))
    if not best or (last == best).sum() > 1:
        return Consensus(None, round(best / max(1, agents), 9), None)
    side = int(last.argmax())
    agree = counts[:, side] >= share * agents
    tick = None
    if agree[-1]:
        before = np.flatnonzero(~agree)
        tick = int(before[-1]) + 1 if len(before) else 0
    return Consensus(found.sides[side], round(best / agents, 9), tick)
