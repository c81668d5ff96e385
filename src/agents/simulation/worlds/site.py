"""A building site: what was decided long ago is needed again, and what blocks the work is in front.

In its first ticks each builder hears what was decided for its rooms: decisions, which a memory with
hot, warm and cold puts away once they are done. Much later the builder has to lay the floor of a
room, and must ask its memory for the decision. Now and then something is broken, which is told with
the tag ``blocker``, until it is told that it works again.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Ask, Observation, Outcome, Remark
from . import check_whole_option, check_yes_or_no, own_stream, refused

_ROOMS = (
    "kitchen", "attic", "cellar", "library", "nursery", "pantry", "stable", "hall", "bath", "loft",
)  # fmt: skip
_FLOORS = ("oak", "slate", "marble", "brick", "cork", "tile")
_BROKEN = {
    "crane": ("lift the beams", "sweep the yard"),
    "mixer": ("pour the concrete", "sort the nails"),
    "saw": ("cut the planks", "paint the fence"),
}
"""What can be broken: the work that needs it, and work that does not."""


class Site:
    """The site.

    Each builder has ``rooms`` rooms, and lays a floor in every ``every``-th tick after all was
    decided. In a tick one thing breaks with a chance of 1 in ``breaks``, and works again ten ticks
    later.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "lay": "lay the floor of the room that you are sent to: floor",
        "work": "do one of the two works of the day: work",
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "lay": {"floor": {"type": "string", "enum": list(_FLOORS)}},
        "work": {"work": {"type": "string", "maxLength": 40}},
    }

    def __init__(self, *, rooms: int = 6, every: int = 4, breaks: int = 12) -> None:
        self._rooms = _ROOMS[: check_whole_option("rooms", rooms, 1, len(_ROOMS))]
        self._every = check_whole_option("every", every, 1, 1000)
        self._breaks = check_whole_option("breaks", breaks, 1, 1000)

    @staticmethod
    def rules(*, recall: bool = True) -> "SiteRules":
        """The builders' own policy; without ``recall`` it asks for no cold memories."""
        return SiteRules(recall=recall)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Decide the floors of all rooms."""
        self._rng = rng
        self._names = list(agent_ids)
        self._decided = {
            name: {room: own.choice(_FLOORS) for room in self._rooms}
            for name in agent_ids
            for own in [own_stream(rng, "rooms", name)]
        }
        self._open: dict[str, str] = {}
        self._broken: dict[str, int] = {}
        self._news: list[Remark] = []
        self._laid = self._right = self._stopped = 0
        self._tick = 1

    def observe(self, agent_id: str) -> Observation:
        """The day's two works; a decision in the first ticks, and later a floor to lay."""
        rng = own_stream(self._rng, "day", agent_id)
        thing = rng.choice(list(_BROKEN))
        facts: dict[str, Any] = {"thing": thing, "works": list(_BROKEN[thing])}
        heard = list(self._news)
        text = f"There is work: {' or '.join(facts['works'])}"
        if self._tick <= len(self._rooms):
            room = self._rooms[self._tick - 1]
            told = _told(room, self._decided[agent_id][room])
            heard.append(Remark(told, kind="decision", speaker="architect"))
        elif self._tick % self._every == 0:
            facts["room"] = self._open[agent_id] = rng.choice(self._rooms)
            text = f"I am sent to lay the floor of the {facts['room']}"
        return Observation(text, facts=facts, heard=heard)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        """Lay a floor, or do a work, which fails while something that it needs is broken."""
        if action.name == "lay":
            return self._lay(agent_id, action.arguments.get("floor"))
        if action.name != "work":
            raise refused(action, self.actions)
        work = action.arguments.get("work")
        needed = [thing for thing, (heavy, _) in _BROKEN.items() if heavy == work]
        if not needed and work not in [light for _, light in _BROKEN.values()]:
            raise InvalidAction(f"there is no work {work!r:.40}")
        if needed and needed[0] in self._broken:
            self._stopped += 1
            return Outcome(f"I wanted to {work}, and lost the day", success=False)
        return Outcome(f"I did the work: {work}")

    def _lay(self, agent_id: str, floor: object) -> Outcome:
        room = self._open.pop(agent_id, None)
        if room is None:
            raise InvalidAction("no floor is to be laid now", hint="wait until you are sent")
        if floor not in _FLOORS:
            self._open[agent_id] = room
            raise InvalidAction(f"lay takes one argument: floor, one of {', '.join(_FLOORS)}")
        self._laid += 1
        if floor == self._decided[agent_id][room]:
            self._right += 1
            return Outcome(f"I laid the floor of the {room}, and it was right")
        return Outcome(f"I laid the wrong floor in the {room}", success=False)

    def end_tick(self) -> None:
        """Break something, mend what was broken long enough, and tell all builders of it."""
        self._open = {}
        self._news = []
        for thing in [thing for thing, since in self._broken.items() if self._tick - since >= 10]:
            del self._broken[thing]
            self._news.append(Remark(_mended(thing)))
        thing = self._rng.choice(list(_BROKEN))
        if self._rng.randrange(self._breaks) == 0 and thing not in self._broken:
            self._broken[thing] = self._tick
            self._news.append(Remark(_broken(thing), tags=("blocker",)))
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """The share of floors laid as decided, and the days lost to what was broken."""
        return {"right": self._right / self._laid if self._laid else 1.0, "lost": self._stopped}

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks; ``setup`` draws the decisions."""
        return {
            "tick": self._tick,
            "broken": self._broken,
            "news": [[remark.text, list(remark.tags)] for remark in self._news],
            "counts": [self._laid, self._right, self._stopped],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._broken = state["tick"], dict(state["broken"])
        self._news = [Remark(text, tags=tuple(tags)) for text, tags in state["news"]]
        self._laid, self._right, self._stopped = state["counts"]


class SiteRules:
    """Asks for a decision that is not in view, and leaves alone what is known to be broken."""

    def __init__(self, *, recall: bool = True) -> None:
        self._recall = check_yes_or_no("recall", recall)

    def decide(
        self, observation: Observation, memories: Hits, rng: Random
    ) -> list[Action] | list[Ask]:
        """Lay a floor or work; forget a blocker once its thing works again."""
        facts = observation.facts
        known = [hit.memory for hit in memories]
        for answer in observation.answers:
            known += [hit.memory for hit in answer.hits]
        texts = {memory.content for memory in known}
        actions = [
            Action("forget_memory", {"memory_id": memory.id}, "it works again")
            for memory in {memory.id: memory for memory in known}.values()
            for thing in _BROKEN
            if memory.content == _broken(thing) and self._works(thing, observation)
        ]
        room = facts.get("room")
        if room is None:
            heavy, light = facts["works"]
            news = {remark.text for remark in observation.heard}
            is_broken = _broken(facts["thing"]) in texts | news
            why = "what the other work needs is broken" if is_broken else "nothing hinders it"
            return [*actions, Action("work", {"work": light if is_broken else heavy}, why)]
        floors = [floor for floor in _FLOORS if _told(room, floor) in texts]
        if not floors and self._recall and observation.asks_left and not observation.answers:
            return [Ask(f"What was decided for the {room}?", cold=True)]
        why = "that was decided" if floors else "I remember no decision"
        floor = floors[0] if floors else rng.choice(_FLOORS)
        return [*actions, Action("lay", {"floor": floor}, why)]

    @staticmethod
    def _works(thing: str, observation: Observation) -> bool:
        return any(remark.text == _mended(thing) for remark in observation.heard)


def _told(room: str, floor: str) -> str:
    return f"We decided that the {room} gets a floor of {floor}"


def _broken(thing: str) -> str:
    return f"The {thing} is broken"


def _mended(thing: str) -> str:
    return f"The {thing} works again"
