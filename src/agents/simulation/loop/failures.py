"""Errors of worlds and policies, which are a user's own code, as errors of the simulation."""

import traceback
from pathlib import Path
from typing import Any

from ...errors import ConfigError, SimulationError


def call(whose: object, method: str, tick: int, *arguments: object) -> Any:
    """Call a method of a world; an error names the method and the tick."""
    try:
        return getattr(whose, method)(*arguments)
    except ConfigError:
        raise  # setup() found options that don't fit together
    except Exception as error:  # a user's own world may raise anything
        raise failed(whose, method, tick, error) from error


def failed(whose: object, method: str, tick: int, error: Exception) -> SimulationError:
    """The error of a method of a world or policy, to be raised."""
    where = f"{type(whose).__name__}.{method}()"
    kept = "; the run is as it was after the tick before" if tick else ""
    return SimulationError(
        f"{where} raised {type(error).__name__} in tick {tick}: {error}{where_in(error)}{kept}"
    )


def where_in(error: Exception) -> str:
    """The file and line of an error, in brackets."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    if not last or last[0].filename.startswith("<"):  # Python's own import system
        return ""
    return f" ({Path(last[0].filename).name}, line {last[0].lineno})"
