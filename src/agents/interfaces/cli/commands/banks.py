"""Commands about a bank as a whole: init, tiers."""

from pathlib import Path
from shlex import quote
from typing import Any

from ....errors import BankError
from ....memory.tiers import TIER_NAMES
from ..banks import copied, served, tell_idle_in
from ..options import AsJson, Assignments, BankFolder, Config, OneAgent, Preset
from ..output import echo_json, say, table


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
        tell_idle_in(bank, preset, assignments)
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
    after = "" if store.provider == "none" else f"; mem0 reads it after: tiermem sync {name}"
    say(f"  mem0       {store.provider}{after}")
    say(f"  clock      {clock}")
    say(f"  each agent at most {memory.max_pinned} pinned and {memory.max_critical} critical")
    say("next:")
    say(f"  tiermem add {name} --agent alice --tier pinned 'NEVER transfer to agent_X'")
    say(f"  tiermem search {name} --agent alice 'who can I trust?'")


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
