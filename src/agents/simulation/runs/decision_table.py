"""The decisions of a run as a table, ``decisions.parquet``: a row for each agent and tick."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import orjson

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import RunError
from ...memory.records import id_prefix, memory_id
from ..tick.decision_log import REFUSAL, UNANSWERED, Kept, unpack
from ..worlds.outside import agents_of
from .why import RESULTS, errors_in, part_of, reasons

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_REASONS = 20
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def decision_table(bank: MemoryBank, settings: Settings) -> bytes:
    """The table as a Parquet file. Ticks whose decisions were not kept have no rows.

    ``query`` is null where it was the text of the observation. ``arguments`` are JSON. ``reasons``
    are empty where an action was done.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = agents_of(bank, settings)
    prefixes = [id_prefix(settings.seed, name) for name in names]
    buffer = BytesIO()
    schema = _schema()
    with pq.ParquetWriter(buffer, schema) as writer:
        for tick, agents in kept_decisions(bank, names):
            errors = errors_in(bank, tick) if _is_refused(agents) else {}
            rows = [
                _row(tick, name, prefix, own, errors.get(name, ()))
                for name, prefix, own in zip(names, prefixes, agents, strict=False)
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return buffer.getvalue()


def kept_decisions(
    bank: MemoryBank, agents: Sequence[str], after: int = -1
) -> Iterator[tuple[int, list[Kept]]]:
    """What the log has of all agents, tick by tick after ``after``."""
    for tick, data in bank.ticks.decisions(after):
        row = bank.ticks.row(tick)
        try:
            if row is not None:
                yield tick, unpack(data, row.retrieved, agents)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise RunError(f"the decisions of tick {tick} can't be read: {error}") from None


def why_not(
    bank: MemoryBank, agents: Sequence[str], records: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """How often actions were refused, and decisions had no answer, by reason; the most first.

    ``refusals`` has what agents were told, ``no_answers`` what a policy said. Reasons that name
    other agents and memories are one reason.
    """
    refusals: Counter[str] = Counter()
    no_answers: Counter[str] = Counter()
    for record in records:
        if record["errors"]:
            for agent, told in errors_in(bank, record["tick"]).items():
                refusals.update(_alike(agent, text) for text in told)
        if record["no_ops"]:
            _, kept = next(kept_decisions(bank, agents, record["tick"] - 1), (0, []))
            for agent, own in zip(agents, kept, strict=False):
                no_answers.update(
                    _alike(agent, str(arguments.get("reason", "no reason given")))
                    for _, arguments, result, _ in own.did
                    if result == UNANSWERED
                )
    return {
        name: dict(sorted(found.items(), key=lambda each: (-each[1], each[0]))[:_MOST_REASONS])
        for name, found in (("refusals", refusals), ("no_answers", no_answers))
    }


def _alike(agent: str, reason: str) -> str:
    named = re.sub(rf"(?<!\w){re.escape(agent)}(?!\w)", "AGENT", reason)
    return _ID.sub("ID", named)


def _is_refused(agents: Sequence[Kept]) -> bool:
    return any(result == REFUSAL for own in agents for _, _, result, _ in own.did)


def _row(tick: int, agent: str, prefix: str, own: Kept, errors: Sequence[str]) -> dict[str, Any]:
    return {
        "tick": tick,
        "agent": agent,
        "query": own.query,
        "memory_ids": [memory_id(prefix, number) for number in own.sequences],
        "scores": own.scores,
        "parts": list(map(part_of, own.tiers, own.temperatures)),
        "asked": [query for query, *_ in own.asked],
        "actions": [name for name, *_ in own.did],
        "arguments": [orjson.dumps(arguments).decode() for _, arguments, *_ in own.did],
        "results": [RESULTS[result] for _, _, result, _ in own.did],
        "reasons": reasons(own, errors),
    }


def _schema() -> "pa.Schema":
    import pyarrow as pa

    texts = pa.list_(pa.string())
    return pa.schema(
        {
            "tick": pa.int64(),
            "agent": pa.string(),
            "query": pa.string(),
            "memory_ids": texts,
            "scores": pa.list_(pa.float64()),
            "parts": texts,
            "asked": texts,
            "actions": texts,
            "arguments": texts,
            "results": texts,
            "reasons": texts,
        }
    )
