"""The service itself, as an ASGI application: one bank, and many agents that ask."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from ... import __version__, tools
from ...bank.memory_bank import MemoryBank
from ...errors import InvalidInput
from ...tools import Failure
from ..tokens import Grant
from . import bodies, prometheus
from .access import Door, Names, origin_form
from .allowance import Allowance
from .endpoints import ENDPOINTS, PAGES, Endpoint, Page, query_arguments
from .limits import DEFAULT, Limits
from .openapi import description
from .problems import ALWAYS, Problem, encoded, status_of

__all__ = ["Service"]

logger = logging.getLogger(__name__)

_NOBODY = Grant("-", "nobody", "read")
_LEFT = 499
"""As others call it when the client is gone; nobody is there to be told."""


class _Visit:
    """One request on its way, and what the log may say of it: names and numbers, no text."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers = Headers(scope=scope)
        self.address: str = (scope.get("client") or ("",))[0]
        self.receive = receive
        self.target: Endpoint | Page | None = None
        self.bearer = "-"
        self.key = self.address
        """Whose share of the service it takes: a token's, or without one an address's."""
        self.began = time.perf_counter()

    def log(self, status: int) -> None:
        path = self.target.path if self.target else "-"
        ms = (time.perf_counter() - self.began) * 1000
        logger.info("%s %s %s %d %.1f ms", self.bearer, self.method[:16], path, status, ms)


class Service:
    """Answers requests about a bank, which it neither opens nor closes.

    Operations run in threads, so that a slow one keeps no other from being refused, or told that
    the service lives. :meth:`close` waits for those that run.
    """

    def __init__(
        self, bank: MemoryBank, door: Door, names: Names, limits: Limits = DEFAULT
    ) -> None:
        self._bank = bank
        self._door = door
        self._names = names
        self._limits = limits
        self._allowance = Allowance(limits)
        self._answered: Counter[tuple[str, int]] = Counter()
        self._pool = ThreadPoolExecutor(limits.threads, "tiermem-http")
        targets: list[Endpoint | Page] = [*ENDPOINTS, *PAGES]
        self._targets = [(compile_path(each.path)[0], each) for each in targets]
        self._private = _private(bank)
        self._pages = {
            "index": encoded({"name": "TierMem", "version": __version__, "see": "/openapi.json"}),
            "health": encoded({"status": "ok"}),
            "openapi": encoded(description(bank.settings.memory.max_content_bytes)),
        }

    def close(self, *, at_once: bool = False) -> None:
        """Wait until no operation runs any more; ``at_once``, only begin no other."""
        self._pool.shutdown(wait=not at_once, cancel_futures=at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        visit = _Visit(origin_form(scope), receive)
        try:
            response = await self._response(visit)
        except ClientDisconnect:
            self._note(visit, _LEFT)
            return
        response.headers.update(ALWAYS)
        self._note(visit, response.status_code)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await response(scope, receive, send)
        except (TimeoutError, asyncio.CancelledError):
            logger.warning("%s does not take its answer; cut off", visit.bearer)

    def _note(self, visit: _Visit, status: int) -> None:
        self._answered[visit.target.name if visit.target else "none", status] += 1
        visit.log(status)

    async def _response(self, visit: _Visit) -> Response:
        """The answer, or what went wrong as one."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._answer(visit)
        except Problem as found:
            problem = found
        except TimeoutError:
            detail = "it took too long, and may or may not have been done; look before you repeat"
            problem = Problem(503, "TookTooLong", detail)
        except asyncio.CancelledError:  # by the server, which stops and does not wait any longer
            detail = "the service stops; it may or may not have been done: look before you repeat"
            problem = Problem(503, "Stopping", detail, {"Connection": "close"})
        except ClientDisconnect:
            raise
        except Exception:  # whatever it is, the client is told nothing of it, and the log all
            logger.exception("%s %s failed", visit.method[:16], getattr(visit.target, "path", "-"))
            problem = Problem.internal()
        return problem.response()

    async def _answer(self, visit: _Visit) -> Response:
        self._names.check(visit.headers)
        try:
            visit.target, in_path = self._find(visit)
        except Problem:
            self._allowance.count(visit.address)
            raise
        grant = self._admit(visit, visit.target)
        if isinstance(visit.target, Page):
            return await self._page(visit.target)
        # A body that trickles takes a connection and room for what came of it, but nobody's turn.
        with self._allowance.begun(visit.key), self._allowance.room(visit.key) as keep:
            body = await self._body(visit, visit.target, keep)
            with self._allowance.turn(visit.key):
                done = await self._in_thread(
                    self._operate, visit.target, grant, in_path, body, visit.query
                )
        return Response(done, visit.target.status, media_type="application/json")

    # Who, where and how often

    def _find(self, visit: _Visit) -> tuple[Endpoint | Page, dict[str, str]]:
        """What is at this path, and the arguments that stand in it; 404 or 405."""
        wanted = "GET" if visit.method == "HEAD" else visit.method
        others: set[str] = set()
        is_named = any(target.path == visit.path for _, target in self._targets)
        for pattern, target in self._targets:
            match = pattern.fullmatch(visit.path)
            if is_named and target.path != visit.path:  # /memory/store is no memory of that id
                continue
            if match and target.method == wanted:
                return target, match.groupdict()
            if match:
                others |= {target.method} | ({"HEAD"} if target.method == "GET" else set())
        if not others:
            raise Problem(404, "NoSuchPath", "there is nothing at this path; see /openapi.json")
        allowed = ", ".join(sorted(others))
        detail = f"this path takes {allowed}"
        raise Problem(405, "NoSuchMethod", detail, {"Allow": allowed})

    def _admit(self, visit: _Visit, target: Endpoint | Page) -> Grant:
        """What the sender may do, where that matters; who asks too often is told when to come."""
        if target.name == "health":  # whoever watches over it asks when others ask too often
            return _NOBODY
        if target.permission is None:
            self._allowance.count(visit.address)
            return _NOBODY
        grant, visit.key = self._allowance.admit(self._door, visit.headers, visit.address)
        visit.bearer = grant.name
        if target.permission == "write" and grant.permission == "read":
            raise Problem(403, "ReadOnly", "this token may only read")
        return grant

    # Doing it

    async def _body(self, visit: _Visit, endpoint: Endpoint, keep: Callable[[int], None]) -> bytes:
        body = await bodies.read_body(visit.headers, visit.receive, self._limits, keep)
        if body and endpoint.has_body:
            bodies.check_type(visit.headers)
        elif body:
            detail = f"{endpoint.method} takes its arguments from the query string, not a body"
            raise Problem(400, "UnexpectedBody", detail)
        return body

    async def _in_thread(self, work: Any, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, work, *arguments)

    def _operate(
        self, endpoint: Endpoint, grant: Grant, in_path: dict[str, str], body: bytes, query: bytes
    ) -> bytes:
        """Run an operation; in a thread, as all of it takes time."""
        try:
            given = self._given(endpoint, body, query)
        except InvalidInput as error:
            raise Problem(422, "InvalidInput", str(error)) from None
        memory = self._bank.agent(grant.agent_id)
        reads = grant.permission == "read"
        outcome = tools.call(memory, endpoint.operation.name, {**given, **in_path}, observing=reads)
        if outcome.failure is not None:
            raise self._problem(outcome.failure)
        return encoded(endpoint.pick(outcome.result or {}))

    def _given(self, endpoint: Endpoint, body: bytes, query: bytes) -> dict[str, Any]:
        """The arguments that do not stand in the path."""
        if not endpoint.has_body:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=None)
            return query_arguments(endpoint, pairs)
        if query:  # ?dry_run=true is not to be done in earnest
            raise InvalidInput(
                f"{endpoint.method} takes its arguments from the body",
                hint="leave the query string out",
            )
        given = bodies.parse(body, self._limits.nesting) if body else {}
        if not isinstance(given, dict):
            raise InvalidInput(f"the arguments of {endpoint.name} are an object, not {given!r:.60}")
        twice = given.keys() & set(endpoint.in_path)
        if twice:
            raise InvalidInput(f"{min(twice)} stands in the path", hint="leave it out of the body")
        return given

    def _problem(self, failure: Failure) -> Problem:
        status = status_of(failure.type)
        if status == 500:
            if failure.type != "InternalError":  # which is in the log already
                logger.error("%s: %s", failure.type, failure.message)
            return Problem.internal()
        if any(text in failure.message for text in self._private):
            logger.error("%s: %s", failure.type, failure.message)
            return Problem(status, failure.type, "it was refused; the service's log says why")
        return Problem(status, failure.type, failure.message)

    async def _page(self, page: Page) -> Response:
        if page.name != "metrics":
            return Response(self._pages[page.name], media_type=page.media_type)
        counted = await self._in_thread(self._bank.metrics)
        text = prometheus.exposition(counted, self._answered)
        return Response(text, headers={"Content-Type": prometheus.MEDIA_TYPE})


def _private(bank: MemoryBank) -> list[str]:
    """What of the machine an error may name, and a client need not know."""
    extra = (Path(each).absolute() for each in bank.settings.notes.extra_paths)
    return [str(each) for each in (bank.folder, *extra) if each is not None]
