"""The second phase of a tick: agents search their memories and decide.

It reads the memories of the tick before, and nothing of the world. So the agents can be decided
for in any number of parts.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ...bank.memory_bank import MemoryBank
from ...errors import SimulationError
from ...memory.records import Hits
from ..protocols import Action, Answer, Ask, Conversation, Observation, Policy, Say, Talking
from .act import refused, speech_of, wish
from .actions import (
    GROUP_ACTIONS,
    REFUSED,
    TELL_ACTIONS,
    answers,
    as_action,
    asked_in,
    is_list,
    name_of,
    of_profile,
)
from .branch_rules import BranchRules
from .given import Given, given
from .user_code import failed

_READERS = {**dict.fromkeys(TELL_ACTIONS, speech_of), **dict.fromkeys(GROUP_ACTIONS, wish)}


def composed(bank: MemoryBank, agent: str, actions: Sequence[object]) -> Sequence[object]:
    """The actions of an agent: a :class:`Speech` for what tells, a :class:`Wish` about a group.

    Both are as memories and groups were before the tick. An action under the names of the bank's
    profile is ours.
    """
    if bank.settings.profile is not None:
        actions = [_ours(bank, agent, each) for each in actions]
    names = list(map(name_of, actions))
    if _READERS.keys().isdisjoint(names):
        return actions
    return [
        action
        if (read := _READERS.get(name or "")) is None
        else read(bank, agent, as_action(action))
        for name, action in zip(names, actions, strict=True)
    ]


def _ours(bank: MemoryBank, agent: str, value: object) -> object:
    """What a policy gave, under our names; the refusal of what is wrong."""
    try:
        return of_profile(bank.agent(agent), value)
    except REFUSED as error:
        return refused(as_action(value), error)


@runtime_checkable
class Together(Protocol):
    """A policy that decides for all agents at once."""

    def decide_all(
        self, observations: Sequence[Observation], memories: Sequence[Hits], rngs: Sequence[Random]
    ) -> Sequence[Sequence[Action]]:
        """The actions of each agent, in the order of ``observations``."""


@runtime_checkable
class TalkingTogether(Protocol):
    """A policy that speaks for all agents at once whose turn it is."""

    def say_all(
        self,
        observations: Sequence[Observation],
        memories: Sequence[Hits],
        rngs: Sequence[Random],
        talks: Sequence[Conversation],
    ) -> Sequence[Say | str | None]:
        """What each agent says, in the order of ``observations``."""


class Decided(NamedTuple):
    """What agents decided, in the order of the agents."""

    observations: list[Observation]
    """With the answers to what the agents' policy asked."""
    given: Given
    """The memories that each agent was given."""
    actions: list[Sequence[object]]
    """What each agent wants to do, as its policy gave it, with speeches for actions that tell and
    wishes for actions on groups; a question that is left is refused."""
    asked: list[list[tuple[str, Answer]]]
    """The questions of the agents, round by round, and what was found."""


OF_LOOP = Observation._fields.index("agent_id")
"""The place of the first field that the loop sets, not the world."""


def decide(
    bank: MemoryBank,
    policy: Policy,
    rngs: Mapping[str, Random],
    seen: Mapping[str, Observation],
    errors: Mapping[str, Sequence[str]],
    rules: BranchRules,
) -> Decided:
    """Search for each agent what it has seen, and let its policy decide.

    ``errors`` has what was wrong with the agents' actions in the tick before. What policies ask
    their agents' memories is answered in rounds, all questions of a round together.
    """
    most, observations = bank.settings.simulation.asks, as_seen(bank, seen, errors)
    memories = given(bank, list(map(searched, observations)))
    generators = [rngs[agent] for agent in seen]
    decided = _decisions(policy, observations, memories.hits, generators)
    asked: list[list[tuple[str, Answer]]] = []
    asking = [place for place, each in enumerate(decided) if asked_in(each)]
    for left in range(most - 1, -1, -1):
        if not asking:
            break
        questions = {place: asked_in(decided[place]) for place in asking}
        asked.append(_answer(bank, observations, questions, rules))
        for place in asking:
            observations[place] = observations[place]._replace(asks_left=left)
        again = _decisions(
            policy,
            [observations[place] for place in asking],
            [memories.hits[place] for place in asking],
            [generators[place] for place in asking],
        )
        for place, each in zip(asking, again, strict=True):
            decided[place] = each
        asking = [place for place in asking if asked_in(decided[place])]
    wanted = [
        asked_in(each) or composed(bank, agent, each)
        for agent, each in zip(seen, decided, strict=True)
    ]
    return Decided(observations, memories, wanted, asked)


def as_seen(
    bank: MemoryBank, seen: Mapping[str, Observation], errors: Mapping[str, Sequence[str]]
) -> list[Observation]:
    """What agents perceive, with what the loop adds; nothing was asked yet."""
    tick, most = bank.tick, bank.settings.simulation.asks
    # As _replace() does, in less time.
    return [
        type(each)._make((*each[:OF_LOOP], agent, tick, tuple(errors.get(agent, ())), (), most))
        for agent, each in seen.items()
    ]


def searched(seen: Observation) -> tuple[str, str]:
    """An agent, and what its memory is searched for."""
    return seen.agent_id, seen.text if seen.query is None else seen.query


def spoken(
    policy: Talking,
    observations: Sequence[Observation],
    memories: Sequence[Hits],
    rngs: Sequence[Random],
    talks: Sequence[Conversation],
) -> list[Say]:
    """What agents say whose turn it is."""
    try:
        if isinstance(policy, TalkingTogether):
            said: list[Any] = list(policy.say_all(observations, memories, rngs, talks))
        else:
            said = list(map(policy.say, observations, memories, rngs, talks))
    except SimulationError:
        raise
    except Exception as error:  # a user's own policy may raise anything
        raise failed(policy, "say", observations[0].tick, error) from error
    result = []
    for seen, own in zip(observations, said, strict=True):
        whole = Say(own or "") if isinstance(own, str | None) else own
        if not isinstance(whole, Say) or not isinstance(whole.text, str):
            raise SimulationError(
                f"{type(policy).__name__}.say() gave {own!r:.60} for {seen.agent_id} in tick "
                f"{seen.tick}; a text, a Say or None is needed"
            )
        result.append(whole)
    return result


def _decisions(
    policy: Policy,
    observations: Sequence[Observation],
    memories: Sequence[Hits],
    rngs: Sequence[Random],
) -> list[Sequence[object]]:
    """What the policy says for each observation: actions, or questions."""
    try:
        if isinstance(policy, Together):
            decided: list[Any] = list(policy.decide_all(observations, memories, rngs))
        else:
            decided = list(map(policy.decide, observations, memories, rngs))
    except SimulationError:
        raise
    except Exception as error:  # a user's own policy may raise anything
        raise failed(policy, "decide", observations[0].tick, error) from error
    for seen, answer in zip(observations, decided, strict=True):
        if type(answer) is not list and not is_list(answer) and not isinstance(answer, Ask):
            raise SimulationError(
                f"{type(policy).__name__}.decide() gave {answer!r:.60} for {seen.agent_id} in "
                f"tick {seen.tick}; a list of actions is needed"
            )
    return decided


def _answer(
    bank: MemoryBank,
    observations: list[Observation],
    asked: Mapping[int, list[Ask]],
    rules: BranchRules,
) -> list[tuple[str, Answer]]:
    """Answer the questions of a round together; ``asked`` has them by place of the agent."""
    places = [place for place, asks in asked.items() for _ in asks]
    whose = [observations[place].agent_id for place in places]
    questions = [ask for asks in asked.values() for ask in asks]
    answered = answers(bank.engine, list(zip(whose, questions, strict=True)), rules)
    for place, answer in zip(places, answered, strict=True):
        seen = observations[place]
        observations[place] = seen._replace(answers=(*seen.answers, answer))
    return list(zip(whose, answered, strict=True))
