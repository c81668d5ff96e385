"""One agent's memory for MCP clients: the operations as tools, notes as resources, two prompts."""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote, unquote

from mcp.server import Server

from ... import __version__, tools
from ...bank.agent_memory import AgentMemory
from ...bank.async_bank import AsyncAgentMemory
from ...config.profiles import profile as profile_of
from ...engine import clock
from ...errors import InvalidInput, NoteRefused, TierMemError
from ...notes.flush import FLUSH_PROMPT
from ...tools import Failure, Operation, Outcome
from ...tools.checking import Table
from ...tools.operations import WHY_NOT, Permission, allows
from ...tools.profiles import table_of
from ...tools.shapes import QUERY
from ..http.problems import told
from .sdk import Context, build, error, make, types

__all__ = ["Access", "Context", "make_server"]

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_INSTRUCTIONS = """\
The long-term memory of one agent. At the start of a session read the resource memory://context: \
it holds what must not be forgotten and what is at hand. Before you answer from memory, use \
memory_search; it finds notes and memories, and memory_get gives the lines that it cites. Store \
what will matter later, one fact at a time; pin only what must never be forgotten. A call that is \
refused has changed nothing: its result is an error, whose text is the error's type and what to \
do about it."""

_CONTEXT = "memory://context"
_STATUS = "memory://status"
_NOTES = "memory://notes/"

_INTERNAL = "something went wrong inside TierMem; the log says what"


class Access(NamedTuple):
    """What a request may use: the memory of one agent, and what it may do with it."""

    memory: AsyncAgentMemory
    permission: Permission

    @property
    def may_write(self) -> bool:
        return allows(self.permission, "write")


def make_server(
    who: Callable[[Context], Access],
    private: Sequence[str] | None = None,
    profile: str | None = None,
) -> Server[Any]:
    """A server in which ``who`` decides the access of each request, not the request's arguments.

    ``profile`` is that of the bank: the tools are its operations.

    With ``private``, clients are far away: no error tells them of these paths, or of the machine.

    The failure of a tool is a result with ``isError``; any other failure is a JSON-RPC error. Calls
    take turns at the bank in the order of their arrival. A call that has begun is finished even if
    its client is gone.
    """
    offer = _Offer(who, private, table_of(profile))
    return make(
        "tiermem",
        {
            "list_tools": offer.list_tools,
            "call_tool": offer.call_tool,
            "list_resources": offer.list_resources,
            "list_resource_templates": offer.list_templates,
            "read_resource": offer.read_resource,
            "list_prompts": offer.list_prompts,
            "get_prompt": offer.get_prompt,
        },
        offer.input_schema,
        version=__version__,
        title="TierMem",
        instructions=_INSTRUCTIONS if profile is None else profile_of(profile).about,
    )


class _Offer:
    """The tools, resources and prompts of a client."""

    def __init__(
        self, who: Callable[[Context], Access], private: Sequence[str] | None, table: Table
    ) -> None:
        self._who = who
        self._private = private
        self._table = table

    # Tools

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        access = self._who(context)
        return types.ListToolsResult(
            tools=[
                _tool(each)
                for each in self._table.values()
                if allows(access.permission, each.permission)
            ]
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        access, operation = self._who(context), self._table.get(params.name)
        if operation is not None and not allows(access.permission, operation.permission):
            why = f"{params.name} changes the memory, and here it may only be read"
            if access.may_write:
                why = f"{params.name} {WHY_NOT[operation.permission]}, which is not allowed here"
            return _result(Outcome(None, Failure("NotAllowed", why)))
        outcome = await access.memory.run(
            tools.call, params.name, params.arguments, access.permission
        )
        failure = None if outcome.failure is None else self._as_told(outcome.failure)
        return _result(Outcome(outcome.result, failure))

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments; None for no tool."""
        return self._table[name].arguments if name in self._table else None

    # Resources

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        paths = await self._told(self._who(context), lambda memory: memory.notes.paths())
        fixed = [
            build(
                types.Resource,
                uri=_CONTEXT,
                name="context",
                description="Pinned and hot memories: what to have in mind from the start.",
                mime_type="text/plain",
            ),
            build(
                types.Resource,
                uri=_STATUS,
                name="status",
                description="How full the memory is, and what is worth doing about it.",
                mime_type="application/json",
            ),
        ]
        return types.ListResourcesResult(resources=fixed + [_note(path) for path in paths])

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        notes = build(
            types.ResourceTemplate,
            uri_template=_NOTES + "{+path}",
            name="note",
            description="A Markdown note: MEMORY.md, or memory/NAME.md.",
            mime_type="text/markdown",
        )
        return build(types.ListResourceTemplatesResult, resource_templates=[notes])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        text, kind = await self._told(self._who(context), _read, str(params.uri))
        contents = build(types.TextResourceContents, uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents])

    # Prompts

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        query = types.PromptArgument(name="query", description="What it is about.", required=True)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name="flush",
                    description="Before a context is compacted: save what should last.",
                ),
                types.Prompt(
                    name="recall",
                    description="What the agent knows that matters for something.",
                    arguments=[query],
                ),
            ]
        )

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        text = await self._told(self._who(context), _prompt, params.name, params.arguments or {})
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def _told(
        self,
        access: Access,
        function: Callable[Concatenate[AgentMemory, _P], _T],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _T:
        """The result of the function; its failure is an error for the client."""

        def looked(memory: AgentMemory) -> _T:
            clock.follow(memory.engine)
            # Reading with a read-only token does not count as use of a memory.
            with nullcontext() if access.may_write else memory.engine.observing():
                return function(memory, *arguments, **options)

        try:
            return await access.memory.run(looked)
        except TierMemError as refused:
            failure = self._as_told(Failure(type(refused).__name__, str(refused)))
            raise error(types.INVALID_PARAMS, failure.message) from None
        except Exception:  # the client learns nothing of it, and the log everything
            logger.exception("a request failed")
            raise error(types.INTERNAL_ERROR, _INTERNAL) from None

    def _as_told(self, failure: Failure) -> Failure:
        """The failure, as this client learns of it."""
        if self._private is None:
            return failure
        return Failure(failure.type, told(failure, self._private))


def _tool(operation: Operation) -> types.Tool:
    is_read = operation.permission == "read"
    return build(
        types.Tool,
        name=operation.name,
        description=operation.description,
        input_schema=operation.schema(),
        output_schema={"type": "object", **operation.result},  # clients before 2026 need the type
        annotations=build(
            types.ToolAnnotations,
            read_only_hint=is_read,
            destructive_hint=None if is_read else operation.destroys,
            open_world_hint=False,
        ),
    )


def _result(outcome: Outcome) -> types.CallToolResult:
    if outcome.failure is not None:
        text = f"{outcome.failure.type}: {outcome.failure.message}"
    else:
        text = json.dumps(outcome.result, ensure_ascii=False)
    return build(
        types.CallToolResult,
        content=[types.TextContent(type="text", text=text)],
        structured_content=outcome.result,
        is_error=outcome.is_error,
    )


def _note(path: str) -> types.Resource:
    return build(types.Resource, uri=_NOTES + quote(path), name=path, mime_type="text/markdown")


def _read(memory: AgentMemory, uri: str) -> tuple[str, str]:
    """The text of a resource, and its media type."""
    if uri == _CONTEXT:
        return memory.get_relevant_memories(), "text/plain"
    if uri == _STATUS:
        return json.dumps(memory.status().to_dict(), ensure_ascii=False), "application/json"
    if not uri.startswith(_NOTES):
        raise InvalidInput(
            f"there is no resource {uri!r:.80}",
            hint=f"there are {_CONTEXT}, {_STATUS} and {_NOTES}PATH",
        )
    try:
        path = unquote(uri.removeprefix(_NOTES), errors="strict")
    except UnicodeDecodeError:
        raise NoteRefused(f"{uri!r:.80} is not a note's: its %-codes are not UTF-8") from None
    text = memory.notes.read(path)
    if not text and path not in memory.notes.paths():
        raise NoteRefused(f"{memory.agent_id} has no note {path!r:.80}")
    return text, "text/markdown"


def _prompt(memory: AgentMemory, name: str, arguments: dict[str, str]) -> str:
    if name == "flush":
        return f"{FLUSH_PROMPT}\n\nWhat is in view now:\n{memory.get_relevant_memories()}"
    if name != "recall":
        raise InvalidInput(f"there is no prompt {name!r:.60}", hint="there are flush and recall")
    query, most = arguments.get("query", "").strip(), QUERY["maxLength"]
    if not query:
        raise InvalidInput("recall needs a query: what it is about")
    if len(query) > most:
        raise InvalidInput(f"a query of {len(query):,} characters is over {most:,}")
    found = memory.get_relevant_memories(query)
    return f"{query}\n\nWhat you know that may matter for this:\n{found}"
