"""Groups: a board that members write and search, and nobody else."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents import (
    AgentMemory,
    AsyncMemoryBank,
    InvalidAgentId,
    InvalidInput,
    InvalidTier,
    MemoryBank,
    MemoryNotFound,
    Temperature,
)
from asking import asker
from banks import MakeBank, everything, undone
from embedders import Directions

PLAN = "we meet at the bridge <1 0>"


def found(agent: AgentMemory, **options: Any) -> list[str]:
    return [hit.memory.content for hit in agent.search("<1 0>", include_groups=True, **options)]


def test_members_find_what_is_on_the_board(bank: MemoryBank, alice: AgentMemory) -> None:
    guild = bank.group("guild", members=["alice", "bob"])
    bob = bank.agent("bob")
    own = alice.add("her own <9 1>")
    posted = bob.social.post("guild", PLAN)
    assert (posted.speaker, posted.content) == ("bob", PLAN)
    assert found(alice) == [PLAN, own.content]
    assert found(bob) == [PLAN]
    assert [hit.memory for hit in alice.search("<1 0>")] == [own]
    assert guild.all() == [posted]
    assert (guild.members(), alice.social.groups()) == ({"alice": 0, "bob": 0}, ["guild"])
    assert bank.groups() == ["guild"]
    assert bank.agents() == ["alice"]
    assert guild.all()[0].access_count == 2


def test_who_is_no_member_neither_reads_nor_writes(bank: MemoryBank, alice: AgentMemory) -> None:
    bank.group("guild", ["bob"]).post("bob", PLAN)
    posted = bank.group("guild").all()[0]
    assert found(alice) == []
    with pytest.raises(InvalidInput, match="not a member"):
        alice.social.post("guild", "let me in")
    with pytest.raises(InvalidInput, match="not a member"):
        alice.social.leave("guild")
    for call in (alice.get, alice.forget, alice.pin, asker(alice, "restore")):
        with pytest.raises(MemoryNotFound):
            call(posted.id)
    with pytest.raises(MemoryNotFound):
        alice.social.tell("bob", posted.id)
    for name in (".guild", "..guild"):
        with pytest.raises(InvalidAgentId):
            bank.agent(name)
        with pytest.raises(InvalidAgentId):
            bank.add_many([(name, "forged")])


def test_members_can_only_append(bank: MemoryBank, alice: AgentMemory) -> None:
    bank.group("guild", ["alice"])
    posted = alice.social.post("guild", PLAN)
    for call in (alice.get, alice.delete, alice.forget, asker(alice, "archive")):
        with pytest.raises(MemoryNotFound):
            call(posted.id)
    for tier in ("pinned", "critical"):
        with pytest.raises(InvalidTier):
            alice.social.post("guild", "push the rest out", tier)


def test_leaving_ends_access_from_that_tick_on(bank: MemoryBank, alice: AgentMemory) -> None:
    guild = bank.group("guild", ["alice", "bob"])
    alice.social.post("guild", PLAN)
    bank.advance(5)
    assert found(alice) == [PLAN]
    alice.social.leave("guild")
    bank.agent("bob").social.post("guild", "without alice <1 0>")
    assert found(alice) == []
    assert len(found(bank.agent("bob"))) == 2
    with pytest.raises(InvalidInput, match="not a member"):
        alice.social.post("guild", "again")
    bank.group("guild", ["alice"])
    assert guild.members() == {"alice": 5, "bob": 0}
    assert len(found(alice)) == 2


def test_pinned_memories_of_ones_own_come_first(bank: MemoryBank, alice: AgentMemory) -> None:
    bank.group("guild", ["alice"])
    alice.social.post("guild", PLAN, "important")
    pin = alice.add("never forget <0 1>", "pinned")
    assert found(alice) == [pin.content, PLAN]
    assert found(alice, limit=1) == [pin.content]
    assert found(alice, limit=2) == [pin.content, PLAN]
    hits = alice.search("", include_groups=True)
    assert [hit.memory.content for hit in hits] == [pin.content, PLAN]


def test_two_boards_and_a_budget(bank: MemoryBank, alice: AgentMemory) -> None:
    for name in ("guild", "town"):
        bank.group(name, ["alice"])
        alice.social.post(name, f"{name} <1 0>")
    assert found(alice) == ["guild <1 0>", "town <1 0>"]
    assert found(alice, limit=1) == ["guild <1 0>"]
    assert len(found(alice, context_tokens=5)) == 1


def test_a_group_is_kept(open_bank: MakeBank, snapshots_on_close: None) -> None:
    bank = open_bank()
    bank.group("guild", ["alice", "bob"]).post("bob", PLAN)
    bank.agent("bob").social.leave("guild")
    before, state = everything(bank), bank.state_hash()
    with undone(bank):
        bank.group("other", ["alice"]).post("alice", "undone")
    assert (bank.groups(), bank.state_hash()) == (["guild"], state)
    for _ in range(2):
        bank = open_bank()
        assert (everything(bank), bank.state_hash()) == (before, state)
    assert found(bank.agent("alice")) == [PLAN]
    assert found(bank.agent("bob")) == []


@pytest.mark.parametrize("name", ["", ".guild", "a b", "*", "x" * 128, None, 3])
def test_a_groups_name_is_like_an_agents(bank: MemoryBank, name: Any) -> None:
    with pytest.raises(InvalidInput):
        bank.group(name, ["alice"])
    assert bank.groups() == []


def test_a_group_has_members_first(bank: MemoryBank, alice: AgentMemory) -> None:
    with pytest.raises(InvalidInput, match="there is no group"):
        bank.group("guild")
    with pytest.raises(InvalidInput):
        bank.group("guild", ["alice", "*"])
    with pytest.raises(InvalidInput, match="takes a list"):
        bank.group("guild", "alice")
    assert bank.groups() == []
    bank.group("guild", ["alice"])
    alice.social.leave("guild")
    assert bank.group("guild").members() == {}


def test_a_group_and_an_agent_may_share_a_name(bank: MemoryBank) -> None:
    guild = bank.agent("guild").add("an agent's own")
    bank.group("guild", ["guild"])
    posted = bank.agent("guild").social.post("guild", PLAN)
    assert posted.id != guild.id
    assert bank.agent("guild").all() == [guild]


def test_boards_are_no_agents(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.add("mine")
    bank.group("guild", ["alice", "bob"]).post("bob", PLAN)
    bank.group("town", ["bob"])
    whole, own = bank.status(), bank.status("alice")
    assert (whole.agents, whole.groups, own.groups) == (1, 2, 1)
    assert whole.retention["active"] == whole.tiers["normal"].items == 1
    assert all(each.agent_id == "alice" for each in whole.fullest)
    assert whole.to_dict()["groups"] == 2


def test_a_compaction_of_the_bank_is_one_of_its_boards(make_bank: MakeBank) -> None:
    rules = [{"name": "old", "when": {"age": 3}, "to": "cold"}]
    bank = make_bank(temperature={"rules": rules, "max_cold_items": 1})
    guild = bank.group("guild", ["alice", "bob"])
    posted = [guild.post("bob", f"{n} <1 0>") for n in range(2)]
    own = bank.agent("alice").add("her own <1 0>")
    bank.advance(4)
    moves = bank.compact(dry_run=True).moves
    assert [move.memory.id for move in moves] == [*(each.id for each in posted), own.id]
    assert bank.compact().cold == 3
    assert {each.temperature for each in guild.all()} == {Temperature.COLD}
    assert bank.compact().cold == 0
    assert bank.prune() == [posted[0].id]
    assert bank.agent("alice").compact().cold == 0


def trusting(make_bank: MakeBank) -> tuple[MemoryBank, AgentMemory]:
    """Bob wrote ten things to a board, carol one, and alice does not trust bob."""
    bank = make_bank(retrieval={"trust": True, "mode": "vector"})
    guild = bank.group("guild", ["alice", "bob", "carol"])
    for number in range(10):
        guild.post("bob", f"bob's {number} <1 0>")
    guild.post("carol", "carol's <1 1>")
    return bank, bank.agent("alice")


def test_trust_counts_for_what_is_on_a_board(make_bank: MakeBank) -> None:
    bank, alice = trusting(make_bank)
    assert "carol's <1 1>" not in found(alice, limit=3)
    alice.social.trust("bob", 0.5)
    assert found(alice, limit=3)[0] == "carol's <1 1>"
    assert found(bank.agent("carol"), limit=1) == ["bob's 9 <1 0>"]
    _, second = alice.search("<1 0>", 2, include_groups=True)
    assert second.score == 0.5
    assert second.boosted_score == second.score + second.boost


def test_an_explanation_says_what_a_search_of_boards_gives(make_bank: MakeBank) -> None:
    bank, alice = trusting(make_bank)
    alice.social.trust("bob", 0.5)
    own = alice.add("her own <0 1>")
    alice.add("a pin <0 1>", "pinned")
    state = bank.state_hash()
    for options in ({"limit": 3}, {"limit": 4, "context_tokens": 9}, {"limit": 20}):
        rows = alice.explain("<1 0>", include_groups=True, **options)
        with undone(bank):
            hits = alice.search("<1 0>", include_groups=True, **options)
        given = [row for row in rows if row.rank is not None]
        assert [row.rank for row in given] == list(range(1, len(hits) + 1))
        assert [row[:4] for row in given] == [tuple(hit[:4]) for hit in hits]
        assert len(rows) == len({row.memory.id for row in rows}) == 13
    assert bank.state_hash() == state
    rows = alice.explain("<1 0>", 3, include_groups=True)
    why = {row.memory.content: row for row in rows}
    assert why["a pin <0 1>"].reason == "pinned"
    assert why["carol's <1 1>"].reason == "chosen from the board of guild"
    assert (why["bob's 0 <1 0>"].reason, why["bob's 0 <1 0>"].trust) == ("below the cut", 0.5)
    assert why[own.content].rank is None
    assert not any(row.memory.speaker for row in alice.explain("<1 0>", 3))
    with pytest.raises(InvalidInput, match="nothing of boards"):
        alice.explain("<1 0>", context=True, include_groups=True)


# Forgetting


def files_with(folder: Path, text: str) -> list[str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in paths if text.encode() in path.read_bytes()]


def test_what_is_on_a_board_can_be_forgotten(bank: MemoryBank, alice: AgentMemory) -> None:
    guild = bank.group("guild", ["alice", "bob"])
    gone, kept = guild.post("bob", PLAN), guild.post("bob", "we row <1 1>")
    own = alice.add(PLAN)
    guild.forget(gone.id)
    assert (guild.all(), alice.all()) == ([kept], [own])
    assert gone.id not in [hit.memory.id for hit in alice.search("<1 0>", include_groups=True)]
    assert guild.post("alice", "on <1 0>").sequence == 3
    state = bank.state_hash()
    for wrong in (gone.id, own.id, "", 1):
        with pytest.raises(MemoryNotFound, match="the board of guild has no memory"):
            guild.forget(wrong)  # type: ignore[arg-type]
    with undone(bank):
        guild.forget(kept.id)
    assert (bank.state_hash(), guild.all()[0]) == (state, kept)


def test_a_memory_of_another_board_is_not_forgotten(bank: MemoryBank) -> None:
    posted = bank.group("guild", ["alice"]).post("alice", PLAN)
    with pytest.raises(MemoryNotFound):
        bank.group("town", ["alice"]).forget(posted.id)
    assert bank.group("guild").all() == [posted]


def test_what_a_compaction_archived_on_a_board_can_be_forgotten(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"max_cold_items": 1}, decay={"enabled": True})
    guild = bank.group("guild", ["alice"])
    posted = [guild.post("alice", f"{number} <1 0>") for number in range(3)]
    bank.advance(10_000)
    bank.sweep()
    bank.advance(20_000)
    bank.sweep()
    assert len(bank.prune()) == 2
    for each in posted:
        guild.forget(each.id)
    assert guild.all() == []


@pytest.mark.parametrize("is_restored", [False, True])
def test_forgotten_text_of_a_board_is_in_no_file_after_a_vacuum(
    open_bank: MakeBank, folder: Path, snapshots_on_close: None, is_restored: bool
) -> None:
    bank = open_bank()
    posted = bank.group("guild", ["alice"]).post("alice", "swordfish <1 0>")
    bank.group("guild").post("alice", "we row <1 1>")
    if is_restored:
        bank.checkpoint(checkpoint := folder.with_name("old.tmck"))
        bank.close()
        shutil.rmtree(folder)
        MemoryBank.restore(checkpoint, folder, embedder=Directions()).close()
    bank = open_bank()
    assert files_with(folder, "swordfish")
    bank.group("guild").forget(posted.id)
    state = bank.state_hash()
    assert bank.vacuum() == []
    assert files_with(folder, "swordfish") == []
    for _ in range(2):
        bank = open_bank()
        assert bank.state_hash() == state
        assert [each.content for each in bank.group("guild").all()] == ["we row <1 1>"]
    assert files_with(folder, "swordfish") == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::UserWarning:mem0")
def test_forgotten_text_of_a_board_is_in_no_file_of_mem0s_store_either(folder: Path) -> None:
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        posted = bank.group("guild", ["alice"]).post("alice", "swordfish <1 0>")
        bank.agent("alice").add("alice's own")
    assert {"journal.db", "chroma.sqlite3"} <= set(files_with(folder, "swordfish"))
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        bank.group("guild").forget(posted.id)
        assert bank.vacuum() == []
    assert files_with(folder, "swordfish") == []


async def _awaited() -> list[str]:
    async with AsyncMemoryBank.ephemeral(preset="vector") as bank:
        guild = await bank.group("guild", ["alice", "bob"])
        alice = bank.agent("alice")
        await alice.social.post("guild", "a plan")
        await guild.post("bob", "another")
        await guild.forget((await guild.post("bob", "a secret")).id)
        await guild.leave("bob")
        assert await alice.social.groups() == await bank.groups() == ["guild"]
        assert list(await guild.members()) == ["alice"]
        return [each.content for each in await guild.all()]


def test_groups_can_be_awaited() -> None:
    assert asyncio.run(_awaited()) == ["a plan", "another"]
