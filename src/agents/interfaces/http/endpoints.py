"""The paths of the service and their description in OpenAPI 3.1, made from the operations."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import __version__
from ...errors import InvalidInput
from ...tools import OPERATIONS, Operation
from ...tools.checking import Table
from ...tools.operations import Permission
from ...tools.shapes import CONTENT, MEMORY, Schema
from .problems import MEDIA_TYPE


class Endpoint(NamedTuple):
    """An operation at a path."""

    name: str
    method: str
    path: str
    status: int
    operation: Operation
    result: Schema
    pick: Callable[[dict[str, Any]], Any]
    """The part of the operation's result that is the answer."""
    in_path: tuple[str, ...]
    """The arguments in the path."""
    given: Schema
    """The arguments in the body, or for GET and DELETE in the query string."""

    @property
    def permission(self) -> Permission | None:
        return self.operation.permission

    @property
    def has_body(self) -> bool:
        return self.method not in ("GET", "DELETE")


class ServicePage(NamedTuple):
    """A path about the service, not about the memory of an agent."""

    name: str
    path: str
    description: str
    permission: Permission | None
    """None: everybody may read it."""
    media_type: str = "application/json"
    method: str = "GET"


def _without(arguments: Schema, names: tuple[str, ...]) -> Schema:
    """The schema without the named arguments."""
    left = {key: value for key, value in arguments["properties"].items() if key not in names}
    needed = [name for name in arguments.get("required", ()) if name not in names]
    return {**arguments, "properties": left, "required": needed}


def _of_table(operation: Operation) -> Endpoint:
    route = operation.route
    in_path = tuple(
        name for name in operation.arguments["properties"] if f"{{{name}}}" in route.path
    )
    return Endpoint(
        operation.name,
        route.method,
        route.path,
        route.status,
        operation,
        operation.result,
        lambda result: result,
        in_path,
        _without(operation.arguments, in_path),
    )


_GET = OPERATIONS["memory_get"]

_BY_ID = Endpoint(
    "memory_get_by_id",
    "GET",
    "/memory/{memory_id}",
    200,
    _GET._replace(description="A memory, by its id.", example=OPERATIONS["pin_memory"].example),
    MEMORY,
    lambda result: result["memory"],
    ("memory_id",),
    _without(_GET.arguments, tuple(_GET.arguments["properties"])),
)


def endpoints(table: Table) -> tuple[Endpoint, ...]:
    """The endpoints of these operations; a memory also has an address of its own."""
    by_id = [_BY_ID] if table.get(_GET.name) is _GET else []
    return (*map(_of_table, table.values()), *by_id)


ENDPOINTS = endpoints(OPERATIONS)

HEALTH = ServicePage("health", "/health", "Whether the service answers.", None)

PAGES: tuple[ServicePage, ...] = (
    ServicePage("index", "/", "What there is here.", None),
    HEALTH,
    ServicePage("openapi", "/openapi.json", "This description.", None),
    ServicePage(
        "metrics",
        "/metrics",
        "What the bank and the service count, for Prometheus: numbers alone, of all agents.",
        "read",
        "text/plain",
    ),
)


def query_arguments(endpoint: Endpoint, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """The arguments of a query string, with the types of the schema."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name not in endpoint.given["properties"]:
            raise InvalidInput(f"{endpoint.name} takes no {name!r:.60} in its query string")
        if name in found:
            raise InvalidInput(f"{name} is in the query string twice")
        found[name] = _read(text, endpoint.given["properties"][name].get("type"))
    return found


def _read(text: str, kind: object) -> Any:
    """The text as a value of the type, or the text itself, which the schema then refuses."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text, text)
    if kind == "integer" and text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    return text


# The description

_ABOUT = """\
Tiered memory for agents. A token (`tiermem token create`) speaks for one agent, and reads or
also writes; whose memory it is never comes from the request. A token of a whole project or
environment reaches the agents in it, and a request names one in the header X-End-User-ID.
Arguments are JSON in the body, or for GET and DELETE stand in the query string; null is as good
as leaving one out. Every error is `application/problem+json`. Malformed JSON is 400, arguments
that do not fit are 422. A path that is not here is 404, a method that is not here 405."""

_WHY = {
    400: "Not JSON: malformed, a key twice, NaN, nested too deep; or a body where none belongs; or "
    "a token of a project, and no agent in X-End-User-ID.",
    401: "No token, or one that is not known.",
    403: "The token may not do this, or the Host or Origin header is not one that is served.",
    404: "The agent has no such memory.",
    408: "The body did not arrive in time.",
    409: "The memory is pinned, or its tier is full.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The arguments do not fit.",
    429: "Too many requests for this token; Retry-After says when to come back.",
    500: "Something went wrong inside; the service's log says what.",
    503: "Too busy, stopping, or it took too long: a change may be done nevertheless.",
}
_RETRY = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
_CHALLENGE = {"WWW-Authenticate": {"schema": {"type": "string"}}}
_HEADERS = {401: _CHALLENGE, 429: _RETRY}

_PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "examples": ["urn:tiermem:problem:MemoryNotFound"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
}


def description(max_content_bytes: int, served: Sequence[Endpoint] = ENDPOINTS) -> dict[str, Any]:
    """The whole document, for a bank with this limit on the bytes of a text."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in served:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    for page in PAGES:
        paths.setdefault(page.path, {})[page.method.lower()] = _page(page)
    return {
        "openapi": "3.1.0",
        "info": {"title": "TierMem", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "paths": _limited(paths, max_content_bytes),
        "components": {
            "schemas": {"Memory": MEMORY, "Problem": _PROBLEM},
            "responses": {f"Problem{status}": _refusal(status) for status in _WHY},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation = endpoint.operation
    made: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": operation.description,
        "security": [{"token": [operation.permission]}],
        "parameters": _parameters(endpoint),
        "responses": {
            str(endpoint.status): _success("application/json", _named(endpoint.result)),
            **_refusals(_statuses(endpoint)),
        },
    }
    if endpoint.has_body:
        example = {
            name: value
            for name, value in operation.example.items()
            if name in endpoint.given["properties"]
        }
        content: dict[str, Any] = {"schema": _nullable(endpoint.given)}
        if operation.example or operation.profile is None:
            content["example"] = example
        made["requestBody"] = {
            "required": bool(endpoint.given["required"]),
            "content": {"application/json": content},
        }
    return made


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": endpoint.operation.arguments["properties"][name],
            **_example(endpoint.operation, name),
        }
        for name in endpoint.in_path
    ]
    if endpoint.has_body:
        return in_path
    needed = endpoint.given["required"]
    return in_path + [
        {"name": name, "in": "query", "required": name in needed, "schema": schema}
        for name, schema in endpoint.given["properties"].items()
    ]


def _example(operation: Operation, name: str) -> dict[str, Any]:
    return {"example": operation.example[name]} if name in operation.example else {}


def _page(page: ServicePage) -> dict[str, Any]:
    schema: Schema = {"type": "object" if page.media_type == "application/json" else "string"}
    statuses = {403, 429, 500, 503} | ({400, 401} if page.permission else set())
    return {
        "operationId": page.name,
        "summary": page.description,
        "security": [{"token": [page.permission]}] if page.permission else [],
        "responses": {
            "200": _success(page.media_type, schema),
            **_refusals(statuses),
        },
    }


_NAME_MEMORIES = {"memory_id", "ids", "supersedes", "contradicts", "evidence", "correction"}
"""Arguments that name memories of the agent."""


def _statuses(endpoint: Endpoint) -> set[int]:
    """Every status of an operation, except success."""
    found = {400, 401, 403, 408, 413, 422, 429, 500, 503}
    if endpoint.has_body:
        found.add(415)
    if endpoint.operation.arguments["properties"].keys() & _NAME_MEMORIES:
        found.add(404)
    if endpoint.operation.permission in ("write", "tell"):
        found.add(409)
    return found


def _success(media_type: str, schema: Schema) -> dict[str, Any]:
    return {"description": "Done.", "content": {media_type: {"schema": schema}}}


def _named(schema: Any) -> Any:
    """The schema, with a reference wherever it describes a memory."""
    if schema == MEMORY:
        return {"$ref": "#/components/schemas/Memory"}
    if isinstance(schema, dict):
        return {key: _named(value) for key, value in schema.items()}
    return [_named(each) for each in schema] if isinstance(schema, list) else schema


def _limited(schema: Any, most: int) -> Any:
    """The schema, with the limit of this bank wherever it describes the text of a memory."""
    if schema == CONTENT:
        said = f"{schema['description']} At most {most:,} bytes in UTF-8."
        return {**schema, "maxLength": min(schema["maxLength"], most), "description": said}
    if isinstance(schema, dict):
        return {key: _limited(value, most) for key, value in schema.items()}
    return [_limited(each, most) for each in schema] if isinstance(schema, list) else schema


def _nullable(arguments: Schema) -> Schema:
    """The arguments; null stands for an argument that is not given."""
    needed = arguments["required"]
    return {
        **arguments,
        "properties": {
            name: schema if name in needed else {"anyOf": [schema, {"type": "null"}]}
            for name, schema in arguments["properties"].items()
        },
    }


def _refusals(statuses: set[int]) -> dict[str, Any]:
    return {
        str(status): {"$ref": f"#/components/responses/Problem{status}"}
        for status in sorted(statuses)
    }


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    headers = {"headers": _HEADERS[status]} if status in _HEADERS else {}
    return {"description": _WHY[status], "content": {MEDIA_TYPE: {"schema": schema}}, **headers}
