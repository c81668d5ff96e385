"""A town: people have homes, work and evenings, and what they tell each other goes round.

A day has 24 ticks, which are its hours. People who are in one place meet in pairs, and some pairs
talk. Now and then something takes place on an evening, and a few know where. They tell others, who
tell others; of some events a false place goes round as well. In the evening each one goes where its
memory says.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits, Memory
from ..protocols import Action, Conversation, Observation, Remark
from . import check_whole_option, own_stream, refused

DAY = 24
"""The ticks of a day. Tick 1 is six in the morning of day 1."""

_FIRST_HOUR = 6
_NEWS_HOUR, _EVENING, _NIGHT = 9, 18, 22
_AHEAD = 2
"""How many days before an event its hosts hear of it."""

_EVENTS = (
    "concert", "play", "dance", "fair", "lecture", "wedding", "race", "feast", "auction",
    "puppet show", "bonfire", "chess match",
)  # fmt: skip
_VENUES = ("square", "park", "tavern", "chapel", "library", "harbour", "mill", "school")
_TOLD = re.compile(r"There is a ([a-z ]+) at the ([a-z]+) on day ([0-9]+)")
_AT_WORK, _AT_HOME = 9, 2
"""How many people share a place of work, and a home."""


class Town:
    """The town.

    There are ``events`` events, one every second day from day 3 on. ``hosts`` of the people hear
    of each one two days ahead. Of the first ``rumours`` events, as many others hear a false place
    in the same hour. Two who meet talk if one of them wants to, which each does in ``talk`` of 100
    hours. With ``turns``, they have a conversation of so many turns; without, they can only tell
    each other what they remember.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "go": f"go somewhere this evening: place, one of {', '.join(_VENUES)}",
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "go": {"place": {"type": "string", "enum": list(_VENUES)}}
    }

    def __init__(
        self, *, events: int = 4, rumours: int = 2, hosts: int = 1, talk: int = 20, turns: int = 0
    ) -> None:
        self._events = check_whole_option("events", events, 0, len(_EVENTS))
        self._rumours = check_whole_option("rumours", rumours, 0, len(_EVENTS))
        self._hosts = check_whole_option("hosts", hosts, 1, 1_000_000)
        self._talk = check_whole_option("talk", talk, 0, 100) / 100
        self._turns = check_whole_option("turns", turns, 0, 100)

    @staticmethod
    def rules() -> "TownRules":
        """The town's own policy."""
        return TownRules()

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw everybody's home, work, hours and evenings, and who hears of what first."""
        count = len(agent_ids)
        if 2 * self._hosts > count:
            raise ConfigError(
                f"simulation.world_options.hosts is {self._hosts}, of {count} agents",
                hint="half of the agents at most can be hosts",
            )
        self._rng = rng
        self._names = list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self._days = [_day(count, own_stream(rng, "life", name)) for name in agent_ids]
        self._places = [rng.sample(_VENUES, 2) for _ in range(self._events)]
        self._first = [rng.sample(range(count), 2 * self._hosts) for _ in range(self._events)]
        self._partners: list[int | None] = []
        """With whom each one talks in this tick; empty until the first one is asked."""
        self._out: dict[str, str] = {}
        """Where people are who went somewhere this evening."""
        self._attended, self._misled = [0] * count, [0] * count
        self._talks = 0
        self._tick = 1

    def facts(self) -> dict[str, dict[str, bool]]:
        """What goes round about each event, and whether it is true."""
        found = {}
        for event, (place, other) in enumerate(self._places):
            found[_EVENTS[event]] = {_told(event, place): True}
            if event < self._rumours:
                found[_EVENTS[event]][_told(event, other)] = False
        return found

    def observe(self, agent_id: str) -> Observation:
        """With whom the agent talks, what it hears, and in the evening the question where to go."""
        if not self._partners:
            self._partners = self._meetings()
        me, (day, hour) = self._index[agent_id], self._now()
        heard = [Remark(text) for text in self._news(me, day, hour)]
        query = f"What is there on day {day}?"
        if hour == _EVENING:
            return Observation("", query, {"day": day, "evening": True}, heard)
        partner = self._partners[me]
        if partner is None:
            return Observation("", heard=heard)
        name = self._names[partner]
        text = f"I talk with {name} at {_shown(self._place(me, day, hour))}"
        ahead = f"What is there on day {day} and on the days after it?"
        return Observation(text, ahead, {"day": day, "partner": name}, heard)

    def conversations(self) -> list[Conversation]:
        """Those who talk with each other, if words have turns here."""
        pairs = [(me, other) for me, other in enumerate(self._partners) if other is not None]
        return [
            Conversation([self._names[me], self._names[other]], turns=self._turns)
            for me, other in pairs
            if self._turns and me < other
        ]

    def may_tell(self, teller: str, listener: str) -> bool:
        """Those who talk with each other can hear each other."""
        return bool(self._partners) and self._partners[self._index[teller]] == self._index[listener]

    def apply(self, agent_id: str, action: Action) -> None:
        """Go somewhere in the evening."""
        if action.name != "go":
            raise refused(action, self.actions)
        (day, hour), me = self._now(), self._index[agent_id]
        place = action.arguments.get("place")
        if action.arguments.keys() != {"place"} or place not in _VENUES:
            raise InvalidAction(f"go takes one argument: place, one of {', '.join(_VENUES)}")
        if hour != _EVENING or agent_id in self._out:
            raise InvalidAction("you can go somewhere once an evening, at six")
        self._out[agent_id] = place
        for event, (right, _) in enumerate(self._places):
            if _day_of(event) == day:
                self._attended[me] += place == right
                self._misled[me] += place != right

    def end_tick(self) -> None:
        """At night everybody goes home."""
        self._partners = []
        self._tick += 1
        if self._now()[1] >= _NIGHT:
            self._out = {}

    def metrics(self) -> dict[str, float]:
        """Counts since the start.

        ``attended`` and ``misled`` count who went to the right and to a wrong place on the evening
        of an event, ``talks`` the talks of two.
        """
        return {
            "attended": sum(self._attended),
            "misled": sum(self._misled),
            "talks": self._talks,
        }

    def by_agent(self) -> dict[str, dict[str, float]]:
        """How many events each one attended, and how often it went to a wrong place."""
        return {
            "attended": dict(zip(self._names, self._attended, strict=True)),
            "misled": dict(zip(self._names, self._misled, strict=True)),
        }

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks; ``setup`` draws all that does not change."""
        return {
            "tick": self._tick,
            "talks": self._talks,
            "out": dict(self._out),
            "attended": list(self._attended),
            "misled": list(self._misled),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._talks = state["tick"], state["talks"]
        self._out = dict(state["out"])
        self._attended, self._misled = list(state["attended"]), list(state["misled"])
        self._partners = []

    def _now(self) -> tuple[int, int]:
        """The day and the hour."""
        days, hour = divmod(self._tick - 1 + _FIRST_HOUR, DAY)
        return days + 1, hour

    def _place(self, me: int, day: int, hour: int) -> str:
        own = self._days[me]
        return self._out.get(self._names[me]) or own[day % len(own)][hour]

    def _news(self, me: int, day: int, hour: int) -> list[str]:
        """What one of the first to know hears in this hour."""
        if hour != _NEWS_HOUR:
            return []
        found = []
        for event, (place, other) in enumerate(self._places):
            if _day_of(event) - _AHEAD == day:
                hosts, others = self._first[event][: self._hosts], self._first[event][self._hosts :]
                if me in hosts:
                    found.append(_told(event, place))
                elif me in others and event < self._rumours:
                    found.append(_told(event, other))
        return found

    def _meetings(self) -> list[int | None]:
        """Who talks with whom: those in one place meet in pairs, in a drawn order.

        Each one's two draws say where it is in the order, and whether it wants to talk.
        """
        day, hour = self._now()
        partners: list[int | None] = [None] * len(self._names)
        if hour >= _NIGHT or hour < _FIRST_HOUR:
            return partners
        at: dict[str, list[tuple[float, float, int]]] = {}
        for me, name in enumerate(self._names):
            random = own_stream(self._rng, "meeting", name).random
            at.setdefault(self._place(me, day, hour), []).append((random(), random(), me))
        for here in at.values():
            here.sort()
            for (_, one_wants, one), (_, other_wants, other) in zip(
                here[::2], here[1::2], strict=False
            ):
                if min(one_wants, other_wants) < self._talk:
                    partners[one], partners[other] = other, one
                    self._talks += 1
        return partners


class TownRules:
    """Tells its partner of an event to come, and goes where it heard that something is.

    Where it heard of two places, it believes what came to it through fewer hands.
    """

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Tell one thing that a search found, or go somewhere; often nothing."""
        facts = observation.facts
        if not facts:
            return []
        known = []
        for hit in memories:
            match = _TOLD.fullmatch(hit.memory.content)
            if match:
                known.append((int(match[3]), match[2], hit.memory))
        if "evening" in facts:
            today = [
                (_hands(memory), memory.sequence, place)
                for day, place, memory in known
                if day == facts["day"]
            ]
            why = "I heard of it, through the fewest hands"
            return [Action("go", {"place": min(today)[2]}, why)] if today else []
        partner = facts["partner"]
        news = [
            memory for day, _, memory in known if day >= facts["day"] and memory.speaker != partner
        ]
        if not news:
            return []
        told = {"to": partner, "memory_id": rng.choice(news).id}
        return [Action("tell", told, "it is news")]


def _hands(memory: Memory) -> int:
    return 0 if memory.source is None else memory.source.hands


def _day(count: int, rng: Random) -> list[list[str]]:
    """Where one of ``count`` people is in each hour, for three days that repeat."""
    home = f"home {int(rng.random() * max(1, count // _AT_HOME))}"
    work = f"work {int(rng.random() * max(1, count // _AT_WORK))}"
    begins, ends = 8 + int(rng.random() * 2), 16 + int(rng.random() * 3)
    noon, back = rng.choice(_VENUES), 20 + int(rng.random() * 2)
    days = []
    for evening in rng.sample(_VENUES, 3):
        places = [home] * DAY
        places[begins:ends] = [work] * (ends - begins)
        places[12] = noon
        places[ends:back] = [evening] * (back - ends)
        days.append(places)
    return days


def _day_of(event: int) -> int:
    return 1 + _AHEAD * (event + 1)


def _told(event: int, place: str) -> str:
    return f"There is a {_EVENTS[event]} at the {place} on day {_day_of(event)}"


def _shown(place: str) -> str:
    return place.partition(" ")[0] if " " in place else f"the {place}"
