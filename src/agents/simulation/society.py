"""Who can hear whom: a graph, a space in which those who are near hear each other, or places.

A :class:`Society` is a value. A world that has one as its attribute ``society`` need not say
``may_tell``; a scenario names one as ``simulation.society``. What changes in a run, such as where
agents are in a space, is state of the world: it gives another society then.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from random import Random
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from ..memory.scopes import scope_of

METRICS = ("euclidean", "moore", "von_neumann")
"""How far two points are apart: in a straight line, in steps that may be oblique, or may not."""


class _Ties(Protocol):
    """Who can hear whom, by the numbers of agents."""

    def near(self, one: int, tick: int) -> Sequence[int]:
        """Who can hear an agent, in the order of the agents."""

    def may_tell(self, one: int, other: int, tick: int) -> bool:
        """Whether the other one can hear the first."""


class _Graph:
    """Fixed ties: for each agent those who can hear it."""

    def __init__(self, near: Sequence[Iterable[int]]) -> None:
        self._near = [sorted(own) for own in near]
        self._sets = [frozenset(own) for own in self._near]

    def near(self, one: int, tick: int) -> Sequence[int]:
        return self._near[one]

    def may_tell(self, one: int, other: int, tick: int) -> bool:
        return other in self._sets[one]


class _Space:
    """Those who are within a radius of each other hear each other."""

    def __init__(
        self, points: NDArray[np.float64], radius: float, metric: str, torus: Sequence[float]
    ) -> None:
        self.points, self.radius, self.metric, self.torus = points, radius, metric, torus

    def near(self, one: int, tick: int) -> Sequence[int]:
        found = np.flatnonzero(self._within(self.points, one))
        return [each for each in found.tolist() if each != one]

    def may_tell(self, one: int, other: int, tick: int) -> bool:
        return one != other and bool(self._within(self.points[other : other + 1], one)[0])

    def _within(self, points: NDArray[np.float64], one: int) -> NDArray[np.bool_]:
        apart = np.abs(points - self.points[one])
        if self.torus:
            apart = np.minimum(apart, np.asarray(self.torus) - apart)
        if self.metric == "moore":
            return np.asarray(apart.max(axis=1) <= self.radius)
        if self.metric == "euclidean":
            apart = apart * apart
        total = apart[:, 0].copy()
        for column in range(1, apart.shape[1]):  # in one order, so that sums are the same bits
            total += apart[:, column]
        within = self.radius * self.radius if self.metric == "euclidean" else self.radius
        return np.asarray(total <= within)


class Place(NamedTuple):
    """Where some agents are at some hours. Of several places, the first one that holds counts."""

    name: str
    groups: Mapping[str, str] | None = None
    """For each agent that has part in it its group, whose members are together; None: all are."""
    hours: tuple[int, int] | None = None
    """From this hour of the day until before that one; from 22 to 6 is at night."""
    every: int = 1
    """In ticks that this number divides."""

    def holds(self, tick: int, day: int) -> bool:
        """Whether somebody is there in this tick."""
        if tick % self.every:
            return False
        if self.hours is None:
            return True
        begins, ends = self.hours
        hour = tick % day
        return begins <= hour < ends if begins <= ends else hour >= begins or hour < ends


class _Places:
    """Those who are in one place hear each other."""

    def __init__(self, agents: Sequence[str], places: Sequence[Place], day: int) -> None:
        self._agents, self._places, self._day = agents, places, day
        self._known: tuple[int, list[str], dict[str, list[int]]] | None = None

    def near(self, one: int, tick: int) -> Sequence[int]:
        where, members = self._at(tick)
        return [each for each in members.get(where[one], ()) if each != one]

    def may_tell(self, one: int, other: int, tick: int) -> bool:
        where, _ = self._at(tick)
        return one != other and where[one] == where[other] != ""

    def where(self, one: int, tick: int) -> str:
        return self._at(tick)[0][one]

    def _at(self, tick: int) -> tuple[list[str], dict[str, list[int]]]:
        """For each agent its place, and for each place who is there; kept for one tick."""
        if self._known is None or self._known[0] != tick:
            open_ = [each for each in self._places if each.holds(tick, self._day)]
            where = [_place_of(agent, open_) for agent in self._agents]
            members: dict[str, list[int]] = {}
            for number, place in enumerate(where):
                if place:
                    members.setdefault(place, []).append(number)
            self._known = tick, where, members
        return self._known[1], self._known[2]


def _place_of(agent: str, places: Iterable[Place]) -> str:
    for place in places:
        if place.groups is None:
            return place.name
        if agent in place.groups:
            return f"{place.name} {place.groups[agent]}"
    return ""


@final
class Society:
    """Who can hear whom, among the agents of a run.

    >>> society = Society.of_edges(["ann", "bob", "cat"], [("ann", "bob"), ("bob", "cat")])
    >>> society.near("bob"), society.may_tell("ann", "cat"), society.distances("ann")
    (['ann', 'cat'], False, {'ann': 0, 'bob': 1, 'cat': 2})
    """

    def __init__(
        self,
        agents: Sequence[str],
        ties: _Ties,
        *,
        talk: float = 0.0,
        turns: int = 6,
        tick: int = 0,
    ) -> None:
        """Callers use ``of_edges``, ``of_graph``, ``of_positions`` or ``of_places``."""
        self.agents = tuple(agents)
        self.talk = talk
        """How likely an agent begins a conversation in a tick."""
        self.turns = turns
        """How many turns a conversation has."""
        self.tick = tick
        """The tick of which it speaks, where places have hours."""
        self._ties = ties
        self._number = {name: number for number, name in enumerate(self.agents)}

    # Making one

    @classmethod
    def of_edges(
        cls,
        agents: Sequence[str],
        edges: Iterable[Sequence[str]],
        *,
        directed: bool = False,
    ) -> Self:
        """From pairs of agents: the second can hear the first, and the first the second.

        ``directed`` edges go one way, from who tells to who hears. What comes after the two names
        does not count, nor do edges from an agent to itself.
        """
        numbers = {name: number for number, name in enumerate(agents)}
        near: list[set[int]] = [set() for _ in agents]
        for edge in edges:
            one, other = (_known(name, numbers) for name in edge[:2])
            if one == other:
                continue
            near[one].add(other)
            if not directed:
                near[other].add(one)
        return cls(agents, _Graph(near))

    @classmethod
    def of_graph(cls, agents: Sequence[str], graph: Any) -> Self:
        """From a graph of networkx. Its nodes are agents, or else they are taken in their order.

        Who is no node has no ties.
        """
        nodes = list(graph)
        names = dict(zip(nodes, nodes, strict=True))
        if not set(agents).issuperset(nodes):
            if len(nodes) != len(agents):
                raise InvalidInput(
                    f"the graph has {len(nodes)} nodes, and there are {len(agents)} agents",
                    hint="give each agent a node, or name nodes by the ids of agents",
                )
            names = dict(zip(nodes, agents, strict=True))
        edges = [(names[one], names[other]) for one, other in graph.edges()]
        return cls.of_edges(agents, edges, directed=graph.is_directed())

    @classmethod
    def of_positions(
        cls,
        agents: Sequence[str],
        positions: Any,
        radius: float,
        *,
        metric: str = "euclidean",
        torus: Sequence[float] = (),
    ) -> Self:
        """From a row of coordinates for each agent, as lists or an array of NumPy.

        Who is at most ``radius`` away hears. With ``torus``, the sizes of the space, what leaves it
        on one side comes in on the other.
        """
        try:
            points = np.array(positions, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"positions are rows of numbers: {error}") from None
        if points.ndim != 2 or len(points) != len(agents) or not points.shape[1]:
            raise InvalidInput(
                f"positions have the shape {points.shape}, and there are {len(agents)} agents",
                hint="give a row of coordinates for each agent",
            )
        if not np.isfinite(points).all() or not isfinite(radius) or radius < 0:
            raise InvalidInput("positions and radius are finite numbers, and no radius is below 0")
        if metric not in METRICS:
            raise InvalidInput(f"metric is {metric!r:.40}", hint=f"use one of {', '.join(METRICS)}")
        if torus and (len(torus) != points.shape[1] or min(torus) <= 0):
            raise InvalidInput(f"torus is {torus!r:.60}", hint="give the size of each dimension")
        if torus:
            points = np.mod(points, np.asarray(torus, np.float64))
        return cls(agents, _Space(points, radius, metric, tuple(torus)))

    @classmethod
    def of_mesa(cls, agents: Mapping[str, Any], space: Any, radius: float = 1) -> Self:
        """From a space of Mesa, and the agents of the model by their ids here.

        On a grid ``radius`` counts cells, oblique steps too, unless it is a von Neumann grid; in a
        continuous space it is a distance. The graph of a network does not ask for a radius.
        """
        graph = getattr(space, "G", None)
        if graph is not None:
            at = {name: _position(name, own) for name, own in agents.items()}
            ties = [
                (one, other)
                for one in at
                for other in at
                if one != other and (at[one] == at[other] or graph.has_edge(at[one], at[other]))
            ]
            return cls.of_edges(list(agents), ties, directed=True)
        kind = type(space).__name__
        if "Hex" in kind or "Voronoi" in kind:
            raise InvalidInput(
                f"a {kind} has no distances here",
                hint="give edges between neighbours to Society.of_edges",
            )
        positions = [_position(name, own) for name, own in agents.items()]
        torus = _size_of(space) if getattr(space, "torus", False) else ()
        metric = "euclidean" if "Continuous" in kind else "moore"
        if "VonNeumann" in kind:
            metric = "von_neumann"
        return cls.of_positions(list(agents), positions, radius, metric=metric, torus=torus)

    @classmethod
    def of_places(
        cls,
        agents: Sequence[str],
        places: Sequence[Place],
        *,
        day: int = 24,
    ) -> Self:
        """From places with hours, of a day of so many ticks: :meth:`at` gives that of a tick."""
        return cls(agents, _Places(tuple(agents), list(places), day))

    # Asking it

    def at(self, tick: int) -> Self:
        """The society in a tick: another one where places have hours."""
        if tick == self.tick or not isinstance(self._ties, _Places):
            return self
        return self._with(tick=tick)

    def talking(self, talk: float, turns: int = 6) -> Self:
        """The same ties, over which agents talk: each begins a conversation with this chance."""
        return self._with(talk=talk, turns=turns)

    def moved(self, positions: Any) -> Self:
        """The same space with its agents elsewhere."""
        space = self._ties
        if not isinstance(space, _Space):
            raise InvalidInput("a society without a space has no positions to move from")
        made = type(self).of_positions(
            self.agents, positions, space.radius, metric=space.metric, torus=space.torus
        )
        return made.talking(self.talk, self.turns)

    def _with(self, **changed: Any) -> Self:
        kept = {"talk": self.talk, "turns": self.turns, "tick": self.tick}
        return type(self)(self.agents, self._ties, **{**kept, **changed})

    def near(self, agent: str) -> list[str]:
        """Who can hear an agent, in the order of the run."""
        near = self._ties.near(_known(agent, self._number), self.tick)
        return [self.agents[each] for each in near]

    def may_tell(self, teller: str, listener: str) -> bool:
        """Whether the listener can hear the teller."""
        one, other = _known(teller, self._number), _known(listener, self._number)
        return self._ties.may_tell(one, other, self.tick)

    def where(self, agent: str) -> str:
        """The place where an agent is, such as "work 2"; empty without places, or if nowhere."""
        number = _known(agent, self._number)
        return self._ties.where(number, self.tick) if isinstance(self._ties, _Places) else ""

    @property
    def positions(self) -> list[list[float]] | None:
        """The coordinates of each agent; None without a space."""
        return self._ties.points.tolist() if isinstance(self._ties, _Space) else None

    @cached_property
    def edges(self) -> list[tuple[str, str]]:
        """Teller and listener of each tie, by tellers; a tie of both ways is there twice."""
        return [(agent, other) for agent in self.agents for other in self.near(agent)]

    def distances(self, agent: str) -> dict[str, int]:
        """Through how many ties a word of an agent comes to each other one; no way, no entry."""
        found = {agent: 0}
        waiting = deque([agent])
        while waiting:
            one = waiting.popleft()
            for other in self.near(one):
                if other not in found:
                    found[other] = found[one] + 1
                    waiting.append(other)
        return found

    def pairs(self, rng: Random) -> Iterator[tuple[str, str]]:
        """Who talks with whom: in a drawn order, each free agent begins with the chance ``talk``.

        It talks with one of those, drawn, who are free as well, and it and they hear each other.
        """
        if not self.talk:
            return
        draws = [(rng.random(), rng.random(), rng.random()) for _ in self.agents]
        busy: set[str] = set()
        for number in sorted(range(len(draws)), key=draws.__getitem__):
            one, (_, wants, chooses) = self.agents[number], draws[number]
            if wants >= self.talk or one in busy:
                continue
            free = [
                other
                for other in self.near(one)
                if other not in busy
                and self.may_tell(other, one)
                and scope_of(one) == scope_of(other)
            ]
            if free:
                other = free[int(chooses * len(free))]
                busy |= {one, other}
                yield one, other


def society_at(world: object, tick: int) -> Society | None:
    """The society of a world in a tick: of its attribute, or of a method; None without one."""
    found = getattr(world, "society", None)
    if callable(found):
        found = found()
    if found is None:
        return None
    if not isinstance(found, Society):
        raise InvalidInput(
            f"{type(world).__name__}.society is {found!r:.60}", hint="it is a Society, or None"
        )
    return found.at(tick)


def _known(name: object, numbers: Mapping[str, int]) -> int:
    number = numbers.get(name) if isinstance(name, str) else None
    if number is None:
        raise InvalidInput(f"there is no agent {name!r:.60}", hint="name agents of the run")
    return number


def _position(name: str, agent: Any) -> Any:
    """Where an agent of a Mesa model is."""
    for place in (
        getattr(agent, "pos", None),
        getattr(agent, "position", None),
        getattr(getattr(agent, "cell", None), "coordinate", None),
    ):
        if place is not None:
            return place
    raise InvalidInput(f"{name} is nowhere in the space", hint="place it, or leave it out")


def _size_of(space: Any) -> list[float]:
    """How large a space of Mesa is, in each dimension."""
    size = getattr(space, "size", None)
    if size is None:
        size = getattr(space, "dimensions", None) or (space.width, space.height)
    return [float(each) for each in size]
