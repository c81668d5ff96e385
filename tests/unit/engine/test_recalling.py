"""A recall finds memories of every temperature, and makes the relevant ones hot."""

import pytest

from agents import AgentMemory, InvalidInput, MemoryBank
from agents.memory.records import Recall
from banks import MakeBank
from movements import COLD, HOT, WARM, added_hot, hot


def test_a_recall_finds_hot_warm_and_cold_and_says_which(alice: AgentMemory) -> None:
    alice.add("hot <9 1>", temperature="hot")
    alice.add("pin <1 0>", "pinned")
    alice.add("unrelated pin <0 1>", "pinned")
    alice.add("warm <1 1>")
    alice.add("cold <1 2>", temperature="cold")
    found = alice.recall("<1 0>", 9, auto_promote=False)
    assert [(item.content[:4].strip(), item.temperature) for item in found.items] == [
        ("pin", HOT), ("hot", HOT), ("warm", WARM), ("cold", COLD),
    ]  # fmt: skip
    assert found.promoted == ()


def test_a_recall_asked_again_finds_what_it_made_hot(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>", temperature="cold")
    assert alice.recall("<1 0>").promoted == (memory.id,)
    again = alice.recall("<1 0>")
    assert [item.temperature for item in again.items] == [HOT]
    assert again.promoted == ()


def test_pinned_memories_take_no_place_from_better_matches(alice: AgentMemory) -> None:
    for number in range(4):
        alice.add(f"pin {number} <1 1>", "pinned")
    alice.add("cold <1 0>", temperature="cold")
    found = alice.recall("<1 0>", 2, auto_promote=False)
    assert [item.content for item in found.items] == ["cold <1 0>", "pin 3 <1 1>"]


def test_a_recall_may_leave_out_the_cold(alice: AgentMemory) -> None:
    alice.add("warm <1 0>")
    alice.add("cold <1 0>", temperature="cold")
    found = alice.recall("<1 0>", include_cold=False)
    assert [item.content for item in found.items] == ["warm <1 0>"]


def test_whether_a_recall_promotes_is_a_setting_and_the_call_decides(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"auto_promote": False}).agent("alice")
    memory = alice.add("a <1 0>", temperature="cold")
    assert alice.recall("<1 0>").promoted == ()
    assert alice.recall("<1 0>", auto_promote=True).promoted == (memory.id,)


UNRELATED = ("how tall is Mount Everest?", "play some jazz music", "what is photosynthesis?")


def test_unrelated_questions_do_not_promote() -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        memory = alice.add("Alice likes her tea without sugar")
        for question in UNRELATED * 3:
            found = alice.recall(question)
            assert found.promoted == ()
            assert max(found.scores) < bank.settings.temperature.min_score
        assert alice.get(memory.id).access_count == 0


def test_an_unrelated_question_does_not_promote_what_was_recalled_often(
    make_bank: MakeBank,
) -> None:
    alice = make_bank(temperature={"promote_accesses": 2}).agent("alice")
    alice.add("a <1 1>")
    alice.recall("<1 0>")
    alice.recall("<1 0>", auto_promote=False)
    assert alice.recall("<1 -1>").promoted == ()


@pytest.mark.parametrize("retrieval", ["hybrid", "weighted-sum", "vector"])
@pytest.mark.parametrize("length", [1, 40, 400])
def test_its_own_text_always_promotes_a_memory(retrieval: str, length: int) -> None:
    own = "The permit for the bridge arrives on Tuesday. " * length
    with MemoryBank.ephemeral(preset=retrieval, memory={"max_content_bytes": 40_000}) as bank:
        alice = bank.agent("alice")
        for other in ("The bridge", "Tuesday " * 300, "permit", "arrives on " * 50):
            alice.add(other, temperature="cold")
        wanted = alice.add(own, temperature="cold")
        found = alice.recall(own, 9, auto_promote=False)
        assert wanted in found.items
        (likeness,) = bank.engine.search.likenesses(own, [wanted])
        assert likeness == 1.0


def test_a_recall_gives_three_unless_told(alice: AgentMemory) -> None:
    for number in range(6):
        alice.add(f"{number} <1 0>", temperature="cold")
    assert len(alice.recall("<1 0>", auto_promote=False).items) == 3
    assert len(alice.recall("<1 0>", limit=5, auto_promote=False).items) == 5
    assert alice.recall("<1 0>", limit=0).items == ()


def test_a_recall_gives_the_score_of_each_item(alice: AgentMemory) -> None:
    alice.add("a <1 0>", temperature="cold")
    alice.add("b <3 4>", temperature="cold")
    result = alice.recall("<1 0>", auto_promote=False)
    assert [item.content for item in result.items] == ["a <1 0>", "b <3 4>"]
    assert result.scores == pytest.approx((1.0, 0.6), abs=0.01)


def test_a_recall_of_kinds(alice: AgentMemory) -> None:
    alice.add("fact <1 0>", temperature="cold")
    alice.add("decision <1 0>", kind="decision", temperature="cold")
    alice.add("entity <1 0>", kind="entity")
    assert {m.kind for m in alice.recall("<1 0>", 9, kinds=["decision", "entity"]).items} == {
        "decision", "entity",
    }  # fmt: skip
    assert [m.kind for m in alice.recall("<1 0>", kinds="fact").items] == ["fact"]
    with pytest.raises(InvalidInput, match="rumour"):
        alice.recall("<1 0>", kinds=["rumour"])


def test_a_recall_of_a_least_relevance(alice: AgentMemory) -> None:
    alice.add("near <1 0>", temperature="cold")
    alice.add("far <1 1>", temperature="cold")
    near = alice.recall("<1 0>", min_relevance=0.8, auto_promote=False)
    assert [item.content for item in near.items] == ["near <1 0>"]
    with pytest.raises(InvalidInput):
        alice.recall("<1 0>", min_relevance=2)


def test_a_recall_promotes_what_reaches_the_threshold(alice: AgentMemory) -> None:
    near = alice.add("near <1 0>", temperature="cold")
    far = alice.add("far <1 1>", temperature="cold")
    result = alice.recall("<1 0>")
    assert result.promoted == (near.id,)
    assert [item.temperature for item in result.items] == [HOT, COLD]
    assert alice.get(far.id).temperature is COLD


def test_the_threshold_for_promotion_is_a_setting_that_may_be_just_reached(
    make_bank: MakeBank,
) -> None:
    alice = make_bank(temperature={"promote_threshold": 1.0}).agent("alice")
    same = alice.add("same <2 0>", temperature="cold")
    alice.add("almost <9 1>", temperature="cold")
    assert alice.recall("<1 0>").promoted == (same.id,)


def test_the_items_of_a_recall_are_as_they_are_after_it(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a <1 0>", temperature="cold")
    bank.advance(4)
    (item,) = alice.recall("<1 0>").items
    assert (item.temperature, item.access_count, item.last_access_tick) == (HOT, 1, 4)
    assert item.relevance == 0.8125
    assert tuple(item) == tuple(alice.get(item.id))


def test_a_recall_may_leave_all_where_they_are(alice: AgentMemory) -> None:
    memory = alice.add("a <1 0>", temperature="cold")
    for _ in range(5):
        result = alice.recall("<1 0>", auto_promote=False)
        assert result.promoted == ()
    assert alice.get(memory.id).temperature is COLD
    assert alice.get(memory.id).access_count == 5


@pytest.mark.parametrize("temperature", ["warm", "cold"])
def test_the_third_recall_promotes_what_is_not_similar_enough(
    bank: MemoryBank, temperature: str
) -> None:
    alice = bank.agent("alice")
    memory = alice.add("a <1 1>", temperature=temperature)
    for tick in (10, 20):
        bank.advance(tick)
        assert alice.recall("<1 0>").promoted == ()
    bank.advance(30)
    assert alice.recall("<1 0>").promoted == (memory.id,)


def test_recalls_outside_the_window_do_not_count(make_bank: MakeBank) -> None:
    bank = make_bank(temperature={"promote_window": 10})
    alice = bank.agent("alice")
    alice.add("a <1 1>", temperature="cold")
    for tick in (0, 6, 12, 18, 24):  # never three within ten
        bank.advance(tick)
        assert alice.recall("<1 0>").promoted == ()
    bank.advance(25)
    assert len(alice.recall("<1 0>").promoted) == 1


def test_searches_do_not_count_as_recalls(alice: AgentMemory) -> None:
    alice.add("a <1 1>")
    for _ in range(5):
        alice.search("<1 0>")
    assert alice.recall("<1 0>").promoted == ()


def test_recalls_are_remembered_after_reopening(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    warm, cold = alice.add("warm <1 1>"), alice.add("cold <1 1>", temperature="cold")
    for _ in range(2):
        assert alice.recall("<1 0>").promoted == ()
    alice = open_bank().agent("alice")
    assert set(alice.recall("<1 0>").promoted) == {warm.id, cold.id}


def test_how_many_recalls_promote_is_a_setting(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"promote_accesses": 1}).agent("alice")
    alice.add("a <1 1>", temperature="cold")
    assert len(alice.recall("<1 0>").promoted) == 1


def test_hits_under_the_least_score_do_not_count_as_recalls(make_bank: MakeBank) -> None:
    own = {"min_score": 0.9, "promote_accesses": 1}
    alice = make_bank(temperature=own).agent("alice")
    memory = alice.add("a <1 1>", temperature="cold")
    assert alice.recall("<1 0>").promoted == ()
    assert alice.get(memory.id).access_count == 0


@pytest.mark.parametrize("query", ["", "  \n"])
def test_a_recall_of_a_blank_query_finds_nothing(alice: AgentMemory, query: str) -> None:
    memory = alice.add("a <1 0>", temperature="cold")
    assert alice.recall(query) == Recall((), (), (), ())
    assert alice.get(memory.id).access_count == 0


def test_a_recall_that_overfills_hot_spills_others_first(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    added_hot(alice, "a", "b")
    recalled = alice.add("c <1 0>", temperature="cold")
    assert alice.recall("<1 0>").promoted == (recalled.id,)
    assert hot(alice) == ["b", "c"]


def test_a_recall_promotes_no_more_than_fit(make_bank: MakeBank) -> None:
    alice = make_bank(temperature={"hot_max_facts": 2}).agent("alice")
    for number in range(4):
        alice.add(f"{number} <1 0>", temperature="cold")
    result = alice.recall("<1 0>", limit=4)
    assert len(result.promoted) == len(hot(alice)) == 2
    assert [item.temperature is HOT for item in result.items].count(True) == 2


def test_an_agent_recalls_only_its_own(bank: MemoryBank) -> None:
    bank.agent("bob").add("bob's <1 0>", temperature="cold")
    assert bank.agent("alice").recall("<1 0>") == Recall((), (), (), ())


def test_recalls_of_a_failed_transaction_never_happened(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    alice.add("a <1 0>", temperature="cold")
    before = bank.state_hash(), [tuple(each) for each in alice.all()]

    def fail() -> None:
        with bank.transaction():
            assert alice.recall("<1 0>").promoted
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (bank.state_hash(), [tuple(each) for each in alice.all()]) == before
