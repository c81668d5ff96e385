"""Answers that may take longer than a request may: a thread makes them, and a few are kept."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

_MOST_KEPT = 4
"""An answer about a population has 20,000 objects, of 4 MB."""
_MOST_WAITED = 16
"""Answers that stay until somebody who was told to wait asks again."""
_MOST_ROWS = 200_000
"""Rows of a list that is kept."""
Answer = dict[str, Any]
T = TypeVar("T")


class _Kept(NamedTuple):
    version: Hashable
    future: Future[Answer]


class Later:
    """Answers by key. An answer that nobody asks for any more is not begun."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "later")
        self._kept: dict[Hashable, _Kept] = {}
        """The one that was asked for last is at the end."""
        self._waited: set[Hashable] = set()
        """Answers that somebody was told to wait for."""

    def close(self) -> None:
        """Finish the answer that is under way."""
        self._worker.shutdown(cancel_futures=True)

    def answer(
        self, key: Hashable, version: Hashable, make: Callable[[], Answer], seconds: float
    ) -> Answer | None:
        """The answer; None if it is not there after some seconds: it is to be asked for again.

        An answer of another version is made anew; but who was told to wait for it gets it, as a
        run that goes on would keep it waiting for ever.
        """
        kept = self._kept.pop(key, None)
        if kept is None or (kept.version != version and key not in self._waited):
            kept = _Kept(version, self._begun(make))
        self._kept[key] = kept
        others = [each for each in self._kept if each != key and each not in self._waited]
        if len(others) >= _MOST_KEPT:
            self._forget(others[0])
        elif len(self._kept) > _MOST_KEPT + _MOST_WAITED:
            self._forget(next(iter(self._kept)))
        try:
            found = kept.future.result(seconds)
        except TimeoutError:
            self._waited.add(key)
            return None
        except BaseException:
            self._forget(key)
            raise
        self._waited.discard(key)
        return found

    def _begun(self, make: Callable[[], Answer]) -> Future[Answer]:
        for key in [each for each, own in self._kept.items() if own.future.cancel()]:
            self._forget(key)
        return self._worker.submit(make)

    def _forget(self, key: Hashable) -> None:
        self._waited.discard(key)
        self._kept.pop(key).future.cancel()


class LastList:
    """A long list, of which pages are asked for one after the other: the last one is kept."""

    def __init__(self) -> None:
        self._kept: tuple[Hashable, list[Any]] | None = None

    def rows(self, key: Hashable, make: Callable[[], list[T]]) -> list[T]:
        """The list with this key; a very long one is not kept."""
        if self._kept is None or self._kept[0] != key:
            self._kept = None  # there are never two
            found = make()
            if len(found) > _MOST_ROWS:
                return found
            self._kept = key, found
        return self._kept[1]
