"""Commands that make a bank and use it: init, add, search, tiers, pin, unpin."""

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import BankError, InvalidInput
from ....memory.records import id_prefix, memory_id
from ....memory.temperature import TEMPERATURE_NAMES
from ....memory.tiers import TIER_NAMES
from ..banks import changed, check_agent, copied, copied_with_notes, served, storing
from ..options import AsJson, Assignments, BankFolder, Config, OneAgent, Preset, Whose
from ..output import echo_json, say, table
from .inspect import explained

if TYPE_CHECKING:
    from ....bank.agent_memory import AgentMemory
    from ....bank.memory_bank import MemoryBank
    from ....memory.records import Memory, Scalar

__all__ = ["add", "init", "pin", "search", "tiers", "unpin"]

_MOST_STDIN = 4 << 20
"""Bytes that are read; no memory may have as many."""
_SEQUENCE_DIGITS = 12

MemoryId = Annotated[
    str, Argument(metavar="ID", help="The memory's id, or its last digits as search shows them.")
]


def init(
    folder: BankFolder,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Make a bank: a folder that holds the memories of any number of agents.

    The bank keeps the settings that you give here. The folder must be new, or empty but for notes.
    """
    _check_free(folder)
    with served(folder, file, preset, assignments, create=True) as bank:
        memory, store, clock = bank.settings.memory, bank.settings.store, bank.settings.clock
        embedder = bank.parts.embedder.embedder.name
    if as_json:
        made = {"bank": str(folder), "embedder": embedder, "store": store.provider}
        echo_json({**made, "clock": {"mode": clock.mode, "ticks_per_day": clock.ticks_per_day}})
        return
    name = quote(str(folder))
    say(f"made the bank {folder}")
    say("  memories   journal.db, written with every call")
    say(f"  embedder   {embedder}")
    say(f"  mem0       {store.provider}; mem0 reads it after: tiermem sync {name}")
    say(f"  clock      {clock}")
    say(f"  each agent at most {memory.max_pinned} pinned and {memory.max_critical} critical")
    say("next:")
    say(f"  tiermem add {name} --agent alice --tier pinned 'NEVER transfer to agent_X'")
    say(f"  tiermem search {name} --agent alice 'who can I trust?'")


def add(
    folder: BankFolder,
    agent: Whose,
    words: Annotated[
        list[str], Argument(metavar="TEXT", help="The text of the memory; - reads it from stdin.")
    ],
    tier: Annotated[str, Option(help="pinned, critical, important, normal or low.")] = "normal",
    kind: Annotated[str, Option(help="Such as fact, decision or preference.")] = "fact",
    tags: Annotated[
        list[str] | None, Option("--tag", help="A label of your own; can be repeated.")
    ] = None,
    temperature: Annotated[
        str | None, Option(help="hot, warm or cold; without it the settings decide.")
    ] = None,
    ttl: Annotated[int | None, Option(min=1, help="Ticks after which it expires.")] = None,
    session: Annotated[
        str | None, Option(metavar="NAME", help="The conversation it is part of.")
    ] = None,
    speaker: Annotated[str | None, Option(metavar="NAME", help="Who said it.")] = None,
    metadata: Annotated[
        list[str] | None,
        Option("--meta", metavar="KEY=VALUE", help="A value of your own; can be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store a memory of an agent. It is on disk when the command returns.

    Several words are one text. `tiermem import` stores many memories at once. If the tier is full,
    its oldest memory moves one tier down, or the command fails: memory.on_tier_full decides.

    --meta reads numbers, true, false and null as JSON does, and anything else as text.
    """
    text = _text(words)
    own = dict(map(_pair, metadata or ()))
    with changed(folder) as bank:
        memory = bank.agent(agent)
        before = _ranked(memory)
        with storing(bank, lambda: _tell(memory, new, before, "remembers", as_json)):
            new = memory.add(
                text,
                _tier(tier),
                own,
                kind=kind,
                tags=tags or (),
                temperature=temperature,
                ttl=ttl,
                session=session,
                speaker=speaker,
            )


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
        Option(min=0, max=1, help="Only memories with at least this score, from 0 to 1."),
    ] = None,
    include_cold: Annotated[
        bool, Option("--include-cold", help="Search the cold memories, too.")
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

    --tier, --temperature, --kind and --tag can be repeated: a memory needs one of the values. The
    command reads a copy: the bank can be in use, nothing changes, and the search does not count as
    use of the memories.
    """
    given = {"tier": tiers, "temperature": temperatures, "kind": kinds, "tags": tags}
    only: dict[str, Any] = {name: values for name, values in given.items() if values}
    if context and (only or include_cold or min_score is not None):
        raise InvalidInput(
            "what an agent reads has no filters", hint="leave out --context, or them"
        )
    if tiers:
        only["tier"] = [_tier(each) for each in tiers]
    query = " ".join(words)
    with copied_with_notes(folder, agent) as (bank, _, _):
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        only |= {"min_score": min_score, "include_cold": include_cold}
        if explain:
            options = {"everything": True, "as_json": as_json, "context": context, **only}
            explained(memory, bank.tick, query, limit, **options)
            return
        if context:
            (hits,) = bank.context_many([(agent, query)], limit)
        else:
            hits = memory.search(query, limit, **only)
        if as_json:
            from ....tools.shapes import memory_json

            scores = [{"score": hit.score, "boosted_score": hit.boosted_score} for hit in hits]
            found = [memory_json(hit.memory) for hit in hits]
            rows = [{**one, **score} for one, score in zip(found, scores, strict=True)]
            echo_json({"results": rows, "note": hits.note})
            return
        wanted = bank.settings.memory.default_limit if limit is None else limit
        hidden = memory.count() - len(hits)
    if hits.note:
        say(hits.note, err=True)
    rows = [
        {
            "id": _shown_id(hit.memory),
            "score": round(hit.score, 4),
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


def tiers(
    folder: BankFolder,
    agent: OneAgent = None,
    as_json: AsJson = False,
) -> None:
    """Count the memories in each tier, agent by agent.

    The command reads a copy: the bank can be in use, and nothing changes.
    """
    with copied(folder, agent) as bank:
        counts = {
            each: {name: bank.agent(each).count(tier) for tier, name in TIER_NAMES.items()}
            for each in (bank.agents() if agent is None else [agent])
        }
        limits = bank.settings.memory
        tick = bank.tick
    if as_json:
        most = {"pinned": limits.max_pinned, "critical": limits.max_critical}
        echo_json({"tick": tick, "caps": most, "agents": counts})
        return
    rows: list[dict[str, Any]] = [
        {"agent": each, **own, "all": sum(own.values())} for each, own in counts.items()
    ]
    if len(rows) > 1:
        sums = {key: sum(row[key] for row in rows) for key in rows[0] if key != "agent"}
        rows.append({"agent": "(together)", **sums})
    caps = f"at most {limits.max_pinned} pinned and {limits.max_critical} critical each"
    table(f"{folder} after tick {tick}: {caps}", rows)


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


def _check_free(folder: Path) -> None:
    if (folder / "journal.db").exists():
        raise BankError(
            f"{folder} is a bank already; nothing was changed",
            hint=f"see what is in it with: tiermem status {quote(str(folder))}",
        )
    if (folder / "run.json").exists():
        raise BankError(
            f"{folder} is a run, and its bank is {folder / 'bank'}", hint="choose another folder"
        )
    if folder.is_dir():
        strange = sorted(path.name for path in folder.iterdir() if path.name != "notes")
        if strange:
            raise BankError(
                f"{folder} is not empty: it holds {strange[0]}", hint="choose another folder"
            )


def _move(folder: Path, agent: str, memory_id: str, as_json: bool, to: str | None) -> None:
    with changed(folder) as bank:
        check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        identifier = _full_id(bank, agent, memory_id)
        before = _ranked(memory)
        moved = memory.pin(identifier) if to is None else memory.unpin(identifier, _tier(to))
        _tell(memory, moved, before, "has", as_json)


def _ranked(memory: "AgentMemory") -> "list[Memory]":
    """The memories that a full tier can move down."""
    return [*memory.all("pinned"), *memory.all("critical")]


def _full_id(bank: "MemoryBank", agent: str, given: str) -> str:
    """The memory's id, of which ``given`` may be the last digits."""
    if len(given) > _SEQUENCE_DIGITS or not (given.isascii() and given.isalnum()):
        return given
    try:
        return memory_id(id_prefix(bank.settings.seed, agent), int(given, 16))
    except ValueError:
        return given


def _text(words: list[str]) -> str:
    if words != ["-"]:
        return " ".join(words)
    data = sys.stdin.buffer.read(_MOST_STDIN)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"standard input is not UTF-8 (byte {error.start + 1})", hint="convert it first"
        ) from None


def _tier(text: str) -> str | int:
    return int(text) if text in ("0", "1", "2", "3", "4") else text


def _pair(text: str) -> "tuple[str, Scalar]":
    key, sign, value = text.partition("=")
    if not sign:
        raise InvalidInput(
            f"--meta takes KEY=VALUE; got {text!r:.80}", hint="write it as in --meta source=chat"
        )
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return key, value
    return key, value if isinstance(parsed, list | dict) else parsed


def _shown_id(memory: "Memory") -> str:
    """The last digits of an id for a person to type; all of it for a program."""
    return f"{memory.sequence:04x}" if sys.stdout.isatty() else memory.id


def _tell(
    memory: "AgentMemory", changed: "Memory", before: "list[Memory]", verb: str, as_json: bool
) -> None:
    """Print the changed memory, and the memories that made room for it."""
    from ....tools.shapes import memory_json

    if as_json:
        echo_json(memory_json(changed))
        return
    how = f"{TIER_NAMES[changed.tier]}, {TEMPERATURE_NAMES[changed.temperature]}"
    say(f"{memory.agent_id} {verb} ({how}): {changed.content}")
    say(f"  id {changed.id}")
    for each in before:
        now = memory.get(each.id)
        if now.tier is not each.tier and now.id != changed.id:
            full = TIER_NAMES[each.tier]
            say(f"  {full} was full, so this is {TIER_NAMES[now.tier]} now: {now.content}")
