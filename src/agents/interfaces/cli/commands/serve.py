"""The command that serves a bank over HTTP."""

import logging
import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Assignments, Config, Preset, Quiet
from .care import BankFolder

if TYPE_CHECKING:
    from ....bank.memory_bank import MemoryBank

__all__ = ["check_access", "serve"]

_MOST_SECONDS, _MOST_REQUESTS = 86_400, 1_000_000
_INTERRUPTED, _SECONDS_TO_CLOSE = 130, 2.0


def _number(value: float) -> float:
    if math.isnan(value):  # which older versions of Typer find neither too small nor too large
        raise typer.BadParameter("nan is not a number.")
    return value


def serve(
    folder: BankFolder,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any that is free.")
    ] = 8765,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent", "-a", help="Every request is this agent's, if there never was a token."
        ),
    ] = None,
    file: Config = None,
    preset: Preset = None,
    assignments: Assignments = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the bank, if there is none.")
    ] = False,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name that it is reached by."),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="Pages that may ask from a browser."),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            min=0.1,
            max=_MOST_REQUESTS,
            callback=_number,
            help="Requests per second and token.",
        ),
    ] = 100.0,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=1,
            max=_MOST_SECONDS,
            callback=_number,
            help="Seconds until a request is given up.",
        ),
    ] = 30.0,
    quiet: Quiet = False,
) -> None:
    """Serve a bank over HTTP, until Ctrl-C.

    Whoever asks needs a token (`tiermem token create`), which stands for one agent: its memories
    are all that the bearer reaches. /openapi.json describes the operations. A bank that never had a
    token is served to this machine alone, and as one agent's, with --agent.

    --config, --preset and --set go on top of the settings that the bank was made with. Ctrl-C, or
    SIGTERM, lets running requests finish and closes the bank; a second one ends it at once, and
    mem0's store catches up when the bank is opened again.
    """
    from ....bank.memory_bank import MemoryBank
    from ....errors import BankNotFound
    from ..progress import stopping

    http = _http()
    if not create and not (folder / "journal.db").is_file():
        raise BankNotFound(f"there is no bank in {folder}", hint="--create makes one")
    agents = check_access(folder, host, agent)
    door, names = http.Door(folder, agent), http.Names(host, hosts or (), origins or ())
    limits = http.Limits(rate=rate, seconds=timeout)
    with http.listen(host, port) as sock, _logging(quiet), stopping() as asked_to_stop:
        bank = MemoryBank.open(
            folder, file, preset=preset, assignments=assignments or (), create=create
        )
        try:
            typer.echo(f"serving {folder} on {http.address(host, sock)} for {agents}")
            sys.stdout.flush()
            http.serve(bank, door, names, sock, limits=limits, asked_to_stop=asked_to_stop)
        except KeyboardInterrupt:
            _close_at_once(bank)
            raise
        finally:
            bank.close()


def _close_at_once(bank: "MemoryBank") -> None:
    """Close the bank but for mem0's store; whatever still runs, the process ends soon.

    What was acknowledged is committed, and nothing else was promised.
    """
    last = threading.Timer(_SECONDS_TO_CLOSE, os._exit, (_INTERRUPTED,))
    last.daemon = True
    last.start()
    bank.close(sync=False)


def _http() -> ModuleType:
    from ....errors import ConfigError

    try:
        from ...http import server
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] == "tiermem":
            raise
        raise ConfigError(
            f"to serve a bank needs {missing.name}, which is not installed",
            hint="pip install 'tiermem[http]'",
        ) from missing
    return server


def check_access(folder: Path, host: str, agent: str | None) -> str:
    """Who will be let in, in words; or why nobody must be."""
    from ....errors import ConfigError
    from ....memory.checks import check_agent_id
    from ... import tokens
    from ...http.access import is_loopback

    granted, had_tokens = tokens.grants(folder), tokens.are_needed(folder)
    how = f"make one with: tiermem token create {quote(str(folder))} --agent NAME"
    if granted and agent is not None:
        raise ConfigError(f"{folder} has tokens, which say who asks", hint="leave --agent out")
    if granted:
        agents = dict.fromkeys(each.agent_id for each in granted)
        return f"{', '.join(agents)} ({len(granted)} token{'s' * (len(granted) != 1)})"
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
    """Requests and problems on standard error, or only problems."""
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
