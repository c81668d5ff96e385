"""A client of version 1 or 2 of the official MCP package, used in the same way."""

from contextlib import AsyncExitStack
from typing import Any

from mcp import StdioServerParameters

__all__ = ["IS_FIRST", "AsyncClient", "Client", "MCPError"]

try:
    from httpx2 import AsyncClient
    from mcp import Client, MCPError

    IS_FIRST = False
except ImportError:
    from httpx import AsyncClient
    from mcp import ClientSession, McpError, stdio_client
    from mcp.server import Server
    from mcp.shared.memory import create_connected_server_and_client_session

    IS_FIRST = True
    MCPError = McpError

    class _Snake:
        """A value of version 1, whose names are read in snake case."""

        def __init__(self, value: Any) -> None:
            self._value = value

        def __str__(self) -> str:
            return str(self._value)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("model_"):
                return getattr(self._value, name)
            first, *rest = name.split("_")
            found = getattr(self._value, first + "".join(part.capitalize() for part in rest))
            if isinstance(found, list):
                return [_Snake(each) if hasattr(each, "model_dump") else each for each in found]
            if type(found).__name__ == "AnyUrl":
                return str(found)
            return _Snake(found) if hasattr(found, "model_dump") else found

    class Client:  # type: ignore[no-redef]
        """A session with a server: an object, a command, or a place on the net."""

        def __init__(self, server: Any, mode: str = "legacy") -> None:
            self._server, self._stack = server, AsyncExitStack()

        async def __aenter__(self) -> "Client":
            if isinstance(self._server, Server):
                made: Any = create_connected_server_and_client_session(self._server)
                self._session = await self._stack.enter_async_context(made)
                return self
            is_command = isinstance(self._server, StdioServerParameters)
            transport = stdio_client(self._server) if is_command else self._server
            read, write, *_ = await self._stack.enter_async_context(transport)
            session = ClientSession(read, write)
            self._session = await self._stack.enter_async_context(session)
            self.server_info = (await self._session.initialize()).serverInfo
            return self

        async def __aexit__(self, *error: Any) -> None:
            await self._stack.__aexit__(*error)

        def __getattr__(self, name: str) -> Any:
            async def call(*given: Any, **named: Any) -> Any:
                return _Snake(await getattr(self._session, name)(*given, **named))

            return call
