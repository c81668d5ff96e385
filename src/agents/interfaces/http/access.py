"""Who is asking, and from where."""

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from starlette.datastructures import Headers

from agents.interfaces import tokens
from agents.interfaces.http.problems import Problem
from agents.interfaces.tokens import Grant
from agents.memory.records import check_agent_id

__all__ = ["Door", "Names", "is_loopback"]

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9._~+/=-]+)")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Names:
    """The names that a service goes by, against pages that rebind a name of theirs to it.

    A browser sends along which name it asked for, and on which page; a page can't change either.
    """

    def __init__(self, host: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        own = f"[{host}]" if ":" in host else host
        self._hosts = {each.lower() for each in (own, "localhost", "127.0.0.1", "[::1]", *hosts)}
        self._origins = {each.lower().rstrip("/") for each in origins}

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
            if origin.lower() not in {f"http://{host}", f"https://{host}", *self._origins}:
                raise Problem(
                    403, "WrongOrigin", "pages of this origin may not ask; --allow-origin adds one"
                )


class Door:
    """Tells whose memory a request is about: by its token, and by nothing else in it.

    Where the bank has no tokens at all and an agent is given, every request is that agent's. The
    first token that is created ends this.
    """

    def __init__(self, folder: Path, agent_id: str | None = None) -> None:
        self._folder = folder
        self._everybody = agent_id and Grant("--agent", check_agent_id(agent_id), "write")

    def grant(self, headers: Headers) -> Grant:
        """What the sender may do; 401 for one that has no token, or none that is known."""
        if self._everybody and not tokens.grants(self._folder):
            return self._everybody
        given = headers.getlist("authorization")
        if not given:
            raise _unknown("say who you are: Authorization: Bearer tm_…", "")
        bearer = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
        found = tokens.check(self._folder, bearer["token"]) if bearer else None
        if found is None:
            raise _unknown(
                "this token is not known here, or was revoked", ', error="invalid_token"'
            )
        return found


def _unknown(detail: str, error: str) -> Problem:
    challenge = {"WWW-Authenticate": f'Bearer realm="tiermem"{error}'}
    return Problem(401, "Unauthorized", detail, challenge)
