"""Conversations: before agents decide, those whom the world brings together talk, turn by turn.

All conversations of a tick go on side by side: one turn of each, then the next turn of each. Who
speaks knows what comes to its mind in this tick, and what was said so far. What is said is heard by
all who are there, the speaker too, and is part of what they perceive in the tick.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...errors import InvalidInput, SimulationError
from ...memory.requests import check_session
from ...memory.scopes import scope_of
from ..protocols import Conversation, Observation, Remark, Say, World, WorldRandom
from ..society import society_at
from .branch_rules import BranchRules
from .user_code import call, failed

Asked: TypeAlias = Mapping[str, tuple[Observation, Conversation]]
"""Those whose turn it is: what each perceives, and the conversation as it heard it."""

_MOST_TURNS = 1000


@dataclass(eq=False)
class _Going:
    """A conversation that goes on."""

    talk: Conversation
    said: list[tuple[str, str]] = field(default_factory=list)
    """Who said what."""
    silences: int = 0
    """How many said nothing since somebody said something."""

    def speaker(self, turn: int) -> str | None:
        """Whose turn it is; None after the last one, and when all were silent in a row."""
        if turn >= self.talk.turns or self.silences >= len(self.talk.agents):
            return None
        return self.talk.agents[turn % len(self.talk.agents)]

    def heard_by(self, agent: str, tick: int, rules: BranchRules) -> list[tuple[str, str]]:
        """What of it reaches an agent."""
        return [own for own in self.said if not rules.is_unsaid(agent, self.remark(*own), tick)]

    def remark(self, speaker: str, text: str) -> Remark:
        """A turn, as those who are there remember it."""
        session = self.talk.session
        return Remark(f"{speaker}: {text}", kind="message", session=session, speaker=speaker)


def converse(
    world: World,
    say: Callable[[Asked], Mapping[str, Say]],
    seen: Mapping[str, Observation],
    tick: int,
    rules: BranchRules,
    rng: WorldRandom,
) -> Mapping[str, Observation]:
    """What agents perceive, with what they hear in the conversations of this tick.

    ``say`` asks agents for their turns, all at once. ``rng`` is the world's generator.
    """
    going = list(map(_Going, conversations_of(world, seen, tick, rng)))
    for turn in range(max((each.talk.turns for each in going), default=0)):
        speaking = {who: each for each in going if (who := each.speaker(turn)) is not None}
        if not speaking:
            break
        said = say(
            {
                who: (seen[who], each.talk._replace(
                    turns=each.talk.turns - turn, said=each.heard_by(who, tick, rules)
                ))
                for who, each in speaking.items()
            }
        )  # fmt: skip
        for who, each in speaking.items():
            text = said[who].text.strip()
            each.silences = 0 if text else each.silences + 1
            if text:
                each.said.append((who, text))
    heard = {
        who: [each.remark(*own) for own in each.heard_by(who, tick, rules)]
        for each in going
        for who in each.talk.agents
    }
    return {
        who: own._replace(heard=[*own.heard, *heard[who]]) if heard.get(who) else own
        for who, own in seen.items()
    }


def conversations_of(
    world: World, agents: Mapping[str, object], tick: int, rng: WorldRandom
) -> list[Conversation]:
    """Who talks with whom in this tick, checked: as the world says, or its society draws."""
    if callable(getattr(world, "conversations", None)):
        given = call(world, "conversations", tick)
    elif getattr(world, "society", None) is not None:
        given = _drawn(world, tick, rng)
    else:
        return []
    where = f"{type(world).__name__}.conversations() gave in tick {tick}"
    if not isinstance(given, list | tuple):
        raise SimulationError(f"{where} {given!r:.60}; a list of Conversations is needed")
    talks, known = [], set[str]()
    for place, each in enumerate(given, 1):
        talk = each
        if not isinstance(each, Conversation) and isinstance(each, list | tuple):
            talk = Conversation(each)
        try:
            talk = _checked(talk, f"talk {tick}.{place}", agents)
        except InvalidInput as error:
            raise SimulationError(f"{where} {each!r:.100}: {error.why}") from error
        if twice := known.intersection(talk.agents):
            raise SimulationError(f"{where} two conversations of {min(twice)}")
        known.update(talk.agents)
        talks.append(talk)
    return talks


def _drawn(world: World, tick: int, rng: WorldRandom) -> list[Conversation]:
    """The conversations of a society whose agents talk, from a stream that nothing else shares."""
    try:
        society = society_at(world, tick)
    except Exception as error:  # a user's own world may raise anything
        raise failed(world, "society", tick, error) from error
    if society is None or not society.talk:
        return []
    pairs = society.pairs(rng.stream("tiermem.society"))
    return [Conversation(pair, turns=society.turns) for pair in pairs]


def _checked(talk: object, session: str, agents: Mapping[str, object]) -> Conversation:
    """The conversation, with a session; InvalidInput if it is none."""
    if not isinstance(talk, Conversation) or not isinstance(talk.agents, list | tuple):
        raise InvalidInput("it is neither a Conversation nor a list of agents")
    names = list(talk.agents)
    for name in names:
        if not isinstance(name, str) or name not in agents:
            raise InvalidInput(f"{name!r:.60} is not an agent of the run")
    if len(names) < 2 or len({*names}) < len(names):
        raise InvalidInput("two agents or more talk, each of them once")
    if len({scope_of(name) for name in names}) > 1:
        raise InvalidInput("they are of more than one project or environment")
    if type(talk.turns) is not int or not 0 <= talk.turns <= _MOST_TURNS:
        raise InvalidInput(f"turns is {talk.turns!r:.40}; it is from 0 to {_MOST_TURNS}")
    if not isinstance(talk.topic, str):
        raise InvalidInput(f"topic is {talk.topic!r:.40}; it is a text")
    named = session if talk.session is None else check_session(talk.session)
    return Conversation(names, talk.topic, talk.turns, named)
