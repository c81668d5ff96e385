"""The paths of the service, made from the table of operations."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ...errors import InvalidInput
from ...tools import OPERATIONS, Operation
from ...tools.operations import Permission
from ...tools.shapes import MEMORY, Schema


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


class Page(NamedTuple):
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

ENDPOINTS: tuple[Endpoint, ...] = (
    *(_of_table(operation) for operation in OPERATIONS.values()),
    Endpoint(
        "memory_get_by_id",
        "GET",
        "/memory/{memory_id}",
        200,
        _GET._replace(description="A memory, by its id.", example=OPERATIONS["pin_memory"].example),
        MEMORY,
        lambda result: result["memory"],
        ("memory_id",),
        _without(_GET.arguments, tuple(_GET.arguments["properties"])),
    ),
)

HEALTH = Page("health", "/health", "Whether the service answers.", None)

PAGES: tuple[Page, ...] = (
    Page("index", "/", "What there is here.", None),
    HEALTH,
    Page("openapi", "/openapi.json", "This description.", None),
    Page(
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
