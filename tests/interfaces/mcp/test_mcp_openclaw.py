"""The profile openclaw over MCP: its two tools, and what they answer."""

from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp_versions import Client

from agents import AsyncMemoryBank, MemoryBank, tools
from agents.interfaces.mcp.server import Access, make_server

SEARCH = ("memory_search", {"query": "deployment process", "maxResults": 2.5, "minScore": 0})
GROUP = ("memory_search", {"query": "deployment", "sessionKey": "agent:main:slack:channel:c1"})
LINES = ("memory_get", {"path": "MEMORY.md", "from": 3, "lines": 1})
NO_FILE = ("memory_get", {"path": "../other/MEMORY.md"})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_openclaw_finds_its_tools_and_their_answers(mode: str) -> None:
    with MemoryBank.ephemeral(profile="openclaw") as bank:
        main = bank.agent("main")
        main.notes.write("MEMORY.md", "# Deployment\n\nThe deployment process is build, push.\n")

        async def work() -> None:
            access = Access(AsyncMemoryBank(bank).agent("main"), "read")
            server = make_server(lambda _: access, profile="openclaw")
            async with Client(server, mode=mode) as client:
                listed = {tool.name: tool for tool in (await client.list_tools()).tools}
                wanted = tools.openai_schemas(profile="openclaw")
                assert {name: tool.input_schema for name, tool in listed.items()} == {
                    each["function"]["name"]: each["function"]["parameters"] for each in wanted
                }
                for name, given in (SEARCH, GROUP, LINES, NO_FILE):
                    result = await client.call_tool(name, given)
                    assert not result.is_error
                    answer: Any = result.structured_content
                    assert answer == main.call(name, **given)
                    Draft202012Validator(listed[name].output_schema).validate(answer)

        anyio.run(work)
