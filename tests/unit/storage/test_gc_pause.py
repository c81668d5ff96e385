"""Python's search for garbage is put off, and never for good."""

import gc
from collections.abc import Iterator

import pytest

from agents.storage.interrupts import gc_paused


@pytest.fixture(autouse=True)
def _collector_is_on_again() -> Iterator[None]:
    yield
    gc.enable()


def test_inside_and_in_what_is_inside_there_is_no_search_for_garbage() -> None:
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_for_a_program_that_turned_it_off() -> None:
    gc.disable()
    with gc_paused():
        pass
    assert not gc.isenabled()


def test_it_is_on_after_an_error() -> None:
    with pytest.raises(KeyError), gc_paused():
        raise KeyError
    assert gc.isenabled()
