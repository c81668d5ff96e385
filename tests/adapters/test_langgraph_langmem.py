"""LangMem's tools on a bank. LangMem brings the clients of two paid services: it is in no extra."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.langgraph import TierMemStore
from banks import MANUAL

langmem = pytest.importorskip("langmem")

PLACE = ("memories", "ann")


def tools_of(store: TierMemStore) -> tuple[Any, Any]:
    manage = langmem.create_manage_memory_tool(PLACE, store=store)
    return manage, langmem.create_search_memory_tool(PLACE, store=store)


def id_in(told: str) -> str:
    (found,) = re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", told)
    return found


def test_a_model_creates_finds_updates_and_deletes_a_memory(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        manage, find = tools_of(TierMemStore(bank, fields=["content"]))
        made = id_in(manage.invoke({"content": "Ann eats meat", "action": "create"}))
        manage.invoke({"content": "Ann lives in Oslo", "action": "create"})
        found = json.loads(find.invoke({"query": "what does she eat?"}))
        assert found[0]["value"]["content"] == "Ann eats meat"
        manage.invoke({"content": "Ann eats no meat", "action": "update", "id": made})
        versions = bank.agent("memories.ann").history(made)
        assert [each.content for each in versions] == ["Ann eats meat", "Ann eats no meat"]
        manage.invoke({"action": "delete", "id": made})
        assert "meat" not in find.invoke({"query": "what does she eat?"})
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        _, find = tools_of(TierMemStore(bank))
        assert "Oslo" in find.invoke({"query": "where does she live?"})


def test_the_tools_are_async_as_well() -> None:
    async def use(bank: MemoryBank) -> str:
        manage, find = tools_of(TierMemStore(bank))
        await manage.ainvoke({"content": "Ann is allergic to nuts", "action": "create"})
        return str(await find.ainvoke({"query": "allergies"}))

    with MemoryBank.ephemeral() as bank:
        assert "allergic to nuts" in asyncio.run(use(bank))
