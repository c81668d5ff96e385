"""Commands that use a bank: add, update, search, pin, unpin, forget, restore."""

from pathlib import Path
from shlex import join
from typing import Annotated, Any

from typer import Argument, Option

from ....errors import InvalidInput
from ....memory.new import FIELDS
from ....memory.tiers import TIER_NAMES
from ....memory.words import counted
from ..banks import changed, check_agent, copied_with_notes, storing
from ..one_memory import (
    MemoryId,
    MemoryIds,
    full_id,
    ranked,
    say_memory,
    say_room,
    shown_id,
    tell_change,
    vacuum_advice,
)
from ..options import AsJson, BankFolder, Whose, no_nan
from ..output import echo_json, say, table
from ..values import condition, field_of, pair, text_of, tier_of, value_of, with_fields
from .show import explained

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

    Several words are one text. `tiermem import` stores many memories at once. If the tier is full,
    its oldest memory moves one tier down, or the command fails: memory.on_tier_full decides.

    --meta reads numbers, true, false and null as JSON does, and anything else as text.
    """
    text = text_of(words)
    own = dict(map(pair, metadata or ()))
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
                text,
                None if tier is None else tier_of(tier),
                own,
                **given,
            )


def update(
    folder: BankFolder,
    agent: Whose,
    memory_id: MemoryId,
    words: Annotated[
        list[str], Argument(metavar="TEXT", help="The new text; - reads it from stdin.")
    ],
    tier: Annotated[str | None, Option(help="Another tier; without it the same.")] = None,
    value: Beside = None,
    as_json: AsJson = False,
) -> None:
    """Give a memory a new text: a new version supersedes it, and `tiermem show --key` lists both.

    The new version has an id of its own. All but its text is as before.
    """
    text = text_of(words)
    beside = None if value is None else value_of(value)
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        identifier = full_id(bank, agent, memory_id)
        before = ranked(memory)
        with storing(bank, lambda: tell_change(memory, new, before, "remembers", as_json)):
            moved = None if tier is None else tier_of(tier)
            new = memory.update(identifier, text, moved, value=beside)


def search(
    folder: BankFolder,
    agent: Whose,
    words: Annotated[list[str], Argument(metavar="QUERY", help="The words to search for.")],
    limit: Annotated[
        int | None,
        Option(
            "--limit",
            "-l",
            min=1,
            help="At most this many memories; without it, memory.default_limit.",
        ),
    ] = None,
    tiers: Annotated[list[str] | None, Option("--tier", help="Only memories in this tier.")] = None,
    temperatures: Annotated[
        list[str] | None, Option("--temperature", help="Only memories that are hot, warm or cold.")
    ] = None,
    kinds: Annotated[list[str] | None, Option("--kind", help="Only memories of this kind.")] = None,
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
    filters: Annotated[
        list[str] | None,
        Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Only memories with this value of metadata, or conditions as JSON.",
        ),
    ] = None,
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
    given = {"tier": tiers, "temperature": temperatures, "kind": kinds, "tags": tags}
    only: dict[str, Any] = {name: values for name, values in given.items() if values}
    if filters:
        only["filters"] = {"$and": [condition(each) for each in filters]}
    if context and (only or include_cold or min_score is not None):
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
    query = " ".join(words)
    with copied_with_notes(folder, agent) as (bank, _, _):
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        only |= {"min_score": min_score, "include_cold": include_cold}
        if explain:
            options = {"everything": True, "as_json": as_json, "context": context, **only}
            options["include_groups"] = include_groups
            explained(memory, bank.tick, query, limit, **options)
            return
        if context:
            (hits,) = bank.context_many([(agent, query)], limit)
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
            "tier": TIER_NAMES[hit.memory.tier],
            "memory": hit.memory.content,
        }
        for hit in hits
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

    `tiermem restore` brings them back within retention.grace; then they are purged. With --purge
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
        back = join(["tiermem", "restore", str(folder), "--agent", agent, *chosen])
        say(f"for {counted(grace, 'tick')} (retention.grace), this brings {it} back: {back}")


def restore(
    folder: BankFolder, agent: Whose, memory_ids: MemoryIds, as_json: AsJson = False
) -> None:
    """Make deleted or archived memories of an agent active again: all that are named, or none.

    They have the tier and the temperature that they had. What was deleted can be restored within
    retention.grace. If a tier is full, its oldest memory moves one tier down, or the command
    fails: memory.on_tier_full decides.
    """
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        chosen = dict.fromkeys(full_id(bank, agent, each) for each in memory_ids)
        before = ranked(memory)
        with bank.transaction():
            for each in chosen:
                memory.update(each, retention="active")
        back = [memory.get(each) for each in chosen]  # one may have made room for another
        if as_json:
            from ....tools.shapes import shown

            echo_json({"restored": [shown(bank.engine, each) for each in back]})
            return
        for active in back:
            say_memory(memory, active, "has")
        say_room(memory, before, set(chosen))
