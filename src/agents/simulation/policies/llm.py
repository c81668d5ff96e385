"""The policy ``llm``: a language model decides, and a cassette records its replies."""

import itertools
import json
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, final

from ...config.load import load_settings
from ...config.settings import ReflectionSettings
from ...errors import ChatFailed, ConfigError, InvalidInput
from ...memory.context import one_line, render
from ...memory.records import Hits, Memory
from ...memory.sources import MOST_EVIDENCE, check_importance
from ...notes.flush import SILENT_REPLY
from ..protocols import Action, Answer, Ask, Insight, Observation
from ..tick.actions import ASK_ACTIONS, GROUP_ASKS, NO_OP, OWN_ACTIONS
from . import as_actions, check_keepable
from .cassette import Cassette, Exchange, hash_prompt

DEFAULT_TIMEOUT = 60.0
"""The seconds that an attempt may take."""

_FORMAT = """\
Reply with JSON and nothing else, in this form:
{"actions": [{"name": "...", "arguments": {"...": "..."}}]}
The actions are done in order. An empty list means that you do nothing."""
_FLUSH_ATTEMPTS = 2
_Messages = list[dict[str, str]]


class Model(Protocol):
    """A language model; :class:`~tiermem.storage.mem0.models.ChatModel` is one."""

    def prepare(self) -> None:
        """Called before the first question. An error ends the run."""

    def reply(self, messages: _Messages) -> str:
        """The reply, or ChatFailed. Many threads call it at once; a call may never return."""


@final
class Llm:
    """Asks ``model`` for the actions of every agent, up to ``concurrency`` agents at once.

    It does not ask a question that the cassette holds, so the same cassette gives the same actions.
    An attempt fails by an error, by ``timeout`` seconds without a reply, or by a reply in the wrong
    form. After ``retries`` more attempts the agent's action is ``NO_OP``. After an error the next
    attempt waits ``pause`` seconds, and twice as long each time.

    ``world_actions`` and ``own_actions``, on memories and notes, are descriptions by name;
    ``system`` is the scenario's own text. ``reflection`` says how many questions and insights a
    reflection has.
    """

    def __init__(
        self,
        model: Model,
        cassette: Cassette,
        world_actions: Mapping[str, str],
        own_actions: Mapping[str, str] = OWN_ACTIONS,
        reflection: ReflectionSettings | None = None,
        *,
        system: str = "",
        retries: int = 2,
        timeout: float = DEFAULT_TIMEOUT,
        concurrency: int = 8,
        pause: float = 1.0,
    ) -> None:
        if retries < 0 or timeout <= 0 or concurrency < 1 or pause < 0:
            raise ConfigError(
                f"policy llm: retries ({retries}) and pause ({pause}) are at least 0, concurrency "
                f"({concurrency}) is at least 1 and timeout ({timeout}) is more than 0",
                hint="change it in simulation.policy_options",
            )
        self._model = model
        self._cassette = cassette
        self._system = _system_text(system, world_actions, own_actions)
        self._can_ask = "search_memory" in own_actions
        self._persona = system.strip()
        self._reflection = reflection or load_settings().reflection
        self._attempts = retries + 1
        self._timeout = timeout
        self._concurrency = concurrency
        self._pause = pause

    def decide(
        self, observation: Observation, memories: Hits, rng: Random
    ) -> Sequence[Action] | Sequence[Ask]:
        """The actions of one agent, or its questions."""
        return self.decide_all([observation], [memories], [rng])[0]

    def decide_all(
        self, observations: Sequence[Observation], memories: Sequence[Hits], rngs: Sequence[Random]
    ) -> Sequence[Sequence[Action] | Sequence[Ask]]:
        """The actions of each agent, or its questions, in the order of ``observations``."""
        turns = [
            _Turn(seen, self._messages(seen, _user_text(seen, hits)), self._attempts, _decided_in)
            for seen, hits in zip(observations, memories, strict=True)
        ]
        self._decide(turns)
        return [
            (self._can_ask and _questions(turn.actions)) or turn.actions
            if turn.failure is None
            else [Action(NO_OP, {"reason": turn.failure})]
            for turn in turns
        ]

    def flush(
        self, observation: Observation, memories: Hits, rng: Random, prompt: str
    ) -> Sequence[Action]:
        """The actions by which one agent saves before its context is compacted.

        After two attempts it is ChatFailed. A second call fails at once: the cassette holds both
        attempts.
        """
        text = f"{_user_text(observation, memories)}\n\n{prompt}"
        turn = _Turn(
            observation, self._messages(observation, text), _FLUSH_ATTEMPTS, _actions_to_save
        )
        self._decide([turn])
        if turn.failure is not None:
            raise ChatFailed("NoUsableReply", turn.failure)
        return turn.actions

    def reflect(
        self, observation: Observation, memories: Sequence[Memory], rng: Random
    ) -> Sequence[Insight] | Sequence[Ask]:
        """Questions about an agent's latest memories, and then insights from what they found.

        It is ChatFailed if no reply is usable.
        """
        own, agent = self._reflection, observation.agent_id
        if not observation.answers:
            prompt = questions_prompt(agent, memories, own.questions)
            turn = self._thought(observation, prompt, questions_in(own.questions))
            self._decide([turn])
            _check_one([turn])
            return [Ask(question) for question in turn.actions]
        turns = []
        for answer in observation.answers:
            if found := [hit.memory for hit in answer.hits]:
                prompt = insights_prompt(agent, answer.ask.query, found, own.insights)
                turns.append(self._thought(observation, prompt, insights_in(found, own.insights)))
        self._decide(turns)
        _check_one(turns)
        return [insight for turn in turns for insight in turn.actions]

    def rate_all(
        self, observations: Sequence[Observation], texts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[int | None]]:
        """The importance of each text, agent by agent; None if no reply is usable."""
        turns = [
            self._thought(seen, ratings_prompt(seen.agent_id, own), ratings_in(len(own)))
            for seen, own in zip(observations, texts, strict=True)
        ]
        self._decide(turns)
        return [
            turn.actions if turn.failure is None else [None] * len(own)
            for turn, own in zip(turns, texts, strict=True)
        ]

    def _thought(
        self, seen: Observation, prompt: str, read: Callable[[str], list[object]]
    ) -> "_Turn":
        messages = [{"role": "user", "content": prompt}]
        if self._persona:
            messages.insert(0, {"role": "system", "content": self._persona})
        return _Turn(seen, messages, self._attempts, read)

    def _messages(self, seen: Observation, text: str) -> _Messages:
        system = self._system
        if seen.errors:  # what the simulation says, not what the agent lived through
            system += f"\n\nWhat was wrong with your last actions:\n{_lines(seen.errors)}"
        return [{"role": "system", "content": system}, {"role": "user", "content": text}]

    def _decide(self, turns: Sequence["_Turn"]) -> None:
        """Decide from the cassette, and ask the model for the undecided turns."""
        undecided = [turn for turn in turns if not self._recall(turn)]
        if undecided:
            self._model.prepare()
            self._ask(undecided)

    def _recall(self, turn: "_Turn") -> bool:
        """Whether the cassette decides a turn. It may hold only the first attempts."""
        while not turn.is_over:
            seen, attempt = turn.seen, turn.attempt
            found = self._cassette.find(seen.tick, seen.agent_id, turn.prompt_hash, attempt)
            if found is None:
                return False
            self._take(turn, found)
        return True

    def _take(self, turn: "_Turn", exchange: Exchange) -> None:
        turn.attempt += 1
        turn.failed = exchange.reply is None
        if exchange.reply is None:
            problem = f"{exchange.kind}: {exchange.error}"
        else:
            try:
                turn.actions = turn.read(exchange.reply)
                turn.is_over = True
                return
            except (ValueError, RecursionError, InvalidInput) as error:
                problem = f"not the form asked for: {error}"
        if turn.attempt >= turn.attempts:
            times = "1 attempt" if turn.attempt == 1 else f"{turn.attempt} attempts"
            turn.failure = f"no usable reply in {times}; the last: {problem:.300}"
            turn.is_over = True

    def _ask(self, turns: Sequence["_Turn"]) -> None:
        """Ask until all turns are decided. Each attempt has its own thread.

        Only the calling thread records and decides, so a late reply changes nothing. Threads are
        daemons: a thread that hangs can't keep the process from ending.
        """
        waiting = deque(turns)
        running: dict[int, tuple[_Turn, float]] = {}  # by number of the call: turn and deadline
        replies: queue.SimpleQueue[tuple[int, str | Exception]] = queue.SimpleQueue()
        numbers = itertools.count()
        while waiting or running:
            while waiting and len(running) < self._concurrency:
                turn, number = waiting.popleft(), next(numbers)
                pause = self._pause * 2 ** (turn.attempt - 1) if turn.failed else 0.0
                running[number] = (turn, time.monotonic() + pause + self._timeout)
                arguments = (self._model, turn.messages, pause, number, replies)
                threading.Thread(target=_call, args=arguments, daemon=True).start()
            number = min(running, key=lambda each: running[each][1])
            reply: str | Exception
            try:
                left = max(0.0, running[number][1] - time.monotonic())
                number, reply = replies.get(timeout=left)
            except queue.Empty:
                reply = ChatFailed("Timeout", f"no reply within {self._timeout:g} s")
            if number not in running:
                continue
            turn, _ = running.pop(number)
            self._take(turn, self._cassette.record(turn.exchange(reply)))
            if not self._recall(turn):
                waiting.append(turn)


@dataclass(eq=False)
class _Turn:
    """One agent's decision in one tick."""

    seen: Observation
    messages: _Messages
    attempts: int
    """The most attempts."""
    read: Callable[[str], list[object]]
    """Gives the actions in a reply, or what else it has; ValueError for the wrong form."""
    attempt: int = 0
    failed: bool = False
    is_over: bool = False
    actions: list[Any] = field(default_factory=list)
    failure: str | None = None
    """Why no attempt gave actions."""

    def __post_init__(self) -> None:
        self.prompt_hash = hash_prompt(self.messages)

    def exchange(self, reply: str | Exception) -> Exchange:
        made = Exchange(self.seen.tick, self.seen.agent_id, self.attempt, self.messages)
        if isinstance(reply, str):
            return made._replace(reply=reply)
        if isinstance(reply, ChatFailed):
            return made._replace(kind=reply.kind, error=str(reply))
        raise reply


def _check_one(turns: Sequence[_Turn]) -> None:
    """Raise ChatFailed if there are turns, and none of them has a usable reply."""
    failures = [turn.failure for turn in turns if turn.failure is not None]
    if failures and len(failures) == len(turns):
        raise ChatFailed("NoUsableReply", failures[0])


def _call(
    model: Model,
    messages: _Messages,
    pause: float,
    number: int,
    replies: "queue.SimpleQueue[tuple[int, str | Exception]]",
) -> None:
    time.sleep(pause)
    try:
        # A copy, since a provider may change the messages.
        replies.put((number, model.reply([dict(message) for message in messages])))
    except Exception as error:  # noqa: BLE001 - raised again in the thread that asked
        replies.put((number, error))


def _system_text(
    system: str, world_actions: Mapping[str, str], own_actions: Mapping[str, str]
) -> str:
    parts = [system.strip()] if system.strip() else []
    if world_actions:
        parts.append("What you can do:\n" + _listed(world_actions))
    parts.append("What you can do with your memories:\n" + _listed(own_actions))
    return "\n\n".join([*parts, _FORMAT])


def _listed(actions: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {description}" for name, description in actions.items())


def _user_text(seen: Observation, hits: Hits) -> str:
    parts = [f"Tick {seen.tick}. You are {seen.agent_id}."]
    if seen.text.strip():
        parts.append(f"What you see:\n{seen.text}")
    if seen.heard:
        parts.append("What you hear:\n" + _lines([remark.text for remark in seen.heard]))
    parts.append(f"Your memories:\n{render(hits)}")
    if hits:
        ids = "\n".join(f"- {hit.memory.id}" for hit in hits)
        parts.append(f"Their memory_id, in the same order:\n{ids}")
    parts += map(_answer_text, seen.answers)
    if seen.answers:
        parts.append(f"You may ask your memory {seen.asks_left} more times in this tick.")
    return "\n\n".join(parts)


def _answer_text(answer: Answer) -> str:
    asked = f"You asked your memory: {one_line(answer.ask.query)}\n"
    if answer.note:
        return f"{asked}It was refused: {one_line(answer.note)}"
    ids = "\n".join(f"- {hit.memory.id}" for hit in answer.hits)
    found = f"{asked}It found:\n{render(answer.hits)}"
    return f"{found}\nTheir memory_id, in the same order:\n{ids}" if ids else found


def _questions(actions: Sequence[object]) -> list[Ask]:
    """The questions among actions; a question that lacks a part becomes one that is refused."""
    found = []
    for action in actions:
        if isinstance(action, Action) and action.name in (*ASK_ACTIONS, *GROUP_ASKS):
            arguments = action.arguments
            query: Any = arguments.get("query", "")
            is_cold = action.name == "recall_memory"
            of_groups = action.name in GROUP_ASKS
            limit, session = arguments.get("limit"), arguments.get("session")
            found.append(Ask(query, limit, is_cold, of_groups, session))
    return found


def _lines(texts: Sequence[str]) -> str:
    # A remark may hold line ends; it must not look like another part of the prompt.
    return "\n".join(f"- {text if text.isprintable() else json.dumps(text)}" for text in texts)


def _decided_in(reply: str) -> list[object]:
    return as_actions(_actions_in(reply))


def _actions_in(reply: str) -> list[object]:
    """The list of actions, unchecked; ValueError if the reply has no list.

    The JSON may stand in a code fence, and may have other keys beside ``actions``.
    """
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    value = json.loads(text, parse_constant=_finite, parse_float=_finite)
    if not isinstance(value, dict) or not isinstance(value.get("actions"), list):
        raise ValueError(f'it is not an object with a list of "actions": {value!r:.60}')
    check_keepable(value["actions"])
    return list(value["actions"])


def _actions_to_save(reply: str) -> list[object]:
    """The list of actions; empty if the reply says that nothing needs saving."""
    return [] if reply.strip().casefold() == SILENT_REPLY.casefold() else _decided_in(reply)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large or no number")
    return number


# What a model is asked when an agent reflects, and how its replies are read. The questions are
# those of Park et al. (2023). Texts of memories are data: each is one line.


Value = dict[str, Any]


def questions_prompt(agent_id: str, memories: Sequence[Memory], most: int) -> str:
    """Asks what can be asked about an agent's latest memories."""
    return (
        f"You are {agent_id}. Your latest memories:\n{_statements(memories)}\n\n"
        f"Given only the information above, what are the {most} most salient high-level questions "
        "we can answer about the subjects in the statements?\n"
        'Reply with JSON and nothing else, in this form: {"questions": ["...", "..."]}'
    )


def insights_prompt(agent_id: str, query: str, memories: Sequence[Memory], most: int) -> str:
    """Asks what follows from the memories that a question found."""
    return (
        f"You are {agent_id}. You asked yourself: {one_line(query)}\n"
        f"Statements from your memory:\n{_statements(memories)}\n\n"
        f"What {most} high-level insights can you infer from the above statements? Name the "
        "numbers of the statements that each insight is drawn from, and its importance from 1 "
        "(mundane) to 10 (poignant).\n"
        "Reply with JSON and nothing else, in this form: "
        '{"insights": [{"insight": "...", "because_of": [1, 3], "importance": 5}]}'
    )


def ratings_prompt(agent_id: str, texts: Sequence[str]) -> str:
    """Asks how important texts are."""
    listed = "\n".join(f"{place}. {one_line(text)}" for place, text in enumerate(texts, 1))
    return (
        f"You are {agent_id}. What you just lived through:\n{listed}\n\n"
        "On the scale of 1 to 10, where 1 is purely mundane (such as brushing teeth, making bed) "
        "and 10 is extremely poignant (such as a break up, college acceptance), rate the likely "
        "poignancy of each of them.\n"
        f"Reply with JSON and nothing else, {len(texts)} whole numbers in this form: "
        '{"importance": [2, 7]}'
    )


def questions_in(most: int) -> Callable[[str], list[object]]:
    """Reads the questions of a reply; ValueError if it has none."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "questions")
        if not found or not all(isinstance(each, str) and each.strip() for each in found):
            raise ValueError(f'"questions" is not a list of texts: {found!r:.60}')
        return found[:most]

    return read


def insights_in(memories: Sequence[Memory], most: int) -> Callable[[str], list[object]]:
    """Reads the insights of a reply; ValueError if one of them names no statement."""

    def read(reply: str) -> list[object]:
        return [_insight(each, memories) for each in _list_in(reply, "insights")[:most]]

    return read


def ratings_in(count: int) -> Callable[[str], list[object]]:
    """Reads the ratings of a reply; ValueError unless there are as many as texts."""

    def read(reply: str) -> list[object]:
        found = _list_in(reply, "importance")
        if len(found) != count:
            raise ValueError(f'"importance" has {len(found)} numbers, not {count}')
        return [check_importance(each) for each in found]

    return read


def _insight(value: object, memories: Sequence[Memory]) -> Insight:
    own: Value = value if isinstance(value, dict) else {}
    text, numbers = own.get("insight"), own.get("because_of")
    if not isinstance(text, str) or not text.strip() or not isinstance(numbers, list):
        raise ValueError(f"an insight has a text and statements: {value!r:.60}")
    places = {each for each in numbers if type(each) is int}
    if not places or len(places) < len(numbers) or not places <= set(range(1, len(memories) + 1)):
        raise ValueError(f"statements have the numbers 1 to {len(memories)}: {numbers!r:.60}")
    evidence = [memories[place - 1].id for place in sorted(places)][:MOST_EVIDENCE]
    given = own.get("importance")
    return Insight(text, evidence, None if given is None else check_importance(given))


def _list_in(reply: str, name: str) -> list[Any]:
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    value = json.loads(text)
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        raise ValueError(f'it is not an object with a list of "{name}": {value!r:.60}')
    check_keepable(value[name])
    return list(value[name])


def _statements(memories: Sequence[Memory]) -> str:
    return "\n".join(f"{place}. {one_line(each.content)}" for place, each in enumerate(memories, 1))
