"""Counters as text that Prometheus reads."""

from collections.abc import Mapping

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_REQUESTS = "tiermem_http_requests_total"

_HELP = {
    "memory_hot_utilization": "Share of the tokens of hot in use, of the agent with most.",
    "memory_spill_count": "Memories that left hot because it was full.",
    "memory_recall_count": "Recalls.",
    "memory_promotion_count": "Memories that became hot.",
    "memory_recall_latency_ms": "How long the last recall took.",
    "memory_hit_rate": "Share of the searches that gave a memory.",
    "memory_demotion_count": "Memories that made room in their tier.",
    "memory_expiration_count": "Memories whose lifetime ended.",
    "memory_purge_count": "Memories that were purged.",
}


def exposition(bank: Mapping[str, float], answered: Mapping[tuple[str, int], int]) -> str:
    """The metrics of a bank, and the number of requests by operation and status.

    A ``…_count`` of the bank is a ``…_total`` here: to Prometheus, a count is part of a summary.
    """
    lines = []
    for key, value in bank.items():
        stem = key.removesuffix("_count")
        name, kind = (key, "gauge") if stem == key else (f"{stem}_total", "counter")
        lines += [f"# HELP {name} {_HELP[key]}", f"# TYPE {name} {kind}", f"{name} {value!r}"]
    lines.append(f"# HELP {_REQUESTS} Requests by operation and status; 499 left before the end.")
    lines.append(f"# TYPE {_REQUESTS} counter")
    for (operation, status), count in sorted(answered.items()):
        lines.append(f'{_REQUESTS}{{operation="{operation}",status="{status}"}} {count}')
    return "\n".join(lines) + "\n"
