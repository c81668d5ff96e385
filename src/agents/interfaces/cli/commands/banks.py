"""Commands about a bank as a whole: making it, its status, clock, movement and settings."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ....errors import BankError, InvalidInput
from ....memory.tiers import TEMPERATURE_NAMES
from ....memory.words import counted, short
from ..banks import changed, check_agent, served, shown_id, tell_idle_in
from ..options import (
    AsJson,
    Assignments,
    BankFolder,
    Config,
    DryRun,
    OneAgent,
    Preset,
    Profile,
    Session,
    flags,
    tell_idle,
)
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....config.settings import Settings
    from ....memory.records import Memory


def init(
    folder: BankFolder,
    file: Config = None,
    preset: Preset = None,
    profile: Profile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Make a bank: a folder that holds the memories of any number of agents.

    The bank keeps the settings that you give here. The folder must be new, or empty but for notes.
    """
    _check_free(folder)
    with served(folder, file, preset, assignments, profile, create=True) as bank:
        tell_idle_in(bank, preset, assignments, profile)
        memory, store, clock = bank.settings.memory, bank.settings.store, bank.settings.clock
        embedder = bank.engine.embedder.embedder.name
    if as_json:
        made = {"bank": str(folder), "embedder": embedder, "store": store.provider}
        echo_json({**made, "clock": {"mode": clock.mode, "ticks_per_day": clock.ticks_per_day}})
        return
    name = quote(str(folder))
    say(f"made the bank {folder}")
    say("  memories   journal.db, written with every call")
    say(f"  embedder   {embedder}")
    after = "" if store.provider == "none" else f"; mem0 reads it after: tiermem store sync {name}"
    say(f"  mem0       {store.provider}{after}")
    say(f"  clock      {clock}")
    say(f"  each agent at most {memory.max_pinned} pinned and {memory.max_critical} critical")
    say("next:")
    say(f"  tiermem add {name} --agent alice --tier pinned 'NEVER transfer to agent_X'")
    say(f"  tiermem search {name} --agent alice 'who can I trust?'")


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


def advance(
    folder: BankFolder,
    to: Annotated[int | None, Option(metavar="TICK", help="The tick to move to.")] = None,
    by: Annotated[int | None, Option(metavar="TICKS", min=0, help="How many ticks.")] = None,
    days: Annotated[
        int | None, Option(min=0, max=1_000_000, help="How many days, of clock.ticks_per_day.")
    ] = None,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Move the clock of a bank, and do what is due by then, in one commit.

    Expired memories are deleted, deleted ones are purged when their grace is over, unused ones fade
    where decay.enabled is true, and temperature.compact_every compacts the bank. --config, --preset
    and --set change the settings of the bank for this command.

    Where clock.mode is wall, time moves the clock by itself. The command moves it ahead, and time
    goes on from there; --by 0 lets the time go on if a wall clock that was wrong stopped it.
    """
    from ....engine.clock import chosen_tick

    with changed(folder, file, preset, assignments) as bank:
        done = bank.pass_time(chosen_tick(bank.engine, to, by, days))
        clock = bank.settings.clock
    if as_json:
        echo_json(done._asdict())
        return
    say(f"{folder} is at tick {done.tick:,}, {counted(done.tick - done.before, 'tick')} later")
    say(
        f"  {done.expired:,} expired, {done.purged:,} purged, {done.promoted:,} became hot, "
        f"{done.cooled:,} became warm or cold, {done.archived:,} archived"
    )
    if clock.mode == "wall":
        say("  the wall clock moves it on from there")


def compact(
    folder: BankFolder,
    agent: OneAgent = None,
    session: Session = None,
    prune: Annotated[
        bool,
        Option(
            "--prune",
            help="Only archive cold memories beyond temperature.max_cold_items: the least relevant "
            "first, critical ones never.",
        ),
    ] = False,
    dry_run: DryRun = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Move memories between hot, warm and cold by the rules in temperature.rules.

    --preset, --config and --set change the settings of the bank for this command. A second
    compaction moves nothing. Archived memories can be restored. --dry-run reads a copy: the bank
    can be in use. At the end of a session, --session moves its memories alone, and prunes nothing.
    """
    if session is not None and (agent is None or prune):
        raise InvalidInput(
            "a session is one agent's, and is not pruned",
            hint="name the agent with --agent, and leave --prune out",
        )
    with changed(folder, file, preset, assignments, dry_run=dry_run) as bank:
        check_agent(bank, folder, agent)
        if prune:
            archived = _pruned(bank, agent, dry_run)
        elif agent is not None:
            done = bank.agent(agent).compact(dry_run=dry_run, session=session)
        else:
            done = bank.compact(agent, dry_run=dry_run)
    if prune:
        _tell_pruned(archived, dry_run, as_json)
        return
    rows = [
        {
            "agent": move.memory.agent_id,
            "id": move.memory.id,
            "from": TEMPERATURE_NAMES[move.memory.temperature],
            "to": TEMPERATURE_NAMES[move.to],
            "rule": move.rule,
            "memory": move.memory.content,
        }
        for move in done.moves
    ]
    if as_json:
        counts = {"hot": done.hot, "warm": done.warm, "cold": done.cold, "pruned": done.pruned}
        echo_json({"dry_run": dry_run, **counts, **({"moves": rows} if dry_run else {})})
        return
    if rows:
        moves = [
            {
                "agent": row["agent"],
                "id": shown_id(row["id"]),
                "move": f"{row['from']} → {row['to']}",
                "rule": row["rule"],
                "memory": short(row["memory"]),
            }
            for row in rows
        ]
        table("", moves)
    verb = "would move" if dry_run else "moved"
    say(f"{verb} {done.hot:,} to hot, {done.warm:,} to warm, {done.cold:,} to cold")
    if done.pruned:
        verb = "would archive" if dry_run else "archived"
        say(f"{verb} {done.pruned:,} cold beyond temperature.max_cold_items")


def _pruned(bank: "MemoryBank", agent: str | None, dry_run: bool) -> "list[Memory]":
    """What of each agent was archived."""
    agents = bank.agents() if agent is None else [agent]
    with bank.transaction():
        return [
            bank.agent(name).get(each)
            for name in agents
            for each in bank.prune(name, dry_run=dry_run)
        ]


def _tell_pruned(chosen: "list[Memory]", dry_run: bool, as_json: bool) -> None:
    rows = [{"agent": each.agent_id, "id": each.id, "memory": each.content} for each in chosen]
    if as_json:
        echo_json({"dry_run": dry_run, "archived": rows})
        return
    if dry_run and rows:
        shown = [{**row, "id": shown_id(row["id"]), "memory": short(row["memory"])} for row in rows]
        table("", shown)
    number = counted(len(chosen), "cold memory", "cold memories")
    say(f"{'would archive' if dry_run else 'archived'} {number}")


def config(
    file: Config = None,
    preset: Preset = None,
    profile: Profile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, and print all of them as a bank or a run would use them.

    The order is: the defaults, --profile, the file, --preset, then --set. The result, YAML or
    JSON, is a file for --config.
    """
    import yaml

    from ....config.load import load_settings
    from ....storage.mem0.store import check_providers

    def load(texts: list[str]) -> "Settings":
        return load_settings(file, assignments=texts)

    settings = load(flags(preset, assignments, profile))
    check_providers(settings)
    tell_idle(preset, assignments, load, profile=profile)
    shown = settings.to_dict(redact=True)
    if as_json:
        echo_json(shown)
    else:
        for line in yaml.safe_dump(shown, sort_keys=False).splitlines():
            say(line)
