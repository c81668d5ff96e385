"""What a person sees of a run, of a decision and of a survey, in a notebook and elsewhere."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...bank.memory_bank import MemoryBank
from ...memory.tiers import TIER_NAMES
from ...memory.views import Table, View
from ...memory.words import counted, number
from ..policies.interview import Asked
from ..statistics import in_words, interval_of
from .record import RunRecord

if TYPE_CHECKING:
    from ...config.settings import Settings
    from .why import Decision, GivenMemory, TakenAction


def run_view(name: str, where: str, bank: MemoryBank, settings: "Settings") -> View:
    """A run as it stands: the metrics of its last tick, and how many memories there are."""
    record = RunRecord.of(bank, settings)
    metrics = [last["metrics"] for last, _ in record.records(bank.tick - 1)]
    agents, ticks = counted(len(record.agents), "agent"), settings.simulation.ticks
    counts = bank.engine.state.tier_counts()
    tiers = [f"{number(count)} {TIER_NAMES[tier]}" for tier, count in counts.items() if count]
    memories = counted(sum(counts.values()), "memory", "memories")
    return View(
        f"{name}: {agents}, tick {number(bank.tick)} of {number(ticks)}",
        [
            *(Table(["metric", "value"], list(each.items())) for each in metrics),
            f"{memories}: {', '.join(tiers)}" if tiers else memories,
            where,
        ],
    )


def decision_view(decided: "Decision") -> View:
    """What decided an agent's actions in a tick, and what came of them."""
    parts: list[Table | str] = [*_perceived(decided)]
    if decided.given:
        heads = ["given", "score", "boost", "tier", "since tick", "memory"]
        parts.append(Table(heads, list(map(_given, decided.given))))
    if decided.not_given:
        reasons = [f"{count:,} {reason}" for reason, count in decided.reasons().items()]
        parts.append(f"not given: {', '.join(reasons)}")
    for question in decided.asked:
        parts.append(f"its policy asked: {question.query}" + _because(question.note))
        if question.found:
            found = [(round(each.score, 4), each.tier, each.text) for each in question.found]
            parts.append(Table(["score", "tier", "found"], found))
    parts.append(Table(["did", "result", "what came of it"], list(map(_done, decided.did))))
    if not decided.did:
        parts[-1] = "did nothing" + _because(decided.idle)
    for name, texts in (
        ("was told", decided.told),
        ("saved", decided.saved),
        ("concluded", decided.insights),
        ("note", filter(None, [decided.note])),
    ):
        parts += [f"{name}: {text}" for text in texts]
    if decided.exchanges:
        calls = counted(len(decided.exchanges), "call")
        parts.append(f"{calls} of a language model, with prompt and answer: exchanges")
    return View(f"{decided.agent} in tick {number(decided.tick)}", parts)


def _perceived(decided: "Decision") -> Iterator[str]:
    if decided.observed:
        yield f"observed: {decided.observed}"
    yield from (f"heard: {text}" for text in decided.heard)
    yield from (f"was told of its last actions: {text}" for text in decided.errors)
    if decided.facts:
        yield f"facts: {_as_json(decided.facts)}"
    if decided.query != decided.observed:
        yield f"asked its memory: {decided.query}"


def _given(memory: "GivenMemory") -> tuple[object, ...]:
    since = memory.created_tick
    return memory.part, round(memory.score, 4), memory.boost, memory.tier, since, memory.text


def _done(action: "TakenAction") -> tuple[object, ...]:
    name = f"{action.name} {_as_json(action.arguments)}" if action.arguments else action.name
    return name + _because(action.reason), action.result, action.text


def _because(reason: str | None) -> str:
    return f", because: {reason}" if reason else ""


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values), ensure_ascii=False)


def survey_view(
    questions: Iterable[Asked],
    rows: Sequence[Mapping[str, Any]],
    curve: Sequence[Mapping[str, Any]],
    cost: str,
) -> View:
    """What agents answered: the curve, or the answers themselves where these are texts."""
    parts: list[Table | str] = [f"{each.name}: {each.text}" for each in questions]
    if curve:
        means = [
            (row["tick"], row["question"], row["answer"], row["mean"], in_words(interval_of(row)))
            for row in curve
        ]
        parts.append(Table(["tick", "question", "answer", "mean", "95 % interval"], means))
    else:
        said = [
            (row["tick"], row["agent"], row["question"], row["answer"] or row["problem"])
            for row in rows
        ]
        parts.append(Table(["tick", "agent", "question", "answer"], said))
    return View(counted(len(rows), "answer"), [*parts, cost])
