"""How a model is asked: many turns at once, attempt by attempt, each answer in a cassette.

An answer is recorded, also one in the wrong form; that the model is away is not. While it is away,
the asker waits and asks again; when its patience is over, the run is paused, or passes the question
over, as ``llm.on_failure`` says.
"""

import heapq
import itertools
import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from ...config.settings import LlmSettings
from ...errors import ChatFailed, ConfigError, InvalidInput, RunPaused
from .cassette import Cassette, Exchange, hash_prompt
from .clients import LOCAL
from .model import Model, Paced, Question, Reply
from .prompts import ask_again

_LONGEST_PAUSE = 60.0
_SECONDS_BETWEEN_LINES = 5.0


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
    """The most answers that are read; None for as many as the asker reads."""
    attempt: int = 0
    """How many answers there were."""
    is_over: bool = False
    found: list[Any] = field(default_factory=list)
    """What the reply has."""
    failure: str | None = None
    """Why no attempt gave a usable reply."""
    has_waited: bool = False
    """Whether the call that is next has its place within the limits of its model."""
    failures: int = 0
    """How often in a row the model was away."""
    away_since: float = 0.0
    """When that began."""

    def __post_init__(self) -> None:
        self.question = self.question._replace(agent=self.agent)
        self._first = self.question.messages
        self.prompt_hash = hash_prompt(self._first)

    def tell(self, reply: str, problem: str) -> None:
        """Let the next attempt say what was wrong with the last reply."""
        self.question = self.question._replace(messages=ask_again(self._first, reply, problem))
        self.prompt_hash = hash_prompt(self.question.messages)

    def exchange(self, reply: Reply | ChatFailed) -> Exchange:
        """The record of the present attempt."""
        made = Exchange(
            self.tick, self.agent, self.attempt, self.question.messages, purpose=self.question.kind
        )
        if isinstance(reply, ChatFailed):
            return made._replace(kind=reply.kind, error=str(reply))
        text, read, cached, written, seconds, model = reply
        problem = self.understood(text)
        self.found = []
        return made._replace(
            reply=text, problem=problem, model=model, read=read, cached=cached, written=written,
            seconds=seconds,
        )  # fmt: skip

    def understood(self, text: str) -> str | None:
        """Read a reply; why it can't be read, or None."""
        try:
            self.found = self.read(text)
        except (ValueError, RecursionError, InvalidInput) as error:
            return str(error)
        return None


_Answer = tuple[int, Reply | Exception]
"""The number of a call, and what came of it."""


@final
class Asker:
    """Asks ``model`` for many turns, up to ``llm.concurrency`` at once.

    It does not ask a question that the cassette holds, so the same cassette gives the same answers.
    At temperature 0, equal questions of a tick are asked once. After an answer in the wrong form
    there are at most ``retries`` more attempts, which show the model that answer and say what is
    wrong with it. A call without an answer, also after ``llm.timeout`` seconds, is no attempt: it
    is made again after ``pause`` seconds, then after twice as long each time, or when the server
    says, for ``llm.patience`` seconds.
    """

    def __init__(
        self,
        model: Model,
        cassette: Cassette,
        settings: LlmSettings = LlmSettings(),  # noqa: B008 - it never changes
        *,
        retries: int = 2,
        pause: float = 1.0,
    ) -> None:
        if retries < 0 or pause < 0:
            raise ConfigError(
                f"policy llm: retries ({retries}) and pause ({pause}) are at least 0",
                hint="change it in simulation.policy_options",
            )
        self.say: Callable[[str], None] = lambda _: None
        """Takes a line for the user while the model is away."""
        self._model = model
        self._cassette = cassette
        self._settings = settings
        self._attempts = retries + 1
        self._timeout = settings.timeout
        self.concurrency = settings.concurrency or (1 if settings.provider == LOCAL else 8)
        """How many calls are under way at once, at most."""
        self._pause = pause
        self._away_since: float | None = None
        """Since when no call has had an answer."""
        self._quiet_until = 0.0
        """When the server may be asked again, by its own words."""
        self._said = 0.0
        self._passed: set[tuple[int, str, str, int]] = set()
        """The questions of this tick that were passed over."""

    def ask(self, turns: Sequence[Turn]) -> None:
        """Decide all turns: from the cassette, and where it has no answer, by asking the model.

        After it each turn has what was ``found``, or a ``failure``. :class:`RunPaused` if the model
        stays away; the answers that came are in the cassette.
        """
        undecided = self.undecided(turns)
        if not undecided:
            return
        self._model.prepare()
        asking: dict[object, Turn] = {}
        others = [asking.setdefault(self._alike(turn), turn) for turn in undecided]
        self._ask([*asking.values()])
        for turn, other in zip(undecided, others, strict=True):
            if not turn.is_over:
                self._share(turn, other)

    def undecided(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns that the cassette does not decide: those for which a model is to be asked."""
        return [turn for turn in turns if not self._recall(turn)]

    def _alike(self, turn: Turn) -> object:
        """What turns have in common that get the same answer; a turn alone, if there is chance."""
        own = self._settings.of(turn.agent)
        if own.config.get("temperature", own.temperature) != 0:
            return turn
        schema = json.dumps(turn.question.schema, sort_keys=True)
        return own, turn.prompt_hash, schema, turn.question.kind

    def _share(self, turn: Turn, other: Turn) -> None:
        """Decide a turn by the answers that another agent got to the same question."""
        while not self._recall(turn):
            key = turn.tick, other.agent, turn.prompt_hash, turn.attempt
            found = self._cassette.find(*key, passed_over=True)
            if found is None:
                raise RuntimeError(f"the answers of {other.agent} are not in the cassette")
            own = found._replace(
                agent=turn.agent, shared=True, read=None, cached=None, written=None, seconds=None
            )
            if own.reply is None:
                self._passed.add(own.key)
            self._take(turn, self._cassette.record(own))

    def _recall(self, turn: Turn) -> bool:
        """Whether the cassette decides a turn. It may hold only the first attempts."""
        while not turn.is_over:
            key = turn.tick, turn.agent, turn.prompt_hash, turn.attempt
            found = self._cassette.find(*key, passed_over=key in self._passed)
            if found is None:
                return False
            self._take(turn, found)
        return True

    def _take(self, turn: Turn, exchange: Exchange) -> None:
        turn.attempt += 1
        turn.failures = 0
        if exchange.reply is None:
            problem = f"{exchange.kind}: {exchange.error}"
            is_last = not self._cassette.has(exchange._replace(attempt=turn.attempt).key)
        else:
            unread = turn.understood(exchange.reply)
            if unread is None:
                turn.is_over = True
                return
            problem, is_last = f"not the form asked for: {unread}", False
            turn.tell(exchange.reply, problem)
        if is_last or turn.attempt >= (turn.attempts or self._attempts):
            times = "1 attempt" if turn.attempt == 1 else f"{turn.attempt} attempts"
            turn.failure = f"no usable reply in {times}; the last: {problem:.300}"
            turn.is_over = True

    # Asking

    def _ask(self, turns: Sequence[Turn]) -> None:
        """Ask until all turns are decided. Each call has its own thread.

        Only the calling thread records and decides. Threads are daemons: a thread that hangs can't
        keep the process from ending. Once the run is to be paused no call is begun any more, and
        the answers of those that were begun are kept.
        """
        ready = deque(turns)
        later: list[tuple[float, int, Turn]] = []
        """The turns that wait, by when they are due."""
        calls: dict[int, tuple[Turn, int]] = {}
        """All calls: the turn, and which attempt it is."""
        running: dict[int, float] = {}
        """The calls that have time left, and how long."""
        answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        numbers = itertools.count()
        pausing: RunPaused | None = None
        while running or (pausing is None and (ready or later)):
            now = time.monotonic()
            while later and later[0][0] <= now:
                ready.append(heapq.heappop(later)[2])
            for number in [each for each in running if not _is_needed(*calls[each])]:
                del running[number]  # another call was faster
            may_ask = pausing is None and now >= self._quiet_until
            while may_ask and ready and len(running) < self.concurrency:
                turn, number = ready.popleft(), next(numbers)
                if turn.is_over or (turn, turn.attempt) in map(calls.get, running):
                    continue  # a late answer decided it, or made it ask again
                if (seconds := self._wait(turn)) > 0:
                    heapq.heappush(later, (now + seconds, number, turn))
                    continue
                calls[number], running[number] = (turn, turn.attempt), now + self._timeout
                arguments = (self._model, turn.question, number, answers)
                threading.Thread(target=_call, args=arguments, daemon=True).start()
            until = [*running.values(), *(due for due, *_ in later[:1])]
            if ready and now < self._quiet_until:
                until.append(self._quiet_until)
            if not until:
                continue
            try:
                number, answer = answers.get(timeout=max(0.0, min(until) - time.monotonic()))
            except queue.Empty:
                late = [each for each, end in running.items() if end <= time.monotonic()]
                if not late:
                    continue
                number = late[0]
                answer = ChatFailed("Timeout", f"no reply within {self._timeout:g} s")
            is_first = running.pop(number, None) is not None
            turn, attempt = calls[number]
            if not _is_needed(turn, attempt):
                continue
            if isinstance(answer, Reply):
                self._away_since = None
                self._take(turn, self._cassette.record(turn.exchange(answer)))
                if not self._recall(turn):
                    ready.append(turn)
            elif not isinstance(answer, ChatFailed):
                raise answer
            elif is_first:  # else it was late before it failed
                due = self._failed(turn, answer)
                if due is not None:
                    heapq.heappush(later, (due, number, turn))
                elif self._settings.on_failure == "no_op":
                    self._pass_over(turn, answer)
                else:
                    pausing = pausing or _away(turn, answer, time.monotonic() - self._since(turn))
        if pausing is not None:
            raise pausing

    def _wait(self, turn: Turn) -> float:
        """How long the next call of a turn has to wait for the limits of its model."""
        if turn.has_waited or not isinstance(self._model, Paced):
            turn.has_waited = False
            return 0.0
        seconds = self._model.wait(turn.question)
        turn.has_waited = seconds > 0
        return seconds

    def _failed(self, turn: Turn, failure: ChatFailed) -> float | None:
        """When a turn is to be tried again whose call had no answer; None for never."""
        now = time.monotonic()
        turn.failures += 1
        if turn.failures == 1:
            turn.away_since = now
        if self._away_since is None:
            self._away_since = now
        if failure.is_final:
            return None
        pause = min(self._pause * 2.0 ** min(turn.failures - 1, 16), _LONGEST_PAUSE)
        self._quiet_until = max(self._quiet_until, now + (failure.retry_after or 0.0))
        due = max(now + pause, self._quiet_until)
        if due >= self._since(turn) + self._settings.patience:
            return None
        if now - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = now
            self.say(
                f"tick {turn.tick}: waiting for the model, which gave {turn.agent} no answer "
                f"({failure.kind}: {failure}); asking again in {due - now:.0f} s, "
                f"for {self._settings.patience - (now - self._since(turn)):.0f} s at most"
            )
        return due

    def _since(self, turn: Turn) -> float:
        """Since when the model has been away, for a turn or for all."""
        return (
            turn.away_since if self._away_since is None else min(turn.away_since, self._away_since)
        )

    def _pass_over(self, turn: Turn, failure: ChatFailed) -> None:
        """Record that the run went on without an answer, and let the turn fail."""
        made = turn.exchange(failure)
        if {each[0] for each in self._passed} != {turn.tick}:
            self._passed = set()
        self._passed.add(made.key)
        self._take(turn, self._cassette.record(made))


def _is_needed(turn: Turn, attempt: int) -> bool:
    return not turn.is_over and turn.attempt == attempt


def _away(turn: Turn, failure: ChatFailed, seconds: float) -> RunPaused:
    """The pause of a run whose model stays away, to be raised."""
    how_long, hint = f" for {seconds:.0f} s", "let it answer"
    if failure.is_final:
        how_long = ""
        hint = "mend what it refuses, or let agents do nothing then: --set llm.on_failure=no_op"
    wait = failure.retry_after
    left_alone = f"; it asks to wait {wait:,.0f} s" if wait else ""
    return RunPaused(
        f"tick {turn.tick}: the model gave {turn.agent} no answer{how_long}: {failure.kind}: "
        f"{failure.why}{left_alone}",
        hint=hint,
    )


def check_one(turns: Sequence[Turn]) -> None:
    """Raise ChatFailed if there are turns, and none of them has a usable reply."""
    failures = [turn.failure for turn in turns if turn.failure is not None]
    if failures and len(failures) == len(turns):
        raise ChatFailed("NoUsableReply", failures[0])


def _call(
    model: Model, question: Question, number: int, answers: "queue.SimpleQueue[_Answer]"
) -> None:
    began = time.monotonic()
    try:
        reply = model.reply(question)
        if reply.seconds is None:
            reply = reply._replace(seconds=round(time.monotonic() - began, 3))
        answers.put((number, reply))
    except Exception as error:  # noqa: BLE001 - raised again in the thread that asked
        answers.put((number, error))
