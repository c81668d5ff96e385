"""Commands that make a bank and use it: init, add, search, tiers, pin, unpin."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..commit_then_sync import storing
from ..options import AsJson, Assignments, Config, Preset
from ..output import echo_json, table
from .care import BankFolder, _check_agent, _opened
from .inspect import explained

if TYPE_CHECKING:
    from ....bank.agent_memory import AgentMemory
    from ....bank.memory_bank import MemoryBank
    from ....memory.records import Memory, Scalar

__all__ = ["add", "init", "pin", "search", "tiers", "unpin"]

_MOST_STDIN = 4 << 20
"""More than a memory may ever have."""
_SEQUENCE_DIGITS = 12

Whose = Annotated[str, typer.Option("--agent", "-a", metavar="AGENT", help="Whose memory.")]
MemoryId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The memory's id, or its last digits as search shows them."),
]


def init(
    folder: BankFolder,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Make a bank: a folder that holds the memories of any number of agents.

    It keeps the settings that it is made with. A folder that holds anything but notes is refused.
    """
    from ....bank.memory_bank import MemoryBank

    _check_free(folder)
    with MemoryBank.open(folder, file, preset=preset, assignments=assignments or ()) as bank:
        memory, store = bank.settings.memory, bank.settings.store
        embedder = bank.parts.embedder.embedder.name
    if as_json:
        echo_json({"bank": str(folder), "embedder": embedder, "store": store.provider})
        return
    name = quote(str(folder))
    _say(f"made the bank {folder}")
    _say("  memories   journal.db, written with every call")
    _say(f"  embedder   {embedder}")
    _say(f"  mem0       {store.provider}; any mem0.Memory can read it")
    _say(f"  each agent at most {memory.max_pinned} pinned and {memory.max_critical} critical")
    _say("next:")
    _say(f"  tiermem add {name} --agent alice --tier pinned 'NEVER transfer to agent_X'")
    _say(f"  tiermem search {name} --agent alice 'who can I trust?'")


def add(
    folder: BankFolder,
    agent: Whose,
    words: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="What to remember; - reads it from stdin."),
    ],
    tier: Annotated[
        str, typer.Option("--tier", help="pinned, critical, important, normal or low.")
    ] = "normal",
    kind: Annotated[
        str, typer.Option("--kind", help="What sort of memory: fact, decision, preference, …")
    ] = "fact",
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="A label of your own; may be repeated.")
    ] = None,
    temperature: Annotated[
        str | None, typer.Option("--temperature", help="hot, warm or cold; else by the settings.")
    ] = None,
    ttl: Annotated[
        int | None, typer.Option("--ttl", min=1, help="Ticks after which nobody sees it.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="The conversation that it is part of.")
    ] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="Who said it.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--meta", metavar="KEY=VALUE", help="A value of your own; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let an agent remember a text. It is on disk when the command returns.

    Several words are one text. Many memories at once: `tiermem import`. Where a tier is full, its
    oldest memory moves one tier down, or the command fails, as memory.on_tier_full says.

    A VALUE of --meta that is a number, true, false or null is that; anything else is text.
    """
    text = _text(words)
    own = dict(map(_pair, metadata or ()))
    with _opened(folder, False, None, None, None) as bank:
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
    words: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for.")],
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-l", min=1, help="How many; memory.default_limit if not given."),
    ] = None,
    tiers: Annotated[
        list[str] | None, typer.Option("--tier", help="Only of this tier; may be repeated.")
    ] = None,
    temperatures: Annotated[
        list[str] | None, typer.Option("--temperature", help="Only hot, warm or cold ones.")
    ] = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind", help="Only of this kind.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Only with this label.")] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", min=0, max=1, help="How well it must match.")
    ] = None,
    include_cold: Annotated[
        bool, typer.Option("--include-cold", help="Search cold memories, too.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each memory why it is found, or why not.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find an agent's memories, best first; the pinned ones come before all others.

    It looks at a copy, so the bank may be in use, nothing is changed, and the search does not count
    as use of what it finds. A filter that is repeated lets any of its values pass.
    """
    from ....errors import InvalidInput
    from ....memory.tiers import TIER_NAMES

    given = {"tier": tiers, "temperature": temperatures, "kind": kinds, "tags": tags}
    only: dict[str, Any] = {name: values for name, values in given.items() if values}
    if explain and (only or include_cold or min_score is not None):
        raise InvalidInput("--explain shows a search without filters", hint="leave them out, or it")
    if tiers:
        only["tier"] = [_tier(each) for each in tiers]
    query = " ".join(words)
    with _looking(folder, agent) as (bank, memory):
        if explain:
            explained(memory, bank.tick, query, limit, everything=True, as_json=as_json)
            return
        hits = memory.search(query, limit, min_score=min_score, include_cold=include_cold, **only)
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
        _say(hits.note, err=True)
    rows = [
        {
            "id": _shown_id(hit.memory),
            "score": round(hit.score, 4),
            "tier": TIER_NAMES[hit.memory.tier],
            "memory": hit.memory.content,
        }
        for hit in hits
    ]
    table(f"{agent} asks: {query}", rows, False)
    if hidden and len(hits) >= wanted and all(row["tier"] == "pinned" for row in rows):
        _say(
            f"the pinned memories fill the limit of {wanted}; a higher --limit shows others",
            err=True,
        )


def tiers(
    folder: BankFolder,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", metavar="AGENT", help="Only this agent.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the memories in each tier, agent by agent.

    It looks at a copy, so the bank may be in use, and nothing is changed.
    """
    from ....bank.memory_bank import MemoryBank
    from ....memory.tiers import TIER_NAMES

    with MemoryBank.at(folder) as bank:
        _check_agent(bank, folder, agent)
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
    table(f"{folder} after tick {tick}: {caps}", rows, False)


def pin(folder: BankFolder, agent: Whose, memory_id: MemoryId, as_json: AsJson = False) -> None:
    """Pin a memory: it comes with every search, before all others.

    Where the agent has memory.max_pinned of them, the oldest pin moves one tier down.
    """
    _move(folder, agent, memory_id, as_json, to=None)


def unpin(
    folder: BankFolder,
    agent: Whose,
    memory_id: MemoryId,
    to: Annotated[str, typer.Option("--to", metavar="TIER", help="Where it goes.")] = "normal",
    as_json: AsJson = False,
) -> None:
    """Let a pinned memory be one like others again; one that isn't pinned stays as it is."""
    _move(folder, agent, memory_id, as_json, to=to)


# Banks


def _check_free(folder: Path) -> None:
    from ....errors import BankError

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


@contextmanager
def _looking(folder: Path, agent: str) -> "Iterator[tuple[MemoryBank, AgentMemory]]":
    """A copy of the bank that knows the agent's notes as they are on disk, and the agent."""
    from ....bank.memory_bank import MemoryBank
    from ....notes.opening import look_at_files

    with MemoryBank.at(folder) as bank:
        look_at_files(bank.parts, folder, agent)
        _check_agent(bank, folder, agent)
        yield bank, bank.agent(agent)


def _move(folder: Path, agent: str, memory_id: str, as_json: bool, to: str | None) -> None:
    with _opened(folder, False, None, None, None) as bank:
        _check_agent(bank, folder, agent)
        memory = bank.agent(agent)
        identifier = _full_id(bank, agent, memory_id)
        before = _ranked(memory)
        moved = memory.pin(identifier) if to is None else memory.unpin(identifier, _tier(to))
        _tell(memory, moved, before, "has", as_json)


def _ranked(memory: "AgentMemory") -> "list[Memory]":
    """The memories that a cap may move down."""
    return [*memory.all("pinned"), *memory.all("critical")]


def _full_id(bank: "MemoryBank", agent: str, given: str) -> str:
    """The id that the last digits of one stand for, or what was given."""
    from ....memory.records import id_prefix, memory_id

    if len(given) > _SEQUENCE_DIGITS or not (given.isascii() and given.isalnum()):
        return given
    try:
        return memory_id(id_prefix(bank.settings.seed, agent), int(given, 16))
    except ValueError:
        return given


# Arguments


def _text(words: list[str]) -> str:
    from ....errors import InvalidInput

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
    import json

    from ....errors import InvalidInput

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


# Output


def _shown_id(memory: "Memory") -> str:
    """Enough of an id for a person to type; all of it where a program reads."""
    return f"{memory.sequence:04x}" if sys.stdout.isatty() else memory.id


def _tell(
    memory: "AgentMemory", changed: "Memory", before: "list[Memory]", verb: str, as_json: bool
) -> None:
    """Say what became of a memory, and of others that had to make room."""
    from ....memory.temperature import TEMPERATURE_NAMES
    from ....memory.tiers import TIER_NAMES
    from ....tools.shapes import memory_json

    if as_json:
        echo_json(memory_json(changed))
        return
    how = f"{TIER_NAMES[changed.tier]}, {TEMPERATURE_NAMES[changed.temperature]}"
    _say(f"{memory.agent_id} {verb} ({how}): {changed.content}")
    _say(f"  id {changed.id}")
    for each in before:
        now = memory.get(each.id)
        if now.tier is not each.tier and now.id != changed.id:
            full = TIER_NAMES[each.tier]
            _say(f"  {full} was full, so this is {TIER_NAMES[now.tier]} now: {now.content}")


def _say(text: str, *, err: bool = False) -> None:
    from ....memory.context import one_line

    typer.echo(one_line(text), err=err)
