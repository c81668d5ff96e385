"""The service itself, as an ASGI application: one bank, and many agents that ask."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from agents import __version__, tools
from agents.bank import MemoryBank
from agents.errors import InvalidInput
from agents.interfaces.http import bodies, prometheus
from agents.interfaces.http.access import Door, Names
from agents.interfaces.http.endpoints import ENDPOINTS, PAGES, Endpoint, Page, query_arguments
from agents.interfaces.http.limits import DEFAULT, Buckets, Limits
from agents.interfaces.http.openapi import description
from agents.interfaces.http.problems import MEDIA_TYPE, Problem, encoded, status_of
from agents.interfaces.tokens import Grant
from agents.tools import Failure

__all__ = ["Service"]

logger = logging.getLogger(__name__)

_NOBODY = Grant("-", "nobody", "read")
_ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


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
        self._buckets = Buckets(limits.rate, 2 * limits.rate)
        self._busy = 0
        self._answered: Counter[tuple[str, int]] = Counter()
        self._pool = ThreadPoolExecutor(limits.threads, "tiermem-http")
        targets: list[Endpoint | Page] = [*ENDPOINTS, *PAGES]
        self._targets = [(compile_path(each.path)[0], each) for each in targets]
        self._private = _private(bank)
        self._pages = {
            "index": encoded({"name": "TierMem", "version": __version__, "see": "/openapi.json"}),
            "health": encoded({"status": "ok"}),
            "openapi": encoded(description()),
        }

    def close(self) -> None:
        """Wait until no operation runs any more."""
        self._pool.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        visit = _Visit(scope, receive)
        try:
            response = await self._response(visit)
        except ClientDisconnect:
            visit.log(499)  # as others call it; nobody is there to be told
            return
        response.headers.update(_ALWAYS)
        self._answered[visit.target.name if visit.target else "none", response.status_code] += 1
        visit.log(response.status_code)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await response(scope, receive, send)
        except TimeoutError:
            logger.warning("%s does not take its answer; cut off", visit.bearer)

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
        except ClientDisconnect:
            raise
        except Exception:  # whatever it is, the client is told nothing of it, and the log all
            logger.exception("%s %s failed", visit.method[:16], getattr(visit.target, "path", "-"))
            problem = Problem.internal()
        return Response(problem.body(), problem.status, problem.headers, MEDIA_TYPE)

    async def _answer(self, visit: _Visit) -> Response:
        self._names.check(visit.headers)
        visit.target, in_path = self._find(visit)
        grant = self._admit(visit, visit.target)
        if isinstance(visit.target, Page):
            return await self._page(visit.target)
        with self._slot():
            body = await self._body(visit, visit.target)
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
        grant = _NOBODY
        try:
            if target.permission is not None:
                grant = self._door.grant(visit.headers)
                visit.bearer = grant.name
        finally:  # who has no token is counted by address, and stopped before being told so
            key = f"address {visit.address}" if grant is _NOBODY else f"token {grant.name}"
            self._count(key)
        if target.permission == "write" and grant.permission == "read":
            raise Problem(403, "ReadOnly", "this token may only read")
        return grant

    def _count(self, key: str) -> None:
        seconds = self._buckets.wait(key)
        if seconds:
            detail = f"more than {self._limits.rate:g} requests a second; come back in {seconds} s"
            raise Problem(429, "TooMany", detail, {"Retry-After": str(seconds)})

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._busy >= self._limits.concurrent:
            detail = f"{self._busy} requests are being answered; come back in a second"
            raise Problem(503, "Busy", detail, {"Retry-After": "1"})
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    # Doing it

    async def _body(self, visit: _Visit, endpoint: Endpoint) -> bytes:
        body = await bodies.read_body(visit.headers, visit.receive, self._limits)
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
        outcome = tools.call(memory, endpoint.operation.name, {**given, **in_path})
        if outcome.failure is not None:
            raise self._problem(outcome.failure)
        return encoded(endpoint.pick(outcome.result or {}))

    def _given(self, endpoint: Endpoint, body: bytes, query: bytes) -> dict[str, Any]:
        """The arguments that do not stand in the path."""
        if not endpoint.has_body:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=None)
            return query_arguments(endpoint, pairs)
        given = bodies.parse(body, self._limits.nesting) if body else {}
        if not isinstance(given, dict):
            raise InvalidInput(f"the arguments of {endpoint.name} are an object, not {given!r:.60}")
        twice = given.keys() & set(endpoint.in_path)
        if twice:
            raise InvalidInput(f"{min(twice)} stands in the path; leave it out of the body")
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
    return [str(each) for each in (bank._folder, *extra) if each is not None]
