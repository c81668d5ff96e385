"""The policy ``llm``: a language model decides, and a cassette records its replies."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, final

from ...config.load import load_settings
from ...config.settings import LlmSettings, ReflectionSettings
from ...memory.records import Hits, Memory
from ..protocols import NO_ARGUMENTS, Action, Ask, Conversation, Insight, Observation, Say
from ..tick.actions import NO_OP, OWN_ACTIONS
from .asking import Asker, Turn, check_one
from .cassette import Cassette
from .model import Kind, Model, Question
from .prompts import (
    actions_text,
    insights_prompt,
    own_parts,
    persona_text,
    questions_prompt,
    ratings_prompt,
    shown_ids,
    talk_prompt,
)
from .replies import (
    actions_to_save,
    asks_in,
    decision_in,
    decision_schema,
    insights_in,
    insights_schema,
    questions_in,
    questions_schema,
    ratings_in,
    ratings_schema,
    say_in,
    talk_schema,
    with_whole_ids,
)
from .template import DEFAULT, Template

_FLUSH_ATTEMPTS = 2


@final
class Llm:
    """Asks ``model`` for the actions of every agent, many agents at once.

    :class:`~.asking.Asker` says how it asks, and what ``llm``, ``retries`` and ``pause`` do.
    After the last attempt without a usable reply the agent's action is ``NO_OP``.

    ``world_actions`` and ``own_actions``, on memories and notes, are descriptions by name, and what
    the model is offered; ``arguments`` has the JSON schemas of arguments of the world's actions, by
    action and argument. ``can_ask`` says whether questions to an agent's memory are answered; None:
    if they are offered. ``system`` is the scenario's own text, ``template`` the text that puts the
    parts of a decision's prompt together. ``reflection`` says how many questions and insights a
    reflection has.
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
        arguments: Mapping[str, Mapping[str, Any]] = NO_ARGUMENTS,
        can_ask: bool | None = None,
        system: str = "",
        template: str = DEFAULT,
        retries: int = 2,
        pause: float = 1.0,
    ) -> None:
        self._asker = Asker(model, cassette, llm, retries=retries, pause=pause)
        self._template = Template(template)
        actions = actions_text(world_actions, own_actions)
        self._parts = {"role": system.strip(), "actions": actions}
        self._schema = decision_schema(world_actions, own_actions, arguments)
        self._can_ask = "search_memory" in own_actions if can_ask is None else can_ask
        self._scenario = system.strip()
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
            self._decision(seen, hits, "", "decision", decision_in)
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
        turn = self._decision(observation, memories, prompt, "flush", actions_to_save)
        turn.attempts = _FLUSH_ATTEMPTS
        self._asker.ask([turn])
        check_one([turn])
        return turn.found

    def say(self, observation: Observation, memories: Hits, rng: Random, talk: Conversation) -> Say:
        """What one agent says in its turn."""
        return self.say_all([observation], [memories], [rng], [talk])[0]

    def say_all(
        self,
        observations: Sequence[Observation],
        memories: Sequence[Hits],
        rngs: Sequence[Random],
        talks: Sequence[Conversation],
    ) -> Sequence[Say]:
        """What each agent says; it is silent if no reply is usable."""
        turns = []
        for seen, hits, talk in zip(observations, memories, talks, strict=True):
            shown, prompt = shown_ids(seen, hits), talk_prompt(seen, hits, talk)
            turns.append(self._thought(seen, prompt, "talk", talk_schema(shown), say_in(shown)))
        self._asker.ask(turns)
        return [Say() if turn.failure is not None else turn.found[0] for turn in turns]

    def reflect(
        self, observation: Observation, memories: Sequence[Memory], rng: Random
    ) -> Sequence[Insight] | Sequence[Ask]:
        """Questions about an agent's latest memories, and then insights from what they found.

        It is ChatFailed if no reply is usable.
        """
        reflection, agent = self._reflection, observation.agent_id
        if not observation.answers:
            prompt = questions_prompt(agent, memories, reflection.questions)
            schema, read = (
                questions_schema(reflection.questions),
                questions_in(reflection.questions),
            )
            turn = self._thought(observation, prompt, "questions", schema, read)
            self._asker.ask([turn])
            check_one([turn])
            return [Ask(question) for question in turn.found]
        turns = []
        for answer in observation.answers:
            if found := [hit.memory for hit in answer.hits]:
                prompt = insights_prompt(agent, answer.ask.query, found, reflection.insights)
                schema = insights_schema(found, reflection.insights)
                read = insights_in(found, reflection.insights)
                turns.append(self._thought(observation, prompt, "insights", schema, read))
        self._asker.ask(turns)
        check_one(turns)
        return [insight for turn in turns for insight in turn.found]

    def rate_all(
        self, observations: Sequence[Observation], texts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[int | None]]:
        """The importance of each text, agent by agent; None if no reply is usable."""
        turns = [
            self._thought(
                seen,
                ratings_prompt(seen.agent_id, own),
                "importance",
                ratings_schema(len(own)),
                ratings_in(len(own)),
            )
            for seen, own in zip(observations, texts, strict=True)
        ]
        self._asker.ask(turns)
        return [
            turn.found if turn.failure is None else [None] * len(own)
            for turn, own in zip(turns, texts, strict=True)
        ]

    def _decision(
        self,
        seen: Observation,
        hits: Hits,
        prompt: str,
        kind: Kind,
        read: Callable[[str], list[Any]],
    ) -> Turn:
        shown = shown_ids(seen, hits)
        messages = self._template.messages({**self._parts, **own_parts(seen, hits)})
        if prompt:
            messages[-1]["content"] += f"\n\n{prompt}"
        question = Question(messages, self._schema, kind)
        return Turn(
            seen.tick, seen.agent_id, question, lambda reply: with_whole_ids(read(reply), shown)
        )

    def _thought(
        self,
        seen: Observation,
        prompt: str,
        kind: Kind,
        schema: Mapping[str, Any],
        read: Callable[[str], list[Any]],
    ) -> Turn:
        messages = [{"role": "user", "content": prompt}]
        if system := "\n\n".join(filter(None, (self._scenario, persona_text(seen.persona)))):
            messages.insert(0, {"role": "system", "content": system})
        return Turn(seen.tick, seen.agent_id, Question(messages, schema, kind), read)
