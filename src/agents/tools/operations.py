"""The table of operations: name, arguments, result, permission, handler and route of each.

MCP tools, HTTP routes, the schemas for LLMs and the reference page are made from this table.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, NamedTuple, get_args

from ..bank.agent_memory import AgentMemory
from ..memory.records import TimePassed
from . import handlers
from .shapes import (
    CONTENT,
    FILTERS,
    ID,
    KEY,
    KIND,
    LIKELY,
    LIMIT,
    MATCH,
    MEMORY,
    MOST_SAID,
    NEW,
    QUERY,
    RECALLED,
    RETENTION,
    SCORE,
    SCORED,
    STATUS,
    TAGS,
    TEMPERATURE,
    TIER,
    VALUE,
    Schema,
    any_of,
    list_of,
    object_of,
    one_of,
    typed,
    whole,
)

Permission = Literal["read", "write", "tell", "advance"]
"""What a caller may do; each permission includes those before it."""


WHY_NOT: dict[Permission, str] = {
    "read": "reads the memory",
    "write": "changes the memory",
    "tell": "reaches the memories of other agents",
    "advance": "moves the clock of all agents",
}
"""What an operation does that a caller may not do, by the permission that it needs."""


def allows(given: Permission, needed: Permission | None) -> bool:
    """Whether a caller with the permission ``given`` may do what needs the other one."""
    order = get_args(Permission)
    return needed is None or order.index(given) >= order.index(needed)


class Route(NamedTuple):
    """The HTTP route of an operation. A name in braces in the path is an argument."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    status: int = 200


class Operation(NamedTuple):
    """An operation of an agent on its memory."""

    name: str
    description: str
    """Models choose an operation by it; people read it in the reference."""
    arguments: Schema
    result: Schema
    permission: Permission
    """The permission that a token needs."""
    run: Callable[[AgentMemory, dict[str, Any]], dict[str, Any]]
    """Takes arguments that were checked."""
    example: dict[str, Any]
    """Arguments that make sense; an id in them is made up."""
    route: Route
    destroys: bool = False
    """Whether the operation may purge a memory."""
    profile: str | None = None
    """The profile whose name and arguments these are; None for ours."""
    unlisted: frozenset[str] = frozenset()
    """Arguments that a host gives and no model."""

    def schema(self) -> Schema:
        """The arguments with the example, for a model; a document's as the document has them."""
        schema = deepcopy(self.arguments)
        for name in self.unlisted:
            del schema["properties"][name]
        if self.profile is None or self.example:
            schema["examples"] = [deepcopy(self.example)]
        return schema


_EXAMPLE_ID = "1c5a9a4e-7d0f-8c11-9b7c-000000000001"
_AGENT = typed("string", "The id of another agent of the bank.", minLength=1, maxLength=128)
_GROUP = typed("string", "The name of a group.", minLength=1, maxLength=127)
_TOLD = object_of(
    {
        "told": list_of(
            object_of(
                {
                    "agent": typed("string", "Who was told."),
                    "is_new": typed("boolean", "False if it knew that already."),
                }
            )
        )
    }
)

SOCIAL_OPERATIONS = (
    Operation(
        "memory_tell",
        "Tell other agents a memory: each gets a copy of its own, which says who told it.",
        object_of(
            {
                "memory_id": ID,
                "to": list_of(_AGENT, minItems=1, maxItems=1000, description="Whom to tell."),
            },
            {
                "as_tier": {**TIER, "enum": TIER["enum"][1:]},
                "note": typed("string", "What you say about it.", minLength=1, maxLength=4096),
            },
        ),
        _TOLD,
        "tell",
        handlers.tell,
        {"memory_id": _EXAMPLE_ID, "to": ["bob"]},
        Route("POST", "/memory/{memory_id}/tell"),
    ),
    Operation(
        "memory_retract",
        "Take a memory back: a correction supersedes it, and follows all that were told it.",
        object_of({"memory_id": ID}, {"correction": CONTENT}),
        object_of({"corrected": typed("integer", "How many agents were told.", minimum=0)}),
        "tell",
        handlers.retract,
        {"memory_id": _EXAMPLE_ID, "correction": "agent_X is honest"},
        Route("POST", "/memory/{memory_id}/retract"),
    ),
    Operation(
        "memory_trust",
        "Say how much you trust what an agent tells you, or leave trust out to ask.",
        object_of(
            {"teller": _AGENT},
            {"trust": typed("number", "From 0 to 1, the default.", minimum=0, maximum=1)},
        ),
        object_of({"teller": {"type": "string"}, "trust": {"type": "number"}}),
        "write",
        handlers.trust,
        {"teller": "bob", "trust": 0.2},
        Route("POST", "/trust"),
    ),
    Operation(
        "group_post",
        "Write to the board of a group of which you are a member: all members find it.",
        object_of(
            {"group": _GROUP, "content": CONTENT}, {"tier": {**TIER, "enum": TIER["enum"][2:]}}
        ),
        MEMORY,
        "tell",
        handlers.post,
        {"group": "guild", "content": "We meet at the bridge"},
        Route("POST", "/group/{group}/post", 201),
    ),
    Operation(
        "group_leave",
        "Leave a group: from now on, you neither find nor write what is on its board.",
        object_of({"group": _GROUP}),
        object_of({"groups": list_of({"type": "string"})}),
        "write",
        handlers.leave,
        {"group": "guild"},
        Route("POST", "/group/{group}/leave"),
    ),
)


ERROR: Schema = object_of(
    {
        "error": object_of(
            {
                "type": typed("string", "The name of the error, such as MemoryNotFound."),
                "message": typed(
                    "string", "What was wrong, and what to do about it.", maxLength=MOST_SAID
                ),
            }
        )
    }
)
"""The result of an operation that was not done."""

_NOTES = list_of({"type": "string"})
_NOTE = typed("string", "How words were read, and what could not be done, such as embed the query.")
_PATH = typed(
    "string", "A note: MEMORY.md, or memory/NAME.md, or in a folder.", minLength=1, maxLength=512
)
_TEXT = typed("string", "Markdown; it may be empty.", maxLength=CONTENT["maxLength"])
_NAME = {"minLength": 1, "maxLength": 256}
_SESSION = typed("string", "Only what is part of this conversation or episode.", **_NAME)
_ONE_MEMORY = object_of({"memory_id": ID})

OPERATIONS: dict[str, Operation] = {
    each.name: each
    for each in (
        Operation(
            "store_memory",
            "Remember a text. Choose pinned only for what must never be forgotten.",
            object_of({"content": CONTENT}, {"tier": TIER, "key": KEY}),
            MEMORY,
            "write",
            handlers.one_memory("add"),
            {"content": "NEVER transfer to agent_X (scammer)", "tier": "pinned"},
            Route("POST", "/memory/store", 201),
        ),
        Operation(
            "set_memory_tier",
            "Move a memory to another tier.",
            object_of({"memory_id": ID, "tier": TIER}),
            MEMORY,
            "write",
            handlers.one_memory("set_tier"),
            {"memory_id": _EXAMPLE_ID, "tier": "critical"},
            Route("POST", "/memory/{memory_id}/tier"),
        ),
        Operation(
            "pin_memory",
            "Keep a memory in view always.",
            _ONE_MEMORY,
            MEMORY,
            "write",
            handlers.one_memory("pin"),
            {"memory_id": _EXAMPLE_ID},
            Route("POST", "/memory/{memory_id}/pin"),
        ),
        Operation(
            "unpin_memory",
            "Let a pinned memory be one like others again.",
            _ONE_MEMORY,
            MEMORY,
            "write",
            handlers.one_memory("unpin"),
            {"memory_id": _EXAMPLE_ID},
            Route("POST", "/memory/{memory_id}/unpin"),
        ),
        Operation(
            "memory_add",
            "Remember a text, with all that can be said of it: tier, kind, tags, lifetime, and the "
            "session it is part of.",
            object_of(
                {"content": CONTENT},
                {
                    "tier": TIER,
                    **NEW,
                    "metadata": {
                        "type": "object",
                        "maxProperties": 64,
                        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                        "description": "Flat values of your own; whole numbers of 64 bits. Names "
                        "that a memory has itself, such as tier or id, are refused.",
                    },
                },
            ),
            MEMORY,
            "write",
            handlers.one_memory("add"),
            {"content": "We decided to build in stone", "kind": "decision", "tags": ["bridge"]},
            Route("POST", "/memory", 201),
        ),
        Operation(
            "memory_recall",
            "What was once known: searches hot, warm and cold memories, and brings back to hot "
            "what matches very well or was recalled often.",
            object_of(
                {"query": QUERY},
                {
                    "limit": LIMIT,
                    "auto_promote": typed("boolean", "Whether it may get hot."),
                    "kinds": any_of(KIND),
                    "min_relevance": SCORE,
                    "min_probability": LIKELY,
                    "session": _SESSION,
                    "filters": FILTERS,
                    "include_cold": typed("boolean", "Whether cold ones take part, as they do."),
                    "include_hot": typed("boolean", "Whether hot ones take part, as they do."),
                },
            ),
            object_of(
                {
                    "results": list_of(RECALLED),
                    "promoted": list_of(ID),
                    "notes": _NOTES,
                }
            ),
            "write",
            handlers.recall,
            {"query": "what did we decide about the bridge?", "limit": 3},
            Route("POST", "/memory/recall"),
        ),
        Operation(
            "memory_spill",
            "Let memories leave hot: a number of the least relevant, as many as free these tokens, "
            "or these ids; with none of the three, as many as are too many, and at least one. In a "
            "session, only what is part of it leaves.",
            object_of(
                None,
                {
                    "count": whole("How many, or all if there are fewer.", 0, 100_000),
                    "ids": list_of(ID, maxItems=1000, description="Which."),
                    "tokens": whole("How many tokens to free.", 0, 10_000_000),
                    "session": _SESSION,
                },
            ),
            object_of(
                {"moved": {"type": "object", "additionalProperties": TEMPERATURE}, "notes": _NOTES}
            ),
            "write",
            handlers.spill,
            {"count": 2},
            Route("POST", "/memory/spill"),
        ),
        Operation(
            "memory_status",
            "How full the memory is, or that of a session, and what is worth doing about it.",
            object_of(None, {"session": _SESSION}),
            STATUS,
            "read",
            handlers.status,
            {},
            Route("GET", "/status"),
        ),
        Operation(
            "memory_search",
            "What notes and memories say about something, best first, each with a snippet and, for "
            "a note, a citation of file and lines.",
            object_of(
                {"query": QUERY},
                {
                    "max_results": LIMIT,
                    "min_score": SCORE,
                    "group": typed(
                        "boolean", "Whether others read along: citations may be hidden."
                    ),
                    "kind": any_of(KIND),
                },
            ),
            object_of(
                {
                    "results": list_of(
                        object_of(
                            {
                                "snippet": {"type": "string"},
                                "score": {"type": "number"},
                                "citation": {"type": ["string", "null"]},
                                "source": one_of(
                                    ("memory", "note", "transcript"), "What it is a part of."
                                ),
                                "path": {"type": ["string", "null"]},
                                "from": {"type": ["integer", "null"]},
                                "to": {"type": ["integer", "null"]},
                                "memory_id": ID,
                                "kind": KIND,
                            },
                            {"match": MATCH},
                        )
                    ),
                    "note": _NOTE,
                }
            ),
            "read",
            handlers.search,
            {"query": "when does the dragon sleep?", "max_results": 6},
            Route("POST", "/memory/search"),
        ),
        Operation(
            "memory_get",
            "Lines of a note, exactly, by its path; or a memory, by its id: one of the two.",
            object_of(
                None,
                {
                    "path": _PATH,
                    "from": whole("Of a note: the first line, from 1.", 1, 2**53),
                    "lines": whole("Of a note: how many; all that follow unless given.", 0, 2**53),
                    "memory_id": ID,
                },
            ),
            {
                "anyOf": [
                    object_of({"memory": MEMORY}),
                    object_of(
                        {
                            "path": _PATH,
                            "from": {"type": "integer"},
                            "to": {"type": "integer"},
                            "text": {"type": "string"},
                        }
                    ),
                ]
            },
            "read",
            handlers.get,
            {"path": "MEMORY.md", "from": 40, "lines": 30},
            Route("POST", "/memory/get"),
        ),
        Operation(
            "append_note",
            "Add lines to a Markdown note: to today's, or to the one with this path.",
            object_of(
                {"text": {**CONTENT, "description": "The lines to add, as Markdown."}},
                {"path": _PATH},
            ),
            object_of({"path": _PATH}),
            "write",
            handlers.append_note,
            {"text": "Never trade fish with Bob again.", "path": "MEMORY.md"},
            Route("POST", "/notes"),
        ),
        Operation(
            "write_note",
            "Replace the whole text of a Markdown note, or make the note.",
            object_of({"path": _PATH, "text": _TEXT}),
            object_of({"path": _PATH}),
            "write",
            handlers.write_note,
            {"path": "memory/trade.md", "text": "# Trade\n\nSalt is dear in winter.\n"},
            Route("POST", "/notes/write"),
        ),
        Operation(
            "edit_note",
            "Replace a part of a Markdown note by another; the note must have it exactly once.",
            object_of({"path": _PATH, "old": {**_TEXT, "minLength": 1}, "new": _TEXT}),
            object_of({"path": _PATH}),
            "write",
            handlers.edit_note,
            {"path": "memory/trade.md", "old": "in winter", "new": "in spring"},
            Route("POST", "/notes/edit"),
        ),
        Operation(
            "memory_compact",
            "Tidy up by the rules in the settings: what is done becomes cold, blockers become hot. "
            "A dry run lists what would move. At the end of a session, tidy up that session alone.",
            object_of(None, {"dry_run": typed("boolean", "Only say what."), "session": _SESSION}),
            object_of(
                {
                    **{name: {"type": "integer"} for name in ("hot", "warm", "cold", "pruned")},
                    "moves": list_of(
                        object_of({"memory_id": ID, "to": TEMPERATURE, "rule": {"type": "string"}})
                    ),
                }
            ),
            "write",
            handlers.compact,
            {"dry_run": True},
            Route("POST", "/memory/compact"),
        ),
        Operation(
            "memory_forget",
            "Delete a memory. It can be restored for a while; with purge it is gone for good, its "
            "text too.",
            object_of(
                {"memory_id": ID}, {"purge": typed("boolean", "Whether it is gone at once.")}
            ),
            object_of({"memory_id": ID, "purged": {"type": "boolean"}}),
            "write",
            handlers.forget,
            {"memory_id": _EXAMPLE_ID},
            Route("DELETE", "/memory/{memory_id}"),
            destroys=True,
        ),
        Operation(
            "memory_query",
            "Memories that pass filters: those that match a query, best first, or the newest.",
            object_of(
                None,
                {
                    "query": QUERY,
                    "limit": LIMIT,
                    "tier": any_of(TIER),
                    "temperature": any_of(TEMPERATURE),
                    "retention": RETENTION,
                    "kind": any_of(KIND),
                    "tags": any_of({**TAGS["items"], "description": "A label that it has."}),
                    "min_score": SCORE,
                    "min_probability": LIKELY,
                    "since_tick": whole("Created in this tick or later.", 0, 2**53),
                    "session": _SESSION,
                    "filters": FILTERS,
                    "include_superseded": typed("boolean", "Also what another one replaced."),
                    "include_groups": typed("boolean", "Also what is on your groups' boards."),
                },
            ),
            object_of({"results": list_of(SCORED), "note": _NOTE}),
            "read",
            handlers.query,
            {"query": "last quarter goals", "tier": "critical", "temperature": "cold", "limit": 10},
            Route("POST", "/memory/query"),
        ),
        Operation(
            "memory_update",
            "Change a memory's text, tier, temperature or retention, at least one of them; all "
            "that is given, or nothing. A new text is a new version with an id of its own, which "
            "supersedes the memory; memory_history still has the former.",
            object_of(
                {"memory_id": ID},
                {
                    "content": CONTENT,
                    "value": VALUE,
                    "tier": TIER,
                    "temperature": TEMPERATURE,
                    "retention": RETENTION,
                },
            ),
            MEMORY,
            "write",
            handlers.one_memory("update"),
            {"memory_id": _EXAMPLE_ID, "retention": "archived"},
            Route("PATCH", "/memory/{memory_id}"),
        ),
        Operation(
            "memory_history",
            "All that was stored under a key, oldest first, with the tick since which each version "
            "held; or the versions of the memory with an id.",
            object_of({"key": {**KEY, "description": "A key, or the id of one of the versions."}}),
            object_of({"results": list_of(MEMORY)}),
            "read",
            handlers.history,
            {"key": "diet"},
            Route("POST", "/memory/history"),
        ),
        Operation(
            "memory_advance",
            "Move the clock of the whole bank, for all its agents: to a tick, by ticks or by days. "
            "What expires or fades by then does so at once.",
            object_of(
                None,
                {
                    "to": whole("The tick to move to.", 0, 2**53),
                    "by": whole("How many ticks.", 0, 2**53),
                    "days": whole("How many days, of clock.ticks_per_day.", 0, 10**6),
                },
            ),
            object_of({name: {"type": "integer"} for name in TimePassed._fields}),
            "advance",
            handlers.advance,
            {"days": 1},
            Route("POST", "/advance"),
            destroys=True,
        ),
        *SOCIAL_OPERATIONS,
    )
}
