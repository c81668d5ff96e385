"""The command that serves an agent's memory to MCP clients."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ....errors import InvalidInput
from ....memory.requests import check_agent_id
from ....packages import missing
from ..banks import check_bank, check_served, served, watched
from ..options import (
    AllowHosts,
    AllowOrigins,
    Assignments,
    BankFolder,
    Config,
    Create,
    Preset,
    no_nan,
)
from ..output import say
from ..progress import stopping
from .serve import check_access

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....tools.operations import Permission

_HOST, _PORT, _RATE = "127.0.0.1", 8766, 100


def mcp(
    folder: BankFolder,
    agent: Annotated[
        str | None, Option("--agent", "-a", help="Without tokens: the agent whose memory it is.")
    ] = None,
    http: Annotated[
        bool, Option("--http", help="Serve streamable HTTP, not standard input and output.")
    ] = False,
    host: Annotated[
        str | None,
        Option(metavar="ADDRESS", help=f"The address to listen on; without it, {_HOST}."),
    ] = None,
    port: Annotated[
        int | None,
        Option(min=0, max=65535, help=f"The port; without it, {_PORT}; 0 takes a free one."),
    ] = None,
    hosts: AllowHosts = None,
    origins: AllowOrigins = None,
    rate: Annotated[
        float | None,
        Option(
            min=0.1,
            max=1e6,
            callback=no_nan,
            help=f"Requests per second for each token; without it, {_RATE}.",
        ),
    ] = None,
    read_only: Annotated[
        bool, Option("--read-only", help="Offer only the tools that change nothing.")
    ] = False,
    tell: Annotated[
        bool,
        Option(
            "--tell", help="Offer the tools that reach other agents; with --http, tokens decide."
        ),
    ] = False,
    advance: Annotated[
        bool,
        Option(
            "--advance", help="Offer the tool that moves the clock; with --http, tokens decide."
        ),
    ] = False,
    create: Create = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
) -> None:
    """Serve an agent's memory to MCP clients: tools, resources and prompts.

    `tiermem mcp BANK --agent A` serves the client that started it, over standard input and output,
    until the input ends.

    `tiermem mcp BANK --http` listens on http://127.0.0.1:8766/mcp. A client needs a token (`tiermem
    token create`), which opens the memory of one agent. Without tokens, --agent serves the memory
    of one agent to this machine alone. --host, --port, --allow-host, --allow-origin and --rate go
    with --http.

    Ctrl-C or SIGTERM ends the server. Answered changes are kept, however it ends. --config,
    --preset and --set change the settings of the bank for this server.
    """
    only_http = {
        "--host": host,
        "--port": port,
        "--allow-host": hosts,
        "--allow-origin": origins,
        "--rate": rate,
    }
    _check(agent, http, only_http)
    if tell and (http or read_only):
        raise InvalidInput(
            "--tell goes neither with --read-only nor with --http, where a token decides",
            hint="make such a token with: tiermem token create BANK --agent NAME --tell",
        )
    if advance and (http or read_only):
        raise InvalidInput(
            "--advance goes neither with --read-only nor with --http, where a token decides",
            hint="make such a token with: tiermem token create BANK --agent NAME --advance",
        )
    check_bank(folder, create, "--create makes one")

    def opened() -> "MemoryBank":
        return served(folder, file, preset, assignments, create=create)

    with stopping() as asked_to_stop:
        if not http:
            permission: Permission = "tell" if tell else "write"
            if read_only or advance:
                permission = "read" if read_only else "advance"
            _over_streams(agent or "", permission, folder, opened, asked_to_stop)
            return

        from ...http.access import Names, TokenDoor
        from ...http.limits import Limits
        from ...http.server import address, listen
        from ...mcp import http as mcp_http

        host = host or _HOST
        agents = check_access(folder, host, agent)
        door, names = TokenDoor(folder, agent), Names(host, hosts or (), origins or ())
        with listen(host, _PORT if port is None else port) as sock, opened() as bank:
            check_served(bank, folder)
            where = address(host, sock) + mcp_http.PATH
            say(f"serving {folder} on {where} for {agents}", err=True)
            with watched(bank):
                mcp_http.serve(
                    bank,
                    door,
                    names,
                    sock,
                    read_only=read_only,
                    limits=Limits(rate=rate or _RATE),
                    asked_to_stop=asked_to_stop,
                )


def _check(agent: str | None, http: bool, only_http: Mapping[str, object]) -> None:
    if importlib.util.find_spec("mcp") is None:
        raise missing("to serve MCP clients", "mcp")
    for name, value in only_http.items():
        if value is not None and not http:
            raise InvalidInput(f"{name} goes with --http", hint="give --http, or leave it out")
    if agent is not None:
        check_agent_id(agent)
    elif not http:
        raise InvalidInput("whose memory?", hint="give --agent")


def _over_streams(
    name: str,
    permission: "Permission",
    folder: Path,
    opened: "Callable[[], MemoryBank]",
    asked_to_stop: Callable[[], bool],
) -> None:
    import asyncio

    from ....bank.async_bank import AsyncMemoryBank
    from ...mcp.server import Access, make_server
    from ...mcp.stdio import serve, wire

    if sys.stdin.isatty():
        say("waiting for an MCP client on standard input; Ctrl-C ends it", err=True)
    with wire() as (incoming, outgoing), ExitStack() as last:
        bank = opened()
        # A client kills a server that is slow to end, and mem0's store may not survive that. The
        # store catches up when the bank is opened again.
        last.callback(bank.close, sync=False)
        check_served(bank, folder)
        shared = AsyncMemoryBank(bank)
        agent = shared.agent(name)
        access = Access(agent, permission)
        with watched(bank):
            serve(make_server(lambda _: access), shared, incoming, outgoing, asked_to_stop)
            asyncio.run(agent.run(lambda _: None))  # waits for all that was begun
