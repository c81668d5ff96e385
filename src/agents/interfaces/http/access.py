"""Who is asking, and from where."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import Scope

from ...errors import ConfigError
from ...memory.checks import check_agent_id
from .. import tokens
from ..tokens import Grant
from .problems import Problem

__all__ = ["EVERYBODY", "Door", "Names", "is_loopback", "origin_form"]

EVERYBODY = "*"
"""The name of the grant that needs no token; no token can have it."""

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
    """The request as if its target were a path alone: ``GET http://localhost/health`` is allowed.

    The name in such a target counts, and the Host header does not (RFC 9112, 3.2.2).
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
    """The names that a service goes by, against pages that rebind a name of theirs to it.

    A browser sends along which name it asked for, and on which page; a page can't change either.
    What is no origin is a :class:`ConfigError`.
    """

    def __init__(self, host: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        own = f"[{host}]" if ":" in host else host
        self._hosts = {each.lower() for each in (own, "localhost", "127.0.0.1", "[::1]", *hosts)}
        self.origins = frozenset(_origin(each) for each in origins)
        """Whose pages may ask, as browsers write them."""

    def check(self, headers: Headers) -> None:
        """403 for a request that was meant for another host, or comes from another's page."""
        hosts = headers.getlist("host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        named = _HOST.fullmatch(host)
        if named is None or not {host, named["name"]} & self._hosts:
            raise Problem(
                403,
                "WrongHost",
                "the Host header is not a name of this service; --allow-host adds one",
            )
        for origin in headers.getlist("origin"):
            if origin.lower() not in {f"http://{host}", f"https://{host}", *self.origins}:
                raise Problem(
                    403, "WrongOrigin", "pages of this origin may not ask; --allow-origin adds one"
                )


def _origin(text: str) -> str:
    """An origin as a browser sends it: in lower case, and without a port that goes without."""
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


class Door:
    """Tells whose memory a request is about: by its token, and by nothing else in it.

    Where the bank never had a token and an agent is given, every request is that agent's. The first
    token that is created ends this for good: to revoke it opens the door to nobody.
    """

    def __init__(self, folder: Path, agent_id: str | None = None) -> None:
        self.folder = folder
        """The folder of the bank, which has the tokens."""
        self._everybody = agent_id and Grant(EVERYBODY, check_agent_id(agent_id), "write")

    def grant(self, headers: Headers) -> Grant:
        """What the sender may do; 401 for one that has no token, or none that is known."""
        if self._everybody and tokens.are_needed(self.folder):
            self._everybody = None  # also if the file is deleted while this runs
        if self._everybody:
            return self._everybody
        given = headers.getlist("authorization")
        if not given:
            raise _unknown("say who you are: Authorization: Bearer tm_…", "")
        bearer = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        found = tokens.check(self.folder, bearer["token"]) if bearer else None
        if found is None:
            raise _unknown(
                "this token is not known here, or was revoked", ', error="invalid_token"'
            )
        return found


def _unknown(detail: str, error: str) -> Problem:
    challenge = {"WWW-Authenticate": f'Bearer realm="tiermem"{error}'}
    return Problem(401, "Unauthorized", detail, challenge)
