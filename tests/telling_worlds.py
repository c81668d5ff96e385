"""Worlds in which agents tell, retract, trust and die; used by tests as a user's own code."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from agents.simulation.protocols import Action, Ask, Insight, Observation
from agents.simulation.worlds.household import Household
from agents.simulation.worlds.rumor import Rumor

CORRECTS = "It is not so: "


def die_if_told(folder: str, moment: str, tick: int) -> None:
    """Kill this process once, if ``folder`` has a file of the moment's name."""
    told = Path(folder) / f"{moment}-{tick}"
    if folder and told.exists():
        told.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class MortalRumor(Rumor):
    """The village; its process dies while an agent speaks, or when all was told but not kept."""

    def __init__(self, *, kills: str = "", **options: int) -> None:
        super().__init__(**options)
        self._kills = kills

    def may_tell(self, teller: str, listener: str) -> bool:
        die_if_told(self._kills, "speaking", self._tick)
        return super().may_tell(teller, listener)

    def end_tick(self) -> None:
        die_if_told(self._kills, "told", self._tick)
        super().end_tick()

    def get_state(self) -> dict[str, Any]:
        die_if_told(self._kills, "keeping", self._tick - 1)
        return super().get_state()


class MortalHousehold(Household):
    """The household; its process dies when agents reflected, before the tick is kept."""

    def __init__(self, *, kills: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._kills = kills

    def end_tick(self) -> None:
        die_if_told(self._kills, "reflected", self._tick)
        super().end_tick()

    def get_state(self) -> dict[str, Any]:
        die_if_told(self._kills, "keeping", self._tick - 1)
        return super().get_state()


class Square:
    """A place where agents do what a plan says: for each tick, ``[agent, deed, number, ...]``."""

    def __init__(self, *, plan: Sequence[Sequence[Sequence[Any]]] = ()) -> None:
        self._plan = plan
        self._tick = 0

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self._agents = list(agent_ids)

    def observe(self, agent_id: str) -> Observation:
        today = self._plan[self._tick] if self._tick < len(self._plan) else ()
        number = self._agents.index(agent_id)
        facts = {
            "todo": [list(each[1:]) for each in today if each[0] == number],
            "others": [each for each in self._agents if each != agent_id],
        }
        text = f"{agent_id} sees {self._tick} stones"
        return Observation(text, query="stones", facts=facts)

    def may_tell(self, teller: str, listener: str) -> bool:
        return (self._agents.index(teller) + self._tick) % 4 != self._agents.index(listener)

    def apply(self, agent_id: str, action: Action) -> None: ...

    def end_tick(self) -> None:
        self._tick += 1

    def metrics(self) -> Mapping[str, float]:
        return {"tick": self._tick}

    def get_state(self) -> Any:
        return {"tick": self._tick}

    def set_state(self, state: Any) -> None:
        self._tick = state["tick"]

    @staticmethod
    def rules() -> "Talking":
        return Talking()


class Market(Square):
    """A square where the first agent tells all of a well, and corrects it twice."""

    def observe(self, agent_id: str) -> Observation:
        facts = {"tick": self._tick, "is_herald": agent_id == self._agents[0]}
        return Observation(f"{agent_id} waits", query="the well", facts=facts)

    def may_tell(self, teller: str, listener: str) -> bool:
        return True

    @staticmethod
    def rules() -> "Heralding":
        return Heralding()


class Heralding:
    """Tells of the well; what corrects it says which memory it corrects."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if not observation.facts["is_herald"]:
            return []
        about = [hit.memory for hit in memories if "the well" in hit.memory.content]
        tick = observation.facts["tick"]
        if tick == 0:
            return [Action("store_memory", {"content": "the well is poisoned"})]
        (last,) = about
        first = last.content.partition(": ")[2] or last.id
        if tick == 1:
            return [Action("broadcast", {"memory_id": first})]
        if tick in (2, 4):
            content = f"the well is {'salty' if tick == 2 else 'clean'}: {first}"
            return [Action("store_memory", {"content": content, "supersedes": last.id})]
        return [Action("retract", {"memory_id": first})] if tick in (3, 5) else []


class Forum(Square):
    """A square with two boards, which all may join, read, write to and leave."""

    def groups(self) -> Mapping[str, Sequence[str]]:
        return {f"board_{number}": self._agents[number::2] for number in (0, 1)}

    def may_join(self, agent_id: str, group: str) -> bool:
        return group in ("board_0", "board_1")


class Talking:
    """Does what the square's plan says to the memories that a search found."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        found, actions = [hit.memory for hit in memories], list[Any]()
        facts = observation.facts
        if any(deed == "ask" for deed, *_ in facts["todo"]):
            if not observation.answers:
                return [Ask("Read on the board", 4, groups=True)]
            seen = [hit.memory.content for hit in observation.answers[0].hits]
            actions.append(Action("store_memory", {"content": f"I read {seen}"[:200]}))
        for deed, pick, to in facts["todo"] if found else ():
            memory, other = found[pick % len(found)], facts["others"][to % len(facts["others"])]
            actions += _done(deed, memory, other, found)
        return actions


def _done(deed: str, memory: Any, other: str, found: Sequence[Any]) -> list[Action]:
    which, board = {"memory_id": memory.id}, {"group": f"board_{int(other[-2:]) % 2}"}
    if deed == "post":
        content = f"Read on the board: {memory.content}"[:90]
        return [Action("post_to_group", {**board, "content": content})]
    if deed in ("join", "leave"):
        return [Action(f"{deed}_group", board)]
    if deed == "ask":
        return []
    if deed == "tell":
        return [Action("tell", {**which, "to": other, "note": "psst"})]
    if deed == "broadcast":
        return [Action("broadcast", which)]
    if deed == "correct":  # the text says which memory it corrects
        content = CORRECTS + memory.id
        return [Action("store_memory", {"content": content, "supersedes": memory.id})]
    if deed == "retract":
        own = [each.content for each in found if each.content.startswith(CORRECTS)]
        return [Action("retract", {"memory_id": text.removeprefix(CORRECTS)}) for text in own]
    return [Action("set_trust", {"agent": other, "trust": 0.25})]


class Clubs(Square):
    """Agents are members of a club each, write to its board, search it, and leave one day."""

    def groups(self) -> Mapping[str, Sequence[str]]:
        return {f"club_{number}": self._agents[number::2] + self._agents[:2] for number in (0, 1)}

    @staticmethod
    def rules() -> Any:
        return Posting()


class OpenClubs(Clubs):
    """Clubs that agents join and leave, in turn, and one that agents found."""

    def may_join(self, agent_id: str, group: str) -> bool:
        return group in ("club_0", "club_1", "league") and agent_id != "agent_02"

    @staticmethod
    def rules() -> Any:
        return Coming()


class ThinkingClubs(OpenClubs):
    """Open clubs whose members also look at boards when they reflect."""

    @staticmethod
    def rules() -> Any:
        return Thinking()


class Posting:
    """Posts, asks and leaves, by chance."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if observation.asks_left and not observation.answers:
            return [Ask("who was here?", 4, groups=True)]
        agent, club = observation.agent_id, f"club_{rng.randrange(2)}"
        content = f"{agent} was here in tick {observation.tick}"
        actions = [Action("post_to_group", {"group": club, "content": content})]
        if agent == "agent_03" and observation.tick == 5:
            actions.append(Action("leave_group", {"group": "club_1"}))
        return actions


class Coming:
    """Joins, posts, asks, trusts and leaves, by chance; mistakes are part of it."""

    def decide(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if observation.asks_left and len(observation.answers) < rng.randrange(3):
            return [Ask(rng.choice(["who was here?", "tick 2"]), 3, groups=True), Ask("stones")]
        agent, tick = observation.agent_id, observation.tick
        club = rng.choice(["club_0", "club_1", "league", "cabal"])
        content = f"{agent} was here in tick {tick}"
        actions = [
            Action("join_group", {"group": club}),
            Action("post_to_group", {"group": club, "content": content, "tier": "important"}),
            Action("leave_group", {"group": rng.choice(["club_0", "club_1"])}),
            Action("post_to_group", {"group": "club_1", "content": f"{content}, too"}),
            Action("set_trust", {"agent": "agent_01", "trust": 0.5}),
        ]
        return rng.sample(actions, rng.randrange(1, 4)) if agent != "agent_01" else actions[1:2]


class Thinking(Coming):
    """Comes and goes, and concludes from its latest memory and from boards."""

    def reflect(self, observation: Observation, memories: Any, rng: Random) -> list[Any]:
        if not observation.answers:
            return [Ask("who was here?", 2, groups=True)]
        found = [hit.memory.content for hit in observation.answers[0].hits]
        return [Insight(f"{rng.randrange(9)}: {found}", [memories[-1].id])]
