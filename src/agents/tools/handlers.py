"""What each operation does with an agent's memory and arguments that were checked."""

from collections.abc import Callable
from typing import Any

from ..bank.agent_memory import AgentMemory
from ..engine import clock, upkeep
from ..errors import InvalidInput
from ..memory.filters import parse_filter
from ..memory.records import Hit
from ..memory.scopes import scope_of
from ..memory.tiers import (
    TEMPERATURE_NAMES,
    Retention,
    Temperature,
    parse_retention,
)
from ..notes.index import Place
from .shapes import shown

Json = dict[str, Any]


def one_memory(method: str) -> Callable[[AgentMemory, Json], Json]:
    """A handler that calls a method of :class:`AgentMemory`, which gives a memory."""
    return lambda memory, arguments: shown(memory.engine, getattr(memory, method)(**arguments))


def history(memory: AgentMemory, arguments: Json) -> Json:
    """The versions of what is stored under a key."""
    return {"results": [shown(memory.engine, each) for each in memory.history(arguments["key"])]}


def recall(memory: AgentMemory, arguments: Json) -> Json:
    found = memory.recall(**arguments)
    columns = found.scores, found.likenesses, found.matches, found.probabilities
    scored = zip(found.items, *columns, strict=True)
    return {
        "results": [
            {
                **shown(memory.engine, item),
                "score": score,
                "likeness": likeness,
                **_asked(match=match, relevance_probability=chance),
            }
            for item, score, likeness, match, chance in scored
        ],
        "promoted": list(found.promoted),
        "notes": list(found.notes),
    }


def spill(memory: AgentMemory, arguments: Json) -> Json:
    left = memory.spill(**arguments)
    return {
        "moved": {identifier: TEMPERATURE_NAMES[to] for identifier, to in left.moved.items()},
        "notes": list(left.notes),
    }


def status(memory: AgentMemory, arguments: Json) -> Json:
    return memory.status(**arguments).to_dict()


def search(memory: AgentMemory, arguments: Json) -> Json:
    with memory.engine.using():
        findings = memory.memory_search(**arguments)
        return {
            "results": [
                {
                    "snippet": each.snippet,
                    "score": each.score,
                    **_asked(match=each.match),
                    "citation": each.citation,
                    **_place(memory.notes.place(each.memory)),
                    "memory_id": each.memory.id,
                    "kind": each.memory.kind,
                }
                for each in findings
            ],
            "note": findings.note,
        }


def _place(place: Place | None) -> Json:
    """Where a result stands, by the names of the arguments and results of memory_get."""
    if place is None:
        return {"source": "memory", "path": None, "from": None, "to": None}
    return {"source": place.source, "path": place.path, "from": place.first, "to": place.last}


def get(memory: AgentMemory, arguments: Json) -> Json:
    if ("path" in arguments) == ("memory_id" in arguments):
        raise InvalidInput("give the path of a note, or the memory_id of a memory")
    if "memory_id" in arguments:
        if arguments.keys() & {"from", "lines"}:
            raise InvalidInput("from and lines are for notes", hint="a memory is given whole")
        return {"memory": shown(memory.engine, memory.get(arguments["memory_id"]))}
    path, first = arguments["path"], arguments.get("from", 1)
    lines = memory.notes.lines(path, first, arguments.get("lines"))
    return {"path": lines.path, "from": lines.first, "to": lines.last, "text": lines.text}


def append_note(memory: AgentMemory, arguments: Json) -> Json:
    return {"path": memory.notes.append(arguments["text"], arguments.get("path"))}


def write_note(memory: AgentMemory, arguments: Json) -> Json:
    memory.notes.write(arguments["path"], arguments["text"])
    return {"path": arguments["path"]}


def edit_note(memory: AgentMemory, arguments: Json) -> Json:
    memory.notes.edit(arguments["path"], arguments["old"], arguments["new"])
    return {"path": arguments["path"]}


def compact(memory: AgentMemory, arguments: Json) -> Json:
    done = memory.compact(**arguments)
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
    """Delete a memory, which can be undone for a while, or purge it."""
    identifier, purge = arguments["memory_id"], arguments.get("purge", False)
    if purge:
        memory.forget(identifier)
    else:
        memory.delete(identifier)
    return {"memory_id": identifier, "purged": purge}


def query(memory: AgentMemory, arguments: Json) -> Json:
    """Search with filters; without a query, list the newest memories that pass them."""
    given = dict(arguments)
    text, limit = given.pop("query", ""), given.pop("limit", 10)
    retention = parse_retention(given.pop("retention", "active"))
    more = {key: given.pop(key) for key in ("include_superseded", "include_groups") if key in given}
    only = parse_filter(**given)
    least = {"min_score": only.min_score, "min_probability": only.min_probability is not None}
    scored = [key for key, value in (more | least).items() if value]
    if text.strip() and retention is Retention.ACTIVE:
        hits = memory.search(text, limit, **given, **more)
        return {"results": [_scored(memory, hit) for hit in hits[:limit]], "note": hits.note}
    if text.strip():
        raise InvalidInput(
            "archived and deleted memories are listed, not searched",
            hint="leave the query out, or restore them first, which makes them active again",
        )
    if scored:
        raise InvalidInput(f"{scored[0]} goes with a query", hint="say what to search for")
    if retention is Retention.ACTIVE:
        listed = [
            each
            for each in reversed(memory.all())
            if only.wants_cold or each.temperature is not Temperature.COLD
        ]
    else:
        listed = memory.all(retention=retention)[::-1]
    chosen = [Hit(each, 0.0, 0.0, 0.0) for each in listed if only.allows(each)]
    return {"results": [_scored(memory, hit) for hit in chosen[:limit]], "note": ""}


def advance(memory: AgentMemory, arguments: Json) -> Json:
    """Move the bank's clock."""
    bank = memory.engine
    with bank.changing():
        return clock.pass_time(bank, clock.chosen_tick(bank, **arguments))._asdict()


def _scored(memory: AgentMemory, hit: Hit) -> Json:
    return {**shown(memory.engine, hit.memory), **scores_of(hit)}


def scores_of(hit: Hit) -> Json:
    """The numbers of a hit, as results show them."""
    asked = _asked(match=hit.match, relevance_probability=hit.relevance_probability)
    return {"score": hit.score, "boosted_score": hit.boosted_score, **asked}


def _asked(**numbers: float | None) -> Json:
    """The numbers that somebody asked for, by a least one."""
    return {name: number for name, number in numbers.items() if number is not None}


def tell(memory: AgentMemory, arguments: Json) -> Json:
    """Tell agents that the bank has; a client makes no new agents, and reaches no other scope."""
    scope = scope_of(memory.agent_id)
    with memory.engine.using():
        known = {name for name in upkeep.agents(memory.engine) if scope_of(name) == scope}
        to = []
        for name in arguments["to"]:
            listener = _here(memory, name)
            if listener not in known and listener != memory.agent_id:
                raise InvalidInput(f"there is no agent {name!r:.80}", hint="name another agent")
            to.append(listener)
        told = memory.social.broadcast(**{**arguments, "to": to})
    return {"told": [{"agent": scope.name(each.listener), "is_new": each.is_new} for each in told]}


def retract(memory: AgentMemory, arguments: Json) -> Json:
    """Take a memory back; how far it went is not its teller's to know."""
    return {"corrected": len(memory.social.retract(**arguments))}


def trust(memory: AgentMemory, arguments: Json) -> Json:
    teller = _here(memory, arguments["teller"])
    with memory.engine.using():
        if "trust" in arguments:
            memory.social.trust(teller, arguments["trust"])
        return {"teller": arguments["teller"], "trust": memory.social.trust_of(teller)}


def post(memory: AgentMemory, arguments: Json) -> Json:
    group = _here(memory, arguments["group"])
    return shown(memory.engine, memory.social.post(**{**arguments, "group": group}))


def leave(memory: AgentMemory, arguments: Json) -> Json:
    memory.social.leave(_here(memory, arguments["group"]))
    scope = scope_of(memory.agent_id)
    return {"groups": [scope.name(each) for each in memory.social.groups()]}


def _here(memory: AgentMemory, name: str) -> str:
    """The id of the agent, or of the group, of this name in the scope of the one who asks."""
    return scope_of(memory.agent_id).agent_id(name)
