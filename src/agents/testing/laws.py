"""What classes of laws share: a law is a test that says which law is broken, and by what.

Nothing here needs pytest: a class of laws can also be tried by :func:`broken_laws`.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar
from unittest import SkipTest

_L = TypeVar("_L")
_TEST = "test_"


class BrokenLaw(AssertionError):
    """What was tested breaks a law; the message names the law."""

    def __init__(self, laws: str, name: str, problem: str) -> None:
        super().__init__(f"{laws}: {name}: {problem}")
        self.name = name
        self.problem = problem


class DoesNotApply(SkipTest):
    """The law is about something that is not there."""


def law(method: Callable[[_L], None]) -> Callable[[_L], None]:
    """A law: whatever goes wrong in the method becomes :class:`BrokenLaw`."""

    @wraps(method)
    def test(self: _L) -> None:
        try:
            method(self)
        except SkipTest:
            raise
        except Exception as error:  # what is tested may raise anything
            is_ours = isinstance(error, AssertionError)
            problem = str(error) if is_ours else f"it raised {type(error).__name__}: {error}"
            broken = BrokenLaw(type(self).__name__, _name(method.__name__), problem)
            for note in getattr(error, "__notes__", ()):  # the example that Hypothesis found
                broken.add_note(note)
            raise broken from error

    return test


def must(condition: object, problem: str) -> None:
    """Raise an error that says what is wrong, unless the condition is true."""
    if not condition:
        raise AssertionError(problem)


def for_all(check: Callable[..., None], examples: int, *drawn: Any) -> None:
    """Try a function with many examples of what Hypothesis draws."""
    from hypothesis import HealthCheck, given, settings

    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    chosen = settings(max_examples=examples, deadline=None, suppress_health_check=slow)
    with_examples: Any = given(*drawn)
    chosen(with_examples(check))()


def laws_of(laws: type) -> Iterator[str]:
    """The names of the methods that are laws, in the order in which they are defined."""
    for each in reversed(laws.__mro__):
        yield from (name for name in vars(each) if name.startswith(_TEST))


def broken_laws(laws: Any) -> list[BrokenLaw]:
    """The laws that are broken, without pytest: ``broken_laws(TestMine())``."""
    found = []
    for name in dict.fromkeys(laws_of(type(laws))):
        try:
            getattr(laws, name)()
        except BrokenLaw as error:
            found.append(error)
        except SkipTest:
            continue
    return found


def _name(method: str) -> str:
    return method.removeprefix(_TEST).replace("_", " ")
