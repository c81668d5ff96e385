"""Laws of vectors, scores, events and snapshots, for any input."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from model import ModelBank, SmallEmbedder
from model import quantise as plain_quantise
from strategies import (
    agent_ids,
    contents,
    metadata,
    tiers,
)

from agents import (
    BankDamaged,
    EmbedderError,
    MemoryBank,
)
from agents.memory.events import Added, Deleted, TickAdvanced, TierChanged, decode, encode
from agents.memory.metadata import check_metadata
from agents.memory.ranking import EXCLUDED, rank
from agents.memory.records import id_prefix
from agents.storage import snapshots
from agents.storage.columns import AgentColumns
from agents.storage.vectors import norms, quantise

BOOSTS = (1.0, 0.5, 0.25, 0.0, -0.25)
sequences = st.integers(1, 2**48 - 1)
ticks = st.integers(0, 2**62)


# Vectors

_floats = st.floats(allow_nan=False, allow_infinity=False)
_whole = st.integers(-127, 127)


@given(npst.arrays(np.float64, st.tuples(st.integers(1, 4), st.just(5)), elements=_floats))
@example(np.array([[1.7976931348623157e308, -1.7976931348623157e308, 5e-324, 0.0, -0.0]]))
def test_quantising_twice_is_quantising_once(rows) -> None:
    once = quantise(rows, 5, len(rows))
    assert once.dtype == np.int8
    assert once.min(initial=0) >= -127
    assert once.tolist() == [plain_quantise(row) for row in rows.tolist()]
    assert (quantise(once, 5, len(rows)) == once).all()


@given(npst.arrays(np.int64, (3, 5), elements=st.integers(-(2**20), 2**20)), st.integers(-20, 20))
def test_the_scale_of_a_vector_does_not_matter(rows, power) -> None:
    assert (quantise(rows * 2.0**power, 5, 3) == quantise(rows, 5, 3)).all()


@given(st.sampled_from([float("nan"), float("inf"), -float("inf")]), st.integers(0, 4))
def test_a_vector_with_a_hole_is_refused(bad, place) -> None:
    row = [1.0] * 5
    row[place] = bad
    with pytest.raises(EmbedderError):
        quantise([row], 5, 1)


class _Wide:
    """Vectors as given, by text, in as many dimensions as asked for."""

    reproducible = True

    def __init__(self, vectors: dict[str, list[int]]) -> None:
        self._vectors = vectors
        self.dims = len(next(iter(vectors.values())))
        self.name = f"wide/{self.dims}"

    def embed(self, texts, /):
        return [self._vectors[text] for text in texts]


@pytest.mark.parametrize("dims", [3, 1040, 1041, 1500])
@pytest.mark.parametrize("count", [1, 9, 700])
def test_scores_of_a_large_agent_equal_exact_arithmetic(dims, count) -> None:
    rng = np.random.default_rng(dims + count)
    rows = rng.integers(-127, 128, (count + 2, dims))
    rows[:, 0] = 127  # stays as it is when quantised
    rows[count // 2] = 127  # the largest sums there are
    rows[-1] = 127
    texts = [str(n) for n in range(count + 2)]
    vectors = dict(zip(texts, rows.tolist(), strict=True))
    model = ModelBank(0, 0, False, embed=vectors.__getitem__)
    sparse = {"max_pinned": 0, "max_critical": 0}
    with MemoryBank.ephemeral(embedder=_Wide(vectors), memory=sparse) as bank:
        stored = texts[:count]
        bank.agent("alice").add_many([(text, int(text) % 3 + 2) for text in stored])
        bank.agent("bob").add_many(stored[:5])
        model.add_many([("alice", text, int(text) % 3 + 2, None) for text in stored])
        for query in texts[count:]:
            hits, other = bank.search_many([("alice", query), ("bob", query)], 12)
            expected, _ = model.search("alice", query, 12, None)
            assert [(h.memory.content, h.score, h.boosted_score) for h in hits] == [
                (row.memory.content, row.score, row.boosted_score) for row in expected
            ]
            assert {h.memory.agent_id for h in other} <= {"bob"}
            assert hits == bank.agent("alice").search(query, 12)


@given(st.integers(0, 2**62), st.sampled_from([1, 3, 1000]))
@example(2**62, 3)
@example(2**62 // 3 + 1, 3)
@example(2**53, 1000)
def test_any_limit_above_the_number_of_memories_gives_all_of_them(limit, multiplier) -> None:
    vectors = {str(n): [n, 1] for n in range(6)}
    memory = {"candidate_multiplier": multiplier}
    with MemoryBank.ephemeral(embedder=_Wide(vectors), memory=memory) as bank:
        bank.agent("alice").add_many(["0", "1", "2", ("3", "pinned"), "4"])
        for query in ("5", ""):
            assert len(bank.agent("alice").search(query, limit)) == min(5, max(1, limit))


# Events and snapshots

_events = st.one_of(
    st.builds(Added, st.just("add"), agent_ids, sequences, st.integers(0, 4), contents, metadata),
    st.builds(
        TierChanged,
        st.just("tier"),
        agent_ids,
        sequences,
        st.integers(0, 4),
        st.sampled_from(["set", "demote"]),
    ),
    st.builds(Deleted, st.just("delete"), agent_ids, sequences),
    st.builds(TickAdvanced, st.just("tick"), ticks),
)


@given(st.lists(_events, max_size=6))
def test_events_come_back_from_their_text(events) -> None:
    text = encode(events)
    text.encode()
    read = decode(text)
    assert read == events
    assert [type(event) for event in read] == [type(event) for event in events]
    assert encode(read) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        '""',
        "0",
        "null",
        "[[]]",
        '[["x"]]',
        '[["add"]]',
        "[1]",
        "[null]",
        '[["tick",1,2]]',
    ],
)
def test_other_text_is_no_list_of_events(text) -> None:
    with pytest.raises(ValueError, match=r"not a list of events|Expecting value"):
        decode(text)


@st.composite
def blocks(draw) -> AgentColumns:
    """An agent after any additions, changes of tier and deletions."""
    block = AgentColumns(draw(agent_ids), draw(st.integers(0, 9)), 3)
    rows = draw(
        st.lists(st.tuples(contents, tiers, ticks, metadata, st.tuples(_whole, _whole, _whole)))
    )
    for content, tier, tick, extra, vector in rows:
        numbers = np.array([vector], np.int8)
        kept = check_metadata(extra)
        event = Added("add", block.agent_id, block.next_sequence, tier, content, kept)
        block.extend([event], tick, numbers, norms(numbers))
    for row in draw(st.lists(st.integers(0, 9), max_size=3)):
        if row < len(block):
            block.change_tier(row, draw(tiers), draw(ticks))
    for row in draw(st.lists(st.integers(0, 9), max_size=3)):
        if row < len(block):
            block.remove(row)
    return block


@given(blocks())
@settings(deadline=None)
def test_a_snapshot_gives_back_the_agent_it_was_made_from(block) -> None:
    packed = snapshots.pack(block)
    seed = next(s for s in range(10) if id_prefix(s, block.agent_id) == block.prefix)
    again = snapshots.unpack(packed, seed, 3)
    memories = block.memories(range(len(block)))
    assert again.memories(range(len(again))) == memories
    assert [again.row_of(memory.sequence) for memory in memories] == [*range(len(block))]
    assert again.next_sequence == block.next_sequence
    assert again.pinned.memories == block.pinned.memories
    assert again.vectors().tolist() == block.vectors().tolist()
    assert again.tiers.tolist() == block.tiers.tolist()
    assert snapshots.pack(again) == packed

    assert again.fingerprint() == block.fingerprint()


@given(blocks(), st.integers(0, 10_000))
@settings(deadline=None)
def test_a_snapshot_with_a_changed_byte_is_refused(block, place) -> None:
    packed = snapshots.pack(block)
    column = place % 4
    name = ("columns", "vectors", "contents", "metadata")[column]
    value = getattr(packed, name)
    if isinstance(value, bytes):
        if not value:
            return
        at = place % len(value)
        changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    else:
        changed = value + " "
    with pytest.raises(BankDamaged):
        snapshots.unpack(packed._replace(**{name: changed}), 0, 3)


# Ranking


@st.composite
def score_tables(draw):
    """Scores of a few agents with many equal ones, padding and pins among them."""
    agents, width = draw(st.integers(1, 4)), draw(st.integers(0, 12))
    cells = st.sampled_from([EXCLUDED, 0.0, 0.0, 0.25, 0.5, 0.5, 0.75, 1.0])
    scores = draw(npst.arrays(np.float64, (agents, width), elements=cells))
    tier_table = draw(npst.arrays(np.int8, (agents, width), elements=st.integers(0, 4)))
    wanted = draw(npst.arrays(np.intp, agents, elements=st.integers(0, 6)))
    return scores, tier_table, wanted


@given(
    score_tables(),
    st.integers(1, 4),
    st.sampled_from([BOOSTS, (0.0,) * 5, (1.0, 0.3, 0.15, 0.0, -0.1)]),
)
@settings(max_examples=500)
def test_ranking_equals_a_naive_sort(table, multiplier, boosts) -> None:
    scores, tier_table, wanted = table
    ranked = rank(scores, tier_table, wanted, multiplier, np.array(boosts))
    for agent in range(len(scores)):
        cells = [
            (float(score), float(score) + boosts[tier], column)
            for column, (score, tier) in enumerate(
                zip(scores[agent], tier_table[agent].tolist(), strict=True)
            )
            if score != EXCLUDED
        ]
        nearest = sorted(cells, key=lambda cell: (-cell[0], -cell[2]))
        candidates = nearest[: int(wanted[agent]) * multiplier]
        expected = sorted(candidates, key=lambda cell: (-cell[1], -cell[0], -cell[2]))
        count = int(ranked.counts[agent])
        got = zip(
            ranked.scores[agent, :count].tolist(),
            ranked.boosted[agent, :count].tolist(),
            ranked.columns[agent, :count].tolist(),
            strict=True,
        )
        assert list(got) == expected


# Deleting


@given(contents, contents, metadata, metadata, tiers, tiers)
@settings(deadline=None)
def test_a_deleted_memory_leaves_nothing_but_its_number(
    text, other_text, extra, other_extra, tier, other_tier
) -> None:
    hashes = set()
    for item in ((text, tier, extra), (other_text, other_tier, other_extra)):
        with MemoryBank.ephemeral(embedder=SmallEmbedder()) as bank:
            alice = bank.agent("alice")
            alice.delete(alice.add(*item).id)
            alice.add("kept")
            hashes.add(bank.state_hash())
    assert len(hashes) == 1
