"""A village where agents repeat false rumours, and a herald tells the truth once.

In each tick another agent asks every agent about one of the village's affairs, and hears the answer
in the next tick. Some agents are paid to answer falsely; the honest ones say what they remember.
The herald tells a few agents the truth.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Remark
from . import another, check_whole_option, check_yes_or_no, own_stream, refused

__all__ = ["HERALD", "Hearing", "Rumor", "RumorRules"]

HERALD = "The herald"
"""The herald's name. No agent can have it: ids have no blanks."""

_CLAIMS: Mapping[str, tuple[str, str, str]] = {
    "bridge": ("the north bridge", "open", "closed"),
    "well": ("the village well", "clean", "poisoned"),
    "tax": ("the harvest tax", "lowered", "raised"),
    "mill": ("the old mill", "sold", "burned"),
    "fair": ("the spring fair", "on Sunday", "on Monday"),
    "wolf": ("the wolf in the forest", "dead", "alive"),
    "doctor": ("the new doctor", "honest", "a fraud"),
    "ferry": ("the evening ferry", "early", "late"),
}
"""For each claim: its subject, the word if the claim holds, and the word if it does not."""


class Hearing(NamedTuple):
    """An agent's first hearing of a claim: from which source, in which tick."""

    agent_id: str
    source: str
    tick: int


class Rumor:
    """The village.

    It has ``claims`` claims; ``setup`` draws which claims hold, and ``truth`` tells. ``liars`` of
    the agents answer the opposite. The herald speaks to ``corrections`` agents in a tick.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "answer": "say what you know to the one who asks: holds (true or false); "
        "who does not know says nothing",
    }

    def __init__(self, *, claims: int = 8, liars: int = 4, corrections: int = 2) -> None:
        number = check_whole_option("claims", claims, 1, len(_CLAIMS))
        self._claims = list(_CLAIMS)[:number]
        self._liars = check_whole_option("liars", liars, 0, 1_000_000)
        self._corrections = check_whole_option("corrections", corrections, 0, 1_000_000)

    @staticmethod
    def rules(*, tiers: bool = True) -> "RumorRules":
        """The village's own policy; without ``tiers`` the herald's word is a normal memory."""
        return RumorRules(tiers=tiers)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw the true claims and the liars."""
        count = len(agent_ids)
        if self._liars > count - 2:
            raise ConfigError(
                f"simulation.world_options.liars is {self._liars}, of {count} agents",
                hint="two at least must be honest",
            )
        if self._corrections > count:
            raise ConfigError(
                f"simulation.world_options.corrections is {self._corrections}, of {count} agents",
                hint="the herald speaks to each once a tick at most",
            )
        self._rng = rng
        self._names = list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self.truth = {claim: rng.random() < 0.5 for claim in self._claims}
        liars = rng.sample(range(count), self._liars)
        self._lies = [number in liars for number in range(count)]
        # This tick's questions: asker, claim. Sent answers, and arrived answers: claim, whether it
        # holds, source.
        self._asked: list[tuple[int, str] | None] = [None] * count
        self._sent: list[list[list[Any]]] = [[] for _ in range(count)]
        self._arrived: list[list[list[Any]]] = [[] for _ in range(count)]
        self._first: dict[str, list[Any]] = {}
        self._right = [0] * count
        self._tick = 1
        self._right_now = self._right_before = self._false = self._told = 0
        self._send_herald()
        self._arrived, self._sent = self._sent, self._arrived

    def observe(self, agent_id: str) -> Observation:
        """A question of another agent, and the answers to the agent's own questions."""
        me, rng = self._index[agent_id], own_stream(self._rng, "day", agent_id)
        asker = another(me, len(self._names), rng)
        claim = self._claims[int(rng.random() * len(self._claims))]
        self._asked[me] = (asker, claim)
        tick = self._tick
        heard, corrections = [], []
        for about, holds, source in self._arrived[me]:
            metadata = {"claim": about, "source": source, "heard_tick": tick}
            heard.append(Remark(_said(source, about, holds), metadata=metadata))
            self._first.setdefault(_key(about, holds, agent_id), [source, tick])
            if source == HERALD:
                corrections.append([about, holds])
        facts: dict[str, Any] = {
            "claim": claim,
            "asker": self._names[asker],
            "corrections": corrections,
        }
        text = f"{self._names[asker]} asks me whether {_words(claim, True)}"
        if self._lies[me]:
            paid = not self.truth[claim]
            facts["paid_to_say"] = paid
            text += f", and I am paid to say that {_words(claim, paid)}"
        return Observation(text, query=_question(claim), facts=facts, heard=heard)

    def apply(self, agent_id: str, action: Action) -> None:
        """Answer the tick's question, once."""
        if action.name != "answer":
            raise refused(action, self.actions)
        holds = action.arguments.get("holds")
        if action.arguments.keys() != {"holds"} or not isinstance(holds, bool):
            raise InvalidAction("answer takes one argument: holds, which is true or false")
        me = self._index[agent_id]
        asked = self._asked[me]
        if asked is None:
            raise InvalidAction(
                "the tick's question is answered already", hint="wait for the next tick"
            )
        self._asked[me] = None
        asker, claim = asked
        self._sent[asker].append([claim, holds, agent_id])
        if not self._lies[me]:
            right = holds == self.truth[claim]
            self._right[me] += right
            self._right_now += right
            self._false += not right

    def end_tick(self) -> None:
        """Deliver the answers, and send the herald out."""
        count = len(self._names)
        self._tick += 1
        self._right_before, self._right_now = self._right_now, 0
        self._asked = [None] * count
        self._send_herald()
        self._arrived, self._sent = self._sent, [[] for _ in range(count)]

    def metrics(self) -> dict[str, float]:
        """Numbers of the honest agents.

        ``accuracy`` is the share of agents that answered this tick's question truly; silence counts
        as not true. ``accuracy_mean`` is the mean over all ticks so far. ``false_answers`` and
        ``corrections`` are counts since the start.
        """
        honest = len(self._names) - self._liars
        return {
            "accuracy": self._right_before / honest,
            "accuracy_mean": sum(self._right) / (honest * max(1, self._tick - 1)),
            "false_answers": self._false,
            "corrections": self._told,
        }

    def by_agent(self) -> dict[str, dict[str, float]]:
        """The share of questions that each honest agent answered truly."""
        ticks = max(1, self._tick - 1)
        return {
            "accuracy": {
                name: right / ticks
                for name, right, lies in zip(self._names, self._right, self._lies, strict=True)
                if not lies
            }
        }

    def trace(self, claim: str, agent_id: str, holds: bool) -> list[Hearing]:
        """The chain of hearings by which an agent heard that ``claim`` holds, or does not.

        Each hearing is its agent's first; its source is the agent of the hearing before. The first
        source is the origin: the herald, or an agent that had not heard the claim. The chain is
        empty if the agent never heard the claim.
        """
        chain: list[Hearing] = []
        listener = agent_id
        while (first := self._first.get(_key(claim, holds, listener))) is not None:
            source, tick = first
            if chain and tick >= chain[-1].tick:  # the agent said it before it heard it
                break
            chain.append(Hearing(listener, source, tick))
            if source == HERALD or self._is_paid_for(source, claim, holds):
                break
            listener = source
        return chain[::-1]

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks, when no question is open."""
        return {
            "tick": self._tick,
            "right_before": self._right_before,
            "false": self._false,
            "told": self._told,
            "right": list(self._right),
            "arrived": [list(answers) for answers in self._arrived],
            "first": dict(self._first),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._right_before = state["tick"], state["right_before"]
        self._false, self._told = state["false"], state["told"]
        self._right = list(state["right"])
        self._arrived = [list(answers) for answers in state["arrived"]]
        self._sent = [[] for _ in self._names]
        self._first = dict(state["first"])

    def _send_herald(self) -> None:
        for number in self._rng.sample(range(len(self._names)), self._corrections):
            claim = self._rng.choice(self._claims)
            self._sent[number].append([claim, self.truth[claim], HERALD])
            self._told += 1

    def _is_paid_for(self, agent_id: str, claim: str, holds: bool) -> bool:
        return self._lies[self._index[agent_id]] and holds != self.truth[claim]


class RumorRules:
    """Answers what the herald said, if a search finds it; otherwise what the majority said."""

    def __init__(self, *, tiers: bool = True) -> None:
        self._tier = "critical" if check_yes_or_no("tiers", tiers) else "normal"

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Answer, or stay silent if the voices are even; store what the herald says."""
        facts = observation.facts
        holds = facts.get("paid_to_say")
        if holds is None:
            holds = _belief(facts["claim"], memories)
        actions = [] if holds is None else [Action("answer", {"holds": holds})]
        for claim, truth in facts["corrections"]:
            content = f"{_said(HERALD, claim, truth)}, that is certain"
            actions.append(Action("store_memory", {"content": content, "tier": self._tier}))
        return actions


def _belief(claim: str, memories: Hits) -> bool | None:
    true, false = f" says {_words(claim, True)}", f" says {_words(claim, False)}"
    voices = 0
    for hit in memories:
        content = hit.memory.content
        holds = true in content
        if not holds and false not in content:
            continue
        if content.startswith(HERALD):
            return holds
        voices += 1 if holds else -1
    return None if voices == 0 else voices > 0


def _words(claim: str, holds: bool) -> str:
    subject, true, false = _CLAIMS[claim]
    return f"{subject} is {true if holds else false}"


def _said(source: str, claim: str, holds: bool) -> str:
    return f"{source} says {_words(claim, holds)}"


def _question(claim: str) -> str:
    subject, true, false = _CLAIMS[claim]
    return f"Is {subject} {true} or {false}?"


def _key(claim: str, holds: bool, agent_id: str) -> str:
    return f"{claim} {'holds' if holds else 'fails'} {agent_id}"
