"""Telling: a copy with its source crosses from agent to agent, and nothing else does."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from agents import (
    AgentMemory,
    AsyncMemoryBank,
    InvalidAgentId,
    InvalidInput,
    InvalidMetadata,
    InvalidTier,
    MemoryBank,
    MemoryNotFound,
    Retention,
    Source,
    Temperature,
    Tier,
    TierFull,
)
from agents.engine.write import store
from agents.exchange.importing import store_rows
from agents.exchange.row_files import Row, exported
from agents.memory.requests import PLAIN_OPTIONS, KeptMetadata, NewMemories
from agents.memory.sources import SOURCE, Heard
from asking import asked
from banks import MakeBank, everything, undone
from embedders import Directions

NEWS = "agent_X is a scammer <1 0>"


def test_the_listener_gets_a_copy_with_its_source(bank: MemoryBank, alice: AgentMemory) -> None:
    bob = bank.agent("bob")
    bob.add("something of his own")
    own = alice.add(NEWS, "low", {"about": "agent_X"}, kind="decision", tags=["x"], value={"a": 1})
    bank.advance(3)
    told = alice.social.tell("bob", own.id, note="I saw it")
    copy = bob.get(told.memory_id)
    assert (told.listener, told.is_new) == ("bob", True)
    assert copy.source == Source("alice", 3, own.id, "alice", own.id, 1)
    assert (copy.content, copy.kind, copy.tags, copy.value) == (NEWS, "decision", ("x",), {"a": 1})
    assert copy.metadata["about"] == "agent_X"
    assert copy.metadata["told_note"] == "I saw it"
    assert (copy.agent_id, copy.created_tick, copy.tier.name, copy.speaker) == (
        "bob", 3, "LOW", "alice",
    )  # fmt: skip
    assert [hit.memory for hit in bob.search("<1 0>", 1)] == [copy]
    assert own.source is None
    assert alice.all() == [own]


def test_a_copy_leaves_out_what_is_the_tellers_own(bank: MemoryBank, alice: AgentMemory) -> None:
    own = alice.add(NEWS, key="x", session="s", speaker="carol", metadata={"memory_odd": 1})
    copy = bank.agent("bob").get(alice.social.tell("bob", own.id).memory_id)
    assert set(copy.metadata) == {SOURCE, "speaker"}
    assert copy.key is None


def test_through_many_hands_the_origin_stays(bank: MemoryBank, alice: AgentMemory) -> None:
    own = alice.add(NEWS)
    at_bob = alice.social.tell("bob", own.id).memory_id
    at_carol = bank.agent("bob").social.tell("carol", at_bob).memory_id
    copy = bank.agent("carol").get(at_carol)
    assert copy.source == Source("bob", 0, at_bob, "alice", own.id, 2)
    chain = bank.chain(copy)
    assert [each.agent_id for each in chain.memories] == ["carol", "bob", "alice"]
    assert chain.memories[-1] == own
    assert chain.is_whole


def test_where_a_memory_is_forgotten_the_chain_ends_and_says_so(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    own = alice.add(NEWS)
    copy = bank.agent("bob").get(alice.social.tell("bob", own.id).memory_id)
    alice.delete(own.id)
    assert bank.chain(copy) == ((copy,), own.id)
    alice.update(own.id, retention="active")
    assert bank.chain(copy).is_whole
    alice.forget(own.id)
    assert bank.chain(copy).missing == own.id
    assert not bank.chain(copy).is_whole
    assert copy.source is not None
    assert copy.source.origin_agent == "alice"


def test_the_same_thing_told_again_is_counted(bank: MemoryBank, alice: AgentMemory) -> None:
    bob, carol = bank.agent("bob"), bank.agent("carol")
    own = alice.add(NEWS)
    first = alice.social.tell("bob", own.id)
    alice.social.tell("carol", own.id)
    bank.advance(5)
    again = carol.social.tell("bob", carol.all()[0].id)
    assert again == first._replace(is_new=False)
    assert bob.count() == 1
    assert bob.social.heard(first.memory_id) == Heard(2, "carol", 5)
    assert carol.social.heard(carol.all()[0].id) == Heard(1, "alice", 0)
    copy = bob.get(first.memory_id)
    assert copy.source is not None
    assert copy.source.teller == "alice"


def test_two_that_tell_each_other_for_ever_stay_bounded(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    bob, own = bank.agent("bob"), alice.add(NEWS)
    at_bob = alice.social.tell("bob", own.id).memory_id
    for _ in range(50):
        assert bob.social.tell("alice", at_bob) == ("alice", own.id, False)
        assert alice.social.tell("bob", own.id) == ("bob", at_bob, False)
    assert (alice.count(), bob.count()) == (1, 1)
    assert alice.social.heard(own.id).times == 50
    assert bob.social.heard(at_bob).times == 51


def test_one_that_forgot_its_own_memory_can_be_told_it(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    bob, own = bank.agent("bob"), alice.add(NEWS)
    at_bob = alice.social.tell("bob", own.id).memory_id
    alice.forget(own.id)
    back = alice.get(bob.social.tell("alice", at_bob).memory_id)
    assert back.source == Source("bob", 0, at_bob, "alice", own.id, 2)
    assert bob.social.tell("alice", at_bob).is_new is False
    chain = bank.chain(back)
    assert [each.id for each in chain.memories] == [back.id, at_bob]
    assert chain.missing == own.id


def test_what_the_listener_deleted_is_stored_again_and_what_is_archived_is_not(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    bob, own = bank.agent("bob"), alice.add(NEWS)
    first = alice.social.tell("bob", own.id).memory_id
    bob.update(first, retention="archived")
    assert not alice.social.tell("bob", own.id).is_new
    assert bob.get(first).retention is Retention.ARCHIVED
    bob.delete(first)
    second = alice.social.tell("bob", own.id)
    assert second.is_new
    assert second.memory_id != first


def test_a_cold_copy_that_is_told_again_is_warm(bank: MemoryBank, alice: AgentMemory) -> None:
    bob, own = bank.agent("bob"), alice.add(NEWS)
    copy = alice.social.tell("bob", own.id).memory_id
    bob.update(copy, temperature="cold")
    alice.social.tell("bob", own.id)
    assert bob.get(copy).temperature is Temperature.WARM


def test_a_broadcast_is_one_commit(bank: MemoryBank, alice: AgentMemory) -> None:
    own, journal = alice.add(NEWS), bank.engine.journal
    before = journal.head
    told = alice.social.broadcast(own.id, ["bob", "carol"])
    assert [(each.listener, each.is_new) for each in told] == [("bob", True), ("carol", True)]
    assert journal.head == before + 1
    with pytest.raises(InvalidInput, match="takes a list"):
        alice.social.broadcast(own.id, "bob")
    with pytest.raises(InvalidInput, match="can't tell alice"):
        alice.social.broadcast(own.id, ["dave", "alice"])
    assert "dave" not in bank.agents()


def test_a_broadcast_tells_each_listener_once(bank: MemoryBank, alice: AgentMemory) -> None:
    told = alice.social.broadcast(alice.add(NEWS).id, iter(["bob", "carol", "bob"]))
    assert [each.listener for each in told] == ["bob", "carol"]
    assert bank.agent("bob").social.heard(told[0].memory_id).times == 1


def test_a_second_tell_changes_neither_note_nor_tier(bank: MemoryBank, alice: AgentMemory) -> None:
    own, bob = alice.add(NEWS), bank.agent("bob")
    copy = bob.get(alice.social.tell("bob", own.id, "low", "I saw it").memory_id)
    alice.social.tell("bob", own.id, "critical", "it is certain")
    now = bob.get(copy.id)
    assert (now.tier, now.metadata) == (copy.tier, copy.metadata)


@pytest.mark.parametrize("note", [5, True, ["a"], {"a": 1}, b"a"])
def test_a_note_is_a_text(bank: MemoryBank, alice: AgentMemory, note: Any) -> None:
    own = alice.add(NEWS)
    with pytest.raises(InvalidInput, match="a note is a text, not "):
        alice.social.tell("bob", own.id, note=note)
    assert bank.agents() == ["alice"]


def test_the_tier_is_important_at_most_unless_it_is_given(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    pinned = alice.add(NEWS, "pinned")
    bob = bank.agent("bob")
    assert bob.get(alice.social.tell("bob", pinned.id).memory_id).tier.name == "IMPORTANT"
    told = alice.social.tell("carol", pinned.id, as_tier="critical")
    assert bank.agent("carol").get(told.memory_id).tier.name == "CRITICAL"
    with pytest.raises(InvalidTier, match="as pinned"):
        alice.social.tell("dave", pinned.id, as_tier="pinned")


def test_caps_hold_for_what_is_told(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_critical": 1, "on_tier_full": "reject"})
    alice, bob = bank.agent("alice"), bank.agent("bob")
    bob.add("full", "critical")
    own = alice.add(NEWS)
    with pytest.raises(TierFull):
        alice.social.tell("bob", own.id, as_tier="critical")
    assert bob.count() == 1


def test_a_copy_ends_when_the_memory_ends(bank: MemoryBank, alice: AgentMemory) -> None:
    own, bob = alice.add(NEWS, ttl=5), bank.agent("bob")
    assert bob.get(alice.social.tell("bob", own.id).memory_id).expires_tick == 5
    bank.advance(5)
    assert bob.count() == 0
    with pytest.raises(MemoryNotFound, match="expired"):
        alice.social.tell("bob", own.id)


@pytest.mark.parametrize("to", ["alice", "*", "", ".guild", "a b", None, 3, "x" * 200])
def test_nobody_tells_itself_or_what_is_no_agent(
    bank: MemoryBank, alice: AgentMemory, to: object
) -> None:
    own = alice.add(NEWS)
    with pytest.raises((InvalidInput, InvalidAgentId)):
        alice.social.tell(to, own.id)  # type: ignore[arg-type]
    assert bank.agents() == ["alice"]


def test_only_ones_own_memory_can_be_told(bank: MemoryBank, alice: AgentMemory) -> None:
    other = bank.agent("bob").add(NEWS)
    gone = alice.add("gone")
    alice.forget(gone.id)
    for identifier in (other.id, gone.id, "nonsense", "", None):
        with pytest.raises(MemoryNotFound):
            alice.social.tell("carol", identifier)  # type: ignore[arg-type]
    with pytest.raises(InvalidMetadata):
        alice.social.tell("carol", alice.add("a").id, note="x" * 20_000)
    assert bank.agents() == ["alice", "bob"]


def superseded_in_every_way(alice: AgentMemory) -> list[tuple[str, str]]:
    """The ids of memories that were superseded, and of what stands in their places now."""
    by_key, later = alice.add("old", key="diet"), alice.add("new", key="diet")
    first = alice.add("first")
    second = alice.update(first.id, "second")
    third = alice.update(second.id, "third")
    linked, other = alice.add("linked"), alice.add("other")
    alice.link(other.id, supersedes=linked.id)
    pairs = [(by_key, later), (first, third), (second, third), (linked, other)]
    return [(former.id, now.id) for former, now in pairs]


def test_what_was_superseded_is_not_told_and_the_refusal_names_what_stands_in_its_place(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    for former, now in superseded_in_every_way(alice):
        before = bank.state_hash()
        with pytest.raises(InvalidInput, match=f"memory {former} was superseded; tell {now}"):
            alice.social.tell("bob", former)
        with pytest.raises(InvalidInput, match="was superseded"):
            alice.social.broadcast(former, ["bob", "carol"])
        assert (bank.agents(), bank.state_hash()) == (["alice"], before)


def test_what_was_superseded_can_be_told_after_it_was_restored(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    former, now = alice.add(NEWS), alice.add("agent_X is honest")
    alice.link(now.id, supersedes=former.id)
    alice.delete(now.id)
    with pytest.raises(InvalidInput, match="was superseded; restore it first"):
        alice.social.tell("bob", former.id)
    alice.update(former.id, retention="active")
    assert alice.social.tell("bob", former.id).is_new


def test_what_is_archived_and_not_superseded_can_be_told(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    own = alice.update(alice.add(NEWS).id, retention="archived")
    assert alice.social.tell("bob", own.id).is_new


def test_nobody_makes_up_a_source(bank: MemoryBank, alice: AgentMemory) -> None:
    own = alice.add(NEWS)
    text = json.dumps(["bob", 0, own.id, "bob", own.id, 1])
    with pytest.raises(InvalidMetadata, match="reserved"):
        alice.add("a lie", metadata={SOURCE: text})
    with pytest.raises(InvalidMetadata, match="reserved"):
        alice.update(own.id, "a lie", metadata={SOURCE: text})


def test_a_new_version_of_a_told_memory_is_the_agents_own(
    bank: MemoryBank, alice: AgentMemory
) -> None:
    bob = bank.agent("bob")
    copy = alice.social.tell("bob", alice.add(NEWS, metadata={"a": 1}).id, note="n").memory_id
    own = bob.update(copy, "agent_X is honest <1 0>")
    assert own.source is None
    assert own.speaker is None
    assert dict(own.metadata) == {"a": 1, "memory_key": copy}


def test_with_merged_duplicates_a_known_text_is_counted(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"merge_duplicates": True})
    alice, bob = bank.agent("alice"), bank.agent("bob")
    mine = bob.add(NEWS)
    told = alice.social.tell("bob", alice.add(NEWS).id)
    assert told == ("bob", mine.id, False)
    assert bob.count() == 1
    assert bob.social.heard(mine.id).times == 1


def test_all_of_it_comes_back(
    open_bank: MakeBank, tmp_path: Path, snapshots_on_close: None
) -> None:
    bank = open_bank()
    alice, bob = bank.agent("alice"), bank.agent("bob")
    own = alice.add(NEWS)
    copy = alice.social.tell("bob", own.id, note="n").memory_id
    alice.social.tell("bob", own.id)
    bob.update(copy, temperature="cold")
    bank.checkpoint(tmp_path / "c.tmck")
    before, state = everything(bank), bank.state_hash()
    for _ in range(2):  # from events, then from a snapshot
        reopened = open_bank()
        assert everything(reopened) == before
        assert reopened.state_hash() == state
        bob = reopened.agent("bob")
        assert bob.social.heard(copy) == Heard(2, "alice", 0)
    assert not reopened.agent("alice").social.tell("bob", own.id).is_new  # the copy is on the shelf
    assert reopened.state_hash() != state
    reopened.close()
    with MemoryBank.restore(
        tmp_path / "c.tmck", tmp_path / "other", embedder=Directions()
    ) as restored:
        assert restored.state_hash() == state
        assert restored.agent("bob").social.heard(copy).times == 2


def test_an_undone_tell_leaves_nothing(bank: MemoryBank, alice: AgentMemory) -> None:
    own = alice.add(NEWS)
    alice.social.tell("bob", own.id)
    before, state = everything(bank), bank.state_hash()
    with undone(bank):
        alice.social.tell("bob", own.id)
        alice.social.tell("carol", own.id)
    assert everything(bank) == before
    assert bank.state_hash() == state
    assert bank.agent("bob").social.heard(bank.agent("bob").all()[0].id).times == 1
    assert alice.social.tell("carol", own.id).is_new


def test_a_forgotten_copy_takes_its_count_along(bank: MemoryBank, alice: AgentMemory) -> None:
    bob, own = bank.agent("bob"), alice.add(NEWS)
    copy = alice.social.tell("bob", own.id).memory_id
    alice.social.tell("bob", own.id)
    bob.forget(copy)
    assert not bank.engine.state.block("bob").holdings
    assert bob.social.heard(alice.social.tell("bob", own.id).memory_id).times == 1


def test_an_export_and_an_import_keep_the_source(make_bank: MakeBank) -> None:
    bank, other = make_bank(), make_bank(seed=9)
    alice = bank.agent("alice")
    own = alice.add(NEWS)
    alice.social.tell("bob", own.id)
    rows = [Row("row", row) for row in exported(bank, ["alice", "bob"], archived=True)]
    store_rows(other, rows)
    (copy,), (new,) = other.agent("bob").all(), other.agent("alice").all()
    assert copy.source == Source("alice", 0, new.id, "alice", new.id, 1)
    assert new.id != own.id
    assert other.chain(copy).memories == (copy, new)
    assert other.chain(copy).is_whole
    bad = {"agent_id": "bob", "content": "x", "metadata": {SOURCE: "[1]"}}
    with pytest.raises(InvalidMetadata, match="not a memory's source"):
        store_rows(other, [Row("row", bad)])


def test_what_came_in_a_circle_is_followed_once(make_bank: MakeBank) -> None:
    bank = make_bank()
    first, second = bank.agent("alice").add("a"), bank.agent("bob").add("b")
    other = make_bank()
    for agent, of, of_id in (("alice", "bob", second.id), ("bob", "alice", first.id)):
        metadata = KeptMetadata({SOURCE: json.dumps([of, 0, of_id, of, of_id, 1])})
        made_up = (agent, "a", Tier.NORMAL, metadata, PLAIN_OPTIONS)
        store(other.engine, NewMemories.of([made_up]))
    chain = other.chain(other.agent("alice").all()[0])
    assert len(chain.memories) == 2
    assert not chain.is_whole


@pytest.mark.long
@pytest.mark.parametrize("hands", [300, 10_000])
def test_a_long_chain_is_followed_to_its_origin(bank: MemoryBank, hands: int) -> None:
    names = [f"agent_{number}" for number in range(hands + 1)]
    memory = bank.agent(names[0]).add(NEWS)
    with bank.transaction():
        identifier = memory.id
        for teller, listener in itertools.pairwise(names):
            identifier = bank.agent(teller).social.tell(listener, identifier).memory_id
    last = bank.agent(names[-1]).get(identifier)
    assert last.source is not None
    assert last.source.hands == hands
    assert last.source.origin_id == memory.id
    chain = bank.chain(last)
    assert len(chain.memories) == hands + 1
    assert chain.is_whole


async def _told_in_async() -> tuple[bool, int]:
    async with AsyncMemoryBank.ephemeral(preset="vector") as bank:
        alice = bank.agent("alice")
        own = await alice.add("news")
        told = await alice.social.tell("bob", own.id)
        (again,) = await alice.social.broadcast(own.id, ["bob"])
        chain = await bank.chain(await bank.agent("bob").get(told.memory_id))
        assert not again.is_new
        assert (await bank.agent("bob").social.heard(told.memory_id)).times == 2
        return chain.is_whole, len(chain.memories)


def test_it_can_be_awaited() -> None:
    assert asyncio.run(_told_in_async()) == (True, 2)


def test_a_bank_of_the_past_knows_what_was_told_then(open_bank: MakeBank, folder: Path) -> None:
    bank = open_bank()
    alice = bank.agent("alice")
    own = alice.add(NEWS)
    copy = alice.social.tell("bob", own.id).memory_id
    bank.advance(1)
    alice.social.tell("bob", own.id)
    bank.close()
    with MemoryBank.at(folder, 0, embedder=Directions()) as past:
        assert past.agent("bob").social.heard(copy).times == 1
    with MemoryBank.at(folder, embedder=Directions()) as now:
        assert now.agent("bob").social.heard(copy).times == 2


@pytest.mark.parametrize("how", ["pin", "archive"])
def test_what_outlives_its_end_is_told_without_one(
    bank: MemoryBank, alice: AgentMemory, how: str
) -> None:
    """A pinned or archived memory does not expire; its copy begins to live now."""
    own = alice.add(NEWS, ttl=2)
    asked(alice, how, own.id)
    early = alice.social.tell("bob", own.id)
    assert bank.agent("bob").get(early.memory_id).expires_tick == 2
    bank.advance(5)
    late = alice.social.tell("carol", own.id)
    assert bank.agent("carol").get(late.memory_id).expires_tick is None
