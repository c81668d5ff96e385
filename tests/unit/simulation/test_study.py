"""Studies of a population: what a journal tells, against the bank and against sums by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.errors import BankDamaged, BankError, MemoryNotFound, RunError
from agents.simulation.analysis.columns import Collection, Columns
from agents.simulation.analysis.forgetting import distinct, kaplan_meier
from agents.simulation.analysis.study import Study, figures
from agents.simulation.protocols import Action, Observation
from agents.simulation.runs.study import facts_of, study_run
from agents.simulation.tick.loop import Loop
from golden.histories import bank_history
from worlds import Diary, Mind

SETTINGS: dict[str, Any] = {"storage": {"sync": "manual"}}
LIE, TRUTH = "the bridge is closed", "the bridge is open"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[MemoryBank]:
    with MemoryBank.open(tmp_path / "bank", SETTINGS) as opened:
        yield opened


def study(bank: MemoryBank, tick: int | None = None) -> Study:
    assert bank.folder is not None
    return analysis.study(bank.folder, tick)


def with_facts(found: Study) -> Study:
    return Study("bank", found.columns, {"bridge": {LIE: False, TRUTH: True}}, 0, found._journal)


def passed_on(bank: MemoryBank) -> dict[str, str]:
    """Alice tells Bob and Dora, Bob tells Carol; who knows what, by name."""
    ids = {"alice": bank.agent("alice").add("the mill burns").id}
    for tick, (teller, listener) in enumerate(
        [("alice", "bob"), ("bob", "carol"), ("alice", "dora"), ("carol", "bob")], start=1
    ):
        bank.advance(tick)
        told = bank.agent(teller).social.tell(listener, ids[teller])
        ids.setdefault(listener, told.memory_id)
    return ids


def test_a_spread_is_a_tree_from_its_origin_whichever_copy_is_named(bank: MemoryBank) -> None:
    ids = passed_on(bank)
    found = [study(bank).spread(each) for each in ids.values()]
    assert {each[:-1] for each in found} == {found[0][:-1]}
    spread = found[0]
    assert spread[:-1] == (ids["alice"], "the mill burns", "source", 4, 4, 1.0, 2, 1)
    rows = spread.table.to_pylist()
    assert [(row["tick"], row["agent"], row["teller"], row["hands"]) for row in rows] == [
        (0, "alice", None, 0),
        (1, "bob", "alice", 1),
        (2, "carol", "bob", 2),
        (3, "dora", "alice", 1),
    ]
    assert [row["parent_id"] for row in rows] == [None, ids["alice"], ids["bob"], ids["alice"]]
    assert spread.lines() == [
        "alice, tick 0", "  bob, tick 1", "    carol, tick 2", "  dora, tick 3",
    ]  # fmt: skip
    (row,) = study(bank).spreads().to_pylist()
    assert (row["origin"], row["holders"], row["tells"]) == (ids["alice"], 4, 4)
    assert (row["r"], row["depth"], row["half_life"]) == (1.0, 2, 1)


def test_nothing_after_the_tick_is_looked_at(bank: MemoryBank) -> None:
    ids = passed_on(bank)
    assert study(bank, 2).spread(ids["bob"]).holders == 3
    assert study(bank, 0).spreads().num_rows == 0
    with pytest.raises(MemoryNotFound, match="up to tick 1"):
        study(bank, 1).spread(ids["carol"])


def test_one_collection_has_the_columns_of_every_tick(bank: MemoryBank) -> None:
    ids = passed_on(bank)
    alice = bank.agent("alice")
    moves: list[Callable[[], object]] = [
        lambda: alice.update(ids["alice"], retention="archived"),
        lambda: alice.update(ids["alice"], retention="active"),
    ]
    for tick, move in enumerate(moves, start=bank.tick + 1):
        bank.advance(tick)
        move()
    alice.add("the tide comes", ttl=2)
    with bank.transaction():
        alice.add("said before midnight")
        bank.advance(bank.tick + 1)
        bank.agent("erin").add("said after midnight")
    bank.advance(bank.tick + 1)
    whole = study(bank)
    with whole._journal() as journal:
        collection = Collection(whole.columns.seed, ())
        for commit in journal.commits(0):
            collection.take(orjson.loads(commit.events), commit.tick)
    for tick in reversed(range(bank.tick + 1)):
        expected, found = study(bank, tick).columns, collection.columns(tick)
        assert found.agents == expected.agents
        assert (found.text, found.kind, found.cause) == (
            expected.text, expected.kind, expected.cause,
        )  # fmt: skip
        for name in ("agent", "sequence", "born", "gone", "origin", "parent", "hands"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
        assert found.told.teller == expected.told.teller


def test_edges_count_what_was_told_again(bank: MemoryBank) -> None:
    passed_on(bank)
    rows = {(row["teller"], row["listener"]): row for row in study(bank).tells().to_pylist()}
    assert set(rows) == {("alice", "bob"), ("bob", "carol"), ("alice", "dora"), ("carol", "bob")}
    assert [rows["carol", "bob"][name] for name in ("times", "new", "first_tick")] == [1, 0, 4]
    assert rows["alice", "bob"]["new"] == 1
    ranks = {row["agent"]: row for row in study(bank).centrality().to_pylist()}
    assert max(ranks, key=lambda name: ranks[name]["told"]) == "alice"
    assert ranks["dora"]["told"] == 0


def test_chains_are_acyclic_and_end_at_their_origin(bank: MemoryBank) -> None:
    rng, names = Random(5), [f"agent_{number}" for number in range(8)]
    for name in names[:3]:
        bank.agent(name).add(f"{name} found gold")
    for tick in range(1, 60):
        bank.advance(tick)
        teller, listener = rng.sample(names, 2)
        known = bank.agent(teller).all()
        if known:
            bank.agent(teller).social.tell(listener, rng.choice(known).id)
    columns = study(bank).columns
    assert (columns.parent < np.arange(len(columns))).all()
    assert (columns.hands > 2).any()
    for row in range(len(columns)):
        memory = bank.agent(columns.agents[columns.agent[row]]).get(columns.id_of(row))
        chain, at = [columns.id_of(row)], row
        while columns.parent[at] >= 0:
            at = int(columns.parent[at])
            chain.append(columns.id_of(at))
        assert chain == [each.id for each in bank.chain(memory).memories]
        assert at == columns.origin[row]
        assert len(chain) - 1 == columns.hands[row]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["lifetime", "hot-warm-cold"])
def test_it_has_the_memories_that_the_bank_had_after_each_tick(preset: str, tmp_path: Path) -> None:
    bank_history(preset, tmp_path / "bank")
    last = analysis.study(tmp_path / "bank").tick
    for tick in {last // 3, last // 2, last}:
        columns = analysis.study(tmp_path / "bank", tick).columns
        # A copy of the past does not show memories that were purged since.
        known = [row for row in np.flatnonzero(columns.is_there()).tolist() if columns.text[row]]
        there = {columns.id_of(row) for row in known}
        with MemoryBank.at(tmp_path / "bank", tick) as past:
            held = {memory.id for name in past.agents() for memory in past.agent(name).all()}
        assert there == held
        assert (columns.gone != -1).any()


def test_survival_is_that_of_a_hand_computed_table() -> None:
    # The remissions of 21 patients with 6-MP: Freireich and others, 1963.
    lost = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    left = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    ages, is_gone = np.array(lost + left), np.array([True] * len(lost) + [False] * len(left))
    at, risk, gone, share, low, high = kaplan_meier(ages, is_gone)
    assert at.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert risk.tolist() == [21, 17, 15, 12, 11, 7, 6]
    assert gone.tolist() == [3, 1, 1, 1, 1, 1, 1]
    assert share.round(3).tolist() == [0.857, 0.807, 0.753, 0.69, 0.627, 0.538, 0.448]
    assert low.round(3).tolist() == [0.62, 0.563, 0.503, 0.432, 0.368, 0.268, 0.188]
    assert high.round(3).tolist() == [0.952, 0.923, 0.889, 0.849, 0.805, 0.747, 0.68]


def test_memories_of_agents_of_their_own_have_greenwoods_variance() -> None:
    rng = np.random.default_rng(1)
    ages, is_gone = rng.integers(1, 20, 300), rng.random(300) < 0.7
    plain = kaplan_meier(ages, is_gone)
    robust = kaplan_meier(ages, is_gone, np.arange(300))
    for one, other in zip(plain[:4], robust[:4], strict=True):
        assert (one == other).all()
    # Student's 299 degrees of freedom, and 300 / 299: the intervals are as good as the same.
    assert np.allclose(plain[4], robust[4], atol=0.002)
    assert np.allclose(plain[5], robust[5], atol=0.002)


def test_the_interval_of_survival_knows_that_an_agents_memories_hang_together() -> None:
    rng = np.random.default_rng(2)
    agents, tick = np.repeat(np.arange(12), 25), 10
    hazards = 0.05 * np.exp(rng.normal(size=200_000))  # each agent has one for all its memories
    truth = np.exp(-hazards * tick).mean()
    inside = {"robust": 0, "naive": 0}
    for own in hazards[: 12 * 400].reshape(400, 12):
        lived = np.ceil(rng.exponential(1 / own[agents])).astype(int)
        watched = rng.integers(20, 60, len(agents))
        seen = np.minimum(lived, watched), lived <= watched
        for name, known in (("robust", (*seen, agents)), ("naive", seen)):
            at, _, _, _, low, high = kaplan_meier(*known)
            place = np.searchsorted(at, tick, side="right") - 1
            inside[name] += bool(low[place] <= truth <= high[place])
    assert 0.91 < inside["robust"] / 400 < 0.98
    assert inside["naive"] / 400 < 0.7


def test_one_agent_does_not_tell_how_long_the_memories_of_others_last(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    gone = [alice.add(f"fact {number}") for number in range(9)][:4]
    bank.advance(3)
    for each in gone:
        alice.delete(each.id)
    found = study(bank)
    (row, *_) = found.survival().to_pylist()
    assert (row["survived"], row["low"], row["high"]) == (pytest.approx(5 / 9), None, None)
    assert "survival" in figures(found)


def test_survival_is_told_by_tier_and_by_source(bank: MemoryBank) -> None:
    alice = bank.agent("alice")
    first, _, pinned = (
        alice.add(f"fact {n}", tier=t) for n, t in enumerate(("low", "low", "pinned"))
    )
    told = alice.social.tell("bob", pinned.id)
    bank.advance(4)
    alice.delete(first.id)
    bank.agent("bob").delete(told.memory_id)
    rows = {(row["by"], row["group"]): row for row in study(bank).survival().to_pylist()}
    assert set(rows) == {("all", "all"), ("tier", "low"), ("tier", "important"), ("source", "own"),
                         ("source", "told")}  # fmt: skip
    assert [rows["tier", "low"][name] for name in ("age", "at_risk", "gone", "survived")] == [
        4, 2, 1, 0.5,
    ]  # fmt: skip
    assert rows["source", "told"]["survived"] == 0.0


def test_a_memory_is_gone_when_it_expires_whenever_its_agent_is_looked_after(
    bank: MemoryBank,
) -> None:
    bank.advance(1)
    ids = {
        name: bank.agent(name).add("the tide comes", ttl=3).id for name in ("alice", "bob", "carol")
    }
    bank.agent("carol").pin(ids["carol"])
    for tick in range(2, 12):
        bank.advance(tick)
        assert bank.agent("alice").count() == (tick < 4) + (tick > 8)
        if tick == 7:
            bank.agent("carol").unpin(ids["carol"])
        if tick == 8:
            bank.agent("alice").add("the moon is full")
    found = study(bank)
    rows = {row["id"]: row for row in found.memories().to_pylist()}
    assert {name: (rows[each]["gone"], rows[each]["cause"]) for name, each in ids.items()} == {
        "alice": (4, "expire"), "bob": (4, "expire"), "carol": (7, "expire"),
    }  # fmt: skip
    curve = [row for row in found.survival().to_pylist() if row["by"] == "all"]
    assert [(row["age"], row["gone"]) for row in curve] == [(3, 2), (6, 1)]


def test_overlap_counts_beliefs_of_one_origin(bank: MemoryBank) -> None:
    passed_on(bank)
    bank.agent("bob").add("I like tea")
    bank.agent("emil").add("the mill burns")
    rows = {(row["agent"], row["other"]): row for row in study(bank).overlap().to_pylist()}
    assert [rows["alice", "bob"][name] for name in ("shared", "exact")] == [1, 0.5]
    assert [rows["alice", "dora"][name] for name in ("shared", "exact", "near")] == [1, 1.0, 1.0]
    assert [rows["alice", "emil"][name] for name in ("shared", "exact", "near")] == [0, 0.0, 1.0]
    assert rows["alice", "bob"]["near"] < 1.0
    few = study(bank).overlap(["alice", "emil"]).to_pylist()
    assert [(row["agent"], row["other"]) for row in few] == [("alice", "emil")]


def test_a_memory_of_ones_own_that_is_told_back_stays_ones_own(bank: MemoryBank) -> None:
    own = bank.agent("alice").add(TRUTH)
    told = bank.agent("alice").social.tell("bob", own.id)
    bank.advance(1)
    assert not bank.agent("bob").social.tell("alice", told.memory_id).is_new
    bank.advance(3)
    bank.agent("alice").delete(own.id)
    rows = {(row["by"], row["group"]): row for row in study(bank).survival().to_pylist()}
    assert (rows["source", "own"]["at_risk"], rows["source", "own"]["gone"]) == (1, 1)
    assert ("source", "told") not in rows  # bob's is there


@pytest.mark.parametrize(
    ("text", "query", "nearest"),
    [
        ("The cellar key hangs behind the clock", "Where does the cellar key hang?", 0.6),
        ("There is a feast at the park on day 17", "What is there on day 17?", 0.3),
    ],
)
def test_what_was_forgotten_and_then_needed_is_found(
    tmp_path: Path, text: str, query: str, nearest: float
) -> None:
    world = Diary()
    world.says = lambda agent: Observation("", f"the garden is green {world.count}")

    def does(seen: Observation) -> list[Action]:
        if seen.tick == 1:
            return [Action("store_memory", {"content": each}) for each in (text, "I like tea")]
        return (
            [Action("forget_memory", {"memory_id": held[seen.agent_id]})] if seen.tick == 3 else []
        )

    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        loop = Loop(bank, world, Mind(does), ["alice", "bob"])
        loop.begin()
        loop.tick()
        held = {name: bank.agent(name).all()[0].id for name in ("alice", "bob")}
        for _ in range(3):
            loop.tick()
        world.says = lambda agent: Observation("", query if agent == "bob" else "")
        loop.tick()
        loop.tick()
    settings = load_settings(overrides={"simulation": {"agents": ["alice", "bob"]}})
    found = study_run(tmp_path, settings, world)
    (row,) = found.needed().to_pylist()
    assert (row["agent"], row["memory_id"], row["text"]) == ("bob", held["bob"], text)
    assert (row["gone"], row["times"], row["first_tick"]) == (3, 2, 5)
    assert row["score"] > nearest > row["best_given"]
    assert found.needed(near=0.99).num_rows == 0
    assert not analysis.study(tmp_path / "bank").has_decisions  # a bank does not name its agents


def test_what_expires_is_needed_from_its_last_tick_on(tmp_path: Path) -> None:
    world, text = Diary(), "The cellar key hangs behind the clock"
    asked = "Where does the cellar key hang?"
    world.says = lambda agent: Observation("", asked if world.count >= 3 else "green gardens")

    def does(seen: Observation) -> list[Action]:
        kept = {"content": text, "ttl": 3}
        return [Action("store_memory", kept)] if seen.tick == 1 else []

    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        loop = Loop(bank, world, Mind(does), ["alice"])
        loop.begin()
        for _ in range(6):
            loop.tick()
    settings = load_settings(overrides={"simulation": {"agents": ["alice"]}})
    found = study_run(tmp_path, settings, world)
    (row,) = found.needed().to_pylist()
    assert (row["text"], row["gone"], row["cause"]) == (text, 4, "expire")
    assert (row["first_tick"], row["times"]) == (4, 3)


def test_truth_overtakes_the_lie_when_more_believe_it(bank: MemoryBank) -> None:
    for tick, who, text in [
        (1, "alice", LIE), (1, "bob", LIE), (2, "carol", TRUTH), (3, "alice", f"{TRUTH}, I saw it"),
        (4, "alice", TRUTH), (5, "dora", TRUTH),
    ]:  # fmt: skip
        bank.advance(max(tick, bank.tick))
        bank.agent(who).add(text)
    bank.agent("carol").add(f"who asks whether {LIE}?", kind="observation")
    found = with_facts(study(bank))
    rows = found.truth().to_pylist()
    assert [(row["true"], row["false"]) for row in rows] == [
        (0, 0), (0, 2), (1, 2), (1, 1), (2, 1), (3, 1),
    ]  # fmt: skip
    assert found.overtaking().to_pylist() == [
        {"subject": "bridge", "true": 3, "false": 1, "most_false": 2, "overtook": 3}
    ]


def test_a_world_that_gives_no_sentences_is_told_how() -> None:
    world = Diary()
    assert facts_of(world) == {}
    world.facts = lambda: ["the bridge is open"]  # type: ignore[attr-defined]
    with pytest.raises(Exception, match=r"Diary\.facts\(\) did not give sentences by subject"):
        facts_of(world)


def test_memories_without_a_source_spread_by_their_text(bank: MemoryBank) -> None:
    one = bank.agent("alice").add("the mill burns")
    bank.advance(3)
    bank.agent("bob").add("the mill burns", metadata={"speaker": "alice"})
    spread = study(bank).spread(one.id)
    assert (spread.by, spread.holders, spread.lines()) == (
        "text", 2, ["alice, tick 0", "  bob, tick 3"],
    )  # fmt: skip
    assert study(bank).tells().to_pylist()[0]["teller"] == "alice"


def test_a_bank_that_was_restored_has_what_it_began_with(bank: MemoryBank, tmp_path: Path) -> None:
    ids = passed_on(bank)
    bank.checkpoint(tmp_path / "one.tmck")
    with MemoryBank.restore(tmp_path / "one.tmck", into=tmp_path / "other") as other:
        other.agent("carol").social.tell("emil", ids["carol"])
    found = analysis.study(tmp_path / "other")
    assert not found.columns.is_whole
    assert found.spread(ids["alice"]).holders == 5
    assert found.memories().num_rows == 5
    assert found.overlap().num_rows == 10


def test_what_is_wrong_is_said(bank: MemoryBank, tmp_path: Path) -> None:
    bank.agent("alice").add("one")
    found = study(bank)
    with pytest.raises(MemoryNotFound, match="has no memory 'nonsense'"):
        found.spread("nonsense")
    with pytest.raises(RunError, match="keeps no decisions"):
        found.needed()
    with pytest.raises(RunError, match="has ticks 0 to 0, and no tick 7"):
        study(bank, 7)
    with pytest.raises(RunError, match="not a whole number"):
        study(bank, True)
    with pytest.raises(BankError, match="no bank"):
        analysis.study(tmp_path / "nowhere")


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", SETTINGS) as bank:
        for number in range(50):
            bank.agent("alice").add(f"fact {number}")
    path = tmp_path / "bank" / "journal.db"
    data = bytearray(path.read_bytes())
    at = data.index(b"fact 33")
    data[at : at + 4] = b"gone"
    path.write_bytes(data)
    with pytest.raises(BankDamaged, match="not what was written"):
        analysis.study(tmp_path / "bank")


def test_memories_with_one_text_and_two_vectors_stand_for_themselves() -> None:
    columns = Columns(0, ["alice"], 1)
    columns.agent = np.zeros(3, np.int64)
    columns.text, columns.dims = ["same", "other", "same"], 2
    rows = np.arange(3)
    columns.packed = [bytes([1, 2, 3, 4, 1, 2])]
    assert [each.tolist() for each in distinct(columns, rows)] == [[0, 1], [0, 1, 0]]
    columns.packed = [bytes([1, 2, 3, 4, 1, 3])]
    assert [each.tolist() for each in distinct(columns, rows)] == [[0, 1, 2], [0, 1, 2]]
