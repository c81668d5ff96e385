"""The operations by which memories cross from agent to agent: a part of the table."""

from . import social_handlers as handlers
from .operation import Operation, Route
from .shapes import CONTENT, ID, MEMORY, TIER, list_of, object_of, typed

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
