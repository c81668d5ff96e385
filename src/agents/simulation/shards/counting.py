"""What the cells count becomes the record of a tick, and one hash."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

_LARGEST = ("retrieved_most", "hot_utilization")


def combined(counts: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """The counts of all cells, as one bank counts; ``sizes`` are the numbers of their agents."""
    result: dict[str, Any] = {}
    for name in counts[0]:
        values = [each[name] for each in counts]
        if name == "hit_rate":  # a cell's rate is rounded, and its searches are few
            hits = sum(round(own * size) for own, size in zip(values, sizes, strict=True))
            result[name] = round(hits / sum(sizes), 6) if sum(sizes) else 0.0
        else:
            result[name] = max(values) if name in _LARGEST else sum(values)
    return result


def state_hash(seed: int, dims: int, tick: int, states: Mapping[str, tuple[int, bytes]]) -> str:
    """:meth:`MemoryBank.state_hash`, from the state of each agent: next number, fingerprint."""
    result = hashlib.sha256(f"{seed} {dims} {tick}".encode())
    for agent, (number, mark) in sorted(states.items()):
        result.update(b"\0%s\0%d\0" % (agent.encode(), number))
        result.update(mark)
    return result.hexdigest()
