"""What each operation does, with one agent's memory and arguments that were checked."""

from typing import Any

from ..bank.agent_memory import AgentMemory
from ..engine import reading
from ..errors import InvalidInput
from ..memory.filters import Filter, parse_filter
from ..memory.records import Hit, Memory
from ..memory.retention import RETENTION_NAMES, Retention
from ..memory.temperature import TEMPERATURE_NAMES, Temperature, parse_temperature
from .shapes import memory_json

__all__ = [
    "add",
    "append_note",
    "compact",
    "forget",
    "get",
    "pin",
    "query",
    "recall",
    "search",
    "set_tier",
    "spill",
    "status",
    "store",
    "unpin",
    "update",
]

Json = dict[str, Any]

_LIMIT = 10
_RETENTIONS = {name: retention for retention, name in RETENTION_NAMES.items()}


def store(memory: AgentMemory, arguments: Json) -> Json:
    return memory_json(memory.add(arguments["content"], arguments.get("tier", "normal")))


def add(memory: AgentMemory, arguments: Json) -> Json:
    given = dict(arguments)
    content, tier = given.pop("content"), given.pop("tier", "normal")
    return memory_json(memory.add(content, tier, given.pop("metadata", None), **given))


def set_tier(memory: AgentMemory, arguments: Json) -> Json:
    return memory_json(memory.set_tier(arguments["memory_id"], arguments["tier"]))


def pin(memory: AgentMemory, arguments: Json) -> Json:
    return memory_json(memory.pin(arguments["memory_id"]))


def unpin(memory: AgentMemory, arguments: Json) -> Json:
    return memory_json(memory.unpin(arguments["memory_id"]))


def update(memory: AgentMemory, arguments: Json) -> Json:
    """Tier, temperature and retention together, or none of them."""
    given = arguments.keys() - {"memory_id"}
    if not given:
        raise InvalidInput("say what is to change: tier, temperature or retention")
    identifier = arguments["memory_id"]
    with memory.parts.changing():
        retention = _retention(arguments)
        if "retention" in given and retention is Retention.ACTIVE:
            memory.restore(identifier)
        if "tier" in given:
            memory.set_tier(identifier, arguments["tier"])
        if "temperature" in given:
            _heat(memory, identifier, parse_temperature(arguments["temperature"]))
        if retention is Retention.ARCHIVED:
            memory.archive(identifier)
        elif retention is Retention.DELETED:
            memory.delete(identifier)
        return memory_json(reading.find(memory.parts, memory.agent_id, identifier, deleted=True))


def _heat(memory: AgentMemory, identifier: str, to: Temperature) -> None:
    if to is Temperature.HOT:
        memory.promote(identifier)
    elif memory.get(identifier).temperature > to:  # cold, and to be warm
        memory.warm(identifier)
    else:
        memory.demote(identifier, to)


def _retention(arguments: Json) -> Retention:
    return _RETENTIONS[arguments.get("retention", "active")]


def recall(memory: AgentMemory, arguments: Json) -> Json:
    found = memory.recall(**arguments)
    scored = zip(found.items, found.scores, strict=True)
    return {
        "results": [{**memory_json(item), "score": score} for item, score in scored],
        "promoted": list(found.promoted),
        "notes": list(found.notes),
    }


def spill(memory: AgentMemory, arguments: Json) -> Json:
    left = memory.spill(arguments.get("count"), arguments.get("ids"))
    return {
        "moved": {identifier: TEMPERATURE_NAMES[to] for identifier, to in left.moved.items()},
        "notes": list(left.notes),
    }


def status(memory: AgentMemory, arguments: Json) -> Json:
    return memory.status().to_dict()


def search(memory: AgentMemory, arguments: Json) -> Json:
    findings = memory.memory_search(**arguments)
    return {
        "results": [
            {
                "snippet": each.snippet,
                "score": each.score,
                "citation": each.citation,
                "memory_id": each.memory.id,
                "kind": each.memory.kind,
            }
            for each in findings
        ],
        "note": findings.note,
    }


def get(memory: AgentMemory, arguments: Json) -> Json:
    if ("path" in arguments) == ("memory_id" in arguments):
        raise InvalidInput("give the path of a note, or the memory_id of a memory")
    if "memory_id" in arguments:
        if arguments.keys() & {"from", "lines"}:
            raise InvalidInput("from and lines are for notes", hint="a memory is given whole")
        return {"memory": memory_json(memory.get(arguments["memory_id"]))}
    path, first = arguments["path"], arguments.get("from", 1)
    lines = memory.memory_get(path, first, arguments.get("lines"))
    return {"path": lines.path, "from": lines.first, "to": lines.last, "text": lines.text}


def append_note(memory: AgentMemory, arguments: Json) -> Json:
    return {"path": memory.notes.append(arguments["text"], arguments.get("path"))}


def compact(memory: AgentMemory, arguments: Json) -> Json:
    done = memory.compact(dry_run=arguments.get("dry_run", False))
    return {
        "hot": done.hot,
        "warm": done.warm,
        "cold": done.cold,
        "pruned": done.pruned,
        "moves": [
            {"memory_id": each.memory.id, "to": TEMPERATURE_NAMES[each.to], "rule": each.rule}
            for each in done.moves
        ],
    }


def forget(memory: AgentMemory, arguments: Json) -> Json:
    """Delete it, which can be undone for a while; or for good."""
    identifier, purge = arguments["memory_id"], arguments.get("purge", False)
    if purge:
        memory.forget(identifier)
    else:
        memory.delete(identifier)
    return {"memory_id": identifier, "purged": purge}


def query(memory: AgentMemory, arguments: Json) -> Json:
    """A search with filters; without a query, the newest that pass them."""
    given = dict(arguments)
    text, limit = given.pop("query", ""), given.pop("limit", _LIMIT)
    retention = _retention(given)
    given.pop("retention", None)
    only = parse_filter(**given)
    if retention is not Retention.ACTIVE:
        return {"results": _hidden(memory, text, retention, only, limit), "note": ""}
    if not text.strip():
        seen = only.wants_cold
        newest = [
            each
            for each in reversed(memory.all())
            if only.allows(each) and (seen or each.temperature is not Temperature.COLD)
        ]
        return {
            "results": [_scored(Hit(each, 0.0, 0.0, 0.0)) for each in newest[:limit]],
            "note": "",
        }
    hits = memory.search(text, limit, **given)
    return {"results": [_scored(hit) for hit in hits[:limit]], "note": hits.note}


def _hidden(
    memory: AgentMemory, text: str, retention: Retention, only: Filter, limit: int
) -> list[Json]:
    """Archived or deleted memories, which no search sees."""
    if text.strip():
        raise InvalidInput(
            "archived and deleted memories are listed, not searched",
            hint="leave the query out, or restore them first, which makes them active again",
        )
    chosen: list[Memory] = [each for each in memory.hidden(retention) if only.allows(each)]
    return [_scored(Hit(each, 0.0, 0.0, 0.0)) for each in chosen[:limit]]


def _scored(hit: Hit) -> Json:
    return {**memory_json(hit.memory), "score": hit.score, "boosted_score": hit.boosted_score}
