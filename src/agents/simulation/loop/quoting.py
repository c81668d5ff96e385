"""How agents reflect whose policy has no ``reflect``: an insight quotes memories that are alike."""

from collections.abc import Sequence
from random import Random
from typing import final

from ...config.settings import Settings
from ...memory.insights import MOST_EVIDENCE
from ...memory.records import Memory
from ...rules.reflection import focal_points, importance_of, quotation
from ..protocols import Ask, Insight, Observation


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
