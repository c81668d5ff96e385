"""A bank with a profile over MCP and HTTP: the profile's operations, and no others."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import run_command
from http_service import is_problem, served
from jsonschema import Draft202012Validator
from mcp_clients import text_of
from mcp_versions import Client

from agents import AsyncMemoryBank, MemoryBank
from agents.interfaces.mcp.server import Access, make_server
from agents.tools.profiles import table_of

ADD = {"sessionId": "s1", "content": "The budget is $50K", "type": "fact"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_an_mcp_client_sees_the_documents_tools(mode: str) -> None:
    async def main(bank: MemoryBank) -> None:
        agent = AsyncMemoryBank(bank).agent("alice")
        server = make_server(lambda _: Access(agent, "write"), profile=bank.settings.profile)
        async with Client(server, mode=mode) as client:
            listed = (await client.list_tools()).tools
            assert {each.name: each.input_schema for each in listed} == {
                each.name: each.arguments for each in table_of("ctx-sys").values()
            }
            for name, given in (
                ("memory_add", ADD),
                ("memory_spill", {"sessionId": "s1"}),
                ("memory_recall", {"sessionId": "s1", "query": "what was the budget?"}),
                ("memory_status", {"sessionId": "s1"}),
            ):
                result = await client.call_tool(name, given)
                assert not result.is_error, text_of(result)
                shape = table_of("ctx-sys")[name].result
                Draft202012Validator(shape).validate(result.structured_content)
            refused = await client.call_tool("memory_spill", {"count": 1})
            assert "'sessionId' is a required property" in text_of(refused)
            unknown = await client.call_tool("store_memory", {"content": "x"})
            assert "there is no operation 'store_memory'" in text_of(unknown)

    with MemoryBank.ephemeral(profile="ctx-sys", store=None) as bank:
        anyio.run(main, bank)


def test_an_http_client_has_the_documents_names(tmp_path: Path) -> None:
    with served(tmp_path / "bank", profile="fr-004") as running, running.agent("ann") as ann:
        given: dict[str, Any] = {"content": "We build", "category": "decision", "tier": "cold"}
        stored = ann.post("/memory", json=given)
        assert (stored.status_code, stored.json()["tier"]) == (201, "cold")
        asked = {"query": "build", "includeCold": True}
        (row,) = ann.post("/memory/recall", json=asked).json()["results"]
        assert (row["category"], row["tier"]) == ("decision", "cold")
        assert ann.post("/memory/recall", json={"query": "build"}).json()["results"] == []
        assert is_problem(ann.post("/memory", json={**given, "kind": "fact"}), 422, "InvalidInput")
        assert ann.post("/group/guild/leave", json={}).status_code == 404
        described = json.dumps(ann.get("/openapi.json").json()["paths"])
        assert "includeCold" in described
        assert "include_cold" not in described


def test_commands_have_the_names_of_the_banks_profile(tmp_path: Path) -> None:
    bank = tmp_path / "bank"
    of_ann = (bank, "-a", "ann")

    def ok(*words: object) -> str:
        done = run_command(*words)
        assert done.code == 0, done
        return done.out

    ok("init", bank, "--profile", "fr-004")
    ok("add", *of_ann, "We build in stone", "--tier", "cold", "--category", "decision")
    ok("add", *of_ann, "stone is dear", "--tier", "hot")
    assert "We build in stone" in ok("search", *of_ann, "stone", "--tier", "cold")
    assert "We build in stone" in ok("search", *of_ann, "stone", "--tier", "cold", "--explain")
    assert "stone is dear" in ok("search", *of_ann, "stone")
    assert "We build" not in ok("search", *of_ann, "stone")
    asked = json.dumps({"query": "stone", "includeCold": True})
    results = json.loads(ok("call", *of_ann, "memory_recall", asked))["results"]
    assert {each["tier"] for each in results} == {"hot", "cold"}
    assert run_command("call", *of_ann, "memory_recall", "{").is_one_error(2, "is not JSON")
    wrong = run_command("call", *of_ann, "memory_recal")
    assert wrong.is_one_error(2, "did you mean memory_recall?")
