"""What decided a tick, as numbers: the form in which a bank's journal keeps it.

Memories are named by their sequence numbers, which the tick's record has already. The texts of
observations, remarks, outcomes and stored memories are memories: the log does not repeat them. It
keeps queries that are not the text of the observation, the facts, and the names and arguments of
the actions, and why agents say that they did them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson

from ...memory.tiers import Tier
from ...storage.journal.attachments import deflated, inflated
from ..protocols import NO_ARGUMENTS, Action, Answer, Observation, Outcome, Remark
from .given import Given

DONE, FAILED, UNANSWERED, REFUSAL = range(4)
"""What came of an action: done, done without success, a policy without an answer, refused."""

_FORM = b"\x01"
_TEXTS = {
    "store_memory": ("content",),
    "append_note": ("text",),
    "write_note": ("text",),
    "edit_note": ("old", "new"),
}
"""The arguments that become memories or notes."""
_MOST_DEEP = 8
_NOTHING = -1
"""The place of a reason for doing nothing."""


def is_said(what: Observation | Remark | Outcome) -> bool:
    """Whether it becomes a memory: a blank text does not."""
    return bool(what.text) and not what.text.isspace()


class DecisionLog:
    """Collects what decides one tick, in the order of the agents."""

    def __init__(self, observations: Sequence[Observation], given: Given) -> None:
        sizes = np.array(list(map(len, given.hits)), "<u4").tobytes()
        self.retrieved = sizes + given.sequences.astype("<u4").tobytes()
        """How many memories each agent got, then their sequence numbers."""
        self._scores = given.scores.astype("<f8", copy=False).tobytes()
        self._states = given.tiers.tobytes() + given.temperatures.tobytes()
        heard = [2 * sum(map(is_said, seen.heard)) + is_said(seen) for seen in observations]
        self._seen = _json(
            [
                [seen.query for seen in observations],
                [0 if seen.facts is NO_ARGUMENTS else seen.facts for seen in observations],
                heard,
            ]
        )
        self._did: list[Any] = []
        """Five values for each action: a list of lists would keep the garbage collector busy."""
        self._reasons: dict[str, list[list[Any]]] = {}
        """The place of an action among its agent's, and its reason; of actions that have one."""
        self._places: Counter[str] = Counter()
        self._asked: dict[str, list[list[Any]]] = {}
        self._repeated: Mapping[str, Sequence[tuple[int, int]]] = {}

    def did(self, agent: str, action: Action | None, result: int, *, born: bool) -> None:
        """An agent's action, and what came of it; ``born`` says that it became a memory.

        None stands for an answer that is not an action.
        """
        name, arguments, reason = action or (None, None, None)
        if reason is not None:
            self._reasons.setdefault(agent, []).append([self._places[agent], reason])
        self._places[agent] += 1
        if arguments and name in _TEXTS:
            arguments = {key: each for key, each in arguments.items() if key not in _TEXTS[name]}
        self._did += (agent, name, arguments or 0, result, born)

    def did_nothing(self, agent: str, reason: str | None) -> None:
        """Why an agent decided to do nothing; what it did is as without the reason."""
        self._reasons.setdefault(agent, []).append([_NOTHING, reason])

    def asked(self, agent: str, answer: Answer) -> None:
        """A question of an agent, and what it found."""
        (query, limit, cold, with_groups, session), hits, note = answer
        own = [hit for hit in hits if hit.memory.agent_id == agent]
        numbers = [hit.memory.sequence for hit in own], [hit.score for hit in own]
        boards = [
            [place, hit.memory.agent_id, hit.memory.sequence, hit.score]
            for place, hit in enumerate(hits)
            if hit.memory.agent_id != agent
        ]
        more: list[Any] = [boards] if with_groups else []
        if session is not None:
            more = [boards if with_groups else None, session]
        logged = [query, limit, cold, *numbers, note, *more]
        self._asked.setdefault(agent, []).append(logged)

    def repeated(self, found: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        """What was not a new memory, by agent: see :attr:`LoggedDecision.repeated`."""
        self._repeated = found

    def packed(self) -> bytes:
        """The log as bytes; the same decisions give the same bytes."""
        seen = self._seen
        if self._repeated:
            seen = seen.removesuffix(b"]") + b"," + _json(self._repeated) + b"]"
        did = [self._did, self._asked, self._reasons] if self._reasons else [self._did, self._asked]
        parts = (seen, _json(did), self._states)
        sizes = np.array(list(map(len, parts)), "<u4").tobytes()
        packed = deflated(sizes + b"".join(parts))
        return _FORM + len(packed).to_bytes(4, "little") + packed + self._scores


class LoggedDecision(NamedTuple):
    """What a log has of one agent."""

    query: str | None
    """None if it was the text of the observation."""
    facts: Any
    has_text: bool
    """Whether the observation became a memory: it is the first of the agent's new ones, unless it
    was repeated."""
    heard: int
    """How many remarks the agent heard; the next of its new memories."""
    sequences: list[int]
    """The memories that it was given, in order."""
    scores: list[float]
    tiers: list[int]
    temperatures: list[int]
    did: list[tuple[str | None, dict[str, Any], int, bool]]
    """Each action: name, arguments, what came of it, whether it became a memory."""
    asked: list[tuple[str, int | None, bool, list[int], list[float], str]]
    """Each question: query, limit, cold, the agent's memories that it found, their scores, a note.
    """
    boards: list[list[tuple[int, str, int, float]] | None]
    """For each question, what it found on boards: place, board, sequence number, score; None if it
    was not about groups."""
    sessions: Sequence[str | int | None] = ()
    """For each question, the session that it was about; None for all memories."""
    repeated: Sequence[tuple[int, int]] = ()
    """What was not a new memory, as the agent had it (``memory.merge_duplicates``): the place among
    all that it observed, heard and did and that became a memory, and the sequence number."""
    reasons: Sequence[tuple[int, str]] = ()
    """The place of an action in ``did``, and why the agent did it; of actions with a reason, and of
    a decision for nothing."""

    def reason(self, place: int) -> str | None:
        """Why the agent did the action at this place in ``did``, as its policy says."""
        return next((reason for at, reason in self.reasons if at == place), None)

    @property
    def idle(self) -> str | None:
        """Why the agent did nothing, as its policy says."""
        return self.reason(_NOTHING)


def plain(data: bytes) -> bytes:
    """A log without its packing: another version of zlib may deflate the same to other bytes."""
    if data[:1] != _FORM:
        raise ValueError("the decisions have a form that this version does not know")
    end = 5 + int.from_bytes(data[1:5], "little")
    return inflated(data[5:end], "a log of decisions") + data[end:]


def asked_first(data: bytes) -> tuple[list[str | None], list[bool], dict[str, int]]:
    """The query of each agent, None if it was the text of the observation; who had such a text.

    The last part has the memories that observations repeated, by the agent's id. It takes a tenth
    of the time of :func:`unpack`.
    """
    parts = plain(data)
    (size,) = np.frombuffer(parts[:4], "<u4").tolist()
    queries, _, heard, *more = orjson.loads(parts[12 : 12 + size])
    repeated = {agent: own[0][1] for each in more for agent, own in each.items() if not own[0][0]}
    return queries, [own % 2 == 1 for own in heard], repeated


def unpack(data: bytes, retrieved: bytes, agents: Sequence[str]) -> list[LoggedDecision]:
    """What a log has of each of a run's agents; ValueError for bytes that are not log.

    It has nothing of the last agents, if they came after the tick.
    """
    parts = plain(data)
    seen_size, did_size, states_size = np.frombuffer(parts[:12], "<u4").tolist()
    queries, facts, heard, *more = json.loads(parts[12 : 12 + seen_size])
    repeated = more[0] if more else {}
    did, asked, *more = json.loads(parts[12 + seen_size : 12 + seen_size + did_size])
    reasons = more[0] if more else {}
    end = 12 + seen_size + did_size + states_size
    states = parts[12 + seen_size + did_size : end]
    numbers = np.frombuffer(retrieved, "<u4").tolist()
    sizes, sequences = numbers[: len(queries)], numbers[len(queries) :]
    scores = np.frombuffer(parts[end:], "<f8").tolist()
    total = len(sequences)
    if not len(scores) == total == len(states) // 2 or len(queries) > len(agents):
        raise ValueError("the decisions are not of this run")
    did_by: dict[str, list[Any]] = {agent: [] for agent in agents}
    if max(states[:total], default=0) > Tier.LOW or max(did[3::5], default=0) > REFUSAL:
        raise ValueError("the decisions name a tier or a result that there is not")
    for agent, name, arguments, code, born in zip(*[iter(did)] * 5, strict=True):
        did_by[agent].append((name, arguments or {}, code, born))
    result = []
    for place, (start, stop) in enumerate(pairwise(accumulate(sizes, initial=0))):
        own = slice(start, stop)
        result.append(
            LoggedDecision(
                queries[place],
                facts[place] or {},
                bool(heard[place] % 2),
                heard[place] // 2,
                sequences[own],
                scores[own],
                list(states[:total][own]),
                list(states[total:][own]),
                did_by[agents[place]],
                [tuple(each[:6]) for each in asked.get(agents[place], ())],
                [each[6] if len(each) > 6 else None for each in asked.get(agents[place], ())],
                [each[7] if len(each) > 7 else None for each in asked.get(agents[place], ())],
                repeated.get(agents[place], ()),
                reasons.get(agents[place], ()),
            )
        )
    return result


def _json(value: object) -> bytes:
    """JSON of what a world or a policy gave. It may give anything, and the run goes on."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # keys that are not text, half characters, numbers beyond 64 bits, a circle
        return orjson.dumps(_safe(value, 0))


def _plain(value: object) -> object:
    """A value that JSON has, for a value that it lacks: the same in every process."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    return f"<{type(value).__name__}>"


def _safe(value: object, depth: int) -> object:
    """The value, as far as JSON can hold it."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if depth < _MOST_DEEP:
        if isinstance(value, Mapping):
            return {
                str(_safe(key, _MOST_DEEP)): _safe(each, depth + 1) for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [_safe(each, depth + 1) for each in value]
    return f"<{type(value).__name__}>"
