"""The command that serves an agent's memory to MCP clients."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ....errors import BankNotFound, ConfigError, InvalidInput
from ..options import Assignments, Config, Preset
from ..progress import stopping
from .care import BankFolder

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank

__all__ = ["mcp"]

_HOST, _PORT, _RATE = "127.0.0.1", 8766, 100


def mcp(
    folder: BankFolder,
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="Whose memory; needed where no token says it."),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP, not the standard streams.")
    ] = False,
    host: Annotated[
        str | None, typer.Option("--host", help=f"http: the address to listen on; {_HOST} if not.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help=f"http: the port; {_PORT} if not, 0 any."),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="http: another name it is reached by."),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="http: web pages that may ask."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", min=0.1, max=1e6, help=f"http: requests a second and token; {_RATE} if not."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only what changes nothing.")
    ] = False,
    create: Annotated[
        bool, typer.Option("--create", help="Make the bank, if there is none.")
    ] = False,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
) -> None:
    """Serve an agent's memory to MCP clients: tools, resources and prompts.

    - `tiermem mcp BANK --agent A` speaks over standard input and output, for a client that starts
    it, and ends with its input.

    - `… --http` listens on http://127.0.0.1:8766/mcp. Whoever asks needs a token (`tiermem token
    create`), which says whose memory it is. A bank that never had a token is served to this
    machine alone, as --agent's.

    Ctrl-C, or SIGTERM, ends it too. What was answered is kept, however it ends. --config, --preset
    and --set go on top of the settings that the bank was made with.
    """
    only_http = {
        "--host": host,
        "--port": port,
        "--allow-host": hosts,
        "--allow-origin": origins,
        "--rate": rate,
    }
    _check(agent, http, only_http)
    if not create and not (folder / "journal.db").is_file():
        raise BankNotFound(f"there is no bank in {folder}", hint="--create makes one")
    service = _Service(
        folder,
        agent,
        read_only,
        host or _HOST,
        _PORT if port is None else port,
        tuple(hosts or ()),
        tuple(origins or ()),
        rate or _RATE,
    )

    def opened() -> "MemoryBank":
        from ....bank.memory_bank import MemoryBank

        return MemoryBank.open(
            folder, file, preset=preset, assignments=assignments or (), create=create
        )

    with stopping() as asked_to_stop:
        (_over_http if http else _over_streams)(service, opened, asked_to_stop)


class _Service(NamedTuple):
    folder: Path
    agent: str | None
    read_only: bool
    host: str
    port: int
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    rate: float


def _check(agent: str | None, http: bool, only_http: Mapping[str, object]) -> None:
    from ....memory.checks import check_agent_id

    if importlib.util.find_spec("mcp") is None:
        raise ConfigError(
            "to serve MCP clients needs the library mcp, which is not installed",
            hint="pip install 'tiermem[mcp]'",
        )
    for name, value in only_http.items():
        if value is not None and not http:
            raise InvalidInput(f"{name} goes with --http", hint="give --http, or leave it out")
    if agent is not None:
        check_agent_id(agent)
    elif not http:
        raise InvalidInput("whose memory?", hint="give --agent")


def _over_streams(
    service: _Service, opened: "Callable[[], MemoryBank]", asked_to_stop: Callable[[], bool]
) -> None:
    import asyncio

    from ....bank.async_bank import AsyncMemoryBank
    from ...mcp.server import Access, make_server
    from ...mcp.stdio import serve, wire

    if sys.stdin.isatty():
        typer.echo("waiting for an MCP client on standard input; Ctrl-C ends it", err=True)
    with wire() as (incoming, outgoing), ExitStack() as last:
        bank = opened()
        # A client kills what is slow to end, and mem0's store may not survive that. It is brought
        # up to date when the bank is opened again.
        last.callback(bank.close, sync=False)
        agent = AsyncMemoryBank(bank).agent(service.agent or "")
        access = Access(agent, may_write=not service.read_only)
        serve(make_server(lambda _: access), incoming, outgoing, asked_to_stop)
        asyncio.run(agent.run(lambda _: None))  # its turn comes after all that was begun


def _over_http(
    service: _Service, opened: "Callable[[], MemoryBank]", asked_to_stop: Callable[[], bool]
) -> None:
    from ...http.access import Door, Names
    from ...http.limits import Limits
    from ...http.server import address, listen
    from ...mcp import http as mcp_http
    from .serve import check_access

    agents = check_access(service.folder, service.host, service.agent)
    door = Door(service.folder, service.agent)
    names = Names(service.host, service.hosts, service.origins)
    with listen(service.host, service.port) as sock, opened() as bank:
        where = address(service.host, sock) + mcp_http.PATH
        typer.echo(f"serving {service.folder} on {where} for {agents}", err=True)
        mcp_http.serve(
            bank,
            door,
            names,
            sock,
            read_only=service.read_only,
            limits=Limits(rate=service.rate),
            asked_to_stop=asked_to_stop,
        )
