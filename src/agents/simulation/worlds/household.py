"""Servants with standing orders: each order is told once, and matters for the rest of the run.

An order forbids something: a dish that makes the young lady ill, an hour after which the gate is
locked. In every tick a servant must choose between three things, one of which an order forbids. The
words of the choice are not the words of the order: the servant must think of it unasked.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Outcome, Remark
from . import another, check_whole_option, check_yes_or_no, own_stream, refused


class _Order(NamedTuple):
    """A kind of order. The order of one servant forbids the things of one group."""

    told: str
    asks: str
    did: str
    groups: Mapping[str, Sequence[str]]
    """What the order names, and the things that it forbids with this name."""


_ORDERS: Mapping[str, _Order] = {
    "allergy": _Order(
        "The young lady falls ill from {}",
        "The cook asks what to serve for supper: {}, {} or {}",
        "served {} for supper",
        {
            "nuts": ("almond cake", "marzipan", "pesto"),
            "fish": ("smoked trout", "eel pie", "herring"),
            "milk": ("cheese tart", "custard", "buttered peas"),
            "eggs": ("an omelette", "meringue", "mayonnaise"),
        },
    ),
    "curfew": _Order(
        "The gate is locked {}, and nobody is let in",
        "I am sent to town and may choose when: {}, {} or {}",
        "went to town {}",
        {
            "before the lamps are lit": ("at dusk", "after vespers", "when the stars are out"),
            "while the family eats": ("at noon", "after the soup", "during the meal"),
            "on washing day": ("on Monday", "with the laundry cart", "with the wet linen"),
            "when it snows": ("in the frost", "by sledge", "in the coldest hour"),
        },
    ),
    "debt": _Order(
        "I owe {} ten coins and can't pay before the harvest",
        "There are three ways to the river: past {}, past {} or past {}",
        "walked past {} to the river",
        {
            "the smith": ("the forge", "the anvil yard", "the horseshoe sign"),
            "the baker": ("the ovens", "the bread stall", "the flour store"),
            "the tailor": ("the needle shop", "the cloth hall", "the coat window"),
            "the brewer": ("the hop garden", "the tavern", "the barrel yard"),
        },
    ),
    "promise": _Order(
        "I promised my brother to give up {}",
        "It is my free evening, and there is {}, {} or {}",
        "spent the evening with {}",
        {
            "gambling": ("a game of dice", "the cock fight", "a round of cards"),
            "drink": ("a jug of cider", "the new brandy", "a wine tasting"),
            "gossip": ("the sewing circle", "the well bench", "a talk with the maids"),
            "poaching": ("a walk with the snares", "the deer park at night", "the trout pool"),
        },
    ),
    "secret": _Order(
        "Nobody may learn that the master sold {}",
        "A guest wants to hear of the house: of {}, of {} or of {}",
        "told a guest of {}",
        {
            "his horses": ("the stable", "the hunt", "the carriage"),
            "the silver": ("the table at feasts", "the candlesticks", "the spoons"),
            "the forest": ("the firewood", "the oaks", "the boar"),
            "the paintings": ("the gallery", "the portraits", "the old frames"),
        },
    ),
    "feud": _Order(
        "The master has a quarrel with {}",
        "Three want to be let in: {}, {} and {}",
        "let in {}",
        {
            "the church": ("a monk", "the bell ringer", "the vicar's boy"),
            "the army": ("a drummer", "the corporal", "a lame veteran"),
            "the theatre": ("an actress", "the fiddler", "a masked man"),
            "the bank": ("a clerk with a ledger", "the coin changer", "a man about a loan"),
        },
    ),
    "repair": _Order(
        "{} are cracked, and must not be used until the joiner comes",
        "There is work to do: I can begin with {}, with {} or with {}",
        "began with {}",
        {
            "The ladders": ("the roof tiles", "the chandelier", "the top shelf"),
            "The jugs": ("the bath water", "the cider", "the flower beds"),
            "The knives": ("the roast", "the quills", "the bread"),
            "The carts": ("the letter to town", "the far field", "the sacks of grain"),
        },
    ),
    "mourning": _Order(
        "The house mourns an aunt, and there is to be no {}",
        "The children ask what they may have today: {}, {} or {}",
        "let the children have {}",
        {
            "music": ("the drum parade", "singing rounds", "the flute game"),
            "colour": ("painting eggs", "red ribbons", "the flower crowns"),
            "noise": ("skittles", "the shouting match", "tin soldiers"),
            "sweets": ("the honey hunt", "baking gingerbread", "the sugar doll"),
        },
    ),
}


class Household:
    """The houses.

    Each servant has ``orders`` standing orders, told one a tick from the first tick on, and hears
    ``talk`` remarks of other servants in a tick.
    """

    actions: ClassVar[Mapping[str, str]] = {"choose": "choose one of the three things: thing"}
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "choose": {"thing": {"type": "string", "maxLength": 40}}
    }

    def __init__(self, *, orders: int = 5, talk: int = 1) -> None:
        number = check_whole_option("orders", orders, 1, len(_ORDERS))
        self._kinds = list(_ORDERS)[:number]
        self._talk = check_whole_option("talk", talk, 0, 10)

    @staticmethod
    def rules(*, tiers: bool = True, worded: bool = False) -> "HouseholdRules":
        """The servants' own policy.

        Without ``tiers`` an order is a normal memory. A ``worded`` one says at which choice it
        matters.
        """
        return HouseholdRules(tiers=tiers, worded=worded)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw every servant's orders."""
        count = len(agent_ids)
        if count < 2:
            raise ConfigError(
                "simulation.agents: a household needs two servants or more",
                hint="give it two or more",
            )
        self._rng = rng
        self._names = list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        own = [own_stream(rng, "orders", name) for name in agent_ids]
        self._forbidden = [
            {kind: each.choice(list(_ORDERS[kind].groups)) for kind in self._kinds} for each in own
        ]
        self._open: list[tuple[str, list[str]] | None] = [None] * count
        self._latest: list[str | None] = [None] * count
        self._mistakes = [0] * count
        self._tick = 1

    def observe(self, agent_id: str) -> Observation:
        """A choice, remarks of other servants, and in the first ticks an order."""
        me, rng = self._index[agent_id], own_stream(self._rng, "day", agent_id)
        heard = [Remark(text) for _ in range(self._talk) if (text := self._remark(me, rng))]
        facts: dict[str, Any] = {}
        if self._tick <= len(self._kinds):
            kind = self._kinds[self._tick - 1]
            facts["order"] = _told(kind, self._forbidden[me][kind])
            heard.append(Remark(facts["order"]))
        kind = rng.choice(self._kinds[: self._tick])
        forbidden = self._forbidden[me][kind]
        groups = [forbidden, *rng.sample([g for g in _ORDERS[kind].groups if g != forbidden], 2)]
        rng.shuffle(groups)
        things = {rng.choice(_ORDERS[kind].groups[group]): group for group in groups}
        self._open[me] = (kind, list(things))
        facts.update(kind=kind, things=things)
        return Observation(_ORDERS[kind].asks.format(*things), facts=facts, heard=heard)

    def apply(self, agent_id: str, action: Action) -> Outcome:
        """Choose one of the three things, once in a tick."""
        if action.name != "choose":
            raise refused(action, self.actions)
        me = self._index[agent_id]
        choice = self._open[me]
        if choice is None:
            raise InvalidAction("you chose already", hint="choose once in a tick")
        kind, things = choice
        thing = action.arguments.get("thing")
        if action.arguments.keys() != {"thing"} or thing not in things:
            raise InvalidAction(f"choose takes one argument: thing, one of {', '.join(things)}")
        self._open[me] = None
        did = self._latest[me] = _ORDERS[kind].did.format(thing)
        if thing not in _ORDERS[kind].groups[self._forbidden[me][kind]]:
            return Outcome(f"I {did}")
        self._mistakes[me] += 1
        return Outcome(f"I {did}{_REGRET}", success=False)

    def end_tick(self) -> None:
        """End open choices."""
        self._open = [None] * len(self._names)
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """``mistakes`` counts broken orders since the start; ``kept`` is the share of kept ones."""
        choices = (self._tick - 1) * len(self._names)
        mistakes = sum(self._mistakes)
        return {"mistakes": mistakes, "kept": 1 - mistakes / choices if choices else 1.0}

    def by_agent(self) -> dict[str, dict[str, float]]:
        """Each servant's broken orders."""
        return {"mistakes": dict(zip(self._names, map(float, self._mistakes), strict=True))}

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks. No choice is open then, and ``setup`` draws the orders."""
        return {
            "tick": self._tick,
            "mistakes": list(self._mistakes),
            "latest": list(self._latest),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick = state["tick"]
        self._mistakes, self._latest = list(state["mistakes"]), list(state["latest"])

    def _remark(self, me: int, rng: Random) -> str | None:
        """What another servant says it did last."""
        other = another(me, len(self._names), rng)
        did = self._latest[other]
        return did and f"{self._names[other]} says they {did}"


_REGRET = ", and that was a bad mistake"


class HouseholdRules:
    """Chooses what no order in view forbids, and nothing that a memory in view regrets."""

    def __init__(self, *, tiers: bool = True, worded: bool = False) -> None:
        self._tier = "pinned" if check_yes_or_no("tiers", tiers) else "normal"
        self._worded = check_yes_or_no("worded", worded)

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Choose; store an order that was told in this tick."""
        facts = observation.facts
        kind, things = facts["kind"], facts["things"]
        order = facts.get("order")
        # As one text: an insight or a worded order quotes what it is about.
        known = "\n".join([*(hit.memory.content for hit in memories), order or ""])
        left = [
            thing
            for thing, group in things.items()
            if _told(kind, group) not in known and _regret(kind, thing) not in known
        ]
        why = (
            "I remember nothing against it" if left else "I remember something against each of them"
        )
        actions = [Action("choose", {"thing": rng.choice(left or list(things))}, why)]
        if order is not None:
            written = f"{_OCCASIONS[order]}? Keep in mind: {order}" if self._worded else order
            stored = {"content": written, "tier": self._tier}
            actions.append(Action("store_memory", stored, "it is an order"))
        return actions


def _told(kind: str, group: str) -> str:
    return _ORDERS[kind].told.format(group)


_OCCASIONS: Mapping[str, str] = {
    _told(kind, group): re.split("[:,]", order.asks)[0]
    for kind, order in _ORDERS.items()
    for group in order.groups
}
"""By order, the choice at which it matters, in the words in which the choice begins."""


def _regret(kind: str, thing: str) -> str:
    return f"I {_ORDERS[kind].did.format(thing)}{_REGRET}"
