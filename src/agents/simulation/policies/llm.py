"""The policy ``llm``: a language model decides, and a cassette records its replies."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, final

from ...config.load import load_settings
from ...config.settings import LlmSettings, ReflectionSettings
from ...memory.records import Hits, Memory
from ..protocols import Action, Ask, Insight, Observation
from ..tick.actions import NO_OP, OWN_ACTIONS
from .asking import DEFAULT_TIMEOUT, Asker, Turn, check_one
from .cassette import Cassette
from .model import Kind, Messages, Model, Question
from .prompts import (
    insights_prompt,
    lines,
    questions_prompt,
    ratings_prompt,
    system_text,
    user_text,
)
from .replies import actions_in, actions_to_save, asks_in, insights_in, questions_in, ratings_in

_FLUSH_ATTEMPTS = 2


@final
class Llm:
    """Asks ``model`` for the actions of every agent, up to ``concurrency`` agents at once.

    :class:`~.asking.Asker` says how it asks, and what ``retries``, ``timeout`` and ``pause`` do.
    After the last attempt without a usable reply the agent's action is ``NO_OP``.

    ``world_actions`` and ``own_actions``, on memories and notes, are descriptions by name;
    ``system`` is the scenario's own text. ``reflection`` says how many questions and insights a
    reflection has, ``llm`` what is done while the model is away.
    """

    def __init__(
        self,
        model: Model,
        cassette: Cassette,
        world_actions: Mapping[str, str],
        own_actions: Mapping[str, str] = OWN_ACTIONS,
        reflection: ReflectionSettings | None = None,
        llm: LlmSettings = LlmSettings(),  # noqa: B008 - it never changes
        *,
        system: str = "",
        retries: int = 2,
        timeout: float = DEFAULT_TIMEOUT,
        concurrency: int = 8,
        pause: float = 1.0,
    ) -> None:
        self._asker = Asker(
            model, cassette, llm, retries=retries, timeout=timeout, concurrency=concurrency,
            pause=pause,
        )  # fmt: skip
        self._system = system_text(system, world_actions, own_actions)
        self._can_ask = "search_memory" in own_actions
        self._persona = system.strip()
        self._reflection = reflection or load_settings().reflection

    def on_wait(self, say: Callable[[str], None]) -> None:
        """Let ``say`` take a line for the user whenever the policy waits for its model."""
        self._asker.say = say

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
            _turn(seen, self._messages(seen, user_text(seen, hits)), "decision", actions_in)
            for seen, hits in zip(observations, memories, strict=True)
        ]
        self._asker.ask(turns)
        return [
            (self._can_ask and asks_in(turn.found)) or turn.found
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
        text = f"{user_text(observation, memories)}\n\n{prompt}"
        turn = _turn(observation, self._messages(observation, text), "flush", actions_to_save)
        turn.attempts = _FLUSH_ATTEMPTS
        self._asker.ask([turn])
        check_one([turn])
        return turn.found

    def reflect(
        self, observation: Observation, memories: Sequence[Memory], rng: Random
    ) -> Sequence[Insight] | Sequence[Ask]:
        """Questions about an agent's latest memories, and then insights from what they found.

        It is ChatFailed if no reply is usable.
        """
        own, agent = self._reflection, observation.agent_id
        if not observation.answers:
            prompt = questions_prompt(agent, memories, own.questions)
            turn = self._thought(observation, prompt, "questions", questions_in(own.questions))
            self._asker.ask([turn])
            check_one([turn])
            return [Ask(question) for question in turn.found]
        turns = []
        for answer in observation.answers:
            if found := [hit.memory for hit in answer.hits]:
                prompt = insights_prompt(agent, answer.ask.query, found, own.insights)
                read = insights_in(found, own.insights)
                turns.append(self._thought(observation, prompt, "insights", read))
        self._asker.ask(turns)
        check_one(turns)
        return [insight for turn in turns for insight in turn.found]

    def rate_all(
        self, observations: Sequence[Observation], texts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[int | None]]:
        """The importance of each text, agent by agent; None if no reply is usable."""
        turns = [
            self._thought(
                seen, ratings_prompt(seen.agent_id, own), "importance", ratings_in(len(own))
            )
            for seen, own in zip(observations, texts, strict=True)
        ]
        self._asker.ask(turns)
        return [
            turn.found if turn.failure is None else [None] * len(own)
            for turn, own in zip(turns, texts, strict=True)
        ]

    def _thought(
        self, seen: Observation, prompt: str, kind: Kind, read: Callable[[str], list[Any]]
    ) -> Turn:
        messages = [{"role": "user", "content": prompt}]
        if self._persona:
            messages.insert(0, {"role": "system", "content": self._persona})
        return _turn(seen, messages, kind, read)

    def _messages(self, seen: Observation, text: str) -> Messages:
        system = self._system
        if seen.errors:  # what the simulation says, not what the agent lived through
            system += f"\n\nWhat was wrong with your last actions:\n{lines(seen.errors)}"
        return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def _turn(
    seen: Observation, messages: Messages, kind: Kind, read: Callable[[str], list[Any]]
) -> Turn:
    return Turn(seen.tick, seen.agent_id, Question(messages, None, kind), read)
