"""Answers that may take longer than a request may: a thread makes them, and a few are kept."""

from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Later"]

_MOST_KEPT = 32


class Later:
    """Answers by key. An answer that nobody asks for any more is not begun."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "later")
        self._answers: dict[Hashable, Future[dict[str, Any]]] = {}
        """The one that was asked for last is at the end."""

    def close(self) -> None:
        """Finish the answer that is under way."""
        self._worker.shutdown(cancel_futures=True)

    def answer(
        self, key: Hashable, make: Callable[[], dict[str, Any]], seconds: float
    ) -> dict[str, Any] | None:
        """The answer; None if it is not there after some seconds: it is to be asked for again."""
        found = self._answers.pop(key, None)
        if found is None:
            for other in [each for each, own in self._answers.items() if own.cancel()]:
                del self._answers[other]
            found = self._worker.submit(make)
        self._answers[key] = found
        if len(self._answers) > _MOST_KEPT:
            self._answers.pop(next(iter(self._answers))).cancel()
        try:
            return found.result(seconds)
        except TimeoutError:
            return None
        except (Exception, CancelledError):
            del self._answers[key]
            raise
