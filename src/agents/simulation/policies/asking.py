"""How a model is asked: many turns at once, attempt by attempt, each one recorded in a cassette."""

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from ...errors import ChatFailed, ConfigError, InvalidInput
from .cassette import Cassette, Exchange, hash_prompt
from .model import Model, Question, Reply

DEFAULT_TIMEOUT = 60.0
"""The seconds that an attempt may take."""


@final
@dataclass(eq=False)
class Turn:
    """What is asked on behalf of one agent in one tick, and what came of it."""

    tick: int
    agent: str
    question: Question
    read: Callable[[str], list[Any]]
    """Gives what a reply has; ValueError for the wrong form."""
    attempts: int | None = None
    """The most attempts; None for those that the asker makes."""
    attempt: int = 0
    failed: bool = False
    is_over: bool = False
    found: list[Any] = field(default_factory=list)
    """What the reply has."""
    failure: str | None = None
    """Why no attempt gave a usable reply."""

    def __post_init__(self) -> None:
        self.prompt_hash = hash_prompt(self.question.messages)

    def exchange(self, reply: Reply | Exception) -> Exchange:
        """The record of the present attempt; an error that is not ChatFailed is raised."""
        made = Exchange(self.tick, self.agent, self.attempt, self.question.messages)
        if isinstance(reply, Reply):
            return made._replace(reply=reply.text)
        if isinstance(reply, ChatFailed):
            return made._replace(kind=reply.kind, error=str(reply))
        raise reply


@final
class Asker:
    """Asks ``model`` for many turns, up to ``concurrency`` at once.

    It does not ask a question that the cassette holds, so the same cassette gives the same answers.
    An attempt fails by an error, by ``timeout`` seconds without a reply, or by a reply in the wrong
    form. There are at most ``retries`` more attempts. After an error the next attempt waits
    ``pause`` seconds, and twice as long each time.
    """

    def __init__(
        self,
        model: Model,
        cassette: Cassette,
        *,
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
        self._attempts = retries + 1
        self._timeout = timeout
        self._concurrency = concurrency
        self._pause = pause

    def ask(self, turns: Sequence[Turn]) -> None:
        """Decide all turns: from the cassette, and where it has no answer, by asking the model.

        After it each turn has what was ``found``, or a ``failure``.
        """
        undecided = [turn for turn in turns if not self._recall(turn)]
        if undecided:
            self._model.prepare()
            self._ask(undecided)

    def _recall(self, turn: Turn) -> bool:
        """Whether the cassette decides a turn. It may hold only the first attempts."""
        while not turn.is_over:
            found = self._cassette.find(turn.tick, turn.agent, turn.prompt_hash, turn.attempt)
            if found is None:
                return False
            self._take(turn, found)
        return True

    def _take(self, turn: Turn, exchange: Exchange) -> None:
        turn.attempt += 1
        turn.failed = exchange.reply is None
        if exchange.reply is None:
            problem = f"{exchange.kind}: {exchange.error}"
        else:
            try:
                turn.found = turn.read(exchange.reply)
                turn.is_over = True
                return
            except (ValueError, RecursionError, InvalidInput) as error:
                problem = f"not the form asked for: {error}"
        if turn.attempt >= (turn.attempts or self._attempts):
            times = "1 attempt" if turn.attempt == 1 else f"{turn.attempt} attempts"
            turn.failure = f"no usable reply in {times}; the last: {problem:.300}"
            turn.is_over = True

    def _ask(self, turns: Sequence[Turn]) -> None:
        """Ask until all turns are decided. Each attempt has its own thread.

        Only the calling thread records and decides, so a late reply changes nothing. Threads are
        daemons: a thread that hangs can't keep the process from ending.
        """
        waiting = deque(turns)
        running: dict[int, tuple[Turn, float]] = {}  # by number of the call: turn and deadline
        replies: queue.SimpleQueue[tuple[int, Reply | Exception]] = queue.SimpleQueue()
        numbers = itertools.count()
        while waiting or running:
            while waiting and len(running) < self._concurrency:
                turn, number = waiting.popleft(), next(numbers)
                pause = self._pause * 2 ** (turn.attempt - 1) if turn.failed else 0.0
                running[number] = (turn, time.monotonic() + pause + self._timeout)
                arguments = (self._model, turn.question, pause, number, replies)
                threading.Thread(target=_call, args=arguments, daemon=True).start()
            number = min(running, key=lambda each: running[each][1])
            reply: Reply | Exception
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


def check_one(turns: Sequence[Turn]) -> None:
    """Raise ChatFailed if there are turns, and none of them has a usable reply."""
    failures = [turn.failure for turn in turns if turn.failure is not None]
    if failures and len(failures) == len(turns):
        raise ChatFailed("NoUsableReply", failures[0])


def _call(
    model: Model,
    question: Question,
    pause: float,
    number: int,
    replies: "queue.SimpleQueue[tuple[int, Reply | Exception]]",
) -> None:
    time.sleep(pause)
    try:
        replies.put((number, model.reply(question)))
    except Exception as error:  # noqa: BLE001 - raised again in the thread that asked
        replies.put((number, error))
