"""A plugin of pytest: it names each test in which code of ``TIERMEM_REACHES`` ran.

That is the name of a module. Tests are traced by their calls: what is only imported did not run,
and to make an object is not yet to use it.
"""

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_REACHED: list[str] = []


def _code(module: str) -> str:
    """What the paths of a module's files begin with."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise pytest.UsageError(f"there is no module {module}, for TIERMEM_REACHES")
    file = Path(spec.origin)
    return f"{file.parent}{os.sep}" if file.name == "__init__.py" else str(file)


def _is_ours(frame: FrameType) -> bool:
    """Whether a function of the module runs; what an import runs is not optimized."""
    code = frame.f_code
    return code.co_filename.startswith(_CODE) and bool(code.co_flags & inspect.CO_OPTIMIZED)


def _is_made(frame: FrameType | None) -> bool:
    """Whether an object of the module is made there."""
    while frame is not None:
        if frame.f_code.co_name == "__init__" and _is_ours(frame):
            return True
        frame = frame.f_back
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    ran = False

    def traced(frame: FrameType, event: str, value: object) -> None:
        nonlocal ran
        ran = ran or (_is_ours(frame) and not _is_made(frame))

    before = sys.gettrace()
    threading.settrace(traced)  # type: ignore[arg-type]
    sys.settrace(traced)  # type: ignore[arg-type]
    try:
        return (yield)
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]
        if ran:
            _REACHED.append(item.nodeid)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name in _REACHED:
        terminalreporter.write_line(f"REACHED {name}")


_CODE = _code(os.environ["TIERMEM_REACHES"])
