"""Counters as text that Prometheus reads."""

from collections.abc import Mapping

__all__ = ["MEDIA_TYPE", "exposition"]

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_REQUESTS = "tiermem_http_requests_total"


def exposition(bank: Mapping[str, float], answered: Mapping[tuple[str, int], int]) -> str:
    """The metrics of a bank, and how many requests got which status, by operation."""
    lines = []
    for name, value in bank.items():
        lines.append(f"# TYPE {name} {'counter' if name.endswith('_count') else 'gauge'}")
        lines.append(f"{name} {value!r}")
    lines.append(f"# TYPE {_REQUESTS} counter")
    for (operation, status), count in sorted(answered.items()):
        lines.append(f'{_REQUESTS}{{operation="{operation}",status="{status}"}} {count}')
    return "\n".join(lines) + "\n"
