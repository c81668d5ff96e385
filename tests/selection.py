"""Which tests ``make test`` leaves to ``make test-all``, and which both leave to ``test-long``.

Each test says it itself, with one of the markers that pyproject.toml explains. Most behaviours keep
a quick test; some that need a browser, workers, a server or a kill have none. How often a test
tries, kills or draws depends on the same commands: see examples.py, and ``make faults``.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

_FILES_MARK = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.(slow|long)\b", re.MULTILINE)
_ANY_SLOW = re.compile(r"\bmark\.(?:slow|slow_after|again)\b")


def is_left_out(file: Path, expression: str) -> bool:
    """Whether a command leaves out all tests of a file, which the file's text tells."""
    if not (file.name.startswith("test_") and file.suffix == ".py"):
        return False
    if expression == "not slow":
        return _FILES_MARK.search(file.read_text("utf-8")) is not None
    if expression == "(slow or again) and not long":
        text = file.read_text("utf-8")
        of_file = _FILES_MARK.search(text)
        return (of_file is not None and of_file[1] == "long") or _ANY_SLOW.search(text) is None
    return False


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the cases after a test's first ones, and what is long as slow.

    Cases of a test come one after the other, as they are written.
    """
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        for name in ("slow", "long"):
            after = item.get_closest_marker(f"{name}_after")
            if after is not None and seen[test] >= after.args[0]:
                item.add_marker(name)
        if item.get_closest_marker("llm"):
            item.add_marker("long")
        if item.get_closest_marker("long"):
            item.add_marker("slow")
        seen[test] += 1
