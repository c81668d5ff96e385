"""A village where agents repeat false rumours, and a herald tells the truth once.

In each tick another agent asks every agent about one of the village's affairs, and is told a memory
in answer. In a society only who can hear it asks it; a stranger, where nobody can. Some agents are
paid to answer falsely; the honest ones tell what they remember. The herald tells a few agents the
truth. Each memory that was told knows its source, so a rumour can be followed back to the liar with
whom it began.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits, Memory
from ..protocols import Action, Observation, Remark
from ..society import society_at
from . import another, check_whole_option, check_yes_or_no, own_stream, refused

HERALD = "The herald"
"""The herald's name. No agent can have it: ids have no blanks."""
PAYMASTER = "The paymaster"
"""The name of the one who pays liars."""

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


class Rumor:
    """The village.

    It has ``claims`` claims; ``setup`` draws which claims hold, and ``truth`` tells. ``liars`` of
    the agents answer the opposite. The herald speaks to ``corrections`` agents in a tick.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "answer": "say whether you think that it holds: holds (true or false); who does not know "
        "says nothing. The one who asks remembers only a memory that you tell",
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "answer": {"holds": {"type": "boolean"}}
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
        self._askers: list[int | None] = [None] * count
        """Who asks each one in this tick."""
        self._asked: list[str | None] = [None] * count
        """The claims of the questions that nobody answered yet."""
        self._told: list[list[str]] = [[] for _ in range(count)]
        """The claims of which the herald speaks to each one in this tick."""
        self._right = [0] * count
        self._tick = 1
        self._right_now = self._right_before = self._false = self._corrected = 0
        self._send_herald()

    def facts(self) -> dict[str, dict[str, bool]]:
        """What is said of each claim, and whether it is true."""
        return {
            claim: {_words(claim, True): truth, _words(claim, False): not truth}
            for claim, truth in self.truth.items()
        }

    def observe(self, agent_id: str) -> Observation:
        """A question of another agent, and what the herald and the paymaster say."""
        me, rng = self._index[agent_id], own_stream(self._rng, "day", agent_id)
        asker = self._asker(agent_id, rng)
        claim = self._claims[int(rng.random() * len(self._claims))]
        self._askers[me], self._asked[me] = asker, claim
        told = [(about, self.truth[about]) for about in self._told[me]]
        heard = [Remark(_said(HERALD, *each), speaker=HERALD) for each in told]
        name = None if asker is None else self._names[asker]
        facts: dict[str, Any] = {
            "claim": claim,
            "asker": name,
            "corrections": list(map(list, told)),
        }
        text = f"{name or 'A stranger'} asks me whether {_words(claim, True)}"
        if self._lies[me]:
            paid = not self.truth[claim]
            facts["paid_to_say"] = paid
            text += f", and I am paid to say that {_words(claim, paid)}"
            heard.append(Remark(_words(claim, paid), speaker=PAYMASTER))
        return Observation(text, query=_question(claim), facts=facts, heard=heard)

    def _asker(self, agent_id: str, rng: Random) -> int | None:
        """Who asks an agent: any other one, or one who can hear it in the society, if one can."""
        society = society_at(self, self._tick)
        if society is None:
            return another(self._index[agent_id], len(self._names), rng)
        near = society.near(agent_id)
        return self._index[near[int(rng.random() * len(near))]] if near else None

    def may_tell(self, teller: str, listener: str) -> bool:
        """The one who asks can hear the answer."""
        return self._askers[self._index[teller]] == self._index[listener]

    def apply(self, agent_id: str, action: Action) -> None:
        """Answer the tick's question, once."""
        if action.name != "answer":
            raise refused(action, self.actions)
        holds = action.arguments.get("holds")
        if action.arguments.keys() != {"holds"} or not isinstance(holds, bool):
            raise InvalidAction("answer takes one argument: holds, which is true or false")
        me = self._index[agent_id]
        claim, self._asked[me] = self._asked[me], None
        if claim is None:
            raise InvalidAction(
                "the tick's question is answered already", hint="answer each question once"
            )
        if not self._lies[me]:
            right = holds == self.truth[claim]
            self._right[me] += right
            self._right_now += right
            self._false += not right

    def end_tick(self) -> None:
        """Send the herald out."""
        count = len(self._names)
        self._tick += 1
        self._right_before, self._right_now = self._right_now, 0
        self._askers, self._asked = [None] * count, [None] * count
        self._send_herald()

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
            "corrections": self._corrected,
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

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks, when no question is open."""
        return {
            "tick": self._tick,
            "right_before": self._right_before,
            "false": self._false,
            "corrected": self._corrected,
            "right": list(self._right),
            "told": [list(claims) for claims in self._told],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._right_before = state["tick"], state["right_before"]
        self._false, self._corrected = state["false"], state["corrected"]
        self._right = list(state["right"])
        self._told = [list(claims) for claims in state["told"]]

    def _send_herald(self) -> None:
        self._told = [[] for _ in self._names]
        for number in self._rng.sample(range(len(self._names)), self._corrections):
            self._told[number].append(self._rng.choice(self._claims))
            self._corrected += 1


class RumorRules:
    """Answers what the herald told it, if a search finds that; otherwise what most voices say.

    What others tell of the herald's word is a voice like any other.
    """

    def __init__(self, *, tiers: bool = True) -> None:
        self._tier = "critical" if check_yes_or_no("tiers", tiers) else "normal"

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Answer and tell, or stay silent if the voices are even; store what the herald says."""
        facts = observation.facts
        paid = facts.get("paid_to_say")
        found = [hit.memory for hit in memories]
        holds, memory = _belief(facts["claim"], found) if paid is None else (paid, None)
        if paid is not None:
            lie = _words(facts["claim"], paid)
            memory = next((own for own in found if own.content == lie and not own.source), None)
        why = "it is what I remember" if paid is None else "I am paid to say so"
        actions = [] if holds is None else [Action("answer", {"holds": holds}, why)]
        if memory is not None and facts["asker"] is not None:
            telling = {"to": facts["asker"], "memory_id": memory.id, "as_tier": "normal"}
            actions.append(Action("tell", telling, "I was asked"))
        for claim, truth in facts["corrections"]:
            content = f"{_said(HERALD, claim, truth)}, that is certain"
            stored = {"content": content, "tier": self._tier}
            actions.append(Action("store_memory", stored, "the herald says so"))
        return actions


def _belief(claim: str, memories: Sequence[Memory]) -> tuple[bool | None, Memory | None]:
    """Whether an agent believes that a claim holds, and the memory that says so."""
    voices: dict[bool, list[Memory]] = {True: [], False: []}
    for memory in memories:
        for holds, own in voices.items():
            if _words(claim, holds) not in memory.content or memory.kind == "observation":
                continue
            if memory.content.startswith(HERALD) and memory.source is None:
                return holds, memory
            own.append(memory)
    if len(voices[True]) == len(voices[False]):
        return None, None
    holds = len(voices[True]) > len(voices[False])
    return holds, voices[holds][0]


def _words(claim: str, holds: bool) -> str:
    subject, true, false = _CLAIMS[claim]
    return f"{subject} is {true if holds else false}"


def _said(source: str, claim: str, holds: bool) -> str:
    return f"{source} says {_words(claim, holds)}"


def _question(claim: str) -> str:
    subject, true, false = _CLAIMS[claim]
    return f"Is {subject} {true} or {false}?"
