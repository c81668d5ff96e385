"""A building site: the agents hear the plan once, and must remember it for hundreds of ticks.

Every agent builds a house, room by room and part by part. The plan names the material of each part.
An agent hears its plan in the first tick only. Every few ticks a cart brings materials to choose
from. In every tick other agents talk of their own houses, which have other plans.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Outcome, Remark
from . import another, check_whole_option, check_yes_or_no, refused

__all__ = ["Builders", "BuildersRules"]

_MATERIALS = (
    "oak", "slate", "clay", "brick", "lime", "sand", "iron", "glass", "straw", "pine", "copper",
    "marble",
)  # fmt: skip
_CHORES = (
    "rain fills the ditch and must be drained",
    "the scaffold is loose and needs new rope",
    "the mortar is too dry and needs water",
    "a wheel of the barrow is broken",
    "the saw is blunt and needs a file",
    "the neighbour's goat is on the site again",
)
_ROOMS = ("kitchen", "cellar", "hall", "stable", "attic", "workshop", "nursery", "chapel")
_PARTS = ("floor", "walls", "door", "window", "ceiling", "stairs", "hearth", "shelf")


class Builders:
    """The building site.

    A house has ``rooms`` of eight parts each; the plan of each room is one memory. A cart comes
    every ``cart_every`` ticks and has ``choices`` materials, one of them the right one. Each agent
    hears ``talk`` remarks in a tick.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "place": "build the next part from what the cart has: material",
    }

    def __init__(
        self, *, rooms: int = 5, cart_every: int = 4, choices: int = 3, talk: int = 2
    ) -> None:
        rooms = check_whole_option("rooms", rooms, 1, len(_ROOMS))
        self._order = [(room, part) for room in _ROOMS[:rooms] for part in _PARTS]
        self._parts = len(self._order)
        self._every = check_whole_option("cart_every", cart_every, 1, 1_000)
        self._choices = check_whole_option("choices", choices, 2, len(_MATERIALS))
        self._talk = check_whole_option("talk", talk, 0, 10)

    @staticmethod
    def rules(*, tiers: bool = True) -> "BuildersRules":
        """The site's own policy; without ``tiers`` the plan is a normal memory."""
        return BuildersRules(tiers=tiers)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw the plans."""
        count = len(agent_ids)
        if count < 2:
            raise ConfigError(
                "simulation.agents: a building site needs two builders or more",
                hint="give it two or more",
            )
        self._rng = rng
        self._names = list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self._plans = [rng.choices(_MATERIALS, k=self._parts) for _ in range(count)]
        self._built = [0] * count
        self._wrong = [0] * count
        self._carts: list[list[str] | None] = [None] * count
        self._tick = 0

    def observe(self, agent_id: str) -> Observation:
        """A cart or a chore, remarks of other agents, and in the first tick the plan."""
        me, rng = self._index[agent_id], self._rng
        heard = [Remark(self._remark(me)) for _ in range(self._talk)]
        facts: dict[str, Any] = {}
        if self._tick == 0:
            facts["plan"] = self._plan(me)
            heard += map(Remark, facts["plan"])
        built = self._built[me]
        if built == self._parts or self._tick % self._every:
            return Observation(f"At my house {rng.choice(_CHORES)}", facts=facts, heard=heard)
        right = self._plans[me][built]
        cart = [right, *rng.sample([m for m in _MATERIALS if m != right], self._choices - 1)]
        rng.shuffle(cart)
        self._carts[me] = cart
        room, part = self._order[built]
        facts.update(room=room, part=part, cart=cart)
        return Observation(
            f"A cart brings {', '.join(cart)}; the {part} of the {room} is next",
            query=f"{_plan_of(room)} which {part}?",
            facts=facts,
            heard=heard,
        )

    def apply(self, agent_id: str, action: Action) -> Outcome:
        """Build the next part, once for each cart; a wrong part is torn out again."""
        if action.name != "place":
            raise refused(action, self.actions)
        me = self._index[agent_id]
        cart = self._carts[me]
        if cart is None:
            raise InvalidAction(
                "there is no cart, or you took from it already", hint="wait for the next"
            )
        material = action.arguments.get("material")
        if action.arguments.keys() != {"material"} or material not in cart:
            raise InvalidAction(
                f"place takes one argument: material, which is one of {', '.join(cart)}"
            )
        self._carts[me] = None
        room, part = self._order[self._built[me]]
        if material == self._plans[me][self._built[me]]:
            self._built[me] += 1
            return Outcome(f"Placed {material}: the {part} of my {room} is done")
        self._wrong[me] += 1
        return Outcome(_mistake(room, part, str(material)), success=False)

    def end_tick(self) -> None:
        """Send the carts away."""
        self._carts = [None] * len(self._names)
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """``completion`` is the share of built parts, ``finished`` counts whole houses."""
        return {
            "completion": sum(self._built) / (self._parts * len(self._names)),
            "finished": sum(built == self._parts for built in self._built),
            "wrong_parts": sum(self._wrong),
        }

    def by_agent(self) -> dict[str, dict[str, float]]:
        """The share of built parts, and the number of wrong ones."""
        shares = [built / self._parts for built in self._built]
        return {
            "completion": dict(zip(self._names, shares, strict=True)),
            "wrong_parts": dict(zip(self._names, map(float, self._wrong), strict=True)),
        }

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks. No cart is there then, and ``setup`` draws the plans."""
        return {"tick": self._tick, "built": list(self._built), "wrong": list(self._wrong)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick = state["tick"]
        self._built, self._wrong = list(state["built"]), list(state["wrong"])

    def _plan(self, me: int) -> list[str]:
        """The plan of an agent's house, one text per room."""
        rooms: dict[str, list[str]] = {}
        for (room, part), material in zip(self._order, self._plans[me], strict=True):
            rooms.setdefault(room, []).append(f"{part} {material}")
        return [f"{_plan_of(room)} {', '.join(parts)}." for room, parts in rooms.items()]

    def _remark(self, me: int) -> str:
        """Another agent's remark about its next part."""
        other = another(me, len(self._names), self._rng)
        built = min(self._built[other], self._parts - 1)
        room, part = self._order[built]
        material = self._plans[other][built]
        return f"{self._names[other]} says the {part} of their {room} will be {material}"


class BuildersRules:
    """Follows the plan, if a search finds it; otherwise guesses, but repeats no known mistake."""

    def __init__(self, *, tiers: bool = True) -> None:
        self._tier = "pinned" if check_yes_or_no("tiers", tiers) else "normal"

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Place a part when a cart is there; store the plan in the first tick."""
        facts = observation.facts
        actions: list[Action] = []
        plan = facts.get("plan", ())
        if "cart" in facts:
            known = [*(hit.memory.content for hit in memories), *plan]
            material = _from_plan(facts, known) or _guess(facts, known, rng)
            actions.append(Action("place", {"material": material}))
        keep = [Action("store_memory", {"content": page, "tier": self._tier}) for page in plan]
        return actions + keep


def _from_plan(facts: Mapping[str, Any], known: Sequence[str]) -> str | None:
    heading = _plan_of(facts["room"])
    for content in known:
        if content.startswith(heading):
            found = re.search(rf" {facts['part']} (\w+)[,.]", content)
            return found[1] if found else None
    return None


def _guess(facts: Mapping[str, Any], known: Sequence[str], rng: Random) -> str:
    room, part, cart = facts["room"], facts["part"], facts["cart"]
    left = [material for material in cart if _mistake(room, part, material) not in known]
    return str(rng.choice(left or cart))


def _plan_of(room: str) -> str:
    return f"The plan of my {room}:"


def _mistake(room: str, part: str, material: str) -> str:
    return f"Placed {material}: torn out, the {part} of my {room} is not {material}"
