"""Commands on the memories of one agent: add, update, search, pin, unpin, forget, call."""

import json
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import InvalidInput
from ....memory.requests import FIELDS
from ....memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, Retention
from ....memory.words import counted
from ..banks import (
    MemoryId,
    MemoryIds,
    changed,
    check_agent,
    copied_with_notes,
    full_id,
    shown_id,
    storing,
)
from ..options import (
    ALSO,
    AsJson,
    BankFolder,
    Limit,
    Session,
    Whose,
    condition,
    field_of,
    no_nan,
    pair,
    text_of,
    tier_of,
    value_of,
    with_fields,
)
from ..output import echo_json, say, table
from .show import explained

if TYPE_CHECKING:
    from ....bank.agent_memory import AgentMemory
    from ....memory.records import Memory


Beside = Annotated[str | None, Option(metavar="JSON", help="Nested JSON to keep beside the text.")]


@with_fields
def add(
    folder: BankFolder,
    agent: Whose,
    words: Annotated[
        list[str], Argument(metavar="TEXT", help="The text of the memory; - reads it from stdin.")
    ],
    tier: Annotated[
        str | None,
        Option(
            help="pinned, critical, important, normal or low; without it normal, or with a key "
            "what the memory of that key has."
        ),
    ] = None,
    metadata: Annotated[
        list[str] | None,
        Option("--meta", metavar="KEY=VALUE", help="A value of your own; can be repeated."),
    ] = None,
    as_json: AsJson = False,
    **fields: Any,
) -> None:
    """Store a memory of an agent. It is on disk when the command returns.

    Several words are one text. `tiermem store import` stores many memories at once. If the tier is
    full, its oldest memory moves one tier down, or the command fails: memory.on_tier_full decides.

    --meta reads numbers, true, false and null as JSON does, and anything else as text.
    """
    text = text_of(words)
    labels = dict(map(pair, metadata or ()))
    with changed(folder) as bank:
        memory = bank.agent(agent)
        given = {
            name: field_of(FIELDS[name], each, lambda short: full_id(bank, agent, short))
            for name, each in fields.items()
            if each not in (None, [])
        }
        before = ranked(memory)
        with storing(bank, lambda: tell_change(memory, new, before, "remembers", as_json)):
            new = memory.add(
                text, tier=None if tier is None else tier_of(tier), metadata=labels, **given
            )


def update(
    folder: BankFolder,
    agent: Whose,
    memory_ids: MemoryIds,
    text: Annotated[
        str | None, Option(metavar="TEXT", help="A new text for one memory; - reads it from stdin.")
    ] = None,
    tier: Annotated[str | None, Option(help="pinned, critical, important, normal or low.")] = None,
    temperature: Annotated[str | None, Option(help="hot, warm or cold.")] = None,
    retention: Annotated[
        str | None,
        Option(help="archived, which no search finds; or active, which restores."),
    ] = None,
    value: Beside = None,
    as_json: AsJson = False,
) -> None:
    """Change memories of an agent: all that are named, or none.

    A new text is a new version, which supersedes the memory, and `tiermem show --key` lists both.
    The new version has an id of its own; all that is not given is as before.

    A restored memory has the tier and the temperature that it had. What was deleted can be restored
    within retention.grace. If a tier is full, its oldest memory moves one tier down, or the command
    fails: memory.on_tier_full decides.
    """
    changes: dict[str, Any] = {
        "content": None if text is None else text_of([text]),
        "tier": None if tier is None else tier_of(tier),
        "temperature": temperature,
        "retention": retention,
        "value": None if value is None else value_of(value),
    }
    if all(each is None for each in changes.values()):
        raise InvalidInput(
            "it is not said what is to change",
            hint="give --text, --tier, --temperature or --retention",
        )
    if text is not None and len(memory_ids) > 1:
        raise InvalidInput("a new text is for one memory", hint="name one ID with --text")
    if retention == "deleted":
        raise InvalidInput("--retention is active or archived", hint="tiermem forget deletes")
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        chosen = dict.fromkeys(full_id(bank, agent, each) for each in memory_ids)
        before = ranked(memory)
        with storing(bank, lambda: _tell_updated(memory, new, before, text is not None, as_json)):
            new = [memory.update(each, **changes).id for each in chosen]


def _tell_updated(
    memory: "AgentMemory", ids: list[str], before: "list[Memory]", has_text: bool, as_json: bool
) -> None:
    """Print what became of memories; one may have made room for another."""
    updated = [memory.get(each) for each in ids]
    if as_json:
        from ....tools.shapes import shown

        echo_json({"updated": [shown(memory.engine, each) for each in updated]})
    elif has_text:
        tell_change(memory, updated[0], before, "remembers", as_json)
    else:
        for each in updated:
            say_memory(memory, each, "has")
        say_room(memory, before, set(ids))


def search(
    folder: BankFolder,
    agent: Whose,
    words: Annotated[list[str], Argument(metavar="QUERY", help="The words to search for.")],
    limit: Limit = None,
    tiers: Annotated[list[str] | None, Option("--tier", help="Only memories in this tier.")] = None,
    temperatures: Annotated[
        list[str] | None, Option("--temperature", help="Only memories that are hot, warm or cold.")
    ] = None,
    kinds: Annotated[
        list[str] | None, Option("--kind", *ALSO["kind"], help="Only memories of this kind.")
    ] = None,
    tags: Annotated[list[str] | None, Option("--tag", help="Only memories with this tag.")] = None,
    min_score: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            callback=no_nan,
            help="Only memories whose match is at least this, from 0 to 1: the largest of score, "
            "similarity and share of the words.",
        ),
    ] = None,
    min_probability: Annotated[
        float | None,
        Option(
            min=0,
            max=1,
            callback=no_nan,
            help="Only memories that are part of the answer with at least this probability; 0 "
            "shows it for all.",
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Only memories with this value of metadata, or conditions as JSON.",
        ),
    ] = None,
    session: Session = None,
    include_cold: Annotated[
        bool, Option("--include-cold", help="Search the cold memories, too.")
    ] = False,
    include_groups: Annotated[
        bool, Option("--groups", help="Search the boards of the agent's groups, too.")
    ] = False,
    include_superseded: Annotated[
        bool, Option("--superseded", help="Search what other memories superseded, too.")
    ] = False,
    explain: Annotated[
        bool, Option("--explain", help="Show for each memory why it is found, or why not.")
    ] = False,
    context: Annotated[
        bool,
        Option(
            "--context",
            help="Give what an agent reads in a simulation: hot memories follow the pinned ones.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find memories of an agent: the pinned memories first, then the best matches.

    --tier, --temperature, --kind and --tag can be repeated: a memory needs one of the values.
    --filter can be repeated: a memory must pass all, such as place=bay, 'day>=3' or
    '{"metadata.day": {"$in": [3, 4]}}'. The command reads a copy: the bank can be in use, nothing
    changes, and the search does not count as use of the memories.
    """
    asked = {"tier": tiers, "temperature": temperatures, "kind": kinds, "tags": tags}
    only: dict[str, Any] = {name: values for name, values in asked.items() if values}
    if filters:
        only["filters"] = {"$and": [condition(each) for each in filters]}
    least = {"min_score": min_score, "min_probability": min_probability}
    if context and (only or include_cold or any(each is not None for each in least.values())):
        raise InvalidInput(
            "what an agent reads has no filters", hint="leave out --context, or them"
        )
    more: dict[str, Any] = {
        "include_groups": include_groups,
        "include_superseded": include_superseded,
    }
    if any(more.values()) and (context or (explain and include_superseded)):
        raise InvalidInput(
            "--groups and --superseded do not go with --context, nor --superseded with --explain",
            hint="leave one of them out",
        )
    if tiers:
        only["tier"] = [tier_of(each) for each in tiers]
    if session is not None:
        only["session"] = session
    query = " ".join(words)
    with copied_with_notes(folder, agent) as (bank, _, _):
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        only |= {**least, "include_cold": include_cold}
        if explain:
            options = {"everything": True, "as_json": as_json, "context": context, **only}
            options["include_groups"] = include_groups
            explained(memory, bank.tick, query, limit, **options)
            return
        if context:
            (hits,) = bank.context_many([(agent, query)], limit, session=session)
        else:
            hits = memory.search(query, limit, **only, **more)
        if as_json:
            from ....tools.handlers import scores_of
            from ....tools.shapes import shown

            rows = [{**shown(bank.engine, hit.memory), **scores_of(hit)} for hit in hits]
            echo_json({"results": rows, "note": hits.note})
            return
        wanted = bank.settings.memory.default_limit if limit is None else limit
        hidden = memory.count() - len(hits)
    if hits.note:
        say(hits.note, err=True)
    rows = [
        {
            "id": shown_id(hit.memory.id),
            "score": round(hit.score, 4),
            **({"match": hit.match and round(hit.match, 4)} if min_score else {}),
            **({} if chance is None else {"probability": round(chance, 4)}),
            "tier": TIER_NAMES[hit.memory.tier],
            "memory": hit.memory.content,
        }
        for hit in hits
        for chance in [hit.relevance_probability]
    ]
    table(f"{agent} asks: {query}", rows)
    if hidden and len(hits) >= wanted and all(row["tier"] == "pinned" for row in rows):
        say(
            f"the pinned memories fill the limit of {wanted}; a higher --limit shows others",
            err=True,
        )


def pin(folder: BankFolder, agent: Whose, memory_id: MemoryId, as_json: AsJson = False) -> None:
    """Pin a memory: every search finds it, before all memories that are not pinned.

    If the agent has memory.max_pinned pinned memories, the oldest of them moves one tier down.
    """
    _move(folder, agent, memory_id, as_json, to=None)


def unpin(
    folder: BankFolder,
    agent: Whose,
    memory_id: MemoryId,
    to: Annotated[str, Option(metavar="TIER", help="The tier the memory moves to.")] = "normal",
    as_json: AsJson = False,
) -> None:
    """Move a pinned memory to another tier. A memory that is not pinned stays where it is."""
    _move(folder, agent, memory_id, as_json, to=to)


def _move(folder: Path, agent: str, memory_id: str, as_json: bool, to: str | None) -> None:
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        identifier = full_id(bank, agent, memory_id)
        before = ranked(memory)
        moved = memory.pin(identifier) if to is None else memory.unpin(identifier, tier_of(to))
        tell_change(memory, moved, before, "has", as_json)


def forget(
    folder: BankFolder,
    agent: Whose,
    memory_ids: MemoryIds,
    purge: Annotated[
        bool, Option("--purge", help="They are gone for good and at once, their texts too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete memories of an agent: all that are named, or none if one can't be deleted.

    `tiermem update --retention active` brings them back within retention.grace; then they are
    purged. With --purge
    nothing brings them back, and `tiermem store vacuum` clears the free space in the files as well.
    Checkpoints from before keep their texts. A pinned memory has to be unpinned first.
    """
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        chosen = list(dict.fromkeys(full_id(bank, agent, each) for each in memory_ids))
        with bank.transaction():
            gone = [] if purge else [memory.get(each) for each in chosen]
            for each in chosen:
                (memory.forget if purge else memory.delete)(each)
        grace = bank.engine.grace
    if as_json:
        echo_json({"forgotten": [{"memory_id": each, "purged": purge} for each in chosen]})
        return
    if purge:
        for each in chosen:
            say(f"{agent} forgot for good: {each}")
        say(vacuum_advice(folder))
        return
    for former in gone:
        say(f"{agent} forgot: {former.content}")
        say(f"  id {former.id}")
    if grace:
        it = "it" if len(gone) == 1 else "them"
        ids = [*chosen, "--retention", "active"]
        back = join(["tiermem", "update", str(folder), "--agent", agent, *ids])
        say(f"for {counted(grace, 'tick')} (retention.grace), this brings {it} back: {back}")


def call(
    folder: BankFolder,
    agent: Whose,
    name: Annotated[str, Argument(metavar="OPERATION", help="Such as memory_status.")],
    arguments: Annotated[
        str, Argument(metavar="JSON", help="Its arguments, as a JSON object.")
    ] = "{}",
) -> None:
    """Do an operation of the bank, or of the bank's profile, and print its result as JSON.

    The operations are in docs/reference/operations.md; a bank with a profile has those of the
    profile.
    """
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{arguments!r:.80} is not JSON: {error!s:.80}", hint="write it as in '{\"limit\": 3}'"
        ) from None
    from ....tools.calling import run

    with changed(folder) as bank:
        result = run(bank.agent(agent), name, given)
    echo_json(result)


# What is said about a changed memory


def ranked(memory: "AgentMemory") -> "list[Memory]":
    """The memories that a full tier can move down."""
    return [*memory.all("pinned"), *memory.all("critical")]


def tell_change(
    memory: "AgentMemory", changed: "Memory", before: "list[Memory]", verb: str, as_json: bool
) -> None:
    """Print the changed memory, and the memories that made room for it."""
    from ....tools.shapes import shown

    if as_json:
        echo_json(shown(memory.engine, changed))
        return
    say_memory(memory, changed, verb)
    if verb == "remembers" and changed.access_count:
        say(f"  it was stored before, and is counted again: {changed.access_count} uses")
    elif verb == "remembers" and changed.key is not None:
        for former in memory.history(changed.key)[-2:-1]:
            say(f"  in place of: {former.content}")
    say_room(memory, before, {changed.id})


def say_memory(memory: "AgentMemory", changed: "Memory", verb: str) -> None:
    """Print the changed memory."""
    how = f"{TIER_NAMES[changed.tier]}, {TEMPERATURE_NAMES[changed.temperature]}"
    say(f"{memory.agent_id} {verb} ({how}): {changed.content}")
    say(f"  id {changed.id}")


def say_room(memory: "AgentMemory", before: "list[Memory]", changed: set[str]) -> None:
    """Print the memories that made room for the changed ones."""
    from ....engine.read import nth

    for each in before:
        now = nth(memory.engine, memory.agent_id, each.sequence)
        if now is None or now.retention is not Retention.ACTIVE or now.id in changed:
            continue
        if now.tier is not each.tier:
            full = TIER_NAMES[each.tier]
            say(f"  {full} was full, so this is {TIER_NAMES[now.tier]} now: {now.content}")


def vacuum_advice(folder: Path) -> str:
    """What to do after memories were purged."""
    vacuum = join(["tiermem", "store", "vacuum", str(folder)])
    return f"free space of files may still have the text until: {vacuum}"
