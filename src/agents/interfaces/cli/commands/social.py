"""Commands between agents: tell, believe, group."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ....errors import InvalidInput
from ..banks import MemoryId, changed, check_agent, copied, full_id, shown_id, storing
from ..options import AsJson, BankFolder, Whose
from ..output import echo_json, say, table
from .memories import vacuum_advice

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....memory.sources import Told


def tell(
    folder: BankFolder,
    agent: Whose,
    memory_id: MemoryId,
    to: Annotated[list[str] | None, Option("--to", help="Whom it tells; can be repeated.")] = None,
    as_tier: Annotated[
        str | None, Option("--tier", help="The tier of the copies; any but pinned.")
    ] = None,
    note: Annotated[str | None, Option(help="What the teller says about it.")] = None,
    retract: Annotated[
        bool, Option("--retract", help="Take it back from all that were told it.")
    ] = False,
    correction: Annotated[
        str | None, Option(metavar="TEXT", help="With --retract: what is true instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let an agent tell others a memory: each gets a copy that says who told it.

    What a listener knows from the same origin already is counted, and not stored again. The bank
    must have the listeners.
    """
    if retract == bool(to) or (correction is not None and not retract):
        raise InvalidInput("give --to, or --retract, with which --correction goes")
    if retract and (as_tier is not None or note is not None):
        raise InvalidInput("--tier and --note go with --to", hint="leave them out")
    with changed(folder) as bank:
        for each in (agent, *(to or ())):
            check_agent(bank, folder, each)
        memory, identifier = bank.agent(agent), full_id(bank, agent, memory_id)
        with storing(bank, lambda: _say_told(agent, told, as_json)):
            if retract:
                told = memory.social.retract(identifier, correction)
            else:
                told = memory.social.broadcast(identifier, to or (), as_tier, note)


def _say_told(agent: str, told: "list[Told]", as_json: bool) -> None:
    if as_json:
        echo_json({"told": [each._asdict() for each in told]})
        return
    if not told:
        say(f"{agent} told nobody: nobody was told it before")
    for each in told:
        more = "" if each.is_new else ", who knew it already"
        say(f"{agent} told {each.listener}{more}")


def believe(
    folder: BankFolder,
    agent: Whose,
    teller: Annotated[str, Argument(metavar="TELLER", help="The agent that tells.")],
    trust: Annotated[
        float | None, Argument(metavar="TRUST", help="From 0 to 1; without it, it is shown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set or show how much an agent trusts what another one tells it.

    With the setting retrieval.trust, the trust multiplies the scores of what was told. The bank
    must have the teller, or something that it told the agent.
    """
    if trust is None:
        with copied(folder, agent) as bank:
            _check_teller(bank, folder, agent, teller)
            trusted = bank.agent(agent).social.trust_of(teller)
    else:
        with changed(folder) as bank:
            check_agent(bank, folder, agent)
            _check_teller(bank, folder, agent, teller)
            bank.agent(agent).social.trust(teller, trust)
            trusted = bank.agent(agent).social.trust_of(teller)
    if as_json:
        echo_json({"agent": agent, "teller": teller, "trust": trusted})
    else:
        say(f"{agent} trusts {teller}: {trusted:g}")


def _check_teller(bank: "MemoryBank", folder: Path, agent: str, teller: str) -> None:
    """Refuse a teller that the bank does not have, and of which the agent knows nothing."""
    memory = bank.agent(agent)
    is_trusted_less = memory.social.trust_of(teller) != 1
    if is_trusted_less or any(
        each.source and each.source.teller == teller for each in memory.all()
    ):
        return  # an import brings what others told, without them
    check_agent(bank, folder, teller)


def group(
    folder: BankFolder,
    name: Annotated[str | None, Argument(metavar="GROUP", help="Its name.")] = None,
    join: Annotated[
        list[str] | None, Option("--join", help="An agent that joins; can be repeated.")
    ] = None,
    leave: Annotated[
        list[str] | None, Option("--leave", help="An agent that leaves; can be repeated.")
    ] = None,
    post: Annotated[str | None, Option(metavar="TEXT", help="Write it to the board.")] = None,
    agent: Annotated[str | None, Option("--agent", "-a", help="With --post: who writes.")] = None,
    forget: Annotated[
        list[str] | None,
        Option(
            "--forget",
            metavar="ID",
            help="A memory of the board that is gone for good, its text too; can be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a group, change its members, write to its board, or show it; list all groups.

    Members find what is on the board by `tiermem search --groups`. The bank must have the agents
    that join. After --forget, `tiermem store vacuum` clears the free space in the files as well;
    what members stored of it is their own.
    """
    if (post is None) != (agent is None):
        raise InvalidInput("--post and --agent go together", hint="give both")
    is_change = bool(join or leave or forget or post is not None)
    if name is None:
        if is_change:
            raise InvalidInput("name the GROUP")
        with copied(folder) as bank:
            rows = [
                {"group": each, "members": ", ".join(bank.group(each).members())}
                for each in bank.groups()
            ]
        table("groups", rows, as_json)
        return
    if is_change:
        _change(folder, name, join or [], leave or [], agent, post, forget or [])
    with copied(folder) as bank:
        _check_group(bank, name)
        board = bank.group(name)
        entries = [
            {
                "id": each.id if as_json else shown_id(each.id),
                "tick": each.created_tick,
                "by": str(each.speaker),
                "text": each.content,
            }
            for each in board.all()
        ]
        members = list(board.members())
    if as_json:
        echo_json({"group": name, "members": members, "board": entries})
    else:
        table(f"{name} ({', '.join(members) or 'nobody'})", entries)
        if forget:
            say(vacuum_advice(folder), err=True)


def _change(
    folder: Path,
    name: str,
    join: list[str],
    leave: list[str],
    agent: str | None,
    post: str | None,
    forget: list[str],
) -> None:
    from ....telling.groups import board_of

    with changed(folder) as bank, bank.transaction():
        for each in join:
            check_agent(bank, folder, each)
        if not join:
            _check_group(bank, name)
        board = bank.group(name, join)
        for each in leave:
            board.leave(each)
        if agent is not None and post is not None:
            board.post(agent, post)
        for identifier in dict.fromkeys(full_id(bank, board_of(name), each) for each in forget):
            board.forget(identifier)


def _check_group(bank: "MemoryBank", name: str) -> None:
    if name not in bank.groups():
        raise InvalidInput(f"there is no group {name}", hint="make it with --join AGENT")
