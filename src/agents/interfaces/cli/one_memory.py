"""How commands name a memory, and what they say about one that they changed."""

import sys
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ...errors import InvalidInput
from ...memory.records import id_prefix, sequence_of, short_id, whole_id
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, Retention
from ...memory.words import counted, first_of
from .banks import past
from .output import echo_json, say

if TYPE_CHECKING:
    from ...bank.agent_memory import AgentMemory
    from ...bank.memory_bank import MemoryBank
    from ...memory.records import Memory

_LENGTH = 36
"""Characters of a whole id."""

MemoryId = Annotated[
    str, Argument(metavar="ID", help="The memory's id, or its last digits as search shows them.")
]
MemoryIds = Annotated[
    list[str],
    Argument(metavar="ID...", help="The memories' ids, or their last digits as search shows them."),
]
WholeIds = Annotated[
    bool, Option("--ids", help="Show whole ids on a terminal, not their last digits.")
]


def full_id(bank: "MemoryBank", agent: str, given: str) -> str:
    """The memory's id, of which ``given`` may be the last digits."""
    return whole_id(id_prefix(bank.settings.seed, agent), given)


def id_in(folder: Path, given: str) -> str:
    """The id of a memory of a run or a bank, where a command takes no agent.

    ``given`` may be AGENT:ID, or the last digits alone if one agent alone has such a memory.
    """
    if len(given) == _LENGTH:
        return given
    whose, _, digits = given.rpartition(":")
    with past(folder) as (bank, agents):
        meant = {
            agent: identifier
            for agent in agents
            if whose in ("", agent)
            and _had(bank, agent, identifier := full_id(bank, agent, digits))
        }
    if len(meant) > 1:
        named = [f"{agent}:{short_id(identifier)}" for agent, identifier in meant.items()]
        raise InvalidInput(
            f"{given!r:.80} may be a memory of {counted(len(meant), 'agent')}",
            hint=f"name one of them: {first_of(named)}",
        )
    return next(iter(meant.values()), given)


def _had(bank: "MemoryBank", agent: str, identifier: str) -> bool:
    """Whether the agent ever had a memory with this id, also one that is gone."""
    number = sequence_of(id_prefix(bank.settings.seed, agent), identifier)
    return number is not None and number < bank.engine.state.block(agent).next_sequence


def shown_id(identifier: str, *, whole: bool = False) -> str:
    """The last digits of an id for a person to type; all of it for a program."""
    return short_id(identifier) if sys.stdout.isatty() and not whole else identifier


def ranked(memory: "AgentMemory") -> "list[Memory]":
    """The memories that a full tier can move down."""
    return [*memory.all("pinned"), *memory.all("critical")]


def tell_change(
    memory: "AgentMemory", changed: "Memory", before: "list[Memory]", verb: str, as_json: bool
) -> None:
    """Print the changed memory, and the memories that made room for it."""
    from ...tools.shapes import shown

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
    for each in before:
        now = memory.find(each.sequence)
        if now is None or now.retention is not Retention.ACTIVE or now.id in changed:
            continue
        if now.tier is not each.tier:
            full = TIER_NAMES[each.tier]
            say(f"  {full} was full, so this is {TIER_NAMES[now.tier]} now: {now.content}")


def vacuum_advice(folder: Path) -> str:
    """What to do after memories were purged."""
    vacuum = join(["tiermem", "store", "vacuum", str(folder)])
    return f"free space of files may still have the text until: {vacuum}"
