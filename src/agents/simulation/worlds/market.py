"""A market with scammers, and so much gossip that a warning drowns in it.

Each tick every trader gets an offer from another, and accepts or declines. Goods arrive in the tick
after, except from a scammer, who keeps the money. Meanwhile traders hear one another speak of their
latest deals; scammers lie.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from ...errors import ConfigError, InvalidAction
from ...memory.records import Hits
from ..protocols import Action, Observation, Outcome, Remark
from . import check_whole_option, check_yes_or_no, refused

__all__ = ["Market", "MarketRules"]

_GOODS = ("grain", "cloth", "salt", "oil", "wool", "wine")
_LEAST_PRICE, _PRICES = 5, 8
_GAIN = 3
"""What goods are worth beyond their price, once delivered."""

# In several words, so that gossip is near whatever a trader asks: for offers, trust or cheating.
_PRAISE = ("accept the offer from", "you can trust", "nobody was cheated by")
_BLAME = ("never accept an offer from", "you can't trust", "they were cheated by")


class Market:
    """Traders, some of whom never deliver.

    ``scammers`` of the agents, drawn at the start, keep the money. ``gossip`` is how many remarks
    each agent hears in a tick. Every ``turnover`` ticks one scammer reforms and one honest trader
    becomes a scammer, so that warnings go stale; 0 means never.
    """

    actions: ClassVar[Mapping[str, str]] = {
        "accept": "pay for what is on offer; it arrives in the next tick, if the seller is honest",
        "decline": "let the offer pass",
    }

    def __init__(self, *, scammers: int = 3, gossip: int = 1, turnover: int = 0) -> None:
        self._scammers = check_whole_option("scammers", scammers, 0, 1_000_000)
        self._gossip = check_whole_option("gossip", gossip, 0, 10)
        self._turnover = check_whole_option("turnover", turnover, 0, 1_000_000)

    @staticmethod
    def rules(*, tiers: bool = True) -> "MarketRules":
        """The market's own policy; without ``tiers`` a warning is a memory like any other."""
        return MarketRules(tiers=tiers)

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        """Draw who is a scammer; two traders at least are honest."""
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
        # Whole coins, so that sums are exact. A trader's loss and earnings are those of its honest
        # days; its wealth is all that it has.
        self._wealth, self._loss, self._earned = [0] * count, [0] * count, [0] * count
        # Open offers: seller, good, price. Goods that don't come, found out in this tick and in the
        # next one: seller, price. Latest deals, to speak of: seller, good, whether it came.
        self._offers: list[tuple[int, str, int] | None] = [None] * count
        self._missing: list[list[int] | None] = [None] * count
        self._missing_next: list[list[int] | None] = [None] * count
        self._latest: list[list[Any] | None] = [None] * count
        self._tick = self._trades = self._scams = self._lost = self._lost_so_far = 0

    def observe(self, agent_id: str) -> Observation:
        """An offer, what others say, and goods that never came."""
        me, names, random = self._index[agent_id], self._names, self._rng.random
        number = self._other(me)
        good = _GOODS[int(random() * len(_GOODS))]
        price = _LEAST_PRICE + int(random() * _PRICES)
        self._offers[me] = (number, good, price)
        seller = names[number]
        text = f"{seller} offers {good} for {price} coins"
        # Not the text: a question about the seller finds what is known of the seller, where the
        # text would find the offers of the past.
        query = f"Should I accept the offer from {seller}?"
        heard = [Remark(self._remark(me)) for _ in range(self._gossip)]
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
                "the tick's offer is answered already", hint="wait for the next tick"
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
        """Unanswered offers lapse; now and then a scammer reforms and another takes over."""
        count = len(self._names)
        self._offers = [None] * count
        self._missing, self._missing_next = self._missing_next, [None] * count
        self._lost, self._lost_so_far = self._lost_so_far, 0
        self._tick += 1
        if self._turnover and self._scammers and self._tick % self._turnover == 0:
            reforms = self._rng.choice([i for i in range(count) if self._cheats[i]])
            begins = self._rng.choice([i for i in range(count) if not self._cheats[i]])
            self._cheats[reforms], self._cheats[begins] = False, True

    def metrics(self) -> dict[str, float]:
        """Of the honest, since the start; ``loss_tick`` is this tick's part of ``loss``.

        ``welfare`` is what they earned, losses taken off. ``trades`` are deals that were delivered,
        ``scams`` those that were not.
        """
        return {
            "loss": sum(self._loss),
            "loss_tick": self._lost,
            "welfare": sum(self._earned),
            "trades": self._trades,
            "scams": self._scams,
        }

    def by_agent(self) -> dict[str, dict[str, float]]:
        """What each lost to scammers while honest, and all that each has."""
        return {
            "loss": dict(zip(self._names, self._loss, strict=True)),
            "wealth": dict(zip(self._names, self._wealth, strict=True)),
        }

    def get_state(self) -> dict[str, Any]:
        """All of it between two ticks, when no offer is open."""
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
        """Go on from there."""
        self._tick, self._trades, self._scams = state["tick"], state["trades"], state["scams"]
        self._lost = state["lost"]
        self._cheats, self._wealth = list(state["cheats"]), list(state["wealth"])
        self._loss, self._earned = list(state["loss"]), list(state["earned"])
        self._missing, self._latest = list(state["missing"]), list(state["latest"])

    def _other(self, me: int) -> int:
        other = int(self._rng.random() * (len(self._names) - 1))
        return other + 1 if other >= me else other

    def _remark(self, me: int) -> str:
        """What someone says of the latest deal; a scammer speaks well of scammers only."""
        talker = self._other(me)
        latest = self._latest[talker]
        if latest is None:
            return f"{self._names[talker]} says offers at the market are good"
        subject, good, fair = latest
        if self._cheats[talker]:
            subject = self._other(talker)
            fair = self._cheats[subject]
        phrases = _PRAISE if fair else _BLAME
        phrase = phrases[int(self._rng.random() * len(phrases))]
        verdict = "good" if fair else "no"
        return f"{self._names[talker]} says {phrase} {self._names[subject]}: {verdict} {good}"


class MarketRules:
    """Accept, unless what comes to mind speaks against the seller.

    An own bad experience settles it; otherwise it is word against word.
    """

    def __init__(self, *, tiers: bool = True) -> None:
        self._tier = "pinned" if check_yes_or_no("tiers", tiers) else "normal"

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> list[Action]:
        """Answer the offer; keep a warning against whoever just turned out to be a scammer."""
        facts = observation.facts
        seller = facts["seller"]
        own, praise, blame = (
            f" {seller} cheated me",
            f" {seller}: good ",
            f" {seller}: no ",
        )
        word = 0
        for hit in memories:
            content = hit.memory.content
            if own in content:
                word = -len(memories)
                break
            if praise in content:
                word += 1
            elif blame in content:
                word -= 1
        answer = _DECLINE if word < 0 else _ACCEPT
        scammer = facts.get("cheated_by")
        if scammer is None:
            return [answer]
        warning = f"Never accept an offer from {scammer}: {scammer} cheated me"
        return [answer, Action("store_memory", {"content": warning, "tier": self._tier})]


_ACCEPT = Action("accept")
_DECLINE = Action("decline")
