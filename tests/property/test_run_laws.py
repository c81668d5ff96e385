"""Laws of going back: checkpoints, rewinding, earlier ticks, branches and resumed runs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents import BankError, MemoryBank, Tier
from agents.bank import history
from agents.config.load import load_settings
from agents.errors import RunError
from agents.memory.tiers import Retention, Temperature
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.branch import branch
from agents.simulation.runs.run import Run, checkpoints, go_back
from agents.simulation.tick.streams import Streams
from agents.storage.state.ledger import Ledger
from agents.telling.groups import agent_counts
from banks import MANUAL, undone
from examples import examples
from tiermem.testing import SmallEmbedder
from tiermem.testing.strategies import (
    AGENTS,
    Operation,
    by_tick,
    every_memory,
    forgetful,
    histories,
    perform,
    perform_all,
)

CAPS = {"max_pinned": 2, "max_critical": 2}
# Small limits, so that memories move all the time.
HEAT = {
    "hot_max_tokens": 60,
    "hot_max_facts": 4,
    "max_cold_items": 3,
    "auto_prune": True,
    "warm_access_threshold": 2,
}
FADING: dict[str, Any] = {
    "enabled": True,
    "half_life": {"critical": 6, "important": 4, "normal": 2, "low": 1},
}
SMALL: dict[str, Any] = {"memory": CAPS, "temperature": HEAT, "decay": FADING}

embedders = st.booleans().map(lambda reproducible: SmallEmbedder(reproducible=reproducible))

quick = settings(
    deadline=None, max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow]
)


def state(bank: MemoryBank) -> dict[str, Any]:
    """All that can be seen of a bank, searches bit for bit."""
    asked = [(agent, query) for agent in AGENTS for query in ("hello", "trade a b", "")]
    # An explanation says what a search would give, and is no use of a memory.
    found = [bank.agent(agent).explain(query, 6) for agent, query in asked]
    for agent in AGENTS:
        for memory in bank.agent(agent).all():
            assert memory.retention is Retention.ACTIVE
            assert memory.tier is not Tier.PINNED or memory.temperature is Temperature.HOT
    return {
        "tick": bank.tick,
        "hash": bank.state_hash(),
        "journal": ticks_of(bank).hash(),
        "agents": bank.agents(),
        "memories": [list(map(tuple, bank.agent(agent).all())) for agent in AGENTS],
        "hidden": [list(map(tuple, every_memory(bank, agent))) for agent in AGENTS],
        "recalls": [
            bank.engine.state.recalls(agent, memory.sequence)
            for agent in AGENTS
            for memory in every_memory(bank, agent)
        ],
        "hot": [bank.agent(agent).get_relevant_memories() for agent in AGENTS],
        "sizes": [bank.agent(agent).count() for agent in AGENTS],
        "pinned": [bank.agent(agent).get_pinned_memories() for agent in AGENTS],
        "counts": agent_counts(bank.engine)[0],
        "found": [
            [(row.memory, row.score.hex(), row.boosted_score.hex(), row.reason) for row in rows]
            for rows in found
        ],
    }


def next_ids(bank: MemoryBank) -> list[str]:
    """The ids that each agent's next memory would get."""
    ids: list[str] = []
    with undone(bank):
        ids += [bank.agent(agent).add("next").id for agent in AGENTS]
    return ids


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@contextmanager
def eager_snapshots(yes: bool) -> Iterator[None]:
    """Thresholds so low that the rare path runs often."""
    with pytest.MonkeyPatch.context() as patch:
        if yes:
            patch.setattr(Ledger, "SNAPSHOT_ON_CLOSE", 1)
            patch.setattr(Ledger, "SNAPSHOT_ON_COMMIT", 4)
        yield


def open_bank(place: Path, embedder: SmallEmbedder | None = None) -> MemoryBank:
    return MemoryBank.open(
        place, embedder=embedder or SmallEmbedder(), storage=MANUAL, seed=5, **SMALL
    )


# Checkpoints


@given(forgetful, forgetful, embedders)
@quick
def test_restoring_a_checkpoint_gives_the_bank_it_was_made_of(before, after, embedder) -> None:
    options: dict[str, Any] = {"embedder": embedder, **SMALL}
    with folder() as place, MemoryBank.ephemeral(seed=5, **options) as bank:
        perform_all(bank, before)
        bank.checkpoint(place / "kept.tmck")
        at_the_time = state(bank)
        ids = next_ids(bank)
        perform_all(bank, after)
        restored = MemoryBank.restore(
            place / "kept.tmck", place / "bank", storage=MANUAL, **options
        )
        with restored:
            assert state(restored) == at_the_time
            assert next_ids(restored) == ids
            perform_all(restored, after)
            assert state(restored) == state(bank)
        with open_bank(place / "bank", embedder) as again:
            assert state(again) == state(bank)


@given(histories, histories, st.booleans())
@quick
def test_restoring_a_checkpoint_in_its_own_bank_undoes_what_came_after(
    before, after, snapshots
) -> None:
    with eager_snapshots(snapshots), folder() as place:
        with open_bank(place / "bank") as bank:
            perform_all(bank, before)
            bank.checkpoint(place / "kept.tmck")
            at_the_time = state(bank)
            perform_all(bank, after)
            at_the_end = state(bank)
        for _ in range(2):
            restored = MemoryBank.restore(
                place / "kept.tmck", place / "bank", embedder=SmallEmbedder(), storage=MANUAL
            )
            with restored as bank:
                assert state(bank) == at_the_time
                perform_all(bank, after)
                assert state(bank) == at_the_end


@given(forgetful)
@quick
def test_a_checkpoint_of_a_restored_bank_is_as_good_as_the_first(before) -> None:
    with folder() as place:
        with open_bank(place / "first") as bank:
            perform_all(bank, before)
            bank.checkpoint(place / "first.tmck")
            expected = state(bank)
        options: dict[str, Any] = {"embedder": SmallEmbedder(), "storage": MANUAL}
        with MemoryBank.restore(place / "first.tmck", place / "second", **options) as bank:
            bank.checkpoint(place / "second.tmck")
        with MemoryBank.restore(place / "second.tmck", place / "third", **options) as bank:
            assert state(bank) == expected


# Earlier ticks


def live_through(
    bank: MemoryBank, ticks: Sequence[Sequence[Operation]], first: int = 0
) -> list[dict[str, Any]]:
    """Do a history, and give the state after each tick."""
    states = []
    for tick, done in enumerate(ticks, start=first):
        bank.advance(tick)
        perform_all(bank, done)
        states.append(state(bank))
    return states


@given(by_tick, st.booleans(), st.data())
@quick
def test_a_rewound_bank_equals_one_that_stopped_then(ticks, snapshots, data) -> None:
    stop = data.draw(st.integers(0, len(ticks) - 1))
    with eager_snapshots(snapshots), folder() as place:
        with open_bank(place / "bank") as bank:
            states = live_through(bank, ticks)
        with open_bank(place / "stopped") as bank:
            live_through(bank, ticks[: stop + 1])
        history.rewind(place / "bank", stop)
        with open_bank(place / "bank") as bank, open_bank(place / "stopped") as stopped:
            assert state(bank) == state(stopped) == states[stop]
            assert next_ids(bank) == next_ids(stopped)
            assert live_through(bank, ticks[stop + 1 :], stop + 1) == states[stop + 1 :]


@pytest.mark.slow
@given(by_tick, st.booleans())
@quick
def test_an_earlier_tick_looks_as_it_was(ticks, snapshots) -> None:
    with eager_snapshots(snapshots), folder() as place:
        with open_bank(place / "bank") as bank:
            states = live_through(bank, ticks)
            for tick, expected in enumerate(states):  # while it is open
                with MemoryBank.at(place / "bank", tick, embedder=SmallEmbedder()) as past:
                    assert state(past) == expected
        for tick, expected in enumerate(states):  # and when it is closed
            with MemoryBank.at(place / "bank", tick, embedder=SmallEmbedder()) as past:
                assert state(past) == expected
        with open_bank(place / "bank") as bank:
            assert state(bank) == states[-1]


@given(by_tick, st.booleans(), st.data())
@quick
def test_a_branched_bank_equals_the_earlier_tick_and_harms_nothing(ticks, snapshots, data) -> None:
    at = data.draw(st.integers(0, len(ticks) - 1))
    with eager_snapshots(snapshots), folder() as place:
        with open_bank(place / "bank") as bank:
            states = live_through(bank, ticks)
        history.branch(place / "bank", at, place / "branch")
        with open_bank(place / "branch") as other:
            assert state(other) == states[at]
            assert live_through(other, ticks[at + 1 :], at + 1) == states[at + 1 :]
            other.agent("alice").add("only here")
        with open_bank(place / "bank") as bank:
            assert state(bank) == states[-1]


def of_a_restored_bank(place: Path, ticks: Sequence[Sequence[Operation]], base: int) -> Any:
    """A bank that was restored from the checkpoint after tick ``base`` and went on."""
    states = []
    with open_bank(place / "first") as bank:
        states += live_through(bank, ticks[: base + 1])
        bank.checkpoint(place / "kept.tmck")
    with MemoryBank.restore(
        place / "kept.tmck", place / "bank", embedder=SmallEmbedder(), storage=MANUAL
    ) as bank:
        states += live_through(bank, ticks[base + 1 :], base + 1)
    return states


@pytest.mark.slow
@given(by_tick, st.booleans(), st.data())
@quick
def test_a_later_tick_of_a_restored_bank_looks_as_it_was_or_is_refused(
    ticks, snapshots, data
) -> None:
    base = data.draw(st.integers(0, len(ticks) - 1))
    with eager_snapshots(snapshots), folder() as place:
        states = of_a_restored_bank(place, ticks, base)
        for tick in range(base, len(ticks)):
            try:
                past = MemoryBank.at(place / "bank", tick, embedder=SmallEmbedder())
            except BankError as error:
                if not snapshots:  # only a newer snapshot may be in the way
                    raise AssertionError(tick) from error
                continue
            with past:
                assert state(past) == states[tick]


def test_a_tick_before_the_checkpoint_of_a_restored_bank_is_refused(tmp_path: Path) -> None:
    ticks = [[("add", "alice", f"tick {tick}", 3, None)] for tick in range(6)]
    of_a_restored_bank(tmp_path, ticks, 4)
    with pytest.raises(BankError):
        MemoryBank.at(tmp_path / "bank", 2, embedder=SmallEmbedder()).close()


def test_a_restored_bank_is_not_rewound_to_before_its_checkpoint(tmp_path: Path) -> None:
    ticks = [[("add", "alice", f"tick {tick}", 3, None)] for tick in range(6)]
    states = of_a_restored_bank(tmp_path, ticks, 4)
    with pytest.raises(BankError):
        history.rewind(tmp_path / "bank", 2)
    with open_bank(tmp_path / "bank") as bank:
        assert state(bank) == states[-1]


# Hashes


@pytest.mark.slow
@given(forgetful, st.booleans())
@example([("add", "alice", "a", 3, None), ("delete", "alice", 0), ("add", "alice", "a", 3, None)],
         False)  # fmt: skip
@example([("undone", [("add", "bob", "a", 0, None), ("tick", 2)]), ("tick", 1)], True)
@quick
def test_the_hash_that_was_kept_up_equals_one_computed_afresh(done, snapshots) -> None:
    with eager_snapshots(snapshots), folder() as place:
        with open_bank(place / "bank") as bank:
            for operation in done:
                perform(bank, operation)
                bank.commit()
                kept_up = bank.state_hash()
                with MemoryBank.at(place / "bank", embedder=SmallEmbedder()) as afresh:
                    assert afresh.state_hash() == kept_up
            last = state(bank)
        with open_bank(place / "bank") as bank:
            assert state(bank) == last


@given(forgetful, st.integers(0, 11))
@quick
def test_reopening_in_the_middle_changes_nothing(done, middle) -> None:
    with folder() as place:
        for name, parts in (("once", [done]), ("twice", [done[:middle], done[middle:]])):
            for part in parts:
                with open_bank(place / name) as bank:
                    perform_all(bank, part)
        with open_bank(place / "once") as once, open_bank(place / "twice") as twice:
            # The effect of searches may be in another commit, but is the same.
            assert state(once) | {"journal": ""} == state(twice) | {"journal": ""}


# Runs

TICKS = 12
EVERY = 4


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from its start to its end."""
    place = tmp_path_factory.mktemp("parent") / "run"
    scenario = {
        "seed": 21,
        "simulation": {"world": "market", "agents": 5, "ticks": TICKS},
        "checkpoint": {"every": EVERY, "keep": 9},
        "storage": MANUAL,
    }
    with Run.create(place, load_settings(scenario)) as made:
        for _ in made.advance(TICKS):
            pass
        made.checkpoint()
    return place


def recorded(place: Path) -> tuple[str, list[Any], Any]:
    with MemoryBank.at(place / "bank") as bank:
        return ticks_of(bank).hash(), list(ticks_of(bank).records()), ticks_of(bank).state()


def go_on(place: Path, until: int = TICKS) -> int:
    """Advance a run to a tick, and give the tick from which it went on."""
    with Run.open(place) as opened:
        start = opened.tick
        for _ in opened.advance(until):
            pass
        opened.checkpoint()
    return start


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("tick", [0, 1, 3, 4, 7, 11, 12])
def test_a_branch_without_edits_equals_its_parent(run: Path, tmp_path: Path, tick: int) -> None:
    branch(run, tick, tmp_path / "run")
    assert go_on(tmp_path / "run") == tick
    assert recorded(tmp_path / "run") == recorded(run)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, TICKS), st.integers(0, TICKS)), min_size=1, max_size=3))
@settings(deadline=None, max_examples=examples(12))
def test_a_run_that_goes_back_any_number_of_times_becomes_the_same_run(run: Path, steps) -> None:
    with folder() as place:
        copy = Path(shutil.copytree(run, place / "run"))
        last = TICKS
        for back, until in steps:
            go_back(copy, min(back, last))
            assert all(path.stem <= f"tick-{back:06}" for path in checkpoints(copy))
            assert go_on(copy, until) == min(back, last)
            last = max(min(back, last), until)
        go_on(copy)
        assert recorded(copy) == recorded(run)
        assert [path.name for path in checkpoints(copy)][-1] == f"tick-{TICKS:06}.tmck"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("lost_at", "tick"),
    [
        (9, 8),
        (9, 9),
        pytest.param(9, 6),
        pytest.param(12, 5),
    ],
)
def test_a_run_made_from_a_checkpoint_goes_back_as_far_as_it_is_told(
    run: Path, tmp_path: Path, lost_at: int, tick: int
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    go_back(copy, lost_at)
    (copy / "bank" / "journal.db").unlink()
    go_on(copy, lost_at)
    go_back(copy, tick)
    assert go_on(copy) <= tick
    assert recorded(copy) == recorded(run)


def test_a_run_made_from_a_checkpoint_is_not_branched_before_it(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    (copy / "bank" / "journal.db").unlink()
    go_on(copy)
    with pytest.raises(RunError):
        branch(copy, 5, tmp_path / "branch")


@pytest.mark.parametrize("tick", [4, 8, 12])
def test_a_run_that_lost_its_journal_goes_on_from_any_checkpoint(
    run: Path, tmp_path: Path, tick: int
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    shutil.rmtree(copy / "bank")
    for path in checkpoints(copy):
        if path.name > f"tick-{tick:06}.tmck":
            path.unlink()
    assert go_on(copy) == tick
    journal, ticks, world = recorded(run)
    assert recorded(copy) == (journal, ticks, world)


def _asks(rng: Random) -> object:
    return rng.random(), rng.randrange(99), rng.gauss(0, 1), rng.sample(range(50), 3)


def _seeds(rng: Random) -> object:
    rng.seed(5)
    return rng.random() == Random(5).random()


def _sets(rng: Random) -> object:
    rng.setstate(Random(5).getstate())
    return rng.random() == Random(5).random()


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (_asks, None),
        pytest.param(lambda rng: rng.getstate(), None),
        pytest.param(_seeds, True),
        pytest.param(_sets, True),
    ],
)
def test_a_generator_does_not_depend_on_the_ticks_before(use, expected) -> None:
    going_on, resumed = Streams(3, AGENTS), Streams(3, AGENTS)
    for tick in range(4):
        going_on.begin(tick)
        going_on.world.gauss(0, 1)
        going_on.agents["alice"].random()
    for streams in (going_on, resumed):
        streams.begin(4)
    for one, other in (
        (going_on.world, resumed.world),
        (going_on.agents["alice"], resumed.agents["alice"]),
        (going_on.agents["bob"], resumed.agents["bob"]),
    ):
        found = use(one)
        assert found == use(other)
        assert expected in (None, found)


@pytest.mark.long
def test_runs_of_processes_with_other_hash_seeds_are_equal(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(
        "simulation: {world: market, agents: 5, ticks: 8}\n"
        "checkpoint: {every: 3}\n"
        "storage: {sync: manual}\n"
    )

    def tiermem(hash_seed: int, *arguments: object) -> None:
        command = [str(Path(sys.executable).with_name("tiermem")), *map(str, arguments), "-q"]
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    whole, parts = tmp_path / "whole" / "run", tmp_path / "parts" / "run"
    tiermem(0, "run", scenario, "--out", whole)
    tiermem(4242, "run", scenario, "--out", parts, "--ticks", 5)
    tiermem(99, "resume", parts, "--from-tick", 4, "--ticks", 8)
    assert recorded(whole) == recorded(parts)
    for name in ("metrics.parquet", "ticks.parquet", "summary.json", "report.html", "config.yaml"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes(), name
    assert json.loads((whole / "summary.json").read_text())["ticks"] == 8
