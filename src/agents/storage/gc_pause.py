"""Many records are made at once, without a search for garbage in between."""

import gc


class gc_paused:  # noqa: N801  # a context manager with the name of a function
    """Inside, Python does not look for garbage.

    The collector would look after every 700 new records, and each time at all earlier records,
    which can't be garbage yet. The collector belongs to the whole process, so it must be on
    whenever a user's code runs: only our own batches run inside.
    """

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            gc.enable()
