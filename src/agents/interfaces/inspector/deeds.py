"""What agents asked and did, to be found by words: each text once, with who had it when.

And who found which memory of a board: the board's own slice does not know it.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ...simulation.runs.why import RESULTS
from ...simulation.tick.decision_log import LoggedDecision
from .slices import Slices, batched

QUERY, ASKED, DID = "query", "asked", "did"
_WHATS = (QUERY, ASKED, DID, *RESULTS[1:])
_PLACES = {what: place for place, what in enumerate(_WHATS)}
_MOST_KNOWN = 10_000
_MOST_LETTERS = 200
"""Texts, and letters of a text, whose numbers stay in memory."""
_MOST_AT_ONCE = 200
_MOST_SEEN = 20_000
"""Texts that one look goes through: others who need the tables do not wait long."""
_TRIGRAM = 3
"""Letters that the index of words needs."""


class Occurrence(NamedTuple):
    """What an agent asked or did in a tick, by the numbers of agent and text."""

    tick: int
    agent: int
    what: str
    text: int


def deeds_of(kept: LoggedDecision) -> Iterator[tuple[str, str]]:
    """An agent's query, its questions and its actions in a tick: what it is, and its text.

    A query that was the text of the observation is left out: the observation is a memory.
    """
    if kept.query is not None:
        yield QUERY, kept.query
    for query, *_ in kept.asked:
        yield ASKED, query
    for name, arguments, result, _ in kept.did:
        text = name or "no action"
        if arguments:
            text += " " + orjson.dumps(arguments).decode()
        yield RESULTS[result] if result else DID, text


class Deeds:
    """The tables of texts, in the slices. The thread that reads the journal writes them."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._known: dict[str, int] = {}

    def take(self, tick: int, logs: Mapping[int, LoggedDecision]) -> None:
        """Keep what the agents, by their numbers, asked and did in a tick."""
        who: dict[str, array[int]] = {}
        for agent, kept in sorted(logs.items()):
            for place, (what, text) in enumerate(deeds_of(kept)):
                own = who.get(text)
                if own is None:
                    own = who[text] = array("I")
                own.extend((agent, place * len(_WHATS) + _PLACES[what]))
        for texts in batched(list(who), _MOST_AT_ONCE):
            self._slices.turns.after_requests()
            with self._slices.writing() as db:
                db.execute("BEGIN")
                rows = [(self._number(db, text), tick, who[text].tobytes()) for text in texts]
                db.executemany("INSERT INTO deeds VALUES (?, ?, ?)", rows)
                db.execute("COMMIT")

        self._note_boards(tick, logs)

    def _note_boards(self, tick: int, logs: Mapping[int, LoggedDecision]) -> None:
        """Keep who found what on boards."""
        place = self._slices.place
        rows = [
            (place(board), number, tick, agent)
            for agent, kept in sorted(logs.items())
            for own in kept.boards
            for _, board, number, _ in own or ()
        ]
        for some in batched(rows, _MOST_AT_ONCE):
            self._slices.turns.after_requests()
            with self._slices.writing() as db:
                db.execute("BEGIN")
                db.executemany("INSERT OR IGNORE INTO on_boards VALUES (?, ?, ?, ?)", some)
                db.execute("COMMIT")

    def about_board(self, board: int, number: int) -> list[tuple[int, int]]:
        """The ticks in which agents found a memory of a board, and who did, in this order."""
        return self._slices.ask(
            "SELECT tick, agent FROM on_boards WHERE board = ? AND sequence = ? "
            "ORDER BY tick, agent",
            (board, number),
        )

    def _number(self, db: Any, text: str) -> int:
        """The number of a text; a new text gets the next one."""
        found = self._known.get(text)
        if found is not None:
            return found
        row = db.execute("SELECT id FROM deed_texts WHERE text = ?", (text,)).fetchone()
        if row is None:
            number = int(db.execute("INSERT INTO deed_texts VALUES (NULL, ?)", (text,)).lastrowid)
            db.execute("INSERT INTO deed_words (rowid, text) VALUES (?, ?)", (number, text))
        else:
            number = row[0]
        if len(text) <= _MOST_LETTERS:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[text] = number
        return number

    def with_words(self, words: Sequence[str], most: int) -> list[Occurrence]:
        """The first ``most`` that hold all words, in the order of ticks and agents."""
        # A text's number tells when it came first, so texts with higher ones come later.
        texts = ids_with(self._slices, "deed_texts", "deed_words", words, most)
        with self._slices.writing() as db:
            found = merge(*(_said(db, text) for text in texts))
            return [_deed(each) for each in islice(found, most)]

    def in_ticks(self, ticks: Collection[int]) -> list[Occurrence]:
        """All of some ticks, in the order of ticks and agents."""
        wanted = frozenset(ticks)
        rows = self._slices.ask("SELECT tick, who, text FROM deeds")
        found = (
            each for tick, who, text in rows if tick in wanted for each in _each(tick, who, text)
        )
        return list(map(_deed, sorted(found)))

    def texts(self, numbers: Collection[int]) -> dict[int, str]:
        """The texts by their numbers."""
        wanted = orjson.dumps(list(numbers)).decode()
        sql = "SELECT id, text FROM deed_texts WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._slices.ask(sql, (wanted,)))


_Row = tuple[int, int, int, int]
"""Tick, agent, place in the decision and kind, text."""


def _said(db: Any, text: int) -> Iterator[_Row]:
    for tick, who in db.execute(
        "SELECT tick, who FROM deeds WHERE text = ? ORDER BY tick", (text,)
    ):
        yield from _each(tick, who, text)


def _each(tick: int, who: bytes, text: int) -> Iterator[_Row]:
    numbers = array("I", who)
    for agent, own in zip(numbers[::2], numbers[1::2], strict=True):
        yield tick, agent, own, text


def _deed(row: _Row) -> Occurrence:
    tick, agent, own, text = row
    return Occurrence(tick, agent, _WHATS[own % len(_WHATS)], text)


def ids_with(slices: Slices, texts: str, index: str, words: Sequence[str], most: int) -> list[int]:
    """The first ids of a table of texts that hold all words, in any order.

    The ``index`` finds words of three letters and more; shorter ones are looked for in the texts.
    """
    long = ['"' + word.replace('"', '""') + '"' for word in words if len(word) >= _TRIGRAM]
    short = [word.lower() for word in words if len(word) < _TRIGRAM]
    tables, tests, values = texts, [f"{texts}.text IS NOT NULL"], list[object]()
    if long:
        tables = f"{index} CROSS JOIN {texts} ON {texts}.id = {index}.rowid"
        tests.append(f"{index} MATCH ?")
        values.append(" AND ".join(long))
    tests += [f"holds({texts}.text, ?)"] * len(short)
    own = f"{index}.rowid" if long else f"{texts}.id"
    sql = (
        f"SELECT {own} FROM {tables} WHERE {' AND '.join(tests)} "  # noqa: S608
        f"AND {own} BETWEEN ? AND ? ORDER BY {own} LIMIT ?"
    )
    found: list[int] = []
    last = slices.ask(f"SELECT max(id) FROM {texts}")[0][0] or 0  # noqa: S608
    for first in range(1, last + 1, _MOST_SEEN):
        room = most - len(found)
        if not room:
            break
        span = first, first + _MOST_SEEN - 1
        found += [each for (each,) in slices.ask(sql, (*values, *short, *span, room))]
    return found
