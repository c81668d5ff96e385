"""What an agent may do to its own memory and notes in every world, and what it may ask.

``MEMORY_ACTIONS`` and ``NOTE_ACTIONS`` describe the actions, in the words that a language model
reads. Without ``tier`` a stored memory is normal; without ``path`` lines go to the note of the
tick. Questions of policies to their agents' memories are answered within the tick.
"""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from ...bank.agent_memory import AgentMemory
from ...bank.renaming import doing, under_our_names
from ...config.profiles import profile
from ...engine import move
from ...engine.engine import Engine
from ...engine.move import recalled
from ...errors import (
    InvalidAction,
    InvalidInput,
    MemoryNotFound,
    MemoryPinned,
    NoteRefused,
    TierFull,
)
from ...memory.context import one_line
from ...memory.filters import Filter, none_of, parse_filter
from ...memory.records import Hits
from ...memory.requests import FIELDS, WORLD_FIELDS, check_query, check_text, optional_session
from ...memory.tiers import TIER_NAMES, Tier, parse_temperature, parse_tier
from ...notes.agent_notes import LONG_TERM
from ...notes.files import MOST_BYTES
from ...search.request import SearchRequest
from ...telling import groups
from ..protocols import NO_ARGUMENTS, Action, Answer, Ask
from .branch_rules import NO_RULES, BranchRules

_WORDS = [
    *[field.words for field in FIELDS.values() if field.of_worlds],
    "metadata (texts, numbers or truth values by name)",
    *[field.words for field in FIELDS.values() if field.words and not field.of_worlds],
]
"""The optional fields of a memory that an agent may give."""

MEMORY_ACTIONS: Mapping[str, str] = {
    "store_memory": "keep a text: content, and optionally tier (pinned, critical, important, "
    f"normal or low), {', '.join(_WORDS)}",
    "set_memory_tier": "move a memory to a tier: memory_id, tier",
    "pin_memory": "keep a memory in view always: memory_id",
    "unpin_memory": "end that: memory_id",
    "promote_memory": "make a memory hot, because you work with it: memory_id",
    "demote_memory": "put a memory away: memory_id, and optionally to (warm or cold)",
    "forget_memory": "delete a memory: memory_id",
    "set_trust": "say how much you trust what an agent tells you: agent, trust (from 0 to 1)",
}

SESSION_ACTIONS: Mapping[str, str] = {
    "spill_memories": "put away the hot memories that you need least, one at least: optionally "
    "count, session (only those of this conversation)",
    "end_session": "a conversation is over: what is done of it is put away: session",
}
"""The actions on what is hot, of a session or of all of them."""

TELL_ACTIONS: Mapping[str, str] = {
    "tell": "tell another agent a memory of yours; it will remember it, and that you told it: to "
    "(its id), memory_id, and optionally as_tier (critical, important, normal or low), note",
    "broadcast": "tell several agents a memory of yours: memory_id, and optionally to (a list of "
    "ids; all that can hear you, if it is left out), as_tier, note",
    "retract": "tell those whom you told a memory that another memory of yours superseded it: "
    "memory_id",
}
"""The actions by which memories cross from agent to agent. A world that has an action of the same
name in its ``actions`` does that action itself."""

JOIN_GROUP = "join_group"
GROUP_ACTIONS: Mapping[str, str] = {
    "post_to_group": "write to the board of a group of yours, which all its members can search: "
    "group, content, and optionally tier (important, normal or low)",
    "leave_group": "leave a group: you neither find nor write what is on its board any more: group",
    JOIN_GROUP: "become a member of a group, if you may: you find all that is on its board: group",
}
"""The actions on groups. A world that has an action of the same name in its ``actions`` does that
action itself."""

NOTE_ACTIONS: Mapping[str, str] = {
    "append_note": "add lines to a note, a Markdown file of your own: text, and optionally path "
    "(MEMORY.md for what lasts, or memory/NAME.md)",
    "write_note": "replace the whole text of a note: path, text",
    "edit_note": "replace a part of a note, which must be in it once: path, old, new",
}

ASK_ACTIONS: Mapping[str, str] = {
    "search_memory": "look for memories before you act: query, and optionally limit, session (only "
    "those of this conversation); you are asked again with what was found, and other actions of "
    "the same reply are not done",
    "recall_memory": "the same among all memories, also those that you did not use for long; what "
    "you needed becomes hot",
}
"""The questions of a language model; a policy in Python gives an :class:`Ask`."""

GROUP_ASKS: Mapping[str, str] = {
    "search_groups": "the same as search_memory, also on the boards of your groups",
}

_RECALL = "recall_memory"
"""As an action of a policy that does not ask, it makes hot what is needed again."""

OWN_ACTIONS: Mapping[str, str] = {
    **MEMORY_ACTIONS,
    **SESSION_ACTIONS,
    _RECALL: ASK_ACTIONS[_RECALL],
    **NOTE_ACTIONS,
}
"""The actions of every agent in every world on its own memory."""

FEW_ACTIONS: Mapping[str, str] = {
    "store_memory": "keep a text: content, tier (pinned: always in view; critical, important, "
    "normal or low)",
    "set_memory_tier": MEMORY_ACTIONS["set_memory_tier"],
    "forget_memory": MEMORY_ACTIONS["forget_memory"],
}
"""What a language model is offered unless ``simulation.memory_actions`` says otherwise."""

NO_OP = "no_op"
"""The action of a policy that found no answer: only the ``reason`` among its arguments is recorded.

With a reason of its own, as any action may have one, it is a decision for nothing, and why.
"""

REFUSED = (InvalidAction, InvalidInput, MemoryNotFound, MemoryPinned, NoteRefused, TierFull)
"""The errors that an agent is told of. They do not end the run."""

_PARTS = {*Action._fields}
_LONGEST_NAME = 100
_LONGEST_ERROR = 500
_LONGEST_REASON = 2000
"""What is longer is cut: a reason is for people to read."""

_REQUIRED = {
    "store_memory": ("content",),
    "set_memory_tier": ("memory_id", "tier"),
    "pin_memory": ("memory_id",),
    "unpin_memory": ("memory_id",),
    "promote_memory": ("memory_id",),
    "demote_memory": ("memory_id",),
    "forget_memory": ("memory_id",),
    "set_trust": ("agent", "trust"),
    "spill_memories": (),
    "end_session": ("session",),
    "post_to_group": ("group", "content"),
    "leave_group": ("group",),
    JOIN_GROUP: ("group",),
    "tell": ("to", "memory_id"),
    "broadcast": ("memory_id",),
    "retract": ("memory_id",),
    _RECALL: ("query",),
    "append_note": ("text",),
    "write_note": ("path", "text"),
    "edit_note": ("path", "old", "new"),
}
_OF_A_MEMORY = (
    *WORLD_FIELDS,
    "metadata",
    *[name for name in FIELDS if name not in (*WORLD_FIELDS, "expires_tick", "evidence")],
)
_OPTIONAL = {
    "store_memory": ("tier", *_OF_A_MEMORY),
    "demote_memory": ("to",),
    "spill_memories": ("count", "session"),
    _RECALL: ("limit", "session"),
    "append_note": ("path",),
    "post_to_group": ("tier",),
    "tell": ("as_tier", "note"),
    "broadcast": ("to", "as_tier", "note"),
}


def as_action(value: object) -> Action:
    """An action from an :class:`Action`, or from a mapping with these names as keys.

    Anything else from a policy, a script or an LLM is :class:`InvalidAction`.
    """
    name: Any
    arguments: Any
    reason: Any
    if isinstance(value, Action):
        name, arguments, reason = value
    elif isinstance(value, Ask):
        raise InvalidAction(
            f"no more questions are answered in this tick; this one was {value.query!r:.80}",
            hint="act on what was found; simulation.asks says how often an agent may ask",
        )
    elif isinstance(value, Mapping) and value.keys() <= _PARTS:
        name, arguments = value.get("name"), value.get("arguments") or {}
        reason = value.get("reason")
    else:
        raise InvalidAction(f"an action has a name and arguments; got {value!r:.80}")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidAction(
            f"an action's name is text of 1 to {_LONGEST_NAME} characters; got {name!r:.40}"
        )
    if arguments is not NO_ARGUMENTS and (
        not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments)
    ):
        raise InvalidAction(f"{name}: arguments are a mapping by name; got {arguments!r:.80}")
    if reason is not None:
        if not isinstance(reason, str):
            raise InvalidAction(f"{name}: a reason is text; got {reason!r:.80}")
        reason = str.__str__(reason)[:_LONGEST_REASON]
    # The name may be of an enum, too.
    return Action(name if type(name) is str else str.__str__(name), arguments, reason)


def name_of(value: object) -> str | None:
    """The name of what a policy gave; None if it is not an action."""
    if isinstance(value, Action):
        return value.name
    if not isinstance(value, Mapping):
        return None
    try:
        return as_action(value).name
    except InvalidAction:
        return None


def of_profile(memory: AgentMemory, value: object) -> object:
    """An action under our names, where a policy gave it under those of the bank's profile.

    Anything else comes back as it is. What is wrong with the arguments is :class:`InvalidInput`.
    """
    name, profile_name = name_of(value), memory.engine.settings.profile
    if name is None or profile_name is None:
        return value
    operation = profile(profile_name).operations.get(name)
    if operation is None:
        operation = doing(profile_name, _OPERATIONS.get(name, name))
    own = None if operation is None else _ACTIONS_OF.get(operation.does)
    if operation is None or own is None:
        return value
    _, arguments, reason = as_action(value)
    return Action(own, under_our_names(memory, operation, arguments, (), arguments_of(own)), reason)


_ACTIONS_OF = {
    **{name: name for name in ("set_memory_tier", "pin_memory", "unpin_memory", *NOTE_ACTIONS)},
    "memory_add": "store_memory",
    "memory_recall": _RECALL,
    "memory_spill": "spill_memories",
    "memory_forget": "forget_memory",
    "memory_trust": "set_trust",
}
"""By an operation of docs/reference/operations.md, the own action that does the same."""
_OPERATIONS = {action: operation for operation, action in _ACTIONS_OF.items()}


def actions_of_profile(profile_name: str) -> dict[str, str]:
    """What a language model is told of a profile's operations that are own actions, by name."""
    told = {}
    for name, operation in profile(profile_name).operations.items():
        own = _ACTIONS_OF.get(operation.does)
        if own is not None and own != _RECALL:  # which a model asks as a question
            known = arguments_of(own)
            names = [each for each in operation.arguments if each.ours.partition(".")[0] in known]
            needed = [each.name for each in names if each.required or each.ours in _REQUIRED[own]]
            more = [each.name for each in names if each.name not in needed]
            optional = f", and optionally {', '.join(more)}" if more else ""
            told[name] = f"{operation.description or own}: {', '.join(needed)}{optional}"
    return told


def is_list(value: object) -> bool:
    """Whether a policy's answer is a list; a single action is not."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | Action | Ask)


def refusal(name: str, error: Exception) -> str:
    """The line that tells an agent why its action was refused."""
    return one_line(f"{name} was refused: {error}")[:_LONGEST_ERROR]


def memory_to_store(action: Action) -> tuple[object, Tier | None, dict[str, object] | None]:
    """The content and the options, unchecked, and the tier of a ``store_memory``.

    The tier is None where a key is given without one: the key's memory keeps its tier.
    """
    arguments = checked(action)
    options = {name: arguments[name] for name in _OF_A_MEMORY if name in arguments}
    tier = None if "key" in arguments or "supersedes" in arguments else Tier.NORMAL
    if "tier" in arguments:
        tier = parse_tier(arguments["tier"])
    return arguments["content"], tier, options or None


def change_memory(memory: AgentMemory, action: Action) -> None:
    """Do a memory action other than ``store_memory``."""
    name, arguments = action.name, checked(action)
    if name == _RECALL:
        session = arguments.get("session")
        ask = Ask(arguments["query"], arguments.get("limit"), cold=True, session=session)
        (answer,) = answers(memory.engine, [(memory.agent_id, ask)])
        if answer.note:
            raise InvalidAction(answer.note)
        return
    if name == "set_trust":
        memory.social.trust(arguments["agent"], arguments["trust"])
        return
    if name == "spill_memories":
        memory.spill(**arguments)
        return
    if name == "end_session":
        memory.session(arguments["session"]).end()
        return
    identifier = arguments["memory_id"]
    if name == "pin_memory":
        memory.pin(identifier)
    elif name == "unpin_memory":
        memory.unpin(identifier)
    elif name == "promote_memory":
        memory.update(identifier, temperature="hot")
    elif name == "demote_memory":
        to = parse_temperature(arguments.get("to", "warm"))
        move.demote(memory.engine, memory.agent_id, memory.get(identifier), to)
    elif name == "forget_memory":
        memory.delete(identifier)
    else:
        memory.set_tier(identifier, arguments["tier"])


def change_note(memory: AgentMemory, action: Action, tick: int) -> None:
    """Do a note action."""
    arguments = checked(action)
    path: Any = arguments.get("path")
    if path is None and action.name == "append_note":
        path = note_of(tick)
    if path != LONG_TERM and not str(path).startswith("memory/"):
        raise InvalidAction(
            f"{path!r:.80} is not a note that you can write",
            hint=f"use {LONG_TERM} or memory/NAME.md",
        )
    if action.name == "edit_note":
        old, new = check_text(arguments["old"], "note"), check_text(arguments["new"], "note")
        _check_room(path, len(memory.notes.read(path).encode()) + len(new.encode()))
        memory.notes.edit(path, old, new)
        return
    text = check_text(arguments["text"], "note")
    if action.name == "write_note":
        _check_room(path, len(text.encode()))
        memory.notes.write(path, text)
        return
    if not text or text.isspace():
        raise InvalidAction("a note needs some text; this one is blank")
    add_to_note(memory, text, path)


def add_to_note(memory: AgentMemory, text: str, path: str) -> None:
    """Add lines to a note, unless the note would be too long for a file.

    A bank without a folder refuses the same lines: a replay has no folder, and must not differ.
    """
    notes = memory.notes
    _check_room(path, len(notes.read(path).encode()) + len(text.encode()) + len("\n\n"))
    notes.append(text, path)


def _check_room(path: str, size: int) -> None:
    if size > MOST_BYTES:
        raise NoteRefused(f"{path!r:.80} would be over {MOST_BYTES} bytes", hint="use another note")


def note_of(tick: int) -> str:
    """The path of a tick's note. A run has ticks for days, whatever ``notes.daily`` says."""
    return f"memory/tick-{tick:06}.md"


def arguments_of(name: str) -> tuple[str, ...]:
    """The arguments that an own action takes."""
    return (*_REQUIRED[name], *_OPTIONAL.get(name, ()))


_TEXT = {"type": "string", "maxLength": 240}
_NAME = {"type": "string", "maxLength": 64}
_WHOLE = {"type": "integer", "minimum": 1}
_TIERS = list(TIER_NAMES.values())
_WHAT_FITS: Mapping[str, Mapping[str, Any]] = {
    "content": _TEXT,
    "text": _TEXT,
    "old": _TEXT,
    "new": _TEXT,
    "note": _TEXT,
    "query": _TEXT,
    "path": _NAME,
    "memory_id": _NAME,
    "supersedes": _NAME,
    "contradicts": _NAME,
    "evidence": {"type": "array", "items": _NAME, "maxItems": 8},
    "tags": {"type": "array", "items": _NAME, "maxItems": 8},
    "agent": _NAME,
    "group": _NAME,
    "to": _NAME,
    "session": _NAME,
    "trust": {"type": "number", "minimum": 0, "maximum": 1},
    "tier": {"type": "string", "enum": _TIERS},
    "as_tier": {"type": "string", "enum": _TIERS[1:]},
    "count": _WHOLE,
    "limit": _WHOLE,
    "metadata": {"type": "object"},
    "broadcast.to": {"type": "array", "items": _NAME, "maxItems": 32},
    "demote_memory.to": {"type": "string", "enum": ["warm", "cold"]},
    "post_to_group.tier": {"type": "string", "enum": _TIERS[2:]},
}
"""What an argument may be, as JSON Schema, by its name or by the action's and its name."""
_NOT_OF_SHAPE = ("description", "pattern")

NAMES_OF_MEMORIES = ("memory_id", *[each.name for each in FIELDS.values() if each.names_memories])
"""The arguments that hold ids of memories."""


def schema_of(name: str, described: str) -> dict[str, Any] | None:
    """The arguments that a description of an own action names, as JSON Schema.

    None for a name that is no own action. The lengths are those of a model that should say little:
    an action itself takes more.
    """
    if name in ASK_ACTIONS or name in GROUP_ASKS:
        needed: tuple[str, ...] = ("query",)
        more: tuple[str, ...] = ("limit", "session")
    elif name in _REQUIRED:
        needed, more = _REQUIRED[name], _OPTIONAL.get(name, ())
    else:
        return None
    told = [each for each in more if re.search(rf"\b{each}\b", described)]
    properties = {}
    for argument in (*needed, *told):
        shape = _WHAT_FITS.get(f"{name}.{argument}") or _WHAT_FITS.get(argument)
        if shape is None:
            own = FIELDS[argument].schema
            shape = {key: value for key, value in own.items() if key not in _NOT_OF_SHAPE}
        properties[argument] = dict(shape)
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed if "optionally" in described else properties),
        "additionalProperties": False,
    }


def checked(action: Action) -> Mapping[str, Any]:
    """The arguments of an own action, or :class:`InvalidAction`; their values are unchecked."""
    name, arguments, _ = action
    allowed = arguments_of(name)
    wants = f"{name} takes {' and '.join(allowed)}"
    for argument in _REQUIRED[name]:
        if argument not in arguments:
            raise InvalidAction(f"{argument} is missing", hint=wants)
    for argument in arguments:
        if argument not in allowed:
            raise InvalidAction(f"there is no argument {argument!r:.40}", hint=wants)
    return arguments


# Questions

_Kind = tuple[int | None, bool, bool, str | None]
"""The limit of a question, whether it is about cold memories or about groups, and its session."""
_NOTHING = "a question needs some text; this one is blank"


def asked_in(decided: object) -> list[Ask]:
    """The questions in what a policy decided; none if it decided on actions."""
    if isinstance(decided, Ask):
        return [decided]
    if isinstance(decided, list | tuple):
        return [each for each in decided if isinstance(each, Ask)]
    return []


def answers(
    bank: Engine, questions: Sequence[tuple[str, Ask]], rules: BranchRules = NO_RULES
) -> list[Answer]:
    """What each question of an agent finds. One search answers all that want the same.

    Cold memories are searched in the journal, not in mem0's store: a replay finds the same ones.
    What is found counts as used, and with cold memories, as recalled: what is needed again becomes
    hot, if ``temperature.auto_promote`` is true. What is found on boards is not counted here: all
    agents read a board as it was before the tick. ``rules`` say whose posts an agent does not find.

    The kinds of an agent's questions are answered in the order in which this agent first asked
    them, so what counts as used first does not depend on which other agents the bank has.
    """
    result: list[Answer | None] = [None] * len(questions)
    batches: dict[tuple[int, _Kind], list[int]] = {}
    kinds_of: dict[str, dict[_Kind, int]] = {}
    for place, (agent, ask) in enumerate(questions):
        try:
            _check(bank, ask)
        except InvalidInput as error:
            result[place] = Answer(ask, Hits(), str(error))
            continue
        kind = ask.limit, ask.cold, ask.groups, optional_session(ask.session)
        kinds = kinds_of.setdefault(agent, {})
        batches.setdefault((kinds.setdefault(kind, len(kinds)), kind), []).append(place)
    for key in sorted(batches, key=itemgetter(0)):
        (limit, cold, with_groups, session), places = key[1], batches[key]
        request = SearchRequest(
            [questions[place][0] for place in places],
            [questions[place][1].query for place in places],
            *bank.limits_of(limit, None),
            only=parse_filter(session=session),
            with_cold=cold,
            pinned_first=False,
            exact=True,
        )
        given = _on_boards(bank, request, rules) if with_groups else _own(bank, request)
        for place, hits in zip(places, given, strict=True):
            agent, ask = questions[place]
            if cold:
                recalled(bank, agent, ask.query, hits)
            result[place] = Answer(ask, hits)
    return [each for each in result if each is not None]


def _own(bank: Engine, request: SearchRequest) -> Sequence[Hits]:
    if request.with_cold:
        return bank.search.run(bank.search.read(request)).hits
    return bank.find(request)


def _on_boards(bank: Engine, request: SearchRequest, rules: BranchRules) -> list[Hits]:
    """What each agent finds among its own memories and on the boards of its groups."""
    return [
        groups.search(
            bank,
            request._replace(agents=[agent], queries=[query]),
            counts_boards=False,
            on_boards=_heard(request.only, rules.unheard(agent, bank.tick)),
        )
        for agent, query in zip(request.agents, request.queries, strict=True)
    ]


def _heard(only: Filter, unheard: Sequence[str]) -> Filter:
    """What was written by others than these."""
    return only._replace(metadata=none_of("speaker", unheard)) if unheard else only


def _check(bank: Engine, ask: Ask) -> None:
    """Raise InvalidInput for a question that can't be answered."""
    if not check_query(ask.query).strip():
        raise InvalidInput(_NOTHING)
    if not isinstance(ask.cold, bool):
        raise InvalidInput(f"cold is true or false, not {ask.cold!r:.40}")
    if not isinstance(ask.groups, bool):
        raise InvalidInput(f"groups is true or false, not {ask.groups!r:.40}")
    if ask.cold and ask.groups:
        raise InvalidInput("a question is about cold memories or about groups, not about both")
    bank.limits_of(ask.limit, None)
    optional_session(ask.session)
