"""Making many records at once, without a search for garbage in between."""

import gc

__all__ = ["undisturbed"]


class undisturbed:  # noqa: N801  # a context manager, and named like the function it could be
    """Inside, Python does not look for garbage.

    It would after every 700 new records, and look at those made before again and again, though
    none of them can be garbage yet: a tenth of the time of a tick. Let it be the outermost: the
    first object that is made after its end has the collector look at all that were made inside.
    """

    __slots__ = ("_was",)

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            gc.enable()
