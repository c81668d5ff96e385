"""The minority game: whoever is in the smaller of two groups wins, and memory says where to go.

It is the game of Savit, Manuca and Riolo (1999). Each agent has tables: for every row of outcomes
that it may remember, a table names a group. The agent joins the group that its best table names.
How long a row is, its memory decides: a search gives the latest outcomes, ``memory.default_limit``
of them. If all remember few outcomes, tables soon agree, and the groups are more unequal than those
of coins that are tossed; if they remember as many as there is room for, agents get out of each
other's way.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation
from . import check_whole_option, own_stream, refused

_GROUPS = "AB"
_WON, _LOST = "and I was in it", "and I was not in it"


class Minority:
    """The game. The paper has an odd number of agents; of two equal groups, one is drawn.

    Each agent has ``tables`` tables. A table gets a point in every tick in which the group that it
    names is the smaller one. ``sigma2`` leaves out the first ``warm_up`` ticks.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "join": "join a group: says has a letter, A or B, for each of your tables, in their order; "
        "you join the group that your best table names"
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "join": {"says": {"type": "string", "maxLength": 8}}
    }

    def __init__(self, *, tables: int = 2, warm_up: int = 200) -> None:
        self._count = check_whole_option("tables", tables, 1, 8)
        self._warm_up = check_whole_option("warm_up", warm_up, 0, 1_000_000)

    @staticmethod
    def rules(*, matters: str = "nothing") -> "MinorityRules":
        """The agents' own policy; ``matters`` says what is important: nothing, wins, or losses."""
        return MinorityRules(matters=matters)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw the tables, and the outcome before the first tick."""
        size = len(agent_ids)
        self._rng = rng
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self._tables = [[rng.getrandbits(48) for _ in range(self._count)] for _ in agent_ids]
        self._smaller = rng.choice(_GROUPS)
        self._points = [[0] * self._count for _ in agent_ids]
        self._said: list[str] = [""] * size
        """What each agent's tables say in this tick."""
        self._joined: list[str] = [""] * size
        """The group of each agent in the tick before; in this one, once it has joined."""
        self._wins = [0] * size
        self._tick, self._sizes = 1, [0, 0, 0]
        """After the warm-up: ticks, the sum of the sizes of group A, and that of their squares."""

    def observe(self, agent_id: str) -> Observation:
        """Which group was the smaller one; the blank query finds the latest memories."""
        me = self._index[agent_id]
        won = _WON if self._joined[me] == self._smaller else _LOST
        text = f"Group {self._smaller} was the smaller one, {won}"
        self._said[me] = self._joined[me] = ""
        return Observation(text, " ", {"tables": self._tables[me]})

    def apply(self, agent_id: str, action: Action) -> None:
        """Join the group that the best table names; equal ones draw."""
        if action.name != "join":
            raise refused(action, self.actions)
        says, me = action.arguments.get("says"), self._index[agent_id]
        if not isinstance(says, str) or len(says) != self._count or set(says) - set(_GROUPS):
            raise InvalidAction(f"says is {says!r:.40}", hint="give A or B for each of your tables")
        if self._joined[me]:
            raise InvalidAction("you are in a group already", hint="join once in a tick")
        best = max(self._points[me])
        of_best = [each for each, own in zip(says, self._points[me], strict=True) if own == best]
        drawn = len({*of_best}) > 1
        own = own_stream(self._rng, "draw", agent_id).choice(of_best) if drawn else of_best[0]
        self._said[me], self._joined[me] = says, own

    def end_tick(self) -> None:
        """Count the groups; the smaller one wins. Who joined none is in neither."""
        size, other = map(self._joined.count, _GROUPS)
        self._smaller = "A" if size < other else "B"
        if size == other:
            self._smaller = self._rng.choice(_GROUPS)
        for me, says in enumerate(self._said):
            self._wins[me] += self._joined[me] == self._smaller
            for table, group in enumerate(says):
                self._points[me][table] += group == self._smaller
        if self._tick > self._warm_up:
            ticks, total, squares = self._sizes
            self._sizes = [ticks + 1, total + size, squares + size * size]
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """``sigma2`` is the variance of the size of group A, by the number of agents.

        Agents that toss coins have 0.25. ``wins`` is the share of wins of all choices so far.
        """
        ticks, total, squares = self._sizes
        agents, all_ticks = len(self._index), max(1, self._tick - 1)
        sigma2 = (ticks * squares - total * total) / (ticks * ticks * agents) if ticks else 0.0
        return {"sigma2": sigma2, "wins": sum(self._wins) / (agents * all_ticks)}

    def by_agent(self) -> dict[str, dict[str, float]]:
        """How often each agent won."""
        return {"wins": dict(zip(self._index, self._wins, strict=True))}

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks; ``setup`` draws the tables."""
        return {
            "tick": self._tick,
            "smaller": self._smaller,
            "joined": "".join(group or "-" for group in self._joined),
            "points": [list(own) for own in self._points],
            "wins": list(self._wins),
            "sizes": list(self._sizes),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._smaller = state["tick"], state["smaller"]
        self._joined = [group.strip("-") for group in state["joined"]]
        self._points = [list(own) for own in state["points"]]
        self._wins, self._sizes = list(state["wins"]), list(state["sizes"])


class MinorityRules:
    """Looks up in its tables the row of outcomes that it remembers, and the one that it is told.

    So a row has one outcome more than a search gives memories. What matters is kept as an
    important memory, which comes to mind before newer ones.
    """

    def __init__(self, *, matters: str = "nothing") -> None:
        ends = {"nothing": None, "wins": _WON, "losses": _LOST}
        if matters not in ends:
            raise ConfigError(
                f"simulation.policy_options.matters is {matters!r:.40}",
                hint=f"use one of {', '.join(ends)}",
            )
        self._ending = ends[matters]

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Join a group; keep the outcome that was told, if it matters."""
        told, known = observation.text, [hit.memory for hit in memories]
        known.sort(key=lambda memory: memory.sequence)
        row = "".join(_outcome(text) for text in [*(own.content for own in known), told])
        says = "".join(_named(table, row) for table in observation.facts["tables"])
        actions = [Action("join", {"says": says}, f"the last outcomes that I know are {row}")]
        if self._ending and told.endswith(self._ending):
            kept = {"content": told, "tier": "important"}
            actions.append(Action("store_memory", kept, "that is what matters to me"))
        return actions


def _outcome(text: str) -> str:
    return text.removeprefix("Group ")[0]


def _named(table: int, row: str) -> str:
    """The group that a table names after a row of outcomes: a hash stands for the whole table."""
    return _GROUPS[blake2b(f"{table} {row}".encode(), digest_size=1).digest()[0] & 1]
