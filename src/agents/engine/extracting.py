"""Facts from chat messages: mem0's extraction, with the configured LLM."""

from collections.abc import Sequence
from typing import Any

from ..storage.mem0.models import Extractor, Message
from ..storage.mem0.store import payload
from .engine import Engine


def extract(
    bank: Engine,
    agent_id: str,
    messages: Sequence[Message],
    *,
    prompt: str | None = None,
    procedural: bool = False,
) -> list[str]:
    """The facts that the LLM finds and the agent does not know yet; :meth:`Extractor.extract`.

    Other threads use the bank while the LLM answers, unless the caller has a transaction open.
    They wait while the extraction searches the bank or embeds a text.
    """
    with bank.using():
        extractor = bank.extractor
        if bank.guard is not None and (refused := bank.guard.llm()):
            raise refused
    if extractor is None:  # it imports mem0 and makes a client: others need not wait for that
        extractor = bank.extractor = _extractor(bank)
    return extractor.extract(agent_id, messages, prompt=prompt, procedural=procedural)


def _extractor(bank: Engine) -> Extractor:
    """An extractor for the bank. It uses the bank in any thread, so each use takes a turn."""

    def encode(texts: Sequence[str]) -> list[list[float]]:
        with bank.using():
            return bank.embedder.units(texts)

    def nearest(agent_id: str, query: str, limit: int) -> list[tuple[str, dict[str, Any]]]:
        (hits,) = bank.search_many([(agent_id, query)], limit)
        return [(hit.memory.id, payload(hit.memory)) for hit in hits]

    return Extractor(bank.settings.llm, encode, nearest)
