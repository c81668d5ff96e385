"""Helping those who help: what an onlooker remembers of others decides whether help pays.

It is indirect reciprocity by image scoring, of Nowak and Sigmund (1998). An agent is asked for help
by another, whom it will hardly meet again. Help costs less than it gives. A few onlookers see what
it does, and remember it for life. An agent that is asked recalls what it saw the other do: the
image. It helps if that is not below its threshold. Children, who remember nothing, have the
thresholds of those who fared well.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Remark
from . import check_whole_option, own_stream, refused

_HELPED, _REFUSED = "helped one who asked", "refused one who asked"
_WORST, _BEST = -5, 5
"""The ends of an image. A threshold may be one above the best: such an agent never helps."""
_QUESTIONS: Mapping[str, str] = {"latest": " ", "recipient": "What did {} do?"}
"""What an agent that is asked for help asks its memory; the blank question finds the latest."""


class Helping:
    """The agents and their generations.

    In a tick, one of ``share`` agents is asked for help, and up to ``onlookers`` others see its
    answer. A generation has ``generation`` ticks. Help gives ``benefit`` and costs ``cost``. Of
    1,000 children ``mutants`` have any threshold. ``cooperation`` leaves out the first ``warm_up``
    generations. ``asks`` says what an agent recalls: the ``latest`` that it saw, or what it saw of
    the ``recipient``.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "help": "help the one who asks you; image: what you think of it, from -5 to 5, if you know",
        "refuse": "refuse to help; image as for help",
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: {"image": {"type": "integer", "minimum": _WORST, "maximum": _BEST}}
        for name in actions
    }

    def __init__(
        self, *, share: int = 4, onlookers: int = 10, generation: int = 20, benefit: int = 10,
        cost: int = 1, mutants: int = 0, warm_up: int = 20, asks: str = "latest",
    ) -> None:  # fmt: skip
        self._share = check_whole_option("share", share, 2, 1_000_000)
        self._onlookers = check_whole_option("onlookers", onlookers, 0, 1_000_000)
        self._generation = check_whole_option("generation", generation, 1, 1_000_000)
        self._benefit = check_whole_option("benefit", benefit, 0, 1_000_000)
        self._cost = check_whole_option("cost", cost, 0, 1_000_000)
        self._mutants = check_whole_option("mutants", mutants, 0, 1000)
        self._warm_up = check_whole_option("warm_up", warm_up, 0, 1_000_000)
        if asks not in _QUESTIONS:
            raise ConfigError(
                f"simulation.world_options.asks is {asks!r:.40}",
                hint=f"use one of {', '.join(_QUESTIONS)}",
            )
        self._question = _QUESTIONS[asks]

    @staticmethod
    def rules(*, matters: str = "nothing") -> "HelpingRules":
        """The agents' own policy; ``matters`` says what is important: nothing, help or refusals."""
        return HelpingRules(matters=matters)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw the thresholds of the first generation."""
        self._rng, self._names = rng, list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self._thresholds = [rng.randint(_WORST, _BEST + 1) for _ in agent_ids]
        self._fared = [0] * len(agent_ids)
        self._saw: list[list[str]] = [[] for _ in agent_ids]
        """What each agent saw in the tick before."""
        self._helps: dict[str, bool] = {}
        """Who did what in this tick."""
        self._tick, self._counts = 1, [0, 0, 0]
        """Donors that knew something; after the warm-up, encounters and help."""
        self._pair_up()

    def _pair_up(self) -> None:
        count = len(self._names) // self._share
        drawn = self._rng.sample(self._names, 2 * count)
        self._asked_by = dict(zip(drawn[:count], drawn[count:], strict=True))

    def observe(self, agent_id: str) -> Observation:
        """What was seen; and perhaps one who asks for help. It is remembered for a lifetime."""
        me, left = self._index[agent_id], self._generation - (self._tick - 1) % self._generation
        heard = [Remark(text, ttl=left) for text in self._saw[me]]
        other = self._asked_by.get(agent_id)
        if other is None:
            return Observation("", heard=heard)
        facts = {"recipient": other, "threshold": self._thresholds[me]}
        query = self._question.format(other)
        return Observation(f"{other} asks me for help", query, facts, heard, ttl=left)

    def apply(self, agent_id: str, action: Action) -> None:
        """Help or refuse, once."""
        if action.name not in self.actions:
            raise refused(action, self.actions)
        if agent_id not in self._asked_by:
            raise InvalidAction("nobody asks you for help now", hint="wait until you are asked")
        if agent_id in self._helps:
            raise InvalidAction("you have answered already", hint="answer once in a tick")
        self._helps[agent_id] = action.name == "help"
        self._counts[0] += action.arguments.get("image") is not None

    def end_tick(self) -> None:
        """Settle, and show it to onlookers; who did nothing refused. A generation may end."""
        self._saw = [[] for _ in self._names]
        for donor, recipient in self._asked_by.items():
            me, other, helps = self._index[donor], self._index[recipient], self._helps.get(donor)
            # The paper adds the cost to both sides of an encounter, so that nobody fares below 0.
            self._fared[me] += 0 if helps else self._cost
            self._fared[other] += self._cost + (self._benefit if helps else 0)
            text = f"{donor} {_HELPED if helps else _REFUSED}"
            others, rng = list(self._index.values()), own_stream(self._rng, "onlookers", donor)
            others.remove(me)
            for number in rng.sample(others, min(self._onlookers, len(others))):
                self._saw[number].append(text)
            if self._tick > self._warm_up * self._generation:
                self._counts[1:] = self._counts[1] + 1, self._counts[2] + bool(helps)
        if self._tick % self._generation == 0:
            self._renew()
        self._tick, self._helps = self._tick + 1, {}
        self._pair_up()

    def _renew(self) -> None:
        """Children take the places of all, with thresholds of those who fared well."""
        rng, size, weights = self._rng, len(self._names), self._fared if any(self._fared) else None
        self._thresholds = rng.choices(self._thresholds, weights, k=size)
        for number in range(size):
            if rng.randrange(1000) < self._mutants:
                self._thresholds[number] = rng.randint(_WORST, _BEST + 1)
        self._fared, self._saw = [0] * size, [[] for _ in self._names]

    def metrics(self) -> dict[str, float]:
        """The share of help, that of donors with an image in mind, and the mean threshold."""
        known, encounters, helps = self._counts
        asked = max(1, (self._tick - 1) * (len(self._names) // self._share))
        return {
            "cooperation": helps / encounters if encounters else 0.0,
            "known": known / asked,
            "threshold": sum(self._thresholds) / len(self._thresholds),
        }

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks."""
        return {
            "tick": self._tick, "counts": list(self._counts), "fared": list(self._fared),
            "thresholds": list(self._thresholds), "saw": [list(own) for own in self._saw],
            "asked_by": [list(pair) for pair in self._asked_by.items()],
        }  # fmt: skip

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._thresholds = state["tick"], list(state["thresholds"])
        self._counts, self._fared = list(state["counts"]), list(state["fared"])
        self._saw = [list(own) for own in state["saw"]]
        self._asked_by = dict(state["asked_by"])


class HelpingRules:
    """Helps whose image is good enough: how often it remembers help, less how often refusals.

    What matters is kept as an important memory, too, which comes to mind before newer ones. Of one
    tick, the two count once.
    """

    def __init__(self, *, matters: str = "nothing") -> None:
        kinds = {"nothing": "", "help": _HELPED, "refusals": _REFUSED}
        if matters not in kinds:
            raise ConfigError(
                f"simulation.policy_options.matters is {matters!r:.40}",
                hint=f"use one of {', '.join(kinds)}",
            )
        self._kept = kinds[matters]

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Help or refuse, if asked; keep what was seen, if it matters."""
        facts = observation.facts
        actions = []
        if facts:
            seen = {(hit.memory.created_tick, hit.memory.content) for hit in memories}
            good, bad = (
                sum(content == f"{facts['recipient']} {text}" for _, content in seen)
                for text in (_HELPED, _REFUSED)
            )
            image = min(max(good - bad, _WORST), _BEST)
            name = "help" if image >= facts["threshold"] else "refuse"
            why = f"I remember {good} times that it helped, and {bad} that it refused"
            actions.append(Action(name, {"image": image} if good or bad else {}, why))
        for remark in observation.heard:
            if self._kept and remark.text.endswith(self._kept):
                kept = {"content": remark.text, "tier": "important", "ttl": remark.ttl}
                actions.append(Action("store_memory", kept, "that is what matters to me"))
        return actions
