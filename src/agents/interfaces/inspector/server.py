"""Serving the inspector's page on this machine, behind a token."""

import asyncio
import hmac
import logging
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import orjson
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from ...errors import InvalidInput, RunError, TierMemError
from ...storage.gc_pause import gc_paused
from ..http.access import Names, origin_form
from ..http.connection import connections
from ..http.limits import DEFAULT
from ..http.problems import ALWAYS, Problem
from .page_files import page_file, policy
from .parameters import CantTell, NotThere, Parameters, Reading, WrongParameter
from .refusals import readable
from .site import ANSWERS, Site, failure

logger = logging.getLogger(__name__)

_MOST_BODY = 1 << 20
_GRACE = 2
_STATUSES: tuple[tuple[type[TierMemError], int], ...] = (
    (WrongParameter, 400),
    (InvalidInput, 400),
    (NotThere, 404),
    (CantTell, 409),
    (RunError, 409),
)
_HEADERS = {
    **ALWAYS,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(24)


class Page:
    """An ASGI application: the page and its answers, below the token."""

    def __init__(self, site: Site, token: str, host: str) -> None:
        self._site = site
        self._token = token
        self._names = Names(host, hint="use the address that tiermem inspect printed")
        # One at a time: an answer reads what another may close.
        self._answering = ThreadPoolExecutor(1, "answers")
        self._branching = ThreadPoolExecutor(1, "branches")
        self._pause = gc_paused()
        self._looking = 0
        """How many requests are looked at, all in the thread of the event loop."""

    def stop(self) -> None:
        """Let a branch that is run end after its tick."""
        self._site.stop()

    def close(self) -> None:
        """Finish the answer that is under way, and the tick of a branch."""
        self.stop()
        self._answering.shutdown(cancel_futures=True)
        self._branching.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        with nullcontext() if scope["method"] == "POST" else self._undisturbed():
            await self._sent(scope, receive, send)

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """A search for garbage takes longer than most answers: it waits until all are sent.

        It goes on beside a branch, which is a POST and runs a user's code.
        """
        if not self._looking:
            self._pause.__enter__()
        self._looking += 1
        try:
            yield
        finally:
            self._looking -= 1
            if not self._looking:
                self._pause.__exit__()

    async def _sent(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(origin_form(scope), receive)
        try:
            response = await self._answer(request)
        except Problem as problem:
            response = _refused(problem.status, problem.kind, problem.detail)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # the server ends, and this took longer than it waits
            told = "tiermem inspect was stopped; its last line says how a branch goes on"
            response = _refused(503, "Stopped", told)
        except Exception:
            logger.exception("the inspector failed")
            response = _refused(500, "InternalError", "something went wrong; the log says what")
        response = readable(request, response)
        response.headers.update({**_HEADERS, "Content-Security-Policy": policy()})
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        self._names.check(request.headers)
        path = request.url.path
        if path == "/" and self._is_token(request.query_params.get("token", "")):
            return RedirectResponse(f"/{self._token}/", 303)
        token, _, rest = path.removeprefix("/").partition("/")
        if not self._is_token(token):
            return _refused(
                403, "NoToken", "the address needs the token that tiermem inspect printed"
            )
        if path == f"/{token}":
            return RedirectResponse(f"/{self._token}/", 303)
        if rest == "api/branch" and request.method == "POST":
            return await self._branch(request)
        if request.method not in ("GET", "HEAD"):
            return _refused(405, "WrongMethod", "the page is for looking")
        if rest.startswith("api/"):
            return await self._looked_up(rest.removeprefix("api/"), request.query_params)
        found = page_file(rest or "index.html")
        if found is None:
            return _refused(404, "NotFound", "there is no page of this name")
        return Response(found.data, media_type=found.media_type)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    async def _looked_up(self, name: str, given: Mapping[str, str]) -> Response:
        if name not in ANSWERS:
            return _refused(404, "NotFound", "there is no answer of this name")
        return await self._do(self._answering, lambda: self._site.answer(name, dict(given)))

    async def _branch(self, request: Request) -> Response:
        if not self._site.allow_branch:
            return _refused(
                403, "NotAllowed", "tiermem inspect --allow-branch lets the page run it"
            )
        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return _refused(400, "WrongParameter", "the body is JSON")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BODY:
                return _refused(413, "TooLarge", "the edits are too many")
        given = _texts(body)
        made = await self._do(self._branching, lambda: self._site.branched(given))
        if made.status_code != 200:
            return made
        out = orjson.loads(made.body)["out"]
        return await self._do(self._answering, lambda: self._site.add_branch(out, given))

    async def _do(
        self, worker: ThreadPoolExecutor, answer: Callable[[], dict[str, Any]]
    ) -> Response:
        """An answer, made in a worker's thread."""

        def made() -> Response:
            status = 200
            try:
                found = answer()
            except Reading as reading:
                found, status = {"reading": {"done": reading.done, "of": reading.of}}, 202
            except TierMemError as error:
                found = failure(error)
                status = next((own for kind, own in _STATUSES if isinstance(error, kind)), 500)
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
        name: own if isinstance(own, str) else orjson.dumps(own).decode()
        for name, own in found.items()
        if own is not None
    }
    return Parameters(texts)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else str(value)


def _refused(status: int, kind: str, message: str) -> Response:
    data = orjson.dumps({"error": {"type": kind, "message": message, "hint": ""}})
    return Response(data, status, media_type="application/json")


def serve(page: Page, sock: socket.socket, asked_to_stop: Callable[[], bool]) -> None:
    """Answer requests until ``asked_to_stop`` is true."""
    config = uvicorn.Config(
        page,
        http=connections(DEFAULT),
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    try:
        _Server(config, page, asked_to_stop).run([sock])
    finally:
        page.close()


class _Server(uvicorn.Server):
    """uvicorn, which asks now and then whether it should stop."""

    def __init__(
        self, config: uvicorn.Config, page: Page, asked_to_stop: Callable[[], bool]
    ) -> None:
        super().__init__(config)
        self._page = page
        self._asked_to_stop = asked_to_stop

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._asked_to_stop()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._page.stop()
        await super().shutdown(sockets)
