"""``tiermem replay``: a run again, and what is said where it is not the same."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.simulation.runs.compare import differences
from agents.simulation.runs.run import Run
from agents.simulation.runs.trust import trust
from banks import child

Command = Callable[..., Any]
Write = Callable[..., Path]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def change_code(run: Path, old: str, new: str) -> None:
    code = run / "code" / "worlds_for_tests.py"
    assert old in code.read_text()
    code.write_text(code.read_text().replace(old, new))
    trust(run)  # the run is a copy: its code is trusted as long as it is the same


def test_a_run_replays(tiermem: Command, whole: Path) -> None:
    done = tiermem("replay", whole)
    assert done.code == 0
    assert done.out == "equal: ticks 0 to 12, bit for bit\n"


def test_replay_changes_nothing(tiermem: Command, whole: Path) -> None:
    before = files(whole)
    tiermem("replay", whole, "--verify")
    assert files(whole) == before


def test_a_whole_run_verifies(tiermem: Command, whole: Path) -> None:
    assert tiermem("replay", whole, "--verify", "--json").json == {
        "equal": True, "ticks": 12, "problems": [],
    }  # fmt: skip


def test_a_replay_may_start_later(tiermem: Command, whole: Path) -> None:
    assert tiermem("replay", whole, "--from-tick", 7).out == "equal: ticks 7 to 12, bit for bit\n"


def test_quiet_says_nothing_of_an_equal_run(tiermem: Command, whole: Path) -> None:
    assert tiermem("replay", whole, "-q") == (0, "", "")


def test_another_tier_is_named_with_tick_agent_memory_and_field(
    tiermem: Command, whole: Path
) -> None:
    change_code(
        whole, 'note = {"content"', 'tier = "low" if observation.tick == 5 and '
        'observation.agent_id == "bob" else self._tier\n        note = {"content"',
    )  # fmt: skip
    change_code(whole, '"tier": self._tier}', '"tier": tier}')
    done = tiermem("replay", whole)
    assert done.code == 1
    (line,) = done.out.splitlines()
    assert re.search(r"^tick 5, bob, [0-9a-f-]{36}: recorded tier is pinned and low", line)


def test_another_text_is_named_with_tick_agent_memory_and_field(
    tiermem: Command, whole: Path
) -> None:
    change_code(
        whole, 'f"{agent_id} took step {self._steps[agent_id]}"',
        'f"{agent_id} took step {self._steps[agent_id] % 9}"',
    )  # fmt: skip
    done = tiermem("replay", whole)
    assert done.code == 1
    (line,) = done.out.splitlines()
    assert re.search(
        r'^tick 9, alice, [0-9a-f-]{36}: recorded content is "alice took step 9" and '
        r'"alice took step 0" in the replay', line
    )  # fmt: skip


def test_a_text_of_unseeded_randomness_is_named_and_not_what_it_made_agents_find(
    tiermem: Command, whole: Path
) -> None:
    change_code(
        whole, 'return f"{agent_id} sees',
        'if (self._tick, agent_id) == (11, "bob"):\n'
        '            return f"note {int.from_bytes(os.urandom(8))}"\n'
        '        return f"{agent_id} sees',
    )  # fmt: skip
    done = tiermem("replay", whole)
    assert done.code == 1
    (line,) = done.out.splitlines()
    assert re.search(
        r'^tick \d+, bob, [0-9a-f-]{36}: recorded content is "bob sees \d+ stones" and '
        r'"note \d+" in the replay', line
    )  # fmt: skip


def test_a_memory_that_is_missing_is_named(tiermem: Command, whole: Path) -> None:
    change_code(whole, "return [*", "return [] if observation.tick == 2 else [*")
    done = tiermem("replay", whole)
    assert done.code == 1
    assert re.search(r"^tick 2, alice, [0-9a-f-]{36}: recorded memory is .* missing", done.out)


def test_another_metric_is_named(tiermem: Command, whole: Path) -> None:
    change_code(whole, "sum(self._steps.values())", "max(sum(self._steps.values()), 7)")
    done = tiermem("replay", whole)
    assert done.code == 1
    assert done.out.startswith("tick 0: recorded metric steps is 0 and 7")


def test_a_replay_from_after_the_difference_is_equal(tiermem: Command, whole: Path) -> None:
    change_code(whole, "return [*", "return [] if observation.tick == 6 else [*")
    assert tiermem("replay", whole, "--from-tick", 6, "-q").code == 0


def test_differences_come_as_json_too(tiermem: Command, whole: Path) -> None:
    change_code(whole, "return [*", "return [] if observation.tick == 6 else [*")
    done = tiermem("replay", whole, "--json")
    assert done.code == 1
    assert done.json["equal"] is False
    assert done.json["problems"][0].startswith("tick 6, alice, ")


def test_a_world_that_raises_in_the_replay_is_one_error(tiermem: Command, whole: Path) -> None:
    change_code(whole, "self._tick == self._fail_at", "self._tick == 4")
    assert tiermem("replay", whole, "-q").is_one_error(1, "Stones.end_tick()", "tick 4")


@pytest.mark.parametrize("name", ["metrics.parquet", "ticks.parquet", "decisions.parquet"])
def test_verify_finds_a_table_that_is_missing_or_damaged(
    tiermem: Command, whole: Path, name: str
) -> None:
    (whole / name).write_bytes(b"junk")
    done = tiermem("replay", whole, "--verify")
    assert done.code == 1
    assert name in done.out
    (whole / name).unlink()
    assert f"{whole / name} is missing" in tiermem("replay", whole, "--verify").out
    assert tiermem("replay", whole).code == 0


def test_verify_finds_a_damaged_checkpoint(tiermem: Command, whole: Path) -> None:
    (whole / "checkpoints" / "tick-000008.tmck").write_bytes(b"junk")
    done = tiermem("replay", whole, "--verify")
    assert done.code == 1
    assert "tick-000008.tmck" in done.out


def test_verify_finds_a_checkpoint_under_another_name(tiermem: Command, whole: Path) -> None:
    (whole / "checkpoints" / "tick-000004.tmck").rename(whole / "checkpoints" / "tick-000002.tmck")
    done = tiermem("replay", whole, "--verify")
    assert done.code == 1
    assert "tick-000002.tmck" in done.out


def test_verify_finds_a_checkpoint_of_another_run(
    tiermem: Command, scenario: Write, whole: Path
) -> None:
    tiermem("run", scenario(), "--seed", 4, "--out", "other", "-q")
    Path("other/checkpoints/tick-000008.tmck").replace(whole / "checkpoints" / "tick-000008.tmck")
    done = tiermem("replay", whole, "--verify")
    assert done.code == 1
    assert "tick-000008.tmck is not of this run" in done.out


def test_verify_finds_a_summary_that_is_wrong_or_missing(tiermem: Command, whole: Path) -> None:
    (whole / "summary.json").unlink()
    assert tiermem("replay", whole, "--verify", "-q").code == 1


def test_a_run_that_was_resumed_replays(tiermem: Command, whole: Path) -> None:
    tiermem("resume", whole, "--from-tick", 6, "--ticks", 14, "-q")
    assert tiermem("replay", whole, "--verify", "-q") == (0, "", "")


def test_a_run_restored_from_a_checkpoint_replays_from_its_start(
    tiermem: Command, whole: Path
) -> None:
    (whole / "bank" / "journal.db").unlink()
    tiermem("resume", whole, "--ticks", 14, "-q")
    assert tiermem("replay", whole, "--verify", "-q") == (0, "", "")


def test_a_run_in_use_can_be_replayed(tiermem: Command, whole: Path) -> None:
    with Run.open(whole):
        assert tiermem("replay", whole, "-q") == (0, "", "")


def test_without_its_journal_a_run_can_not_be_replayed(tiermem: Command, whole: Path) -> None:
    (whole / "bank" / "journal.db").unlink()
    assert tiermem("replay", whole).is_one_error(1, str(whole))


def test_what_was_changed_after_the_last_tick_is_named(tiermem: Command, whole: Path) -> None:
    with MemoryBank.open(whole / "bank") as bank:
        alice = bank.agent("alice")
        new = alice.add("a stranger came")
        gone, moved = alice.all("normal")[:2]
        alice.delete(gone.id)
        alice.set_tier(moved.id, "low")
    done = tiermem("replay", whole)
    assert done.code == 1
    assert "tick 12: equal up to here, but its bank was changed since" in done.out
    assert f"alice, {new.id}: new: a stranger came" in done.out
    assert f"alice, {gone.id}: gone: {gone.content}" in done.out
    assert f"alice, {moved.id}: tier was 3 and is 4" in done.out


def test_of_many_changes_after_the_last_tick_some_are_named(tiermem: Command, whole: Path) -> None:
    with MemoryBank.open(whole / "bank") as bank:
        bank.add_many([("alice", f"rumour {number}") for number in range(9)])
        bank.advance(bank.tick + 3)
    done = tiermem("replay", whole)
    assert done.code == 1
    assert "changed since: 3 ticks were added; alice" in done.out
    assert "and 4 more" in done.out
    assert "Traceback" not in done.err


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted by Linux")
def test_tables_are_read_without_threads_of_pyarrow(whole: Path) -> None:
    """With them, one process in ten was aborted at its end, and `--verify` seemed to fail."""
    code = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from tiermem.simulation.runs.outputs import rows_of
before = len(os.listdir("/proc/self/task"))
assert rows_of(Path(sys.argv[1]))
print(len(os.listdir("/proc/self/task")) - before)
"""
    assert child(code, whole / "ticks.parquet", start=subprocess.Popen) == "0"


def test_every_field_that_was_changed_after_the_last_tick_is_named(
    tiermem: Command, whole: Path
) -> None:
    with MemoryBank.open(whole / "bank") as bank:
        alice = bank.agent("alice")
        heated, hidden, gone = alice.all("normal")[:3]
        assert alice.update(heated.id, temperature="hot")
        alice.update(hidden.id, retention="archived")
        alice.delete(gone.id)
    done = tiermem("replay", whole)
    assert done.code == 1
    assert f"alice, {heated.id}: temperature was warm and is hot" in done.out
    assert f"alice, {hidden.id}: retention was active and is archived" in done.out
    assert f"alice, {gone.id}: gone: {gone.content}" in done.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('"kind": "decision"', 'kind is "fact" and "decision"'),
        ('"tags": ["x"]', r'tags is \[\] and \["x"\]'),
    ],
)
def test_another_kind_or_tag_is_named(tiermem: Command, whole: Path, more: str, said: str) -> None:
    change_code(whole, '"tier": self._tier}', f'"tier": self._tier, {more}}}')
    done = tiermem("replay", whole)
    assert done.code == 1
    assert re.search(rf"^tick 1, alice, [0-9a-f-]{{36}}: recorded {said} in the replay", done.out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": "hot"}, "temperature is warm and hot"),
        ({"ttl": 30}, "expires_tick is missing and 30"),
    ],
)
def test_two_banks_differ_in_temperature_or_expiry(options: dict[str, Any], said: str) -> None:
    with MemoryBank.ephemeral() as one, MemoryBank.ephemeral() as other:
        one.agent("alice").add("the well is dry")
        memory = other.agent("alice").add("the well is dry", **options)
        assert list(map(str, differences(one, other))) == [f"alice, {memory.id}: {said}"]


def test_texts_are_named_before_what_follows_from_them() -> None:
    """A query with another text finds other memories, which makes them hot, and counts as use."""
    with MemoryBank.ephemeral() as one, MemoryBank.ephemeral() as other:
        for bank, text in ((one, "I drew a 3"), (other, "I drew a 5")):
            used, heated = bank.agent("alice").add("the well is dry"), bank.agent("bob").add("rain")
            told = bank.agent("cat").add(text)
        other.agent("alice").search("the well")
        other.agent("bob").update(heated.id, temperature="hot")
        found = [(each.memory, each.field) for each in differences(one, other)]
    assert found[:2] == [(told.id, "content"), (heated.id, "temperature")]
    assert {each for each, _ in found[2:]} == {used.id}


def test_two_banks_differ_in_what_was_used(tmp_path: Path) -> None:
    with MemoryBank.ephemeral() as one, MemoryBank.ephemeral() as other:
        for bank in (one, other):
            bank.agent("alice").add("the well is dry")
        other.agent("alice").search("the well")
        assert one.state_hash() != other.state_hash()
        assert "access_count" in [each.field for each in differences(one, other)]
