"""The command that serves a bank over HTTP."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ....errors import ConfigError
from ....memory.requests import check_agent_id
from ....memory.words import counted
from ....packages import needed
from ..banks import check_bank, check_served, served, watched
from ..options import (
    AllowHosts,
    AllowOrigins,
    Assignments,
    BankFolder,
    Config,
    Create,
    Preset,
    Quiet,
    no_nan,
)
from ..output import say
from ..progress import stopping
from ..signals import INTERRUPTED

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank

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
        bank = served(folder, file, preset, assignments, create=create)
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


def check_access(folder: Path, host: str, agent: str | None) -> str:
    """The agents whose memory is served, in words; an error if the service would be unsafe."""
    from ... import tokens
    from ...http.access import is_loopback

    granted, had_tokens = tokens.grants(folder), tokens.are_needed(folder)
    how = f"make one with: tiermem token create {quote(str(folder))} --agent NAME"
    if granted and agent is not None:
        raise ConfigError(f"{folder} has tokens, which say who asks", hint="leave --agent out")
    if granted:
        agents = dict.fromkeys(each.agent_id for each in granted)
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
