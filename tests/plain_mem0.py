"""A plain ``mem0.Memory`` on a bank's store: what a user of mem0 would open."""

from typing import Any

from agents import MemoryBank
from agents.storage.mem0.package import import_mem0
from agents.storage.mem0.store_child import close

UNUSED = {"provider": "openai", "config": {"api_key": "unused"}}


class PlainMem0:
    """mem0 as its own users know it; it shares nothing with the bank but the store's config."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.memory = import_mem0("mem0").Memory.from_config(
            {"vector_store": config, "embedder": UNUSED, "llm": UNUSED}
        )

    @classmethod
    def of(cls, bank: MemoryBank) -> "PlainMem0":
        return cls(bank.mem0_config())

    def all(self, **filters: object) -> dict[str, dict[str, Any]]:
        found = self.memory.get_all(filters=filters, top_k=10_000)["results"]
        assert len({row["id"] for row in found}) == len(found), "a memory is there twice"
        return {row["id"]: row for row in found}

    def close(self) -> None:
        close(self.memory.vector_store)
        self.memory.close()

    def __enter__(self) -> "PlainMem0":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def assert_store_is_exact(bank: MemoryBank) -> None:
    """Every memory of the bank is in its store, once, as it is now, and nothing else is."""
    with PlainMem0.of(bank) as plain:
        for agent_id in bank.agents():
            expected = {memory.id: memory for memory in bank.agent(agent_id).all()}
            for key in ("user_id", "agent_id"):
                rows = plain.all(**{key: agent_id})
                assert rows.keys() == expected.keys()
                for identifier, row in rows.items():
                    memory = expected[identifier]
                    assert row["memory"] == memory.content
                    assert row["user_id"] == row["agent_id"] == agent_id
                    metadata = {k: v for k, v in memory.metadata.items() if v is not None}
                    assert metadata.items() <= row["metadata"].items()
                    assert row["metadata"]["tier"] == memory.tier
                    assert row["metadata"]["tier_tick"] == memory.tier_tick
        listed = plain.memory.vector_store.list(top_k=100_000)[0]
        total = sum(bank.agent(agent_id).count() for agent_id in bank.agents())
        assert len(listed) == total + 1  # and the row that says whose store it is
