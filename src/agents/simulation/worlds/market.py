"""A market with scammers: a trader must think of a warning before it knows whom it will meet.

In each tick every trader gets an offer from another trader, and accepts or declines. Goods arrive
in the next tick; a scammer keeps the money and sends nothing. Traders hear each other talk of their
latest deals, and scammers lie. What a trader remembers, it remembers in the morning, before offers
come; the option ``asks`` lets it ask memory about the seller instead.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Outcome, Remark
from . import another, check_share, check_whole_option, check_yes_or_no, own_stream, refused

_GOODS = ("grain", "cloth", "salt", "oil", "wool", "wine")
_LEAST_PRICE, _PRICES = 5, 8
_GAIN = 3
"""A buyer's gain from goods that arrive."""

_QUESTIONS: Mapping[str, str] = {
    "morning": "A new day at the market begins. What should I keep in mind?",
    "seller": "Should I accept the offer from {}?",
    "cheats": "Who cheated me?",
}
"""What a trader asks its memory, by the option ``asks``."""


class Market:
    """The market.

    ``scammers`` of the agents, drawn at the start, never deliver. Each agent hears ``gossip``
    remarks in a tick. Every ``turnover`` ticks one scammer reforms and one honest trader becomes a
    scammer, so that warnings go stale; 0 means never. ``asks`` says what a trader asks its memory:
    in the ``morning`` what to keep in mind, or about the ``seller`` whose offer it has, or who
    ``cheats``.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "accept": "pay for what is on offer; it arrives in the next tick, if the seller is honest",
        "decline": "let the offer pass",
    }
    action_arguments: ClassVar[Mapping[str, Mapping[str, Any]]] = {"accept": {}, "decline": {}}

    def __init__(
        self, *, scammers: int = 3, gossip: int = 1, turnover: int = 0, asks: str = "morning"
    ) -> None:
        self._scammers = check_whole_option("scammers", scammers, 0, 1_000_000)
        self._gossip = check_whole_option("gossip", gossip, 0, 10)
        self._turnover = check_whole_option("turnover", turnover, 0, 1_000_000)
        if asks not in _QUESTIONS:
            raise ConfigError(
                f"simulation.world_options.asks is {asks!r:.40}",
                hint=f"use one of {', '.join(_QUESTIONS)}",
            )
        self._question = _QUESTIONS[asks]

    @staticmethod
    def rules(
        *, tiers: bool = True, worded: bool = False, false_pins: float = 0, missed: float = 0
    ) -> "MarketRules":
        """The market's own policy.

        Without ``tiers`` a warning is a normal memory. A ``worded`` one has the words of the
        morning's question. Of the days without bad news, the share ``false_pins`` brings a pin of
        the day's offer; of the warnings, the share ``missed`` is not pinned.
        """
        return MarketRules(tiers=tiers, worded=worded, false_pins=false_pins, missed=missed)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw the scammers; at least two traders are honest."""
        count = len(agent_ids)
        if self._scammers > count - 2:
            raise ConfigError(
                f"simulation.world_options.scammers is {self._scammers}, of {count} agents",
                hint="a market needs two honest traders",
            )
        self._rng = rng
        self._names = list(agent_ids)
        self._index = {name: number for number, name in enumerate(agent_ids)}
        self._cheats = [False] * count
        for number in rng.sample(range(count), self._scammers):
            self._cheats[number] = True
        # Whole coins, so that sums are exact. Loss and earnings count a trader's honest ticks only;
        # wealth counts all ticks.
        self._wealth, self._loss, self._earned = [0] * count, [0] * count, [0] * count
        # Open offers: seller, good, price. Goods that buyers miss in this tick and in the next one:
        # seller, price. Latest deals, for gossip: seller, good, whether the good came.
        self._offers: list[tuple[int, str, int] | None] = [None] * count
        self._missing: list[list[int] | None] = [None] * count
        self._missing_next: list[list[int] | None] = [None] * count
        self._latest: list[list[Any] | None] = [None] * count
        self._tick = 1
        self._trades = self._scams = self._lost = self._lost_so_far = 0

    def observe(self, agent_id: str) -> Observation:
        """An offer, gossip, and goods that never came."""
        me, names, rng = self._index[agent_id], self._names, own_stream(self._rng, "day", agent_id)
        random = rng.random
        number = another(me, len(names), rng)
        good = _GOODS[int(random() * len(_GOODS))]
        price = _LEAST_PRICE + int(random() * _PRICES)
        self._offers[me] = (number, good, price)
        seller = names[number]
        text = f"{seller} offers {good} for {price} coins"
        query = self._question.format(seller)
        heard = [Remark(self._remark(me, rng)) for _ in range(self._gossip)]
        missing = self._missing[me]
        if missing is None:
            return Observation(text, query, {"seller": seller}, heard)
        scammer, lost = names[missing[0]], missing[1]
        text = f"My goods never came: {scammer} cheated me out of {lost} coins. {text}"
        return Observation(text, query, {"seller": seller, "cheated_by": scammer}, heard)

    def apply(self, agent_id: str, action: Action) -> Outcome | None:
        """Accept or decline the tick's offer, once."""
        if action.name not in self.actions:
            raise refused(action, self.actions)
        if action.arguments:
            raise InvalidAction(
                f"{action.name} takes no arguments; it answers the tick's one offer"
            )
        me = self._index[agent_id]
        offer = self._offers[me]
        if offer is None:
            raise InvalidAction(
                "the tick's offer is answered already", hint="answer each offer once"
            )
        self._offers[me] = None
        if action.name == "decline":
            return None
        seller, good, price = offer
        scam = self._cheats[seller]
        self._latest[me] = [seller, good, not scam]
        gain = -price if scam else _GAIN
        self._wealth[me] += gain
        if scam:
            self._wealth[seller] += price
            self._missing_next[me] = [seller, price]
        if not self._cheats[me]:
            self._earned[me] += gain
            self._scams += scam
            self._trades += not scam
            if scam:
                self._loss[me] += price
                self._lost_so_far += price
        return Outcome(f"Bought {good} from {self._names[seller]} for {price} coins")

    def end_tick(self) -> None:
        """End open offers; every ``turnover`` ticks, swap a scammer and an honest trader."""
        count = len(self._names)
        self._offers = [None] * count
        self._missing, self._missing_next = self._missing_next, [None] * count
        self._lost, self._lost_so_far = self._lost_so_far, 0
        if self._turnover and self._scammers and self._tick % self._turnover == 0:
            reforms = self._rng.choice([i for i in range(count) if self._cheats[i]])
            begins = self._rng.choice([i for i in range(count) if not self._cheats[i]])
            self._cheats[reforms], self._cheats[begins] = False, True
        self._tick += 1

    def metrics(self) -> dict[str, float]:
        """Sums over the honest traders since the start; ``loss_tick`` is this tick's loss.

        ``welfare`` is earnings less losses. ``trades`` counts deals with goods, ``scams`` counts
        deals without.
        """
        return {
            "loss": sum(self._loss),
            "loss_tick": self._lost,
            "welfare": sum(self._earned),
            "trades": self._trades,
            "scams": self._scams,
        }

    def by_agent(self) -> dict[str, dict[str, float]]:
        """Each trader's loss to scammers while honest, and its wealth."""
        return {
            "loss": dict(zip(self._names, self._loss, strict=True)),
            "wealth": dict(zip(self._names, self._wealth, strict=True)),
        }

    def get_state(self) -> dict[str, Any]:
        """The state between two ticks, when no offer is open."""
        return {
            "tick": self._tick,
            "trades": self._trades,
            "scams": self._scams,
            "lost": self._lost,
            "cheats": list(self._cheats),
            "wealth": list(self._wealth),
            "loss": list(self._loss),
            "earned": list(self._earned),
            "missing": list(self._missing),
            "latest": list(self._latest),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._tick, self._trades, self._scams = state["tick"], state["trades"], state["scams"]
        self._lost = state["lost"]
        self._cheats, self._wealth = list(state["cheats"]), list(state["wealth"])
        self._loss, self._earned = list(state["loss"]), list(state["earned"])
        self._missing, self._latest = list(state["missing"]), list(state["latest"])

    def _remark(self, me: int, rng: Random) -> str:
        """Another trader's remark on its latest deal; a scammer praises only scammers."""
        count = len(self._names)
        talker = another(me, count, rng)
        latest = self._latest[talker]
        if latest is None:
            return f"{self._names[talker]} says offers at the market are good"
        subject, good, fair = latest
        if self._cheats[talker]:
            subject = another(talker, count, rng)
            fair = self._cheats[subject]
        verdict = _PRAISE if fair else _BLAME
        return f"{self._names[talker]} says {self._names[subject]} {verdict} {good}"


_PRAISE, _BLAME = "delivered good", "never delivered"


class MarketRules:
    """Accepts, unless the retrieved memories speak against the seller.

    The agent's own bad experience decides; without one, the majority of remarks decides.
    """

    def __init__(
        self, *, tiers: bool = True, worded: bool = False, false_pins: float = 0, missed: float = 0
    ) -> None:
        self._tier = "pinned" if check_yes_or_no("tiers", tiers) else "normal"
        self._warning = _WORDED if check_yes_or_no("worded", worded) else _WARNING
        self._false_pins = check_share("false_pins", false_pins)
        self._missed = check_share("missed", missed)

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Answer the offer; store a warning against a scammer whose goods never came."""
        facts = observation.facts
        seller = facts["seller"]
        own = f" {seller} cheated me"
        praise, blame = f" {seller} {_PRAISE} ", f" {seller} {_BLAME} "
        word = 0
        for hit in memories:
            content = hit.memory.content
            if own in content:
                answer = _DECLINE_CHEAT
                break
            if praise in content:
                word += 1
            elif blame in content:
                word -= 1
        else:
            answer = _DECLINE if word < 0 else _ACCEPT if word else _ACCEPT_STRANGER
        scammer = facts.get("cheated_by")
        if scammer is None:
            if self._false_pins and rng.random() < self._false_pins:
                stored = {"content": observation.text, "tier": "pinned"}
                return [answer, Action("store_memory", stored, "it seems to matter")]
            return [answer]
        missed = self._missed and rng.random() < self._missed
        warning = self._warning.format(scammer)
        stored = {"content": warning, "tier": "normal" if missed else self._tier}
        return [answer, Action("store_memory", stored, "my goods never came")]


_WARNING = "Never accept an offer from {0}: {0} cheated me"
_WORDED = "Keep in mind at the market: never accept an offer from {0}: {0} cheated me"
_ACCEPT = Action("accept", reason="what I heard of the seller is good more often than bad")
_ACCEPT_STRANGER = Action(
    "accept", reason="I remember nothing of the seller, or as much good as bad"
)
_DECLINE = Action("decline", reason="what I heard of the seller is bad more often than good")
_DECLINE_CHEAT = Action("decline", reason="the seller cheated me")
