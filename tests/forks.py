"""Work that a forked process does."""

import os
import traceback
from collections.abc import Callable

from waiting import until

__all__ = ["in_a_fork"]


def in_a_fork(work: Callable[[], None]) -> None:
    """Do it in a forked process, which must end well."""
    forked = os.fork()
    if not forked:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    ended: list[int] = []

    def has_ended() -> bool:
        process, status = os.waitpid(forked, os.WNOHANG)
        ended.extend([status] * bool(process))
        return bool(ended)

    until("the forked process ends", has_ended)
    assert ended == [0]
