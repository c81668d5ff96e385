"""The programs of docs/howto/langgraph.md run, and print what the page says."""

import asyncio
import re
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

from agents import AsyncMemoryBank, MemoryBank
from agents.langgraph import AsyncTierMemStore, TierMemStore
from banks import ROOT

PAGE = (ROOT / "docs/howto/langgraph.md").read_text()
PROGRAMS = re.findall(r"^```python( needs=\w+)?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("needs", "code"), PROGRAMS, ids=["graph", "langmem"])
def test_a_program_of_the_page_prints_what_it_says(
    needs: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    if needs:
        pytest.importorskip(needs.removeprefix(" needs="))
    monkeypatch.chdir(tmp_path)
    code = code.replace('open("bank-folder")', 'open("bank", storage={"sync": "manual"})')
    exec(compile(code, "docs/howto/langgraph.md", "exec"), {"__name__": "example"})
    promised = [line.removeprefix("    # ") for line in code.splitlines() if "    # " in line]
    assert capsys.readouterr().out.splitlines() == promised


class Seen(TypedDict):
    user: str
    items: list[str]


async def note(state: Seen, *, store: BaseStore) -> None:
    await store.aput(("users", state["user"]), "seen", {"text": f"{state['user']} was here"})


async def look(state: Seen, *, store: BaseStore) -> dict[str, list[str]]:
    found = await store.asearch(("users", state["user"]), query="who was here?")
    return {"items": [item.value["text"] for item in found]}


@pytest.mark.parametrize("is_async_bank", [True, False])
def test_many_async_runs_of_a_graph_share_a_store(is_async_bank: bool) -> None:
    async def runs(bank: MemoryBank) -> list[Any]:
        store = AsyncTierMemStore(AsyncMemoryBank(bank)) if is_async_bank else TierMemStore(bank)
        graph = StateGraph(Seen)
        graph.add_node(note)
        graph.add_node(look)
        graph.add_edge(START, "note")
        graph.add_edge("note", "look")
        app = graph.compile(checkpointer=InMemorySaver(), store=store)
        return await asyncio.gather(
            *[
                app.ainvoke({"user": f"u{n}"}, {"configurable": {"thread_id": f"{n}"}})
                for n in range(20)
            ]
        )

    with MemoryBank.ephemeral() as bank:
        results = asyncio.run(runs(bank))
        assert [each["items"] for each in results] == [[f"u{n} was here"] for n in range(20)]
