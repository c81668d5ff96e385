"""Python's search for garbage is put off, and never for good."""

import gc
import threading
from collections.abc import Iterator

import pytest

from agents.storage.gc_pause import gc_paused


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


def test_a_thread_that_leaves_first_does_not_turn_it_on_for_the_other() -> None:
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        with gc_paused():
            entered.set()
            left.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with gc_paused():
        left.set()
        thread.join()
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
