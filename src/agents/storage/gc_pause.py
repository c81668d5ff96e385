"""Many records are made at once, without a search for garbage in between."""

import gc
import threading

__all__ = ["gc_paused"]


class gc_paused:  # noqa: N801  # a context manager with the name of a function
    """Inside, Python does not look for garbage, in no thread.

    The collector would look after every 700 new records, and each time at all earlier records,
    which can't be garbage yet. The collector belongs to the whole process, so it must be on
    whenever a user's code runs: only our own batches run inside. Who leaves last turns it on.
    """

    __slots__ = ()
    _lock = threading.Lock()
    _inside = 0
    _was = False

    def __enter__(self) -> None:
        own = gc_paused
        with own._lock:
            if not own._inside:
                own._was = gc.isenabled()
                gc.disable()
            own._inside += 1

    def __exit__(self, *_: object) -> None:
        own = gc_paused
        with own._lock:
            own._inside -= 1
            if own._was and not own._inside:
                gc.enable()
