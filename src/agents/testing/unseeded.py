"""Which lines of a user's code read a clock or the environment, or draw unseeded random numbers."""

import datetime
import inspect
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

import numpy as np

_CLOCK = "reads the clock; use the tick"
_RANDOM = "is not seeded; use the generator that setup() and decide() are given"

_ENVIRONMENT = "os.environ is not a part of a run; use world_options or policy_options"
_READS_ENVIRONMENT = type(os.environ).__getitem__.__code__
_OF_ENVIRONMENT = (os.getenv.__globals__, Mapping.get.__globals__)
"""The modules of ``os.getenv()``, and of ``get()`` and ``items()`` of ``os.environ``."""

_GLOBAL = random.random.__self__  # type: ignore[attr-defined]
"""The generator behind ``random.random()`` and all functions of its module."""

_CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
    "process_time", "process_time_ns", "localtime", "gmtime", "ctime", "strftime",
)  # fmt: skip
_BUILT_IN: dict[object, str] = {
    **{getattr(time, name): f"time.{name}() {_CLOCK}" for name in _CLOCKS},
    datetime.datetime.now: f"datetime.now() {_CLOCK}",
    datetime.datetime.utcnow: f"datetime.utcnow() {_CLOCK}",
    datetime.datetime.today: f"datetime.today() {_CLOCK}",
    datetime.date.today: f"date.today() {_CLOCK}",
    os.urandom: f"os.urandom() {_RANDOM}",
    random.random: f"random.random() {_RANDOM}",
    random.getrandbits: f"random.getrandbits() {_RANDOM}",
}
_IN_PYTHON: dict[object, str] = {
    each.__code__: f"{module.__name__}.{each.__name__}() {_RANDOM}"
    for module, names in (
        (uuid, ("uuid1", "uuid4", "getnode")),
        (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow")),
    )
    for each in (getattr(module, name) for name in names)
}
_OF_GENERATORS = {
    each.__code__: name
    for name, each in vars(random.Random).items()
    if hasattr(each, "__code__") and not name.startswith("_")
}
_SEEDED_IN_NUMPY = {"Generator", "RandomState", "SeedSequence", "seed", "set_state", "get_state"}


@contextmanager
def watched(
    is_own: Callable[[str], bool], *, environment: bool = False
) -> Iterator[set[tuple[str, int, str]]]:
    """File, line and what is wrong with it; ``is_own`` says which files are the user's.

    The set fills while the block runs. Only calls that a line of these files makes are named. What
    the user's modules import by name is seen, too, if they are imported inside the block. With
    ``environment``, reads of environment variables are named, too.
    """
    found: set[tuple[str, int, str]] = set()

    def note(caller: FrameType | None, what: str) -> None:
        if caller is not None and is_own(caller.f_code.co_filename):
            found.add((caller.f_code.co_filename, caller.f_lineno, what))

    def look(frame: FrameType, event: str, given: Any) -> None:
        if event == "c_call":
            what = _built_in(given)
            if what is not None:
                note(frame, what)
        elif event == "call" and frame.f_code is _READS_ENVIRONMENT:
            if environment:
                note(_reader(frame), _ENVIRONMENT)
        elif event == "call":
            what = _in_python(frame)
            if what is not None:
                note(frame.f_back, what)

    with _watched_numpy(note):
        sys.setprofile(look)
        try:
            yield found
        finally:
            sys.setprofile(None)


def _built_in(function: Any) -> str | None:
    try:
        return _BUILT_IN.get(function)
    except TypeError:  # a method of an object that has no hash
        return None


def _reader(frame: FrameType) -> FrameType | None:
    """Who reads an environment variable, through whatever method of ``os.environ``."""
    caller: FrameType | None = frame
    while caller is not None and any(caller.f_globals is each for each in _OF_ENVIRONMENT):
        caller = caller.f_back
    return caller


def _in_python(frame: FrameType) -> str | None:
    code = frame.f_code
    if code in _IN_PYTHON:
        return _IN_PYTHON[code]
    if code is random.Random.__init__.__code__ and frame.f_locals.get("x") is None:
        return f"random.Random() without a seed {_RANDOM}"
    if code in _OF_GENERATORS:
        generator = frame.f_locals.get("self")
        if generator is _GLOBAL or isinstance(generator, random.SystemRandom):
            return f"random.{_OF_GENERATORS[code]}() {_RANDOM}"
    return None


@contextmanager
def _watched_numpy(note: Callable[[FrameType | None, str], None]) -> Iterator[None]:
    """NumPy's own functions are not seen by a profiler, so others take their place."""
    before = {name: getattr(np.random, name) for name in np.random.__all__}

    def other(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noted(*given: Any, **named: Any) -> Any:
            if name != "default_rng" or not (given or named):
                note(inspect.stack(0)[1].frame, f"numpy.random.{name}() {_RANDOM}")
            return function(*given, **named)

        return noted

    for name, each in before.items():
        if callable(each) and not isinstance(each, type) and name not in _SEEDED_IN_NUMPY:
            setattr(np.random, name, other(name, each))
    try:
        yield
    finally:
        for name, each in before.items():
            setattr(np.random, name, each)
