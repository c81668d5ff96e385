"""The results of a run. They come from the bank, and from what its cassette has of calls of a
language model: the same bank and the same cassette give the same bytes.

===================  ===========================================================================
metrics.parquet      the world's metrics, a row per tick
ticks.parquet        per tick: state hash, tier counts, adds, demotions, retrieval sizes, errors
decisions.parquet    per agent and tick: query, memories given with their scores, actions, reasons
calls.parquet        per call of a language model: tokens, seconds, cost, and whether it was usable
summary.json         the state at the end
report.html          all of this for people, in one file
===================  ===========================================================================
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import RunError, SimulationError
from ...memory.records import Memory, id_prefix, memory_id
from ...memory.tiers import RETENTION_NAMES, TIER_NAMES
from ...storage.files import replace_file
from ...telling.groups import agent_counts
from ..analysis.study import section
from ..policies.cassette import Exchange
from ..policies.costs import Call, calls_of, spent_by, summary_of_calls
from ..protocols import World
from ..reports.calls import calls_section
from ..reports.report import RemarkableMemory, RunResults, render_run
from ..tick.decision_log import REFUSAL, UNANSWERED, LoggedDecision
from ..tick.user_code import check_number
from ..worlds.outside import is_outside
from .found_effects import effects_section
from .record import RunRecord
from .study import study_run
from .why import RESULTS, part_of, refusals

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_SHOWN = 15
_MOST_READ = 20_000
"""The memories whose texts are read for what was retrieved most: those that were most often."""
_MOST_REASONS = 20
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUMMED = ("added", "demoted", "errors", "no_ops")

TICK = "tick"
"""The column of ``metrics.parquet`` that is not a metric."""
INSPECTOR = "inspector.html"
"""What ``tiermem inspect --export`` wrote, if it is beside the report: the report links to it."""


def summary_of(
    bank: MemoryBank, settings: Settings, world: World, exchanges: Sequence[Exchange] = ()
) -> dict[str, Any]:
    """What a run came to, in numbers; ``exchanges`` are those with a language model."""
    run = RunRecord.of(bank, settings)
    records = [record for record, _ in run.records()]
    return {**_summary(bank, run, records, by_agent_of(world)), **_of_calls(exchanges, settings)}


def _of_calls(exchanges: Sequence[Exchange], settings: Settings) -> dict[str, Any]:
    return {"calls": summary_of_calls(exchanges, settings.llm)} if exchanges else {}


def write(
    folder: Path,
    bank: MemoryBank,
    settings: Settings,
    world: World,
    exchanges: Sequence[Exchange],
    *,
    branched: str | None,
    report: bool,
) -> dict[str, Any]:
    """Write the results to a run's folder, and give the summary."""
    run = RunRecord.of(bank, settings)
    kept = list(run.records())
    records = [record for record, _ in kept]
    by_agent = by_agent_of(world)
    summary = {**_summary(bank, run, records, by_agent), **_of_calls(exchanges, settings)}
    calls = calls_of(exchanges, settings.llm)
    if branched:
        summary = {"branched_from": branched, **summary}
    try:
        replace_file(folder / "metrics.parquet", table(metric_rows(records)))
        replace_file(folder / "ticks.parquet", table(tick_rows(records)))
        replace_file(folder / "decisions.parquet", decision_table(run))
        if calls:
            replace_file(folder / "calls.parquet", table(call_rows(calls)))
        replace_file(folder / "summary.json", json.dumps(summary, indent=2) + "\n")
        if report:
            results = RunResults(
                name=folder.name,
                scenario=settings.to_dict(redact=True),
                summary=summary,
                records=records,
                most_retrieved=most_retrieved(bank, run.agents, kept),
                pinned_longest=_pinned_longest(bank),
                by_agent=by_agent,
                sections=[
                    calls_section(summary.get("calls"), _by_tick(calls)),
                    section(study_run(folder, settings, world)),
                    effects_section(folder),
                ],
                inspector=INSPECTOR if (folder / INSPECTOR).is_file() else "",
            )
            replace_file(folder / "report.html", render_run(results))
    except OSError as error:
        command = f"{'report' if is_outside(settings) else 'resume'} {quote(str(folder))}"
        raise RunError(
            f"what came out of {folder} can't be written: {error}",
            hint=f"the run itself is whole; make room and run: tiermem {command}",
        ) from error
    return summary


TABLES = ("metrics", "ticks", "decisions", "calls")
"""The tables of a run, by the names of their files."""


def parquet_of(name: str, run: RunRecord, exchanges: Sequence[Exchange]) -> bytes:
    """One of a run's tables, as its file has it."""
    if name == "decisions":
        return decision_table(run)
    if name == "calls":
        return table(call_rows(calls_of(exchanges, run.settings.llm)))
    records = [record for record, _ in run.records()]
    return table(metric_rows(records) if name == "metrics" else tick_rows(records))


def metric_rows(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of ``metrics.parquet``; a metric called tick is left out."""
    return [
        {TICK: record[TICK], **{name: value for name, value in own.items() if name != TICK}}
        for record in records
        for own in (record["metrics"],)
    ]


def tick_rows(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of ``ticks.parquet``; None stands for a value that a tick did not record."""
    rows = [{key: value for key, value in record.items() if key != "metrics"} for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def call_rows(calls: Iterable[Call]) -> list[dict[str, Any]]:
    """The rows of ``calls.parquet``."""
    return [call._asdict() for call in calls]


def _by_tick(calls: Sequence[Call]) -> dict[str, list[float]]:
    """The tokens of each tick, by what became of them."""
    ticks = spent_by(calls, "tick")
    return {
        "tick": list(ticks),
        "read anew": [own.read - own.cached for own in ticks.values()],
        "cached": [own.cached for own in ticks.values()],
        "written": [own.written for own in ticks.values()],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows as a Parquet file, with the columns of all rows; null where a row has no value."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    return parquet(pa.table({name: [row.get(name) for row in rows] for name in names}))


def parquet(columns: "pa.Table") -> bytes:
    """A table as a Parquet file."""
    import pyarrow.parquet as pq

    buffer = BytesIO()
    pq.write_table(columns, buffer)
    return buffer.getvalue()


def rows_of(path: Path | BytesIO) -> list[dict[str, Any]] | None:
    """The rows of a Parquet file; None if it can't be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        data = path.getvalue() if isinstance(path, BytesIO) else path.read_bytes()
        # From bytes, and without threads: with them, some processes were aborted at their end.
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            rows: list[dict[str, Any]] = file.read(use_threads=False).to_pylist()
    except (OSError, pa.ArrowException):
        return None
    return rows


def by_agent_of(world: World) -> dict[str, dict[str, float]]:
    """The world's numbers per agent, if the world has ``by_agent``."""
    numbers = getattr(world, "by_agent", None)
    if numbers is None:
        return {}
    try:
        return {
            str(name): {str(agent): check_number(value) for agent, value in dict(each).items()}
            for name, each in numbers().items()
        }
    except Exception as error:  # a user's own world may raise anything
        raise SimulationError(
            f"{type(world).__name__}.by_agent() failed with {type(error).__name__}: {error}",
            hint="by_agent() gives numbers by agent, by name; mend it",
        ) from error


def most_retrieved(
    bank: MemoryBank, agents: Sequence[str], kept: Iterable[tuple[Mapping[str, Any], bytes]]
) -> list[RemarkableMemory]:
    """What searches returned most often, text by text, also if it is pinned or gone.

    A text stands for its memory that was returned most often. ``kept`` has the record of each tick,
    and what was retrieved in it.
    """
    keys = [_keys(data, record.get("agents", len(agents))) for record, data in kept]
    if not keys:
        return []
    distinct, counts = np.unique(np.concatenate(keys), return_counts=True)
    order = np.lexsort((distinct, -counts))
    single: list[RemarkableMemory] = []
    for place in order[:_MOST_READ].tolist():
        agent, sequence = divmod(int(distinct[place]), 1 << 32)
        single.append(_found(bank, agents[agent], sequence, int(counts[place])))
    return _by_text(single, sum)


def _found(bank: MemoryBank, agent: str, sequence: int, number: int) -> RemarkableMemory:
    """A memory that searches returned, whatever has become of it since."""
    with bank.engine.using():
        memory = bank.engine.state.memory(agent, sequence)
    if memory is None:
        return RemarkableMemory(agent, f"memory {sequence}, purged since", "", None, number, "gone")
    state = RETENTION_NAMES[memory.retention] if memory.retention else ""
    if memory.is_expired(bank.tick):
        state = "expired"
    return _remarkable(memory, number)._replace(state=state)


def _keys(data: bytes, agents: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The memories that a tick retrieved: agent and sequence number, packed into one number."""
    numbers = np.frombuffer(data, "<u4").astype(np.int64)
    sizes, sequences = numbers[:agents], numbers[agents:]
    return (np.repeat(np.arange(len(sizes)), sizes) << 32) | sequences


def _pinned_longest(bank: MemoryBank) -> list[RemarkableMemory]:
    agents = map(bank.agent, bank.agents())
    pinned = [memory for agent in agents for memory in agent.get_pinned_memories()]
    pinned.sort(key=lambda memory: (memory.tier_tick, memory.agent_id, memory.sequence))
    return _by_text([_remarkable(each, bank.tick - each.tier_tick) for each in pinned], max)


def _by_text(
    memories: Iterable[RemarkableMemory], number: Callable[[Iterable[int]], int]
) -> list[RemarkableMemory]:
    """The first memory of each text, with a number of all that have the text; largest first."""
    texts: dict[tuple[str, str], list[RemarkableMemory]] = {}
    for memory in memories:
        whose = "" if memory.id else memory.agent_id  # nobody knows the text of what was purged
        texts.setdefault((whose, memory.content), []).append(memory)
    rows = [
        own[0]._replace(
            number=number(each.number for each in own),
            alike=len(own) - 1,
            others=len({each.agent_id for each in own}) - 1,
        )
        for own in texts.values()
    ]
    return sorted(rows, key=lambda row: -row.number)[:_MOST_SHOWN]


def _remarkable(memory: Memory, number: int) -> RemarkableMemory:
    tier = TIER_NAMES[memory.tier]
    return RemarkableMemory(
        memory.agent_id, memory.content, tier, memory.created_tick, number, id=memory.id
    )


def _summary(
    bank: MemoryBank,
    run: RunRecord,
    records: Sequence[Mapping[str, Any]],
    by_agent: Mapping[str, Mapping[str, float]],
) -> dict[str, Any]:
    simulation = run.settings.simulation
    last = records[-1]
    return {
        "world": simulation.model or simulation.world,
        "policy": simulation.policy,
        "agents": len(run.agents),
        "seed": run.settings.seed,
        "ticks": bank.tick,
        "finished": bank.tick >= simulation.ticks,
        "memories": sum(agent_counts(bank.engine)[0].values()),
        **{name: sum(record[name] for record in records) for name in _SUMMED},
        **_why_not(run, records),
        "state_hash": last["state_hash"],
        "journal_hash": run.hash(),
        "metrics": last["metrics"],
        "by_agent": by_agent,
    }


def decision_table(run: RunRecord) -> bytes:
    """The table as a Parquet file. Ticks whose decisions were not kept have no rows.

    ``query`` is null where it was the text of the observation. ``arguments`` are JSON. ``reasons``
    are empty where an action was done; ``given_reasons`` are null where a policy gave none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = run.agents
    prefixes = [id_prefix(run.settings.seed, name) for name in names]
    buffer = BytesIO()
    schema = _decision_columns()
    with pq.ParquetWriter(buffer, schema) as writer:
        for tick, agents in run.decisions():
            errors = run.errors(tick) if _is_refused(agents) else {}
            rows = [
                _decision_row(tick, name, prefix, own, errors.get(name, ()))
                for name, prefix, own in zip(names, prefixes, agents, strict=False)
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return buffer.getvalue()


def _why_not(run: RunRecord, records: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How often actions were refused, and decisions had no answer, by reason; the most first.

    ``refusals`` has what agents were told, ``no_answers`` what a policy said. Reasons that name
    other agents and memories are one reason.
    """
    refusals: Counter[str] = Counter()
    no_answers: Counter[str] = Counter()
    for record in records:
        if record["errors"]:
            for agent, errors in run.errors(record["tick"]).items():
                refusals.update(_alike(agent, text) for text in errors)
        if record["no_ops"]:
            _, kept = next(run.decisions(record["tick"] - 1), (0, []))
            for agent, decision in zip(run.agents, kept, strict=False):
                no_answers.update(
                    _alike(agent, str(arguments.get("reason", "no reason given")))
                    for _, arguments, result, _ in decision.did
                    if result == UNANSWERED
                )
    return {
        name: dict(sorted(found.items(), key=lambda each: (-each[1], each[0]))[:_MOST_REASONS])
        for name, found in (("refusals", refusals), ("no_answers", no_answers))
    }


def _alike(agent: str, reason: str) -> str:
    named = re.sub(rf"(?<!\w){re.escape(agent)}(?!\w)", "AGENT", reason)
    return _ID.sub("ID", named)


def _is_refused(agents: Sequence[LoggedDecision]) -> bool:
    return any(result == REFUSAL for own in agents for _, _, result, _ in own.did)


def _decision_row(
    tick: int, agent: str, prefix: str, decision: LoggedDecision, errors: Sequence[str]
) -> dict[str, Any]:
    return {
        "tick": tick,
        "agent": agent,
        "query": decision.query,
        "memory_ids": [memory_id(prefix, number) for number in decision.sequences],
        "scores": decision.scores,
        "parts": list(map(part_of, decision.tiers, decision.temperatures)),
        "asked": [query for query, *_ in decision.asked],
        "actions": [name for name, *_ in decision.did],
        "arguments": [orjson.dumps(arguments).decode() for _, arguments, *_ in decision.did],
        "results": [RESULTS[result] for _, _, result, _ in decision.did],
        "reasons": refusals(decision, errors),
        "given_reasons": [
            *(decision.reason(place) for place in range(len(decision.did))),
            *([decision.idle] if decision.idle else []),
        ],
    }


def _decision_columns() -> "pa.Schema":
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
            "given_reasons": texts,
        }
    )
