"""Calls of a user's own world and policy: their errors, and checks of what they give.

A world gives what agents observe, its groups, and numbers and JSON values for the record of a tick.
"""

import math
import os
import traceback
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import orjson

from ...errors import ConfigError, SimulationError
from ..protocols import Observation, Persona, Remark, World, WorldRandom

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


def call(whose: object, method: str, tick: int, *arguments: object, **named: object) -> Any:
    """Call a method of a world; an error names the method and the tick."""
    try:
        return getattr(whose, method)(*arguments, **named)
    except ConfigError:
        raise  # setup() found options that don't fit together
    except Exception as error:  # a user's own world may raise anything
        raise failed(whose, method, tick, error) from error


def set_up(
    world: World, rng: WorldRandom, agents: Sequence[str], personas: Mapping[str, Persona]
) -> None:
    """Set a world up, with the personas if its ``setup`` takes them."""
    named = {"personas": personas} if "personas" in signature(world.setup).parameters else {}
    call(world, "setup", 0, rng, tuple(agents), **named)


def failed(whose: object, method: str, tick: int, error: Exception) -> SimulationError:
    """The error of a method of a world or policy, to be raised."""
    where = f"{type(whose).__name__}.{method}()"
    kept = "; the run is as it was after the tick before" if tick else ""
    return SimulationError(
        f"{where} raised {type(error).__name__} in tick {tick}: {error}{where_in(error)}{kept}"
    )


def where_in(error: Exception) -> str:
    """The file and line of an error, in brackets: of the user's own code, if it comes from that."""
    frames = traceback.extract_tb(error.__traceback__)
    last = ([each for each in frames if not each.filename.startswith(_PACKAGE)] or frames)[-1:]
    if not last or last[0].filename.startswith("<"):  # Python's own import system
        return ""
    return f" ({Path(last[0].filename).name}, line {last[0].lineno})"


def observe(world: World, agents: Sequence[str], tick: int) -> list[Observation]:
    """What each agent perceives, checked; the fields that the loop sets are not set yet."""
    try:
        ask = world.observe
        given = [ask(agent) for agent in agents]
    except Exception as error:  # a user's own world may raise anything
        raise failed(world, "observe", tick, error) from error
    name = type(world).__name__
    return [_checked(name, agent, seen) for agent, seen in zip(agents, given, strict=True)]


def _checked(world: str, agent: str, seen: object) -> Observation:
    if isinstance(seen, str):
        return Observation(seen)
    if not isinstance(seen, Observation):
        raise SimulationError(
            f"{world}.observe({agent!r}) gave {seen!r:.60}; an Observation or a text is needed"
        )
    heard = seen.heard
    if not isinstance(heard, list | tuple) or [
        each for each in heard if not isinstance(each, Remark)
    ]:
        raise SimulationError(
            f"{world}.observe({agent!r}) gave heard={heard!r:.60}; a list of Remarks is needed"
        )
    return seen


def groups_of(world: World) -> dict[str, list[str]]:
    """The groups that a world begins with, and their members; none without ``groups()``."""
    if not callable(getattr(world, "groups", None)):
        return {}
    groups = call(world, "groups", 0)
    try:
        return {name: list(members) for name, members in groups.items()}
    except (AttributeError, TypeError) as error:
        raise SimulationError(
            f"{type(world).__name__}.groups() gave {groups!r:.60}; a list of members by name is "
            "needed"
        ) from error


def metrics_of(world: World, tick: int, names: Sequence[str] | None) -> dict[str, float]:
    """The world's metrics; ``names`` are those of the tick before."""
    numbers = call(world, "metrics", tick)
    try:
        metrics = {str(name): check_number(value) for name, value in numbers.items()}
        if names is not None and [*metrics] != names:
            raise ValueError(f"the names are not those of the tick before: {[*metrics]!r:.200}")
    except (AttributeError, TypeError, ValueError) as error:
        raise SimulationError(
            f"{type(world).__name__}.metrics() gave in tick {tick} what can't be kept: {error}"
        ) from error
    return metrics


def changed_metrics(
    recorded: Mapping[str, float], now: Mapping[str, float], again: Mapping[str, float]
) -> list[str]:
    """The metrics that are not what was recorded, unless they change whenever they are asked."""
    return [
        f"{name} is {now.get(name)!r} and was {value!r}"
        for name, value in recorded.items()
        if now.get(name) != value and now.get(name) == again.get(name)
    ]


def not_kept(world: World, tick: int, error: Exception) -> SimulationError:
    """The error of a world whose state can't be kept, to be raised."""
    return SimulationError(
        f"{type(world).__name__}.get_state() gave in tick {tick} what can't be kept: {error}"
    )


def check_number(value: object) -> float:
    """``value`` itself if it is a number that a table can hold, or ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 2**53:
        return value
    if hasattr(value, "item") and not isinstance(value, int | float):  # a NumPy number
        return check_number(value.item())
    if isinstance(value, float) and math.isfinite(value):
        return value
    what = "too large" if isinstance(value, int) and not isinstance(value, bool) else "no number"
    raise ValueError(f"{value!r:.60} is {what}; a finite number up to 2^53 is needed")


def check_keys(state: object) -> None:
    """Refuse keys that are not text: JSON would give them back as text."""
    try:
        orjson.dumps(state)  # refuses other keys too, in a tenth of the time
    except TypeError:  # a key may be the reason, or a value
        _look_through(state)


def check_state(state: object) -> None:
    """Refuse what JSON would give back as something else: keys that are not text, and tuples."""
    try:
        if orjson.loads(orjson.dumps(state)) == state:  # faster than a look at each value
            return
    except TypeError:
        pass
    _look_through(state, tuples=False)


def _look_through(state: object, *, tuples: bool = True) -> None:
    try:
        _find_key(state, tuples=tuples)
    except RecursionError:
        raise ValueError("it is nested too deep, or holds itself") from None


def _find_key(value: object, *path: object, tuples: bool = True) -> None:
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{key!r:.60} is a key; JSON has text for keys")
            _find_key(child, *path, key, tuples=tuples)
    elif isinstance(value, list | tuple):
        if isinstance(value, tuple) and not tuples:
            place = "".join(f"[{each!r:.60}]" for each in path)
            raise ValueError(
                f"state{place} is the tuple {value!r:.60}, which JSON would give back as a list; "
                "give a list"
            )
        for number, child in enumerate(value):
            _find_key(child, *path, number, tuples=tuples)
