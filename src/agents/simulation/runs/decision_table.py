"""The decisions of a run as a table, ``decisions.parquet``: a row for each agent and tick."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import orjson

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import RunError
from ...memory.records import id_prefix, memory_id
from ..loop.decisions import Kept, unpack
from ..worlds.outside import agents_of
from .decisions import RESULTS, part_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["decision_table", "kept_decisions"]


def decision_table(bank: MemoryBank, settings: Settings) -> bytes:
    """The table as a Parquet file. Ticks whose decisions were not kept have no rows.

    ``query`` is null where it was the text of the observation. ``arguments`` are JSON.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = agents_of(bank, settings)
    prefixes = [id_prefix(settings.seed, name) for name in names]
    buffer = BytesIO()
    schema = _schema()
    with pq.ParquetWriter(buffer, schema) as writer:
        for tick, agents in kept_decisions(bank, names):
            rows = [
                _row(tick, name, prefix, own)
                for name, prefix, own in zip(names, prefixes, agents, strict=False)
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return buffer.getvalue()


def kept_decisions(bank: MemoryBank, agents: Sequence[str]) -> Iterator[tuple[int, list[Kept]]]:
    """What the log has of all agents, tick by tick."""
    for tick, data in bank.ticks.decisions():
        row = bank.ticks.row(tick)
        try:
            if row is not None:
                yield tick, unpack(data, row.retrieved, agents)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise RunError(f"the decisions of tick {tick} can't be read: {error}") from None


def _row(tick: int, agent: str, prefix: str, own: Kept) -> dict[str, Any]:
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
        }
    )
