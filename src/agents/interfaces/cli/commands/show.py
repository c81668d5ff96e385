"""Commands that look at runs and banks: show, diff, report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import BankError, ConfigError
from ....memory.tiers import RETENTION_NAMES, TEMPERATURE_NAMES, TIER_NAMES, parse_tier
from ....memory.words import counted
from ....notes.transcripts import length_of
from ..banks import WholeIds, copied, full_id, past, shown_id
from ..options import AsJson, tier_of
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....bank.agent_memory import AgentMemory
    from ....bank.memory_bank import MemoryBank
    from ....memory.records import Memory
    from ....simulation.protocols import Persona


def show(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="The folder of a run, or of a bank; or a checkpoint.")
    ],
    agent: Annotated[
        str | None, Option("--agent", "-a", help="The agent whose memory it is.")
    ] = None,
    tick: Annotated[
        int | None,
        Option(
            "--tick",
            "-t",
            min=0,
            help="Show the memory after this tick; without it, after the last.",
        ),
    ] = None,
    tiers: Annotated[
        list[str] | None, Option("--tier", help="Only memories in this tier; can be repeated.")
    ] = None,
    text: Annotated[
        str | None, Option(help="Only memories whose text has this, in capitals or not.")
    ] = None,
    last: Annotated[
        int | None, Option(metavar="N", min=1, help="Only the newest N of these memories.")
    ] = None,
    query: Annotated[
        str | None,
        Option(
            help="Show what the agent is given for this query after the tick, and why: pinned, hot "
            "and found memories."
        ),
    ] = None,
    key: Annotated[
        str | None,
        Option(
            metavar="KEY",
            help="Show all that the agent stored under a key, or under that of the memory with "
            "this id, oldest first, and since which tick each held.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        Option("--limit", "-l", min=0, help="With --query: find at most this many memories."),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="With --query: list the memories that don't match, too.")
    ] = False,
    ids: WholeIds = False,
    as_json: AsJson = False,
) -> None:
    """Show the memory of an agent as it was after a tick; without --agent, list the agents.

    The agent's notes follow its memories, unless --tier, --text or --last choose memories; with
    --json, notes are rows that have a `note`. The command reads a copy: the run or the bank can be
    in use. Of a checkpoint's file, it shows the tick, the agents and what was given as `extra`.
    """
    is_choice = bool(tiers) or text is not None or last is not None
    if key is not None:
        if agent is None or is_choice or (tick, query) != (None, None):
            raise ConfigError(
                "--key asks for all versions of one agent's memory",
                hint="give --agent NAME with it, and no --tick, --query, --tier, --text or --last",
            )
        _versions(folder, agent, key, as_json)
        return
    if query is None and (limit is not None or everything):
        raise ConfigError(
            f"{'--all' if limit is None else '--limit'} belongs to --query, which is missing",
            hint="give --query TEXT, or leave it out",
        )
    if folder.is_file():
        if is_choice or (agent, tick, query) != (None, None, None):
            raise ConfigError(
                "--agent, --tick and the like look into a bank or a run, and this is a file",
                hint="without them, show tells what a checkpoint holds",
            )
        _show_checkpoint(folder, as_json)
        return
    if is_choice and (agent is None or query is not None):
        raise ConfigError(
            "--tier, --text and --last choose among all memories of one agent",
            hint="give --agent NAME, and leave out --query",
        )
    with past(folder, tick) as (bank, names):
        if agent is None and query is not None:
            raise ConfigError(
                "--query asks one agent's memory, and --agent is missing", hint="give --agent NAME"
            )
        if agent is None:
            counts = {name: bank.agent(name).count() for name in bank.agents()}
            personas = _personas(folder)
            rows = [
                {
                    "agent": name,
                    "memories": count,
                    **({"persona": who.shown()} if (who := personas.get(name)) else {}),
                }
                for name, count in counts.items()
            ]
            table(f"{folder} after tick {bank.tick}", rows, as_json)
            return
        if agent not in names:
            raise BankError(
                f"{folder} has no agent {agent!r:.60} after tick {bank.tick}",
                hint=f"list its agents with: tiermem show {quote(str(folder))}",
            )
        memory = bank.agent(agent)
        if query is not None:
            options = {"everything": everything, "as_json": as_json, "context": True}
            explained(memory, bank.tick, query, limit, **options)
            return
        if not as_json and (who := _personas(folder).get(agent)):
            say(f"{agent}: {who.shown()}")
        memories = memory.all()
        chosen = _chosen(memories, tiers or (), text, last)
        rows = [
            {
                "id": each.id if as_json else shown_id(each.id, whole=ids),
                "tier": TIER_NAMES[each.tier],
                "created": each.created_tick,
                "in tier since": each.tier_tick,
                "memory": each.content,
                "temperature": TEMPERATURE_NAMES[each.temperature],
                **_flags(memory, each, as_json),
            }
            for each in chosen
        ]
        title = f"{agent} after tick {bank.tick}"
        notes = [] if is_choice else _note_rows(bank, agent)
        if as_json:
            table(title, [*rows, *notes], as_json)
            return
        number = f"{len(rows):,} of {len(memories):,}" if is_choice else f"{len(rows):,}"
        table(f"{title}: {number} memories", rows, as_json)
        for each in chosen:
            for flag in memory.links(each.id).flags:
                say(f"the insight {shown_id(each.id, whole=ids)}: {flag}")
        if notes:
            table(f"{title}: {len(notes)} notes", notes, as_json)


def _personas(folder: Path) -> "Mapping[str, Persona]":
    """Who the agents of a run are; nothing for a bank."""
    if not (folder / "run.json").is_file():
        return {}
    from ....simulation.runs.folder import places_of_code, read_folder
    from ....simulation.runs.personas import personas_of

    settings, about = read_folder(folder)
    return personas_of(settings, *places_of_code(folder, about))


def _versions(folder: Path, agent: str, key: str, as_json: bool) -> None:
    """Show all that an agent stored under a key."""
    with copied(folder, agent) as bank:
        memory = bank.agent(agent)
        versions = memory.history(key) or memory.history(full_id(bank, agent, key))
        if as_json:
            from ....tools.shapes import shown

            echo_json({"results": [shown(bank.engine, each) for each in versions]})
            return
        rows = [
            {
                "id": shown_id(each.id),
                "since tick": each.created_tick,
                "tier": TIER_NAMES[each.tier],
                "retention": RETENTION_NAMES[each.retention],
                "memory": each.content,
            }
            for each in versions
        ]
    table(f"{agent}: {key}", rows)


def _chosen(
    memories: "list[Memory]", tiers: Sequence[str], text: str | None, last: int | None
) -> "list[Memory]":
    """The newest ``last`` memories of one of the tiers with the text, oldest first."""
    wanted = {parse_tier(tier_of(each)) for each in tiers}
    part = (text or "").casefold()
    fitting = [
        each
        for each in memories
        if (not wanted or each.tier in wanted) and part in each.content.casefold()
    ]
    return fitting if last is None else fitting[-last:]


def _flags(memory: "AgentMemory", each: "Memory", as_json: bool) -> dict[str, Any]:
    """For JSON, the evidence of an insight, and what speaks against it."""
    if not as_json or not each.evidence:
        return {}
    return {"evidence": list(each.evidence), "flags": memory.links(each.id).flags}


def _show_checkpoint(path: Path, as_json: bool) -> None:
    from ....storage import checkpoint
    from ....telling.groups import group_of

    saved = checkpoint.read(path)
    owners = [row.agent for row in saved.agents]
    agents = [name for name in owners if group_of(name) is None]
    if as_json:
        about = {"checkpoint": str(path), "tick": saved.tick, "agents": agents}
        echo_json({**about, "extra": saved.extra})
        return
    say(f"{path}: a checkpoint after tick {saved.tick}, with {counted(len(agents), 'agent')}")
    for line in json.dumps(saved.extra, indent=2, ensure_ascii=False).splitlines():
        say(line)


def explained(
    memory: "AgentMemory",
    tick: int,
    query: str,
    limit: int | None,
    *,
    everything: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Print what a search for ``query`` gives, and why it gives each memory or not."""
    answers = memory.explain(query, limit, **options)
    near = ("over the token budget", "below the cut")
    shown = [each for each in answers if everything or each.rank or each.reason in near]
    is_classic = any(each.recency or each.importance for each in answers)
    is_trust_cut = any(each.trust != 1 for each in answers)
    is_matched = any(each.match is not None for each in answers)
    is_likely = any(each.relevance_probability is not None for each in answers)
    rows = [
        {
            "rank": each.rank,
            "score": round(each.score, 4),
            **(
                {"recency": round(each.recency, 4), "importance": round(each.importance, 4)}
                if is_classic
                else {}
            ),
            **({"trust": each.trust} if is_trust_cut else {}),
            **({"match": _rounded(each.match)} if is_matched else {}),
            **({"probability": _rounded(each.relevance_probability)} if is_likely else {}),
            "boost": each.boost,
            "total": round(each.boosted_score, 4),
            "why": each.reason,
            "tier": TIER_NAMES[each.memory.tier],
            **({"id": each.memory.id} if as_json else {}),
            "memory": each.memory.content,
            **_flags(memory, each.memory, as_json),
        }
        for each in shown
    ]
    note = next((each.note for each in answers), "")
    if note:
        say(note, err=True)
    table(f"{memory.agent_id} after tick {tick} asks: {query}", rows, as_json)
    if len(shown) < len(answers) and not as_json:
        say(f"and {len(answers) - len(shown)} that were not candidates; --all lists them")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _note_rows(bank: "MemoryBank", agent: str) -> list[dict[str, Any]]:
    kept = bank.engine.state.block(agent).notes
    return [
        {"note": path, "lines": length_of(path, kept[path])[0]}
        for path in bank.agent(agent).notes.paths()
    ]
