"""The importance of a tick's new memories, where the policy says it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...bank.memory_bank import MemoryBank
from ...errors import InvalidInput, SimulationError
from ...memory.insights import IMPORTANCE, check_importance
from ..protocols import Observation, Policy, Rating
from .failures import failed

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
                f"{type(rating).__name__}.rate_all() gave in tick {bank.tick} what is no "
                f"importance for each text: {error}"
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
