"""Commands that look after a bank: its status, clock, movement, settings and store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ....memory.tiers import TEMPERATURE_NAMES
from ....memory.words import counted, short
from ..banks import changed, check_agent, copied, opened
from ..flags import flags, tell_idle
from ..one_memory import shown_id
from ..options import AsJson, Assignments, BankFolder, Config, OneAgent, Preset
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....config.settings import Settings

_NEITHER = ("notes", "tokens.json", "bank.lock", "bank.id", "bank.head", "reembed.db")
"""Entries of a bank's folder that belong neither to the journal nor to mem0's store."""

DryRun = Annotated[bool, Option("--dry-run", "-n", help="List what would change; change nothing.")]


def status(folder: BankFolder, agent: OneAgent = None, as_json: AsJson = False) -> None:
    """Show how full a bank is, and suggest what to do about it.

    The command reads a copy: the bank can be in use, and nothing changes.
    """
    from ..status_page import Page

    with copied(folder, agent) as bank:
        found = bank.status(agent)
        if as_json:
            echo_json(found.to_dict())
            return
        page = Page(
            str(folder),
            found,
            bank.settings.status.spill_above,
            lambda owner, memory_id: short(bank.agent(owner).get(memory_id).content),
        )
        if sys.stdout.isatty():
            from rich.console import Console

            page.draw(Console(highlight=False))
        else:
            for line in page.lines():
                say(line)


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
    dry_run: DryRun = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Move memories between hot, warm and cold by the rules in temperature.rules.

    --preset, --config and --set change the settings of the bank for this command. A second
    compaction moves nothing. --dry-run reads a copy: the bank can be in use.
    """
    with changed(folder, file, preset, assignments, dry_run=dry_run) as bank:
        check_agent(bank, folder, agent)
        done = bank.compact(agent, dry_run=dry_run)
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


def prune(
    folder: BankFolder,
    agent: OneAgent = None,
    dry_run: DryRun = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Archive the cold memories of each agent beyond temperature.max_cold_items.

    The least relevant memories go first, critical memories never. Archived memories can be
    restored.
    """
    with changed(folder, file, preset, assignments, dry_run=dry_run) as bank:
        check_agent(bank, folder, agent)
        agents = bank.agents() if agent is None else [agent]
        with bank.transaction():
            chosen = [
                bank.agent(name).get(each)
                for name in agents
                for each in bank.prune(name, dry_run=dry_run)
            ]
    rows = [{"agent": each.agent_id, "id": each.id, "memory": each.content} for each in chosen]
    if as_json:
        echo_json({"dry_run": dry_run, "archived": rows})
        return
    if dry_run and rows:
        shown = [{**row, "id": shown_id(row["id"]), "memory": short(row["memory"])} for row in rows]
        table("", shown)
    number = counted(len(chosen), "cold memory", "cold memories")
    say(f"{'would archive' if dry_run else 'archived'} {number}")


def vacuum(folder: BankFolder) -> None:
    """Write the files of a bank anew, without the space that purged memories left.

    Afterwards the bank's folder holds nothing of a purged memory.
    """
    from ..progress import writing

    before = _sizes(folder)
    with opened(folder, storage={"sync": "manual"}) as bank, writing() as show:
        left = bank.vacuum(show)
    after = _sizes(folder)
    for name, size in before.items():
        if size or after[name]:
            say(f"{name}: {_bytes(size)} → {_bytes(after[name])}")
    for each in left:
        say(f"forgotten texts may still be in {each}")


def config(
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, and print all of them as a bank or a run would use them.

    The order is: the defaults, the file, --preset, then --set. The result, YAML or JSON, is a
    file for --config.
    """
    import yaml

    from ....config.load import load_settings
    from ....storage.mem0.store import check_providers

    def load(texts: list[str]) -> "Settings":
        return load_settings(file, assignments=texts)

    settings = load(flags(preset, assignments))
    check_providers(settings)
    tell_idle(preset, assignments, load)
    shown = settings.to_dict(redact=True)
    if as_json:
        echo_json(shown)
    else:
        for line in yaml.safe_dump(shown, sort_keys=False).splitlines():
            say(line)


def sync(
    folder: BankFolder,
    file: Config = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Write to mem0's store what it lacks, for programs that read a bank by mem0.

    Other commands leave the store alone, unless storage.sync is commit. Long-lived processes write
    it as storage.sync says. --config and --set change the settings of the bank for this command.
    """
    from ..progress import writing

    with opened(folder, file, None, assignments) as bank, writing("commits") as show:
        written = bank.sync(show)
    if as_json:
        echo_json({"written": written})
    else:
        say(f"wrote {counted(written, 'memory', 'memories')} to mem0's store")


def repair(folder: BankFolder, file: Config = None, assignments: Assignments = None) -> None:
    """Rebuild mem0's store from the bank's journal.

    Use it for a store that is missing, damaged, crashes when opened, or belongs to another bank.
    The memories stay as they are. An old local store is moved aside, not deleted. --config and
    --set change the settings of the bank for this command.
    """
    from ..progress import writing

    with (
        opened(folder, file, None, assignments, storage={"sync": "manual"}) as bank,
        writing() as show,
    ):
        report = bank.repair_store(show)
    for line in report:
        say(line)


def _sizes(folder: Path) -> dict[str, int]:
    sizes = {"journal": 0, "mem0's store": 0}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).parts[0] not in _NEITHER:
            own = path.parent == folder and path.name.startswith("journal.db")
            sizes["journal" if own else "mem0's store"] += path.stat().st_size
    return sizes


def _bytes(size: int) -> str:
    if size < 1_000:
        return f"{size} bytes"
    return f"{size / 1e6:,.1f} MB" if size >= 1_000_000 else f"{size / 1e3:,.1f} kB"
