"""Serving the inspector's page on this machine, behind a token."""

import asyncio
import hmac
import math
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import escape
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from ...errors import ConfigError, InvalidInput, NotInstalled, RunError, TierMemError, Untrusted
from ..http.access import Names
from ..http.bodies import check_type
from ..http.endpoints import ServicePage
from ..http.gate import Gate, Manner, Target, Visit
from ..http.limits import DEFAULT
from ..http.problems import ALWAYS, Problem
from ..http.server import run
from ..tokens import Grant
from .inspection import ANSWERS, Inspection, failure
from .page_files import page_file, policy
from .parameters import CantTell, NotThere, Parameters, Reading, WrongParameter

_LIMITS = DEFAULT._replace(body_bytes=1 << 20, rate=10_000.0, seconds=math.inf)
"""One person looks, whose page asks as fast as it is answered; a branch may run for hours."""
_GRACE = 2
_STATUSES: tuple[tuple[type[TierMemError], int], ...] = (
    (WrongParameter, 400),
    (InvalidInput, 400),
    (ConfigError, 400),
    (Untrusted, 409),
    (NotThere, 404),
    (CantTell, 409),
    (RunError, 409),
    (NotInstalled, 409),
)
_HEADERS = {
    **ALWAYS,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_NEW_ADDRESS = "each start of tiermem inspect has a new address: open the one that it printed last"
_STOPPED = "tiermem inspect was stopped; its last line says how a branch goes on"
_REFUSED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TierMem inspector</title></head>
<body><h1>The inspector can't show this</h1><p>{message}.</p>{hint}</body></html>
"""


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


class _Door:
    """Lets in who has the token in the path of the address."""

    def __init__(self, token: str) -> None:
        self._token = token

    def knows(self, given: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def grant(self, request: Request) -> Grant:
        """What the sender may do; 403 for another token."""
        if not self.knows(request.path_params["token"]):
            raise _no_token()
        return Grant("page", "everybody", "read")


class Inspector:
    """An ASGI application: the page and its answers, below the token."""

    def __init__(
        self, inspection: Inspection, token: str, host: str, *, framed: bool = False
    ) -> None:
        """``framed`` lets any page that knows the token show this one within itself."""
        self._inspection = inspection
        self._token = token
        self._door = _Door(token)
        # One at a time: an answer reads what another may close.
        self._answering = ThreadPoolExecutor(1, "answers")
        self._branching = ThreadPoolExecutor(1, "branches")
        page, below = partial(ServicePage, "page", permission="read"), "/{token}"
        self._gate = Gate(
            [
                Target(ServicePage("start", "/", "The page.", None), self._started),
                Target(page(below, "The page."), self._moved),
                Target(page(f"{below}/api/branch", "A branch's command."), self._looked_up),
                Target(page(f"{below}/api/branch", "A branch.", method="POST"), self._branched),
                Target(page(f"{below}/api/ask", "An interview.", method="POST"), self._asked),
                Target(page(f"{below}/api/{{name}}", "An answer."), self._looked_up),
                Target(page(f"{below}/{{file:path}}", "A file."), self._shown),
                Target(ServicePage("other", "/{path:path}", "Nothing.", None), self._nothing),
            ],
            self._door,
            Names(host, hint="use the address that tiermem inspect printed"),
            _LIMITS,
            Manner(
                "use the address that tiermem inspect printed",
                always={
                    **_HEADERS,
                    **({} if framed else {"X-Frame-Options": "DENY"}),
                    "Content-Security-Policy": policy(framed=framed),
                },
                stopping=_STOPPED,
                refusal=_refusal,
            ),
        )

    def stop(self) -> None:
        """Let a branch that is run end after its tick."""
        self._inspection.stop()

    def close(self) -> None:
        """Finish the answer that is under way, and the tick of a branch."""
        self.stop()
        self._answering.shutdown(cancel_futures=True)
        self._branching.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    # The page

    async def _started(self, visit: Visit) -> Response:
        if not self._door.knows(visit.query_params.get("token", "")):
            raise _no_token()
        return await self._moved(visit)

    async def _moved(self, visit: Visit) -> Response:
        return RedirectResponse(f"/{self._token}/", 303)

    async def _nothing(self, visit: Visit) -> Response:
        raise _no_token()

    async def _shown(self, visit: Visit) -> Response:
        file = page_file(visit.path_params["file"] or "index.html")
        if file is None:
            raise Problem(404, "NotFound", "there is no page of this name")
        return Response(file.data, media_type=file.media_type)

    # Its answers

    async def _looked_up(self, visit: Visit) -> Response:
        name = visit.path_params.get("name", "branch")
        if name not in ANSWERS:
            raise Problem(404, "NotFound", "there is no answer of this name")
        given = dict(visit.query_params)
        return await self._done(
            visit, self._answering, lambda: self._inspection.answer(name, given)
        )

    async def _branched(self, visit: Visit) -> Response:
        if not self._inspection.allow_branch:
            raise Problem(403, "NotAllowed", "tiermem inspect --allow-branch lets the page run it")
        async with self._gate.body(visit) as body:
            check_type(visit.headers)
            given = _texts(body)
        made = await self._done(visit, self._branching, lambda: self._inspection.branched(given))
        if made.status_code != 200:
            return made
        out = orjson.loads(made.body)["out"]
        return await self._done(
            visit, self._answering, lambda: self._inspection.add_branch(out, given)
        )

    async def _asked(self, visit: Visit) -> Response:
        if not self._inspection.allow_ask:
            raise Problem(403, "NotAllowed", "tiermem inspect --allow-ask lets the page ask agents")
        async with self._gate.body(visit) as body:
            check_type(visit.headers)
            given = _texts(body)
        return await self._done(visit, self._branching, lambda: self._inspection.asked(given))

    async def _done(
        self, visit: Visit, worker: ThreadPoolExecutor, answer: Callable[[], dict[str, Any]]
    ) -> Response:
        """An answer, made in a worker's thread."""

        def made() -> Response:
            status = 200
            try:
                found = answer()
            except Reading as reading:
                found, status = {"reading": {"done": reading.done, "of": reading.of}}, 202
            except TierMemError as error:
                status = next((own for kind, own in _STATUSES if isinstance(error, kind)), 500)
                return _told(visit, status, failure(error))
            data = orjson.dumps(found, default=_plain, option=orjson.OPT_NON_STR_KEYS)
            return Response(data, status, media_type="application/json")

        return await asyncio.get_running_loop().run_in_executor(worker, made)


def _texts(body: bytes) -> Parameters:
    """The parameters in a body: an object whose values are texts, numbers, or a list of edits."""
    try:
        found = orjson.loads(body)
    except ValueError:
        raise Problem(400, "WrongParameter", "the body is not JSON") from None
    if not isinstance(found, dict):
        raise Problem(400, "WrongParameter", "the body is not a JSON object")
    texts = {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in found.items()
        if value is not None
    }
    return Parameters(texts)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else str(value)


# Refusals


def _no_token() -> Problem:
    return Problem(403, "NoToken", "the address needs the token that tiermem inspect printed")


def _refusal(visit: Visit, problem: Problem) -> Response:
    """The answer to a request that the gate refuses."""
    hint = _NEW_ADDRESS if problem.kind == "NoToken" else ""
    error = {"type": problem.kind, "message": problem.detail, "hint": hint}
    response = _told(visit, problem.status, {"error": error})
    response.headers.update(problem.headers)
    return response


def _told(visit: Visit, status: int, failed: dict[str, Any]) -> Response:
    """What went wrong: a page with a sentence if somebody typed the address, else JSON."""
    if "text/html" not in visit.headers.get("accept", ""):
        return Response(orjson.dumps(failed), status, media_type="application/json")
    message, hint = failed["error"]["message"], failed["error"]["hint"]
    hint = f"<p>{escape(hint)}.</p>" if hint else ""
    text = _REFUSED.format(message=escape(message), hint=hint)
    return Response(text, status, media_type="text/html")


def serve(inspector: Inspector, sock: socket.socket, asked_to_stop: Callable[[], bool]) -> None:
    """Answer requests until ``asked_to_stop`` is true."""
    try:
        run(inspector, sock, _LIMITS, asked_to_stop, grace=_GRACE, when_stopping=inspector.stop)
    finally:
        inspector.close()
