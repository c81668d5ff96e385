"""Which agent a request speaks for, and which host and page it comes from."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from ...adapting import agent_id_of
from ...errors import ConfigError, InvalidInput
from ...memory.requests import check_agent_id
from ...memory.scopes import scope_of
from .. import tokens
from ..tokens import Grant
from .problems import Problem

EVERYBODY = "*"
"""The name of the grant that needs no token; no token can have it."""

NAMED_IN = "X-End-User-ID"
"""The header that names an agent, where a token is of a whole project or environment."""

_NAME = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
_HOST = re.compile(rf"(?P<name>{_NAME})(?::[0-9]{{1,5}})?")
_ORIGIN = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:{_NAME})(?P<port>:[0-9]{{1,5}})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ABSOLUTE = re.compile(rb"https?://(?P<host>[^/?#]*)(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9._~+/=-]+)")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def origin_form(scope: Scope) -> Scope:
    """The request with a path as its target, where it was a URL: ``GET http://localhost/health``.

    The host in the URL takes the place of the Host header (RFC 9112, 3.2.2).
    """
    found = _ABSOLUTE.fullmatch(scope.get("raw_path") or b"")
    if found is None:
        return scope
    path = found["path"] or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {
        **scope,
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "headers": [(b"host", found["host"]), *headers],
    }


class Names:
    """The host names and the origins that a service accepts, against DNS rebinding.

    A browser sends the host it asked for and the origin of the page, and a page can't change
    either. An origin that is not well-formed is a :class:`ConfigError`. ``hint`` is what a refused
    sender may do instead, where no option adds a name.
    """

    def __init__(
        self,
        host: str,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        hint: str | None = None,
    ) -> None:
        self._hint = hint
        own = f"[{host}]" if ":" in host else host
        self._hosts = {each.lower() for each in (own, "localhost", "127.0.0.1", "[::1]", *hosts)}
        self.origins = frozenset(_origin(each) for each in origins)
        """Origins whose pages may send requests, as browsers write them."""

    def check(self, headers: Headers) -> None:
        """403 for a request to another host, or from a page of another origin."""
        hosts = headers.getlist("host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        named = _HOST.fullmatch(host)
        if named is None or not {host, named["name"]} & self._hosts:
            hint = self._hint or "--allow-host adds one"
            raise Problem(
                403, "WrongHost", f"the Host header is not a name of this service; {hint}"
            )
        for origin in headers.getlist("origin"):
            if origin.lower() not in {f"http://{host}", f"https://{host}", *self.origins}:
                hint = self._hint or "--allow-origin adds one"
                raise Problem(403, "WrongOrigin", f"pages of this origin may not ask; {hint}")


def _origin(text: str) -> str:
    """An origin as a browser sends it: in lower case, and without the default port."""
    lower = text.strip().lower().removesuffix("/")
    found = _ORIGIN.fullmatch(lower)
    if found is None:
        raise ConfigError(
            f"--allow-origin {text!r:.80} is not the origin of a page",
            hint="write it like https://app.example or http://localhost:3000, one by one",
        )
    if found["port"] and found["port"] == _DEFAULT_PORTS.get(found["scheme"]):
        return lower.removesuffix(found["port"])
    return lower


class Door(Protocol):
    """Finds what the sender of a request may do."""

    def grant(self, request: Request) -> Grant:
        """What the sender may do; a :class:`Problem` for a sender who may do nothing."""


class TokenDoor:
    """Finds the agent that a request speaks for: by its token, and by nothing else in it.

    Where a token is of a whole project or environment, the request names one of the agents in it.

    If the bank never had a token and an agent is given, every request speaks for that agent. The
    first token ends this for good: revoking the token lets nobody in.
    """

    def __init__(self, folder: Path, agent_id: str | None = None) -> None:
        self.folder = folder
        """The folder of the bank and of its tokens."""
        self._everybody: Grant | None = None
        if agent_id is not None:
            scope = scope_of(check_agent_id(agent_id))
            self._everybody = Grant(EVERYBODY, agent_id, "write", scope)

    def grant(self, request: Request) -> Grant:
        """What the sender may do; 401 for a request without a token, or with an unknown one.

        400 where the token is of a whole project, and the request names no agent.
        """
        if self._everybody and tokens.are_needed(self.folder):
            self._everybody = None  # even if the file of tokens is deleted later
        if self._everybody:
            return self._everybody
        given = request.headers.getlist("authorization")
        if not given:
            raise _unknown("say who you are: Authorization: Bearer tm_…", "")
        bearer = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        found = tokens.check(self.folder, bearer["token"]) if bearer else None
        if found is None:
            raise _unknown(
                "this token is not known here, or was revoked", ', error="invalid_token"'
            )
        return found if found.agent_id else _of_agent(found, request)


def _of_agent(grant: Grant, request: Request) -> Grant:
    """The grant of a token of a whole scope, for the agent whom the request names."""
    named = request.headers.getlist(NAMED_IN)
    if len(named) != 1 or not named[0].strip():
        detail = f"this token is of {grant.scope}: name one of its agents in the header {NAMED_IN}"
        raise Problem(400, "NoAgent", detail)
    try:
        text = named[0].strip().encode("latin-1").decode()
        return grant._replace(agent_id=grant.scope.agent_id(agent_id_of(text)))
    except (InvalidInput, UnicodeError) as error:
        raise Problem(400, "InvalidAgentId", f"{NAMED_IN}: {error!s:.300}") from None


def _unknown(detail: str, error: str) -> Problem:
    challenge = {"WWW-Authenticate": f'Bearer realm="tiermem"{error}'}
    return Problem(401, "Unauthorized", detail, challenge)
