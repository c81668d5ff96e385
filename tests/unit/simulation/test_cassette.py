"""The cassette: the file with a language model's questions and answers."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from agents.errors import Diverged, RunError
from agents.simulation.policies.cassette import Cassette, Exchange, hash_prompt

ASKED = [{"role": "system", "content": "Trade."}, {"role": "user", "content": "Tick 1 “grün”"}]
FIRST = Exchange(1, "alice", 0, ASKED, reply='{"actions": []}')
FAILED = Exchange(1, "bob", 0, ASKED, kind="Timeout", error="no reply within 60 s")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


def find(cassette: Cassette, exchange: Exchange) -> Exchange | None:
    return cassette.find(exchange.tick, exchange.agent, exchange.prompt_hash, exchange.attempt)


def filled(path: Path, *exchanges: Exchange) -> Cassette:
    cassette = Cassette(path)
    for exchange in exchanges or (FIRST, FAILED):
        cassette.record(exchange)
    return cassette


def test_what_was_recorded_is_found_again_also_after_opening(path: Path) -> None:
    for cassette in (filled(path), Cassette(path), Cassette(path, replay=True)):
        assert find(cassette, FIRST) == FIRST
        assert cassette.position == 2


def test_that_there_was_no_answer_is_found_by_a_replay_alone(path: Path) -> None:
    cassette = filled(path)
    assert find(cassette, FAILED) is None
    assert cassette.find(*FAILED.key, passed_over=True) == FAILED
    with cassette.replaying():
        assert find(cassette, FAILED) == FAILED
    assert list(cassette) == [FIRST, FAILED]


def test_an_answer_counts_before_a_line_that_says_that_there_was_none(path: Path) -> None:
    answered = FAILED._replace(reply="{}", kind=None, error=None)
    cassette = filled(path)
    assert cassette.record(answered) == answered
    for again in (cassette, Cassette(path), Cassette(path, replay=True)):
        assert find(again, FAILED) == answered
        assert list(again) == [FIRST, answered]


def test_an_answer_to_a_later_attempt_is_not_paid_for_again(path: Path) -> None:
    later = FAILED._replace(attempt=1, reply="{}", kind=None, error=None)
    cassette = filled(path, FAILED, later)  # as versions wrote them for which outages were attempts
    assert find(cassette, FAILED) == FAILED
    assert find(cassette, later) == later


@pytest.mark.parametrize(
    "other",
    [
        FIRST._replace(tick=2),
        FIRST._replace(agent="carol"),
        FIRST._replace(attempt=1),
        FIRST._replace(messages=ASKED[:1]),
    ],
)
def test_tick_agent_prompt_and_attempt_make_the_key(path: Path, other: Exchange) -> None:
    assert find(filled(path), other) is None


def test_without_an_exchange_there_is_no_file(path: Path) -> None:
    cassette = Cassette(path)
    assert find(cassette, FIRST) is None
    assert cassette.position == 0
    assert not path.exists()


def test_a_line_can_be_read_by_people_and_holds_the_whole_prompt(path: Path) -> None:
    filled(path)
    first, second = path.read_text().splitlines()
    assert "Tick 1 “grün”" in first
    assert json.loads(first)["messages"] == ASKED
    assert json.loads(first)["prompt_hash"] == hash_prompt(ASKED)
    assert json.loads(second)["kind"] == "Timeout"


def test_the_first_reply_for_a_key_wins(path: Path) -> None:
    cassette = filled(path)
    before = path.read_bytes()
    assert cassette.record(FIRST) == FIRST
    assert cassette.record(FIRST._replace(reply="another")) == FIRST
    assert cassette.position == 2
    assert path.read_bytes() == before


def test_of_two_lines_in_the_file_the_first_wins(path: Path, tmp_path: Path) -> None:
    filled(path)
    filled(tmp_path / "other", FIRST._replace(reply="another"))
    path.write_bytes(path.read_bytes() + (tmp_path / "other").read_bytes())
    assert find(Cassette(path), FIRST) == FIRST
    assert Cassette(path).position == 3


def test_any_text_comes_back_as_it_was(path: Path) -> None:
    odd = "line\nend \u2028 \x85 \0 \ud800 \ud83d\ude00 😀 \\ud800"
    exchange = FIRST._replace(reply=odd, messages=[{"role": "user", "content": odd}])
    filled(path, exchange)
    assert find(Cassette(path), exchange) == exchange


def test_a_file_cut_anywhere_in_its_last_line_loses_that_line_only(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    end = whole.index(b"\n") + 1
    for length in range(end + 1, len(whole)):
        path.write_bytes(whole[:length])
        replayed = Cassette(path, replay=True)
        assert replayed.position == 1
        assert path.stat().st_size == length
        cassette = Cassette(path)
        assert cassette.position == 1
        assert path.read_bytes() == whole[:end]
        cassette.record(FAILED)
        assert path.read_bytes() == whole


def test_a_tail_of_zeros_after_a_power_cut_is_dropped(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(100))
    assert Cassette(path).position == 2
    assert path.read_bytes() == whole


def test_a_file_that_is_no_cassette_is_refused_and_kept(path: Path) -> None:
    path.write_text("my notes")
    with pytest.raises(RunError, match="line 1 is damaged"):
        Cassette(path).record(FIRST)
    assert path.read_text() == "my notes"


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_changed_byte_is_an_error_with_file_and_line(
    path: Path, number: int, replay: bool
) -> None:
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(b"Tick 1", b"Tick 2")
    path.write_bytes(b"".join(lines))
    with pytest.raises(RunError, match=rf"cassette\.jsonl, line {number} is damaged"):
        find(Cassette(path, replay=replay), FIRST)


@pytest.mark.parametrize("line", ["", "7", "{}", '{"agent":1}', "\xff", "[" * 100_000])
def test_a_line_that_is_no_exchange_is_an_error(path: Path, line: str) -> None:
    filled(path)
    path.write_bytes(line.encode("latin-1") + b"\n" + path.read_bytes())
    with pytest.raises(RunError, match="line 1 is damaged"):
        _ = Cassette(path).position


def test_a_replay_writes_nothing_and_names_what_is_missing(path: Path) -> None:
    filled(path)
    before = path.read_bytes()
    cassette = Cassette(path, replay=True)
    assert cassette.record(FIRST) == FIRST
    missing = FIRST._replace(tick=9)
    for ask in (find, Cassette.record):
        with pytest.raises(Diverged, match=rf"tick 9, agent 'alice'.*{FIRST.prompt_hash}"):
            ask(cassette, missing)
    assert path.read_bytes() == before


def test_a_replay_without_a_file_diverges_and_makes_none(path: Path) -> None:
    with pytest.raises(Diverged, match="nothing was recorded for this agent in this tick"):
        find(Cassette(path, replay=True), FIRST)
    assert not path.exists()


def test_a_replay_tells_a_changed_prompt_from_a_missing_one(path: Path) -> None:
    filled(path)
    changed = FIRST._replace(messages=ASKED[:1])
    with pytest.raises(Diverged, match=f"was different when recorded .{FIRST.prompt_hash}"):
        find(Cassette(path, replay=True), changed)


def test_a_replay_names_the_cassettes_file_and_not_the_folder_in_which_it_runs(path: Path) -> None:
    with pytest.raises(Diverged, match=f"attempt 1: {path.name} holds no exchange") as missing:
        find(Cassette(path, replay=True), FIRST)
    assert str(path.parent) not in str(missing.value)


def test_threads_may_record_at_once(path: Path) -> None:
    cassette = Cassette(path)
    made = [[FIRST._replace(agent=f"a{t}", attempt=n) for n in range(20)] for t in range(8)]

    def write(exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            cassette.record(exchange)

    threads = [threading.Thread(target=write, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = Cassette(path, replay=True)
    assert again.position == cassette.position == 160
    assert all(find(again, exchange) == exchange for own in made for exchange in own)


def test_a_line_is_on_the_disk_before_record_returns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_ino)

    cassette = filled(path)
    monkeypatch.setattr(os, "fsync", watched)
    cassette.record(FIRST._replace(tick=2))
    assert synced == [path.stat().st_ino]


def test_a_full_disk_is_an_error_and_leaves_whole_lines(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    cassette = filled(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"cassette\.jsonl can't be written: .*No space left"):
            cassette.record(FIRST._replace(tick=2))
    assert path.read_bytes() == before
    cassette.record(FIRST._replace(tick=2))
    assert Cassette(path).position == 3


def test_equal_prompts_keep_their_own_answers(path: Path) -> None:
    asked = [FIRST._replace(tick=tick, agent=agent, reply=f"{agent} in {tick}")
             for tick in (1, 2) for agent in ("alice", "bob")]  # fmt: skip
    again = FIRST._replace(attempt=1, reply="a second attempt")
    for cassette in (filled(path, *asked, again), Cassette(path, replay=True)):
        assert [find(cassette, each) for each in (*asked, again)] == [*asked, again]
        assert list(cassette) == [*asked, again]
