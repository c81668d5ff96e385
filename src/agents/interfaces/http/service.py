"""The operations of a bank over HTTP, and the pages about the service."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ... import __version__, tools
from ...bank.agent_memory import AgentMemory
from ...bank.async_bank import AsyncMemoryBank
from ...errors import InvalidInput
from ...memory.scopes import NOWHERE
from ...tools import Failure
from ...tools.profiles import table_of
from . import bodies
from .access import NAMED_IN, Names, TokenDoor
from .endpoints import PAGES, Endpoint, ServicePage, description, endpoints, query_arguments
from .gate import Gate, Manner, Target, Visit
from .limits import DEFAULT, Limits
from .problems import Problem, encoded, private_paths, status_of, told

logger = logging.getLogger(__name__)


class Service:
    """An ASGI application over a bank, which its caller opens and closes.

    An operation waits for its turn at the bank, and the event loop does not: during a slow
    operation, the service still refuses requests and answers /health.
    """

    def __init__(
        self, bank: AsyncMemoryBank, door: TokenDoor, names: Names, limits: Limits = DEFAULT
    ) -> None:
        self._bank = bank
        self._nesting = limits.nesting
        self._private = private_paths(door.folder, bank.settings)
        served = endpoints(table_of(bank.settings.profile))
        self._pages = {
            "index": encoded({"name": "TierMem", "version": __version__, "see": "/openapi.json"}),
            "health": encoded({"status": "ok"}),
            "openapi": encoded(description(bank.settings.memory.max_content_bytes, served)),
        }
        self._gate = Gate(
            [
                *(Target(each, partial(self._operated, each)) for each in served),
                *(Target(each, partial(self._shown, each)) for each in PAGES),
            ],
            door,
            names,
            limits,
            Manner(
                "see /openapi.json",
                methods=("GET", "POST", "PATCH", "DELETE"),
                headers=("Authorization", "Content-Type", NAMED_IN),
            ),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    async def _shown(self, page: ServicePage, visit: Visit) -> Response:
        if page.name != "metrics":
            return Response(self._pages[page.name], media_type=page.media_type)
        if visit.grant.scope != NOWHERE:
            detail = f"this token is of {visit.grant.scope}, and the numbers are of the whole bank"
            raise Problem(403, "MayNotCount", detail)
        text = _exposition(await self._bank.metrics(), self._gate.answered)
        return Response(text, headers={"Content-Type": _METRICS_TYPE})

    async def _operated(self, endpoint: Endpoint, visit: Visit) -> Response:
        async with self._gate.body(visit) as body:
            if body and endpoint.has_body:
                bodies.check_type(visit.headers)
            elif body:
                detail = f"{endpoint.method} takes its arguments from the query string, not a body"
                raise Problem(400, "UnexpectedBody", detail)
            agent = self._bank.agent(visit.grant.agent_id)
            done = await agent.run(self._operate, endpoint, visit, body)
        return Response(done, endpoint.status, media_type="application/json")

    # In the bank's thread, because reading and writing JSON takes time, too

    def _operate(self, memory: AgentMemory, endpoint: Endpoint, visit: Visit, body: bytes) -> bytes:
        try:
            given = {**self._given(endpoint, visit, body), **visit.path_params}
        except InvalidInput as error:
            raise Problem(422, "InvalidInput", str(error)) from None
        outcome = tools.call(memory, endpoint.operation.name, given, visit.grant.permission)
        if outcome.failure is not None:
            raise self._problem(outcome.failure)
        return encoded(endpoint.pick(outcome.result or {}))

    def _given(self, endpoint: Endpoint, visit: Visit, body: bytes) -> dict[str, Any]:
        """The arguments in the query string or in the body."""
        if not endpoint.has_body:
            return query_arguments(endpoint, visit.query_params.multi_items())
        if visit.scope["query_string"]:  # ignoring ?dry_run=true would change the memory
            raise InvalidInput(
                f"{endpoint.method} takes its arguments from the body",
                hint="leave the query string out",
            )
        given = bodies.parse(body, self._nesting) if body else {}
        if not isinstance(given, dict):
            raise InvalidInput(f"the arguments of {endpoint.name} are an object, not {given!r:.60}")
        twice = given.keys() & set(endpoint.in_path)
        if twice:
            raise InvalidInput(f"{min(twice)} stands in the path", hint="leave it out of the body")
        return given

    def _problem(self, failure: Failure) -> Problem:
        status = status_of(failure.type)
        if status == 500:
            if failure.type != "InternalError":  # that one is in the log already
                logger.error("%s: %s", failure.type, failure.message)
            return Problem.internal()
        return Problem(status, failure.type, told(failure, self._private))


# Counters as text that Prometheus reads
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_REQUESTS = "tiermem_http_requests_total"

_HELP = {
    "memory_hot_utilization": "Share of the tokens of hot in use, of the agent with most.",
    "memory_spill_count": "Memories that left hot because it was full.",
    "memory_recall_count": "Recalls.",
    "memory_promotion_count": "Memories that became hot.",
    "memory_recall_latency_ms": "How long the last recall took.",
    "memory_hit_rate": "Share of the searches that gave a memory.",
    "memory_demotion_count": "Memories that made room in their tier.",
    "memory_expiration_count": "Memories whose lifetime ended.",
    "memory_purge_count": "Memories that were purged.",
}


def _exposition(bank: Mapping[str, float], answered: Mapping[tuple[str, int], int]) -> str:
    """The metrics of a bank, and the number of requests by operation and status.

    A ``…_count`` of the bank is a ``…_total`` here: to Prometheus, a count is part of a summary.
    """
    lines = []
    for key, value in bank.items():
        stem = key.removesuffix("_count")
        name, kind = (key, "gauge") if stem == key else (f"{stem}_total", "counter")
        lines += [f"# HELP {name} {_HELP[key]}", f"# TYPE {name} {kind}", f"{name} {value!r}"]
    lines.append(f"# HELP {_REQUESTS} Requests by operation and status; 499 left before the end.")
    lines.append(f"# TYPE {_REQUESTS} counter")
    for (operation, status), count in sorted(answered.items()):
        lines.append(f'{_REQUESTS}{{operation="{operation}",status="{status}"}} {count}')
    return "\n".join(lines) + "\n"
