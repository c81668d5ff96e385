"""Commands that take memories away and bring them back: forget, restore."""

from shlex import join
from typing import Annotated

from typer import Option

from ....memory.words import counted
from ..banks import changed, check_agent
from ..one_memory import MemoryIds, full_id, ranked, say_memory, say_room, vacuum_advice
from ..options import AsJson, BankFolder, Whose
from ..output import echo_json, say


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
    nothing brings them back, and `tiermem vacuum` clears the free space in the files as well.
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
