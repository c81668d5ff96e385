"""Which cell an agent lives in, and which worker has a cell."""

import hashlib
from collections.abc import Sequence

MOST_CELLS = 64
_AGENTS_OF_A_CELL = 150
_LEAST_CELLS = 8


def cells_for(agents: int) -> int:
    """How many cells a population is cut into: a cell of few agents costs more than it shares."""
    cells = _LEAST_CELLS
    while cells < MOST_CELLS and agents > cells * _AGENTS_OF_A_CELL:
        cells *= 2
    return cells


def members(agents: Sequence[str], cells: int) -> list[list[str]]:
    """The agents of each cell, in the order of ``agents``. It depends on nothing but the ids."""
    result: list[list[str]] = [[] for _ in range(cells)]
    for agent in agents:
        digest = hashlib.sha256(f"cell\0{agent}".encode()).digest()
        result[int.from_bytes(digest[:8], "big") % cells].append(agent)
    return result


def placed(sizes: Sequence[int], workers: int) -> list[list[int]]:
    """The cells of each worker: large cells first, each to the worker with the fewest agents."""
    result: list[list[int]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for cell in sorted(range(len(sizes)), key=lambda each: (-sizes[each], each)):
        least = loads.index(min(loads))
        result[least].append(cell)
        loads[least] += sizes[cell]
    return [sorted(own) for own in result]
