"""Commands that serve a bank: serve over HTTP, mcp to MCP clients, and token."""

import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ....errors import BankError, ConfigError, InvalidInput
from ....memory.requests import check_agent_id
from ....memory.scopes import check_scope
from ....memory.words import counted
from ....packages import missing, needed
from ....storage.files import make_folder
from ... import tokens
from ..banks import check_bank, check_served, served, watched
from ..failures import INTERRUPTED
from ..options import (
    AllowHosts,
    AllowOrigins,
    AsJson,
    Assignments,
    BankFolder,
    Config,
    Create,
    Preset,
    Profile,
    Quiet,
    no_nan,
)
from ..output import say, table
from ..progress import stopping

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank
    from ....tools.operations import Permission


_MOST_SECONDS, _MOST_REQUESTS = 86_400, 1_000_000
_SECONDS_TO_CLOSE = 2.0


def serve(
    folder: BankFolder,
    host: Annotated[str, Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    agent: Annotated[
        str | None,
        Option("--agent", "-a", help="Without tokens: the agent whose memory is served."),
    ] = None,
    file: Config = None,
    preset: Preset = None,
    profile: Profile = None,
    assignments: Assignments = None,
    create: Create = False,
    hosts: AllowHosts = None,
    origins: AllowOrigins = None,
    rate: Annotated[
        float,
        Option(
            min=0.1,
            max=_MOST_REQUESTS,
            callback=no_nan,
            help="Requests per second for each token.",
        ),
    ] = 100.0,
    timeout: Annotated[
        float,
        Option(
            metavar="SECONDS",
            min=1,
            max=_MOST_SECONDS,
            callback=no_nan,
            help="The longest time that a request may take.",
        ),
    ] = 30.0,
    quiet: Quiet = False,
) -> None:
    """Serve a bank over HTTP, until Ctrl-C.

    A client needs a token (`tiermem token create`), which opens the memory of one agent.
    /openapi.json describes the operations. Without tokens, --agent serves the memory of one agent
    to this machine alone.

    --config, --preset and --set change the settings of the bank for this server. Ctrl-C or SIGTERM
    lets running requests finish and closes the bank; a second Ctrl-C ends the server at once, and
    mem0's store catches up when the bank is opened again.
    """
    http = _http()
    check_bank(folder, create, "--create makes one")
    agents = check_access(folder, host, agent)
    door, names = http.TokenDoor(folder, agent), http.Names(host, hosts or (), origins or ())
    limits = http.Limits(rate=rate, seconds=timeout)
    with http.listen(host, port) as sock, _logging(quiet), stopping() as asked_to_stop:
        bank = served(folder, file, preset, assignments, profile, create=create)
        try:
            check_served(bank, folder)
            say(f"serving {folder} on {http.address(host, sock)} for {agents}")
            sys.stdout.flush()
            with watched(bank):
                http.serve(bank, door, names, sock, limits=limits, asked_to_stop=asked_to_stop)
        except KeyboardInterrupt:
            _close_at_once(bank)
            raise
        finally:
            bank.close()


def _close_at_once(bank: "MemoryBank") -> None:
    """Close the bank without writing to mem0's store; the process ends within two seconds.

    All acknowledged changes are committed.
    """
    last = threading.Timer(_SECONDS_TO_CLOSE, os._exit, (INTERRUPTED,))
    last.daemon = True
    last.start()
    bank.close(sync=False)


def _http() -> ModuleType:
    with needed("to serve a bank", "starlette", "uvicorn"):
        from ...http import server
    return server


def _permission(read_only: bool, tell: bool, advance: bool) -> "Permission":
    """What a client may do: the most that one of the options allows."""
    if read_only:
        return "read"
    return "advance" if advance else "tell" if tell else "write"


def check_access(folder: Path, host: str, agent: str | None) -> str:
    """The agents whose memory is served, in words; an error if the service would be unsafe."""
    from ... import tokens
    from ...http.access import is_loopback

    granted, had_tokens = tokens.grants(folder), tokens.are_needed(folder)
    how = f"make one with: tiermem token create {quote(str(folder))} --agent NAME"
    if granted and agent is not None:
        raise ConfigError(f"{folder} has tokens, which say who asks", hint="leave --agent out")
    if granted:
        agents = dict.fromkeys(each.whose for each in granted)
        return f"{', '.join(agents)} ({counted(len(granted), 'token')})"
    if had_tokens:
        raise ConfigError(
            f"every token of {folder} was revoked, and who asks needs one",
            hint=f"{how}; or delete {quote(str(folder / tokens.FILE))}, to serve it without",
        )
    if not is_loopback(host):
        raise ConfigError(f"{host} can be reached by others, and {folder} has no token", hint=how)
    if agent is None:
        raise ConfigError(
            f"{folder} has no token", hint=f"{how}; or let all be one agent with --agent"
        )
    return f"{check_agent_id(agent)} (no token needed on this machine)"


@contextmanager
def _logging(quiet: bool) -> Iterator[None]:
    """Log requests and problems to standard error, or problems alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    levels = {
        "tiermem": logging.WARNING,
        "tiermem.interfaces.http": logging.WARNING if quiet else logging.INFO,
        "uvicorn": logging.WARNING,
    }
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    tops = [logging.getLogger(name) for name in ("tiermem", "uvicorn")]
    for logger in tops:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in tops:
            logger.removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


# MCP


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
    profile: Profile = None,
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
        return served(folder, file, preset, assignments, profile, create=create)

    with stopping() as asked_to_stop:
        if not http:
            permission = _permission(read_only, tell, advance)
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
            server = make_server(lambda _: access, profile=bank.settings.profile)
            serve(server, shared, incoming, outgoing, asked_to_stop)
            asyncio.run(agent.run(lambda _: None))  # waits for all that was begun


# Tokens


def create_token(
    folder: BankFolder,
    agent: Annotated[
        str | None,
        Option(
            "--agent",
            "-a",
            help="The agent whose memory it is; in a project, without it, any agent there.",
        ),
    ] = None,
    project: Annotated[
        str | None, Option("--project", help="The project that the agent is in.")
    ] = None,
    environment: Annotated[
        str | None, Option("--environment", help="Its environment, such as production.")
    ] = None,
    read_only: Annotated[
        bool, Option("--read-only", help="A token that can read and search, not change.")
    ] = False,
    advance: Annotated[
        bool,
        Option("--advance", help="A token that can also move the clock, for all agents."),
    ] = False,
    tell: Annotated[
        bool,
        Option("--tell", help="A token that can also tell other agents, and write to boards."),
    ] = False,
    name: Annotated[str | None, Option(help="The token's name; without it, the agent's.")] = None,
    make: Annotated[
        bool, Option("--create", help="Make the folder, for `tiermem serve --create`.")
    ] = False,
) -> None:
    """Make a token for an agent, and print it.

    The token is printed this once: the bank keeps only its hash. A running server accepts it at
    once.

    What is in one project or environment is not found from another one. With --project or
    --environment and without --agent, a token reaches any agent in them: each request names one in
    the header X-End-User-ID.
    """
    if read_only and advance:
        raise InvalidInput(
            "a token that only reads moves no clock", hint="leave out --read-only or --advance"
        )
    if read_only and tell:
        raise InvalidInput(
            "a token that only reads tells nothing", hint="leave out --read-only or --tell"
        )
    scope = check_scope(project, environment)
    check_bank(folder, make, "--create makes the folder for one")
    try:
        make_folder(folder)
    except OSError as error:
        raise BankError(
            f"{folder} can't hold a bank: {error.strerror or error}", hint="name another folder"
        ) from None
    permission = _permission(read_only, tell, advance)
    token, made = tokens.create(folder, agent, permission, name, scope=scope)
    say(token)
    verb = "read" if read_only else "write"
    more = ", and tell other agents" if tell or advance else ""
    more += ", and move the clock of the bank" if advance else ""
    say(
        f"the token {made.name} lets its bearer {verb} the memory of {made.whose}{more}; "
        "it is not shown again",
        err=True,
    )


def list_tokens(folder: BankFolder, as_json: AsJson = False) -> None:
    """List the names, agents and permissions of all tokens, but not the tokens themselves.

    A token without an agent reaches any agent of its project and environment.
    """
    from ....bank.history import no_bank

    if not folder.is_dir():
        raise no_bank(folder)
    rows = [
        {
            "name": each.name,
            "agent": each.agent_id or None,
            "permission": each.permission,
            "project": each.scope.project or None,
            "environment": each.scope.environment or None,
        }
        for each in tokens.grants(folder)
    ]
    table(f"{folder}: tokens", rows, as_json)


def revoke_token(
    folder: BankFolder,
    name: Annotated[str, Argument(metavar="NAME", help="The token's name.")],
) -> None:
    """Revoke a token, at once and for good.

    A bank whose tokens are all revoked lets nobody in. To serve it without tokens again, delete
    tokens.json in the bank's folder and restart the server.
    """
    tokens.revoke(folder, name)
    say(f"revoked {name}")
