"""Strategies for Hypothesis: what people give a bank, whole histories, banks and worlds."""

from .histories import banks, by_tick, forgetful, histories
from .inputs import (
    agent_ids,
    any_text,
    contents,
    memories,
    metadata,
    not_tiers,
    queries,
    spelled_tiers,
    spellings,
    tiers,
)
from .small_world import worlds

__all__ = [
    "agent_ids",
    "any_text",
    "banks",
    "by_tick",
    "contents",
    "forgetful",
    "histories",
    "memories",
    "metadata",
    "not_tiers",
    "queries",
    "spelled_tiers",
    "spellings",
    "tiers",
    "worlds",
]
