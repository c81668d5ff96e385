"""The keyword index, which follows the memories wherever they go, equals one made from them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents import AgentMemory, MemoryBank
from agents.storage.columns.agent_columns import KeywordIndex, Vocabulary
from agents.storage.state.snapshots import load
from asking import asked

WORDS = ["agent_X", "ERR-42", "$50K", "fish", "dragons", "東京", "ตลาด", "café", "the", "who?"]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
sessions = st.sampled_from([None, "a", "b"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(texts, sessions), min_size=1, max_size=3)),
        st.tuples(st.just("search"), texts),
        st.tuples(
            st.sampled_from(
                ["cold", "hot", "archive", "delete", "restore", "forget", "pin", "unpin"]
            ),
            st.integers(0, 30),
        ),
        st.tuples(st.just("undo"), texts),
        st.tuples(st.just("tick"), st.none()),
    ),
    max_size=25,
)


class Undone(Exception):
    """Ends a transaction."""


def play(alice: AgentMemory, bank: MemoryBank, step: tuple[str, Any]) -> None:
    what, given_ = step
    if what == "add":
        alice.add_many([(text, "normal", session and {"session": session})
                        for text, session in given_])  # fmt: skip
    elif what == "search":
        alice.search(given_, 3)
    elif what == "tick":
        bank.advance(bank.tick + 1)
    elif what == "undo":
        try:
            with bank.transaction():
                alice.add(given_)
                alice.search(given_)
                raise Undone
        except Undone:
            pass
    else:
        change(alice, what, given_)


def change(alice: AgentMemory, what: str, number: int) -> None:
    memory = alice.engine.state.memory("alice", number)
    if memory is None:
        return
    try:
        if what == "cold":
            alice.update(memory.id, temperature="cold")
        elif what == "hot":
            alice.update(memory.id, temperature="hot")
        else:
            asked(alice, what, memory.id)
    except Exception as error:
        if type(error).__name__ not in ("MemoryNotFound", "MemoryPinned", "InvalidInput"):
            raise


def indexed(bank: MemoryBank) -> tuple[list[list[str]], list[list[str]]]:
    """The index that the bank has, brought up to date, and one made from its memories."""
    block = bank.engine.state.block("alice")
    vocabulary = bank.engine.search.reader._vocabulary
    kept = block.keywords(vocabulary)
    fresh = KeywordIndex(Vocabulary("english"))
    fresh.extend(block.contents())
    assert kept.total == fresh.total
    return kept.contents(), fresh.contents()


@given(steps)
def test_after_any_sequence_the_index_equals_one_made_anew(steps: list[tuple[str, Any]]) -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        for step in steps:
            play(alice, bank, step)
        kept, fresh = indexed(bank)
        assert kept == fresh


@given(steps, st.lists(texts, min_size=1, max_size=4))
def test_a_bank_that_is_read_from_its_journal_finds_the_same_to_the_bit(
    steps: list[tuple[str, Any]], queries: list[str]
) -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        for step in steps:
            play(alice, bank, step)
        bank.commit()
        live = [[(row.memory.sequence, row[1:4], row[6:]) for row in alice.explain(query)]
                for query in queries]  # fmt: skip
        load(bank.engine.state, bank.engine.journal)
        again = [[(row.memory.sequence, row[1:4], row[6:]) for row in alice.explain(query)]
                 for query in queries]  # fmt: skip
        assert live == again


@given(st.lists(texts, max_size=12), texts)
def test_scores_are_from_0_to_1_and_their_parts_too(memories: list[str], query: str) -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.add_many([(text, "normal", {"session": n % 3}) for n, text in enumerate(memories)])
        for row in alice.explain(query):
            for part in (row.score, row.vector, row.keyword, row.fusion):
                assert 0.0 <= part <= 1.0
