"""What the services over HTTP share: paths, tokens, limits, and the log."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router, compile_path
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

from ...errors import TierMemError
from ...tools.operations import WHY_NOT, allows
from ..tokens import Grant
from .access import Door, Names, origin_form
from .bodies import read_body
from .endpoints import Endpoint, ServicePage
from .limits import Allowance, Limits
from .problems import ALWAYS, Problem

logger = logging.getLogger(__name__)

_NOBODY = Grant("-", "nobody", "read")
_LEFT = 499
"""The status for a client that left, as other servers use it."""
_TOO_LONG = "it took too long, and may or may not have been done; look before you repeat"
_STOPPING = "the service stops; it may or may not have been done: look before you repeat"


class Visit(Request):
    """One request, and its line in the log: names and numbers, never a text of the client."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        """The answer gets the ``headers``."""
        super().__init__(scope, receive)
        self._sending = send
        self._always = headers
        self._began = time.perf_counter()
        self.address = self.client.host if self.client else ""
        self.key = self.address
        """The client whose share the request takes: a token, or an address without a token."""
        self.place: Endpoint | ServicePage | None = None
        self.status = 0
        """The status of the answer; 0 before the answer begins."""

    @property
    def grant(self) -> Grant:
        """What the sender may do."""
        grant: Grant = self.scope.get("user", _NOBODY)
        return grant

    async def send(self, message: Message) -> None:
        """Send a part of the answer; its head gets the headers of every answer."""
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(self._always)
            self.status = message["status"]
        await self._sending(message)

    def log(self) -> None:
        path = self.place.path if self.place else "-"
        ms = (time.perf_counter() - self._began) * 1000
        said = (self.grant.name, self.method[:16], path, self.status, ms)
        logger.info("%s %s %s %d %.1f ms", *said)


class Target(NamedTuple):
    """An operation or a page at a path, and the function that answers."""

    place: Endpoint | ServicePage
    answer: Callable[[Visit], Awaitable[Response]]


class Manner(NamedTuple):
    """In which words, and with which headers, a service answers."""

    see: str
    """The hint for an unknown path."""
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    """The methods and the headers that pages of other origins may use."""
    always: Mapping[str, str] = ALWAYS
    """Headers of every answer."""
    busy: Mapping[str, str] = MappingProxyType({})
    """Headers of the refusal of a client that is over a limit."""
    stopping: str = _STOPPING
    """What the sender of a request learns that is open when the service stops."""
    refusal: Callable[[Visit, Problem], Response] = lambda _, problem: problem.response()
    """The answer to a request that is refused."""


class Gate:
    """An ASGI application that checks a request, and passes it to its target or refuses it.

    Starlette finds the path. Its middleware for hosts and tokens refuses in plain text, and asks
    for a token before it knows whether the path needs one; so the checks are made here.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        door: Door,
        names: Names,
        limits: Limits,
        manner: Manner,
        *,
        lifespan: Lifespan[Any] | None = None,
    ) -> None:
        self._door = door
        self._names = names
        self._limits = limits
        self._manner = manner
        self._allowance = Allowance(limits, manner.busy)
        self.answered: Counter[tuple[str, int]] = Counter()
        """The number of requests by the name of their target and by their status."""
        # Paths without a parameter come first: /memory/store is not a memory with the id "store".
        paths = dict.fromkeys(each.place.path for each in targets)
        routes = [
            Route(path, _Path(self, path, [each for each in targets if each.place.path == path]))
            for path in sorted(paths, key=lambda path: "{" in path)
        ]
        self._router = Router(
            routes, redirect_slashes=False, default=self.nothing, lifespan=lifespan
        )
        self._app = self._visited
        if names.origins:
            self._app = _Origins(self._visited, names, manner.methods, manner.headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._app(origin_form(scope), receive, send)
        elif scope["type"] == "lifespan":
            await self._router(scope, receive, send)

    async def _visited(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = scope["visit"] = Visit(scope, receive, send, self._manner.always)
        try:
            problem = await self._problem(visit)
            if problem and not visit.status:
                await self._manner.refusal(visit, problem)(scope, receive, visit.send)
            elif problem:
                logger.warning("%s does not take its answer; cut off", visit.grant.name)
        except ClientDisconnect:
            visit.status = _LEFT
        self.answered[visit.place.name if visit.place else "none", visit.status] += 1
        visit.log()

    async def _problem(self, visit: Visit) -> Problem | None:
        """Answer the request, or return the problem that prevents it."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                self._names.check(visit.headers)
                await self._router(visit.scope, visit.receive, visit.send)
        except Problem as problem:
            return problem
        except TimeoutError:
            return Problem(503, "TookTooLong", _TOO_LONG, self._manner.busy)
        except asyncio.CancelledError:  # the server stops
            return Problem(503, "Stopping", self._manner.stopping, {"Connection": "close"})
        except ClientDisconnect:
            raise
        except TierMemError as error:
            logger.error("%s", error)
            return Problem.internal()
        except Exception:  # the client learns nothing of it, and the log everything
            logger.exception("%s %s failed", visit.method[:16], getattr(visit.place, "path", "-"))
            return Problem.internal()
        return None

    async def nothing(self, scope: Scope, receive: Receive, send: Send) -> None:
        """404 for an unknown path; it counts as a request without a token."""
        visit: Visit = scope["visit"]
        self._allowance.count(visit.address)
        raise Problem(404, "NoSuchPath", f"there is nothing at this path; {self._manner.see}")

    def admit(self, visit: Visit, targets: Mapping[str, Target]) -> Target:
        """The target for the request's method, if the sender may use it now."""
        target = targets.get("GET" if visit.method == "HEAD" else visit.method)
        if target is None:
            self._allowance.count(visit.address)
            allowed = ", ".join(sorted([*targets, *(["HEAD"] if "GET" in targets else [])]))
            detail = f"this path takes {allowed}"
            raise Problem(405, "NoSuchMethod", detail, {"Allow": allowed})
        visit.place = target.place
        if target.place.name == "health":  # a monitor needs it most when the service is busy
            return target
        needed = target.place.permission
        if needed is None:
            self._allowance.count(visit.address)
            return target
        grant, visit.key = self._allowance.admit(self._door, visit, visit.address)
        visit.scope["user"] = grant
        if not allows(grant.permission, needed):
            if grant.permission == "read":
                raise Problem(403, "ReadOnly", "this token may only read")
            why = f"this request {WHY_NOT[needed]}, which this token may not do"
            raise Problem(403, f"MayNot{needed.title()}", why)
        return target

    @asynccontextmanager
    async def body(self, visit: Visit) -> AsyncIterator[bytes]:
        """The body of a request; inside the block, the request has a turn."""
        # A slow body takes a connection and room, but no turn.
        with self._allowance.begun(visit.key), self._allowance.room(visit.key) as keep:
            body = await read_body(visit, self._limits, keep)
            async with self._allowance.turn(visit.key):
                yield body


class _Path:
    """The targets at one path, by method; Starlette's own 405 would name one method alone."""

    def __init__(self, gate: Gate, path: str, targets: Sequence[Target]) -> None:
        self._gate = gate
        _, self._form, _ = compile_path(path)
        self._targets = {each.place.method: each for each in targets}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette ignores a newline at the end of a path.
        if scope["path"] != self._form.format(**scope["path_params"]):
            await self._gate.nothing(scope, receive, send)
        visit: Visit = scope["visit"]
        target = self._gate.admit(visit, self._targets)
        response = await target.answer(visit)
        await response(scope, receive, send)


class _Origins(CORSMiddleware):
    """Tells browsers that only the pages of ``names.origins`` may send requests.

    Starlette refuses a preflight in plain text, and does not check the host. ``app`` checks the
    request itself, by the same names.
    """

    def __init__(
        self, app: ASGIApp, names: Names, methods: tuple[str, ...], headers: tuple[str, ...]
    ) -> None:
        super().__init__(app, names.origins, methods, headers)
        self._names = names

    def preflight_response(self, request_headers: Headers) -> Response:
        """The answer to a preflight, which has no token, but has a host and an origin."""
        try:
            self._names.check(request_headers)
        except Problem as problem:
            return problem.response()
        answer = super().preflight_response(request_headers)
        if answer.status_code == 200:
            return answer
        detail = "a page may not ask with this method, or send these headers"
        return Problem(403, "WrongPreflight", detail).response()
