"""Making many records at once, without a search for garbage in between."""

import gc

__all__ = ["gc_paused"]


class gc_paused:  # noqa: N801  # a context manager, and named like the function it could be
    """Inside, Python does not look for garbage.

    The collector would look after every 700 new records, and look at the records made before again
    and again, though none of them can be garbage yet. Only our own batches run inside: the
    collector belongs to the whole process, so it must be on whenever a user's code runs.
    """

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            gc.enable()
