"""Reflection: agents that lived through enough conclude something from their memories.

An agent holds in the journal up to which memory it has reflected. What it has lived through since
is read from its memories, so that a kill, a branch or another process changes nothing.
"""

import logging
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, final

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import ChatFailed, InvalidAction, SimulationError
from ...memory.records import PLAIN, Memory
from ...memory.sources import INSIGHT, MOST_EVIDENCE, given_importance
from ...rules.reflection import focal_points, importance_of, quotation
from ..protocols import Ask, Insight, Observation, Policy, Reflecting
from .actions import REFUSED, answers, asked_in, refusal
from .branch_rules import BranchRules
from .user_code import failed

logger = logging.getLogger(__name__)

_REFLECTED = "reflected"
_SINCE = "since"
_UNCOUNTED = (INSIGHT, "note")


class Reflected(NamedTuple):
    """What came of the reflections of a tick."""

    agents: int
    insights: int
    errors: dict[str, list[str]]
    """What was wrong with the agents' insights."""


def due(bank: MemoryBank, agent_id: str) -> bool:
    """Whether an agent has lived through enough since it reflected."""
    settings = bank.settings
    by_tier, block = settings.retrieval.tier_importance, bank.engine.state.block(agent_id)
    held = {} if block.holdings is None else block.holdings.of(_REFLECTED)
    new = slice(int(block.figures[:, 0].searchsorted(held.get(_SINCE, 1))), block.size)
    cells = block.cells
    total = 0.0
    for tier, metadata, kinds in zip(
        cells.tiers[new].tolist(), cells.metadata[new], cells.traits[new], strict=True
    ):
        if (kinds or PLAIN).kind not in _UNCOUNTED:
            given = None if metadata is None else given_importance(metadata)
            total += by_tier[tier] if given is None else given
    return total >= settings.reflection.threshold


def reflect(
    bank: MemoryBank,
    policy: Policy,
    observations: Sequence[Observation],
    rngs: Mapping[str, Random],
    rules: BranchRules,
) -> Reflected:
    """Let the agents reflect for which it is due, and store their insights."""
    mind: Reflecting = policy if isinstance(policy, Reflecting) else Quoting(bank.settings)
    thinking = [each for each in observations if due(bank, each.agent_id)]
    errors: dict[str, list[str]] = {}
    count = 0
    for seen in thinking:
        agent = seen.agent_id
        memory = bank.agent(agent)
        for each in _insights(bank, mind, seen, rngs[agent], rules):
            try:
                text, evidence, importance, tier = _checked(each)
                if rules.is_never(agent, bank.tick, text):
                    continue
                memory.add(text, tier, kind=INSIGHT, importance=importance, evidence=evidence)
                count += 1
            except REFUSED as error:
                errors.setdefault(agent, []).append(refusal("an insight", error))
        ledger = bank.engine.ledger
        ledger.hold(agent, _REFLECTED, _SINCE, ledger.state.block(agent).next_sequence)
    return Reflected(len(thinking), count, errors)


def _insights(
    bank: MemoryBank, mind: Reflecting, seen: Observation, rng: Random, rules: BranchRules
) -> Sequence[object]:
    """What an agent concludes, after the answers to its questions if it has some."""
    latest = _latest(bank, seen.agent_id)
    try:
        seen = seen._replace(answers=(), asks_left=1)
        insights: Any = mind.reflect(seen, latest, rng)
        if asked := asked_in(insights):
            found = answers(bank.engine, [(seen.agent_id, ask) for ask in asked], rules)
            seen = seen._replace(answers=tuple(found), asks_left=0)
            insights = mind.reflect(seen, latest, rng)
    except ChatFailed as error:
        logger.warning("tick %d: %s did not reflect: %s", bank.tick, seen.agent_id, error)
        return []
    except SimulationError:
        raise
    except Exception as error:  # a user's own policy may raise anything
        raise failed(mind, "reflect", bank.tick, error) from error
    if not isinstance(insights, list | tuple) or isinstance(insights, Insight):
        raise SimulationError(
            f"{type(mind).__name__}.reflect() gave {insights!r:.60} for {seen.agent_id} in tick "
            f"{bank.tick}; a list of insights is needed"
        )
    return insights


def _latest(bank: MemoryBank, agent_id: str) -> list[Memory]:
    block, most = bank.engine.state.block(agent_id), bank.settings.reflection.memories
    return block.memories(range(max(0, block.size - most), block.size))


def _checked(value: object) -> Insight:
    if isinstance(value, Insight):
        return value
    raise InvalidAction(f"an insight has a text and evidence; got {value!r:.80}")


@final
class Quoting:
    """Asks for memories like the most important ones; what is found together is an insight."""

    def __init__(self, settings: Settings) -> None:
        self._by_tier = settings.retrieval.tier_importance
        self._questions = settings.reflection.questions
        self._most_bytes = settings.memory.max_content_bytes

    def reflect(
        self, observation: Observation, memories: Sequence[Memory], rng: Random
    ) -> Sequence[Insight] | Sequence[Ask]:
        """Questions at first, then an insight for each answer with two memories or more."""
        if not observation.answers:
            points = focal_points(memories, self._by_tier, self._questions)
            return [Ask(memory.content) for memory in points]
        insights: dict[tuple[str, ...], Insight] = {}
        for answer in observation.answers:
            found = [hit.memory for hit in answer.hits][:MOST_EVIDENCE]
            made = quotation(found, self._most_bytes)
            if made is not None:
                text, quoted = made
                ids = [each.id for each in quoted]
                most = max(importance_of(each, self._by_tier) for each in quoted)
                insights.setdefault(tuple(sorted(ids)), Insight(text, ids, round(most)))
        return list(insights.values())
