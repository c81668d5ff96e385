"""Laws of vectors, scores, events and snapshots, for any input."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from model.bank import ModelBank
from model.memories import Rules
from model.reading import quantise as plain_quantise

from agents import BankDamaged, EmbedderError, MemoryBank, MemoryNotFound, MemoryPinned, Tier
from agents.engine.read import nth
from agents.memory.events import (
    Accessed,
    Added,
    LifetimeSet,
    Moved,
    Purged,
    Retained,
    Start,
    TickAdvanced,
    TierChanged,
)
from agents.memory.records import KINDS, id_prefix
from agents.memory.requests import check_metadata, check_tags
from agents.rules.ranking import EXCLUDED, rank
from agents.storage.columns.agent_columns import AgentColumns
from agents.storage.columns.records import put_back, take_out
from agents.storage.columns.table import Additions
from agents.storage.embedding import norms, quantise
from agents.storage.journal.journal import decode, encode
from agents.storage.state import snapshots
from agents.storage.state.state import Population
from asking import asked, asker
from examples import examples
from tiermem.testing import SmallEmbedder
from tiermem.testing.strategies import (
    agent_ids,
    contents,
    metadata,
    tiers,
)

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


@pytest.mark.slow
@pytest.mark.long_after(10)
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
    model = ModelBank(Rules(max_pinned=0, max_critical=0), embed=vectors.__getitem__)
    sparse = {"max_pinned": 0, "max_critical": 0}
    with MemoryBank.ephemeral(embedder=_Wide(vectors), preset="vector", memory=sparse) as bank:
        stored = texts[:count]
        bank.agent("alice").add_many([(text, int(text) % 3 + 2) for text in stored])
        bank.agent("bob").add_many(stored[:5])
        model.add_many([("alice", text, int(text) % 3 + 2, None) for text in stored])
        for query in texts[count:]:
            hits, other = bank.search_many([("alice", query), ("bob", query)], 12)
            expected, _ = model.searching("alice").find(query, 12, None)
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
    with MemoryBank.ephemeral(embedder=_Wide(vectors), preset="vector", memory=memory) as bank:
        bank.agent("alice").add_many(["0", "1", "2", ("3", "pinned"), "4"])
        for query in ("5", ""):
            assert len(bank.agent("alice").search(query, limit)) == min(5, max(1, limit))


# Events and snapshots

_tags = st.lists(st.sampled_from(["blocker", "open", "task", "ü"]), max_size=3).map(check_tags)
_starts = st.builds(
    Start, st.integers(0, 2), st.sampled_from(KINDS), _tags, st.one_of(st.none(), ticks)
)
_kept = metadata.map(check_metadata)
_many = st.lists(sequences, min_size=1, max_size=4)
_causes = st.sampled_from(
    ["set", "promote", "spill", "compact", "decay", "expire", "prune", "restore"]
)
_scores = st.floats(0, 1)
_events = st.one_of(
    st.builds(
        Added,
        st.just("add"),
        agent_ids,
        sequences,
        st.integers(0, 4),
        st.one_of(contents, st.none()),
        _kept,
        st.one_of(st.none(), _starts),
    ),
    st.builds(
        TierChanged,
        st.just("tier"),
        agent_ids,
        sequences,
        st.integers(0, 4),
        st.sampled_from(["set", "demote"]),
    ),
    st.builds(Moved, st.just("move"), agent_ids, _many, st.integers(0, 2), _causes),
    st.builds(Retained, st.just("retain"), agent_ids, _many, st.integers(0, 2), _causes),
    st.builds(LifetimeSet, st.just("last"), agent_ids, _many, ticks),
    st.builds(Purged, st.just("purge"), agent_ids, _many),
    st.lists(st.tuples(sequences, _scores), min_size=1, max_size=4).flatmap(
        lambda pairs: st.builds(
            Accessed,
            st.sampled_from(["access", "recall"]),
            agent_ids,
            st.just([sequence for sequence, _ in pairs]),
            st.just([score for _, score in pairs]),
        )
    ),
    st.builds(TickAdvanced, st.just("tick"), ticks),
)


@given(st.lists(_events, max_size=6))
def test_events_come_back_from_their_text(events) -> None:
    text = encode(events)
    # What any reader of JSON reads; orjson and Python write a number below 1e-4 differently.
    assert json.loads(text) == json.loads(json.dumps(events))
    read = decode(text)
    assert read == events
    assert [type(event) for event in read] == [type(event) for event in events]
    for event in read:
        if isinstance(event, Added) and event.start is not None:
            assert type(event.start) is Start
            assert type(event.start.tags) is tuple
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
        '[["move","alice",[1],2]]',
        '[["add","alice",1,3,"x",null,[0,"fact",[]]]]',
        '[["add","alice",1,3,"x",[],null]]',
    ],
)
def test_other_text_is_no_list_of_events(text) -> None:
    with pytest.raises(
        ValueError, match=r"not a list of events|not metadata|Expecting value|values"
    ):
        decode(text)


@st.composite
def blocks(draw) -> AgentColumns:
    """An agent after any additions, changes of tier and temperature, searches and removals."""
    population = Population(draw(st.integers(0, 9)), 3)
    block = population.own(draw(agent_ids))
    rows = draw(
        st.lists(
            st.tuples(
                contents,
                tiers,
                ticks,
                metadata,
                st.tuples(_whole, _whole, _whole),
                st.one_of(st.none(), _starts),
            )
        )
    )
    for content, tier, tick, extra, vector, start in rows:
        numbers = np.array([vector], np.int8)
        kept = check_metadata(extra)
        new = Additions([block.agent_id], [block.next_sequence], [tier], [content], [kept], [start])
        population.add({block.agent_id: 1}, new, tick, numbers, norms(numbers))
    for row in draw(st.lists(st.integers(0, 9), max_size=3)):
        if row < len(block):
            block.change_tier(row, draw(tiers), draw(ticks))
    for row in draw(st.lists(st.integers(0, 9), max_size=3)):
        if row < len(block) and block.tiers[row]:
            block.set_temperature([row], draw(st.integers(0, 1)))
    for row in draw(st.lists(st.integers(0, 9), max_size=3)):
        if row < len(block):
            block.cells.numbers[row, 4:] = (block.cells.numbers[row, 4] + 1, draw(ticks))
            block.cells.use_records[row] = (block.cells.use_records[row] + draw(_scores)) / 2
            if draw(st.booleans()):
                block.recalled(block.sequence(row), draw(ticks))
    going = {row for row in draw(st.lists(st.integers(0, 9), max_size=3)) if row < len(block)}
    if going:
        taken = take_out(block, sorted(going))
        back = draw(st.integers(0, len(taken)))
        if back:
            put_back(block, taken[:back])
    block.shelf_sum = draw(st.integers(0, 2**256 - 1))
    return block


@given(blocks())
@settings(deadline=None)
def test_a_snapshot_gives_back_the_agent_it_was_made_from(block) -> None:
    packed = snapshots.pack(block)
    seed = next(s for s in range(10) if id_prefix(s, block.agent_id) == block.prefix)
    again = snapshots.unpack(packed, seed, 3)
    memories = block.memories(range(len(block)))
    assert list(map(tuple, again.memories(range(len(again))))) == list(map(tuple, memories))
    assert [again.row_of(memory.sequence) for memory in memories] == [*range(len(block))]
    assert again.next_sequence == block.next_sequence
    assert again.pinned == block.pinned
    assert again.hot == block.hot
    assert again.recalls == block.recalls
    assert again.shelf_sum == block.shelf_sum
    assert again.next_expiry >= block.next_expiry
    assert again.temperatures.tolist() == block.temperatures.tolist()
    assert (again.numbers() == block.numbers()).all()
    assert again.vectors().tolist() == block.vectors().tolist()
    assert again.tiers.tolist() == block.tiers.tolist()
    assert snapshots.pack(again) == packed

    assert again.fingerprint() == block.fingerprint()


@given(blocks(), st.integers(0, 10_000))
@settings(deadline=None)
def test_a_snapshot_with_a_changed_byte_is_refused(block, place) -> None:
    packed = snapshots.pack(block)
    column = place % 4
    name = ("columns", "vectors", "contents", "extras")[column]
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


@given(blocks(), st.sets(st.integers(0, 9)))
@settings(deadline=None)
def test_what_is_taken_out_and_put_back_is_as_it_was(block, wanted) -> None:
    hashed, packed = block.fingerprint(), snapshots.pack(block)
    going = sorted(row for row in wanted if row < len(block))
    if not going:
        return
    before = block.memories(range(len(block)))
    taken = take_out(block, going)
    assert [each.sequence for each in taken] == [before[row].sequence for row in going]
    staying = [memory for row, memory in enumerate(before) if row not in going]
    assert list(map(tuple, block.memories(range(len(block))))) == list(map(tuple, staying))
    seed = next(s for s in range(10) if id_prefix(s, block.agent_id) == block.prefix)
    again = snapshots.unpack(snapshots.pack(block), seed, 3)
    assert again.fingerprint() == block.fingerprint()
    for record in reversed(taken):  # in any order
        put_back(block, [record])
    assert list(map(tuple, block.memories(range(len(block))))) == list(map(tuple, before))
    assert block.fingerprint() == hashed
    assert snapshots.pack(block) == packed


# Ranking


@st.composite
def score_tables(draw):
    """Scores of a few agents with many equal ones, padding and pins among them."""
    agents, width = draw(st.integers(1, 4)), draw(st.integers(0, 40))
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
@settings(max_examples=examples(500))
def test_ranking_equals_a_naive_sort(table, multiplier, boosts) -> None:
    scores, tier_table, wanted = table

    def boosts_of(columns):
        return np.array(boosts)[np.take_along_axis(tier_table, columns, axis=1)]

    ranked = rank(scores, boosts_of, wanted, multiplier)
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


_more = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS), "tags": _tags},
    optional={"ttl": st.integers(1, 9), "temperature": st.sampled_from(["hot", "warm", "cold"])},
)
_new = st.tuples(contents, tiers, metadata, _more)


def _add(alice, item):
    text, tier, extra, more = item
    if tier is Tier.PINNED:  # is hot, and does not expire
        more = {name: value for name, value in more.items() if name in ("kind", "tags")}
    return alice.add(text, tier, extra, **more)


def _unpinned(alice, memory):
    for call in (alice.delete, asker(alice, "archive"), alice.forget):
        if memory.tier is Tier.PINNED:
            with pytest.raises(MemoryPinned):
                call(memory.id)
    return alice.unpin(memory.id)


@given(_new, _new, st.sampled_from(["", "archive", "delete"]), st.booleans())
@settings(deadline=None)
def test_a_forgotten_memory_leaves_nothing_but_its_number(item, other, first, searched) -> None:
    hashes = set()
    for each in (item, other):
        with MemoryBank.ephemeral(embedder=SmallEmbedder()) as bank:
            alice = bank.agent("alice")
            memory = _unpinned(alice, _add(alice, each))
            if searched:
                alice.search(each[0], include_cold=True)
                alice.recall(each[0])
            if first:
                asked(alice, first, memory.id)
            alice.forget(memory.id)
            for call in (alice.get, asker(alice, "restore"), alice.forget, alice.delete):
                with pytest.raises(MemoryNotFound):
                    call(memory.id)
            alice.add("kept")
            hashes.add(bank.state_hash())
    assert len(hashes) == 1


@given(_new, st.sampled_from(["archive", "delete"]), st.booleans())
@settings(deadline=None)
def test_a_deleted_or_archived_memory_comes_back_as_it_was(item, how, searched) -> None:
    with MemoryBank.ephemeral(embedder=SmallEmbedder()) as bank:
        alice = bank.agent("alice")
        memory = _unpinned(alice, _add(alice, item))
        if searched:
            alice.search(item[0], include_cold=True)
        before, whole = bank.state_hash(), tuple(alice.get(memory.id))
        asked(alice, how, memory.id)
        assert bank.state_hash() != before
        assert alice.all() == [] == alice.search(item[0], include_cold=True)
        assert alice.count() == 0
        assert (nth(alice.engine, "alice", memory.sequence) is None) == (how == "delete")
        assert tuple(alice.update(memory.id, retention="active")) == whole
        assert bank.state_hash() == before
