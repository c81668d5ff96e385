"""Waiting for what must happen: long, because the machine may be busy, and saying what for."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

LONG = 300.0
"""Seconds after which something hangs; no test takes this long on the busiest machine."""


def until(what: str, happened: Callable[[], Any], seconds: float = LONG) -> Any:
    """What ``happened`` returns, once it did; fail with ``what`` did not."""
    end = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for this in vain: {what}"
        time.sleep(0.01)
    return found


def happens_within(seconds: float, happened: Callable[[], object]) -> bool:
    """Whether it happens in a short time: for what must not happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.01)
    return bool(happened())


def ended(process: "subprocess.Popen[Any]", given: Any = None) -> tuple[Any, Any]:
    """What a process wrote that has to end by itself now; killed if it doesn't."""
    try:
        return process.communicate(given, timeout=LONG)
    except subprocess.TimeoutExpired:
        process.kill()
        what = f"{process.args} to end; it said {process.communicate()}"
        raise AssertionError(f"waited {LONG:.0f} s for {what}") from None


def exit_code(process: "subprocess.Popen[Any]") -> int:
    """The exit code of a process that has to end by itself now; killed if it doesn't."""
    try:
        return process.wait(LONG)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"waited {LONG:.0f} s for {process.args} to end") from None
