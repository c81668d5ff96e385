"""The recorder turns observations, outcomes and memory actions into memories."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from random import Random
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidAction, InvalidContent, InvalidInput, SimulationError, TierFull
from ...memory.records import Hits, Memory
from ...memory.requests import LINKS, PLAIN_OPTIONS, WORLD_FIELDS, Options, check_new
from ...memory.sources import IMPORTANCE, check_importance
from ...memory.tiers import Tier
from ..protocols import Action, Flushing, Observation, Outcome, Policy, Rating, Remark
from .actions import (
    NOTE_ACTIONS,
    OWN_ACTIONS,
    REFUSED,
    as_action,
    change_memory,
    change_note,
    is_list,
    memory_to_store,
    of_profile,
    refusal,
)
from .branch_rules import NO_RULES, BranchRules
from .decision_log import is_said
from .flush import Contexts
from .user_code import failed

Item = tuple[Any, ...]
"""Agent, text and maybe tier, metadata and options of a new memory."""
Rate = Callable[[Sequence[Item], Mapping[str, Observation]], list[Item]]
"""Gives new memories of a tick an importance; takes what each agent observed, too."""


def rate_by(bank: MemoryBank, policy: Policy) -> Rate | None:
    """How new memories are rated; None if their tiers say how important they are."""
    if bank.settings.reflection.ratings != "policy" or not isinstance(policy, Rating):
        return None
    rating: Rating = policy

    def rate(items: Sequence[Item], seen: Mapping[str, Observation]) -> list[Item]:
        places: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            if isinstance(item[1], str) and not _is_rated(item):
                places.setdefault(item[0], []).append(place)
        observations = [seen[agent] for agent in places]
        texts = [[items[place][1] for place in own] for own in places.values()]
        result = list(items)
        if not places:
            return result
        try:
            given = rating.rate_all(observations, texts)
            for own, numbers in zip(places.values(), given, strict=True):
                for place, number in zip(own, numbers, strict=True):
                    if number is not None:
                        result[place] = _with(items[place], check_importance(number))
        except (InvalidInput, ValueError, TypeError) as error:
            raise SimulationError(
                f"{type(rating).__name__}.rate_all() gave in tick {bank.tick} what is "
                f"not an importance for each text: {error}"
            ) from error
        except SimulationError:
            raise
        except Exception as error:  # a user's own policy may raise anything
            raise failed(rating, "rate_all", bank.tick, error) from error
        return result

    return rate


def _is_rated(item: Item) -> bool:
    return any(isinstance(each, Mapping) and IMPORTANCE in each for each in item[3:5])


def _with(item: Item, importance: int) -> Item:
    agent, text, tier, metadata, *options = (*item, None, None)[: max(4, len(item))]
    return (agent, text, tier, {**(metadata or {}), IMPORTANCE: importance}, *options)


_OBSERVED, _ACTED = Options("observation"), Options("action")
_of_world = attrgetter(*WORLD_FIELDS)
_NOT_HELD = re.compile("[\0\ud800-\udfff]")
"""A NUL, or half a character."""
_NO_OPTIONS = _of_world(Remark(""))


class Recorder:
    """Collects a tick's new memories and stores them in batches.

    ``contexts`` count the outcomes of actions; ``rules`` say what is never remembered.
    """

    def __init__(
        self, bank: MemoryBank, contexts: Contexts | None = None, rules: BranchRules = NO_RULES
    ) -> None:
        self._bank = bank
        self._rules = rules
        self._contexts = contexts
        memory = bank.settings.memory
        caps = {Tier.PINNED: memory.max_pinned, Tier.CRITICAL: memory.max_critical}
        reject = memory.on_tier_full == "reject"
        self._refusing = {tier for tier, cap in caps.items() if reject or cap == 0}
        self._most = memory.max_content_bytes
        self._new: list[tuple[object, ...]] = []
        self.repeated: dict[str, list[tuple[int, int]]] = {}
        """What was not a new memory, by agent: its place among what the agent saw and did, and the
        number of the memory that it repeats."""
        self._merges = memory.merge_duplicates
        self._next: dict[str, int] = {}
        self._count: Counter[str] = Counter()
        self.rate: Callable[[list[Item]], list[Item]] = list
        """Gives new memories an importance."""

    def observed(self, seen: Observation) -> None:
        seen = self._rules.remembered(seen)
        agent = seen.agent_id
        if is_said(seen):
            options = _options(_OBSERVED, _of_world(seen))
            self._new.append((agent, seen.text, seen.tier, seen.metadata, options))
        for remark in filter(is_said, seen.heard):
            values = _of_world(remark)
            more = () if values == _NO_OPTIONS else (_options(PLAIN_OPTIONS, values),)
            self._new.append((agent, remark.text, remark.tier, remark.metadata, *more))

    def happened(self, agent: str, name: str, outcome: Outcome) -> bool:
        """Whether the outcome becomes a memory: a blank text does not."""
        never = self._rules.is_never(agent, self._bank.tick, outcome.text)
        if is_said(outcome) and not never:
            metadata = {"action_type": name, "success": outcome.success}
            if outcome.metadata:
                metadata.update(outcome.metadata)
            options = _options(_ACTED, _of_world(outcome))
            self._new.append((agent, outcome.text, outcome.tier, metadata, options))
            if self._contexts is not None:
                self._contexts.saw(agent, outcome.text)
            return True
        return False

    def memory_action(self, agent: str, action: Action) -> bool:
        """Do a memory action; whether it makes a memory, other than a note's."""
        if action.name in NOTE_ACTIONS:
            self.flush()
            change_note(self._bank.agent(agent), action, self._bank.tick)
            return False
        if action.name != "store_memory":
            self.flush()
            change_memory(self._bank.agent(agent), action)
            return False
        content, tier, options = memory_to_store(action)
        if self._rules.is_never(agent, self._bank.tick, content):
            return False
        if options is not None and not options.keys().isdisjoint(LINKS):
            self.flush()
            self._before([agent])
            stored = self._bank.agent(agent).add(content, tier, **options)  # type: ignore[arg-type]
            self._after([stored])
            return True
        new: Item = (agent, content, tier)
        if options is not None:
            new = (*new, options.pop("metadata", None), options)
        check_new(new, self._most)
        if tier is None or tier in self._refusing:  # alone: a refusal is about this memory only
            self.flush()
            self.store(self.rate([new]))
        else:
            self._new.append(new)
        return True

    def flush(self) -> None:
        """Store the collected memories, in one batch."""
        waiting, self._new = self.rate(self._new), []
        try:
            try:
                self.store(waiting)
            except InvalidContent:
                self.store([(item[0], self._keepable(item[1]), *item[2:]) for item in waiting])
        except (InvalidInput, TierFull) as error:
            raise SimulationError(f"the world gave what can't become a memory: {error}") from error

    def store(self, items: Sequence[Item]) -> None:
        """Store memories at once, in one batch."""
        self._before(item[0] for item in items)
        self._after(self._bank.add_many(items))

    def _before(self, agents: Iterable[str]) -> None:
        """These agents are about to be given memories."""
        if self._merges:
            for agent in set(agents):
                self._next[agent] = self._bank.engine.state.block(agent).next_sequence

    def _after(self, memories: Sequence[Memory]) -> None:
        """This is what became of the memories, in the order in which they were given."""
        if not self._merges:
            return
        for memory in memories:
            agent, number = memory.agent_id, memory.sequence
            if number < self._next[agent]:
                self.repeated.setdefault(agent, []).append((self._count[agent], number))
            else:
                self._next[agent] = number + 1
            self._count[agent] += 1

    def _keepable(self, text: object) -> object:
        """What a memory can hold of a text: a world may repeat whatever an agent said."""
        if not isinstance(text, str):
            return text
        whole = _NOT_HELD.sub("\ufffd", text).strip()
        return whole.encode()[: self._most].decode(errors="ignore")


def _options(plain: Options, values: tuple[object, ...]) -> Options | dict[str, object]:
    """The options of a memory: ``plain``, unless an observation, remark or outcome gives some."""
    if values == _NO_OPTIONS:
        return plain
    options = dict(zip(WORLD_FIELDS, values, strict=True))
    if options["kind"] is None:
        options["kind"] = plain.kind
    return options


def save(
    policy: Flushing,
    seen: Observation,
    hits: Hits,
    rng: Random,
    prompt: str,
    bank: MemoryBank,
    rules: BranchRules = NO_RULES,
) -> list[str]:
    """Give an agent its flush: do what its policy saves. The result are the refusals."""
    answer = policy.flush(seen, hits, rng, prompt)
    if not is_list(answer):
        raise SimulationError(
            f"{type(policy).__name__}.flush() gave {answer!r:.60} for {seen.agent_id} in tick "
            f"{seen.tick}; a list of actions is needed"
        )
    recorder = Recorder(bank, rules=rules)
    refusals: list[str] = []
    for value in answer:
        name = "an action"
        try:
            action = as_action(of_profile(bank.agent(seen.agent_id), value))
            name = action.name
            if name not in OWN_ACTIONS:
                known = ", ".join(OWN_ACTIONS)
                raise InvalidAction(f"before a compaction there is only {known}")
            recorder.memory_action(seen.agent_id, action)
        except REFUSED as error:
            refusals.append(refusal(name, error))
    recorder.flush()
    return refusals
