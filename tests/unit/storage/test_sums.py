"""Sums of hashes in one array are the sums of whole numbers."""

import random
from hashlib import sha256

import pytest

from agents.storage.columns.hashes import Sums, limbs_of, sums_of

WHOLE = 1 << 256


def mark(number: int) -> bytes:
    return b"\xff" * 32 if number % 7 == 0 else sha256(b"%d" % number).digest()


def value(data: bytes) -> int:
    return int.from_bytes(data, "big")


@pytest.mark.parametrize("seats", [3, 15, 16, 40])
def test_many_at_once_as_one_by_one(seats) -> None:
    chance, sums, expected = random.Random(seats), Sums(), [0] * seats
    assert not sums.known
    sums.put_all(range(seats), sums_of([], [0] * seats))
    for step in range(60):
        some = sorted(chance.sample(range(seats), chance.randrange(1, seats + 1)))
        marks = [mark(step * 100 + number) for number in range(len(some))]
        if step % 3:
            sums.add_all(some, limbs_of(marks))
            for seat, own in zip(some, marks, strict=True):
                expected[seat] += value(own)
        else:  # less than nothing is a sum, too
            sums.add_all(some, -limbs_of(marks))
            for seat, own in zip(some, marks, strict=True):
                expected[seat] -= value(own)
        sums.add(some[0], -step)
        expected[some[0]] -= step
        assert [sums.of(seat) for seat in range(seats)] == [each % WHOLE for each in expected]
    assert sums.total() % WHOLE == sum(expected) % WHOLE


def test_sums_of_runs_of_any_length() -> None:
    marks, counts = [mark(number) for number in range(9)], [0, 3, 0, 1, 5, 0]
    sums = Sums()
    sums.put_all(range(6), sums_of(marks, counts))
    runs = [marks[:0], marks[:3], marks[3:3], marks[3:4], marks[4:], marks[9:]]
    assert [sums.of(seat) for seat in range(6)] == [sum(map(value, own)) % WHOLE for own in runs]


def test_what_nobody_made_is_nothing_and_stays_so() -> None:
    sums, others = Sums(), Sums()
    assert (sums.of(5), sums.of(-1), sums.knows(5), sums.knows(-1)) == (0, 0, False, False)
    sums.add_all([2, 5], limbs_of([mark(1), mark(2)]))
    assert (sums.of(2), sums.knows(2)) == (0, False)
    sums.put(5, WHOLE + 3)
    assert (sums.of(5), sums.knows(5), sums.knows(4)) == (3, True, False)
    others.put(5, WHOLE - 1)
    assert sums.digests([5, 4], others) == (2).to_bytes(32, "big") + bytes(32)
    sums.forget(5)
    sums.forget(500)
    assert (sums.of(5), sums.knows(5)) == (0, False)
    for write in (lambda: sums.put(-1, 1), lambda: sums.put_all([2, -1], limbs_of([mark(1)] * 2))):
        with pytest.raises(IndexError, match="no sum"):
            write()


@pytest.mark.parametrize("count", [5, 60])
def test_the_bytes_have_what_others_add(count) -> None:
    sums, others = Sums(), Sums()
    sums.put_all(range(count), limbs_of([mark(number) for number in range(count)]))
    sums.add(3, WHOLE - 1)
    for seat in range(0, count, 2):
        others.put(seat, value(mark(seat + 1)))
    expected = [
        value(mark(n)) + (WHOLE - 1) * (n == 3) + value(mark(n + 1)) * (n % 2 == 0)
        for n in range(count)
    ]
    made = sums.digests(range(count), others)
    assert made == b"".join([(own % WHOLE).to_bytes(32, "big") for own in expected])
