"""Damage to files: bits, pages and tails."""

import random
from pathlib import Path

_PAGE = 4096


def mutate(path: Path, rng: random.Random, *, tail: bool = False) -> str:
    """Damage a file, anywhere or at its tail; what was done to it, in words."""
    rng = random.Random(rng.random())  # one draw, whatever the size: a replay damages alike
    data = bytearray(path.read_bytes())
    if not data:
        path.write_bytes(b"\0" * 16)
        return f"{path.name}: 16 zeros in an empty file"
    ways = (_cut, _garble, _zero) if tail else (_flip, _flip, _cut, _garble, _zero, _swap, _empty)
    way = rng.choice(ways)
    first = len(data) * rng.randrange(50, 100) // 100 if tail else 0
    done = way(data, first, rng)
    path.write_bytes(data)
    return f"{path.name}: {done}"


def _place(data: bytearray, first: int, rng: random.Random) -> int:
    return rng.randrange(first, len(data)) if first < len(data) else 0


def _flip(data: bytearray, first: int, rng: random.Random) -> str:
    places = [_place(data, first, rng) for _ in range(rng.choice([1, 1, 1, 8]))]
    for place in places:
        data[place] ^= 1 << rng.randrange(8)
    return f"a bit at {places}"


def _cut(data: bytearray, first: int, rng: random.Random) -> str:
    size = _place(data, first, rng)
    del data[size:]
    return f"cut to {size}"


def _empty(data: bytearray, first: int, rng: random.Random) -> str:
    data.clear()
    return "emptied"


def _garble(data: bytearray, first: int, rng: random.Random) -> str:
    place = _place(data, first, rng)
    size = min(rng.choice([4, 64, _PAGE, len(data)]), len(data) - place)
    data[place : place + size] = rng.randbytes(size)
    return f"{size} random bytes at {place}"


def _zero(data: bytearray, first: int, rng: random.Random) -> str:
    place = _place(data, first, rng) // 512 * 512
    size = min(rng.choice([512, _PAGE, len(data)]), len(data) - place)
    data[place : place + size] = bytes(size)
    return f"{size} zeros at {place}"


def _swap(data: bytearray, first: int, rng: random.Random) -> str:
    pages = len(data) // _PAGE
    if pages < 2:
        return _flip(data, first, rng)
    one, other = (each * _PAGE for each in rng.sample(range(pages), 2))
    first_page = bytes(data[one : one + _PAGE])
    data[one : one + _PAGE] = data[other : other + _PAGE]
    data[other : other + _PAGE] = first_page
    return f"pages at {one} and {other} swapped"
