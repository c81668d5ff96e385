"""The personas of a run: who each agent is, from a list, a table, or distributions and the seed.

Tables, and the template of a prompt, are files of the scenario.

Attributes that are drawn depend on the seed, the attribute and the agent alone: another attribute
or another agent shifts none of them.
"""

import csv
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ...config.settings import Settings
from ...errors import ConfigError, NotInstalled
from ...memory.records import Scalar
from ..protocols import Persona
from ..tick.streams import NamedStream

_KEY = "simulation.personas"
_AGENT, _TEXT = "agent", "text"
_TABLES = (".csv", ".parquet")
_TEMPLATES = (".md", ".txt")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLACE = re.compile(r"\{([^{}]*)\}")
_MOST_BYTES = 1 << 28
_DIGITS = 6
"""Digits behind the point of a drawn number: the last bits of a logarithm differ by machine."""
_TRIES = 1000
_FORMS = (
    "{normal: [mean, deviation]}, {uniform: [least, most]}, {integers: [least, most]} or "
    "{choice: [a, b], weights: [2, 1]}"
)


class _Row(NamedTuple):
    """A row of a list or a table, and where it stands."""

    where: str
    values: Mapping[str, Any]


def personas_of(settings: Settings, *folders: Path) -> dict[str, Persona]:
    """The persona of each agent; none if the settings name none.

    A table is looked for in ``folders``. What is wrong is a :class:`ConfigError` that names the
    line, the entry or the attribute.
    """
    given, agents = settings.simulation.personas, settings.simulation.agent_ids()
    if given is None:
        return {}
    if isinstance(given, str):
        path = persona_file(settings, *folders)
        read = _csv_rows if given.endswith(".csv") else _parquet_rows
        return _of_rows(given, list(read(given, path)), agents)
    if isinstance(given, Mapping):
        return _drawn(given, settings.seed, agents)
    return _of_rows(_KEY, [_Row(f"{_KEY}[{at}]", own) for at, own in enumerate(given)], agents)


def persona_file(settings: Settings, *folders: Path) -> Path:
    """The table of personas that the settings name."""
    return named_file(_KEY, str(settings.simulation.personas), _TABLES, *folders)


def template_file(settings: Settings, *folders: Path) -> Path | None:
    """The template of a language model's prompt; None if the settings name none."""
    name = settings.simulation.policy_options.get("template")
    if settings.simulation.policy != "llm" or name is None:
        return None
    return named_file("simulation.policy_options.template", str(name), _TEMPLATES, *folders)


def named_file(key: str, name: str, endings: Sequence[str], *folders: Path) -> Path:
    """A file of the scenario, such as a table, in the first of ``folders`` that has it."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or path.suffix not in endings:
        raise ConfigError(
            f"{key}: {name!r:.80} is not a file of the scenario",
            hint=f"name a {' or '.join(endings)} file beside the scenario's file, or below it: a "
            "run keeps a copy",
        )
    for folder in folders:
        if (folder / path).is_file():
            return folder / path
    looked = " or ".join(str(folder) for folder in folders) or "no folder"
    raise ConfigError(f"{key}: there is no file {name!r:.80} in {looked}", hint="check the path")


# Lists and tables


def _csv_rows(name: str, path: Path) -> Iterator[_Row]:
    reader = csv.reader(StringIO(read_text(name, path), newline=""), strict=True)
    try:
        names: list[str] | None = None
        for cells in reader:
            where = f"{name}, line {reader.line_num}"
            if names is None:
                names = [cell.strip() for cell in cells]
                if not all(names) or len({*names}) < len(names):
                    raise ConfigError(
                        f"{where}: {names!r:.80} are not names of columns", hint="each one differs"
                    )
            elif cells and len(cells) != len(names):
                raise ConfigError(
                    f"{where}: {len(cells)} values, and {len(names)} columns",
                    hint='a value with a comma stands in quotes: "red, or blue"',
                )
            elif cells:
                read = (_cell, str.strip)
                yield _Row(
                    where,
                    {
                        column: read[column in (_AGENT, _TEXT)](cell)
                        for column, cell in zip(names, cells, strict=True)
                        if cell.strip()
                    },
                )
    except csv.Error as error:
        raise ConfigError(f"{name}, line {reader.line_num}: {error}", hint="mend it") from None


def read_text(name: str, path: Path) -> str:
    """The text of a file of the scenario."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"{name} has over {_MOST_BYTES >> 20} MiB", hint="use Parquet")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{name} can't be read: {error}", hint="check the path") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{name}, line {line}: it is not UTF-8", hint="save it as UTF-8"
        ) from None


def _cell(text: str) -> Scalar:
    """A number or a truth value where the cell of a CSV file is written as JSON writes it."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if found := _NUMBER.fullmatch(text):
        value = float(text) if found[1] or found[2] else int(text)
        return value if math.isfinite(value) else text
    return text


def _parquet_rows(name: str, path: Path) -> Iterator[_Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise NotInstalled(
            f"{name} is a Parquet file, and pyarrow is not installed",
            hint="install it with: pip install 'tiermem[simulation]'",
        ) from None
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{name} can't be read: {error!s:.200}", hint="check the file") from None
    for number, row in enumerate(rows, 1):
        values = {key: value for key, value in row.items() if value is not None}
        yield _Row(f"{name}, row {number}", values)


def _of_rows(name: str, rows: Sequence[_Row], agents: Sequence[str]) -> dict[str, Persona]:
    """The personas of rows that name their agents, or that are in the order of the agents."""
    named = [row for row in rows if _AGENT in row.values]
    if not named and len(rows) < len(agents):
        raise ConfigError(
            f"{name} has {len(rows)} personas for {len(agents)} agents", hint="add some"
        )
    if named and len(named) < len(rows):
        other = next(row for row in rows if _AGENT not in row.values)
        raise ConfigError(f"{other.where} names no agent, and others do", hint="name all, or none")
    found: dict[str, Persona] = {}
    known = {*agents}
    for row, agent in zip(rows, [row.values[_AGENT] for row in named] or agents, strict=False):
        if agent not in known:
            raise ConfigError(
                f"{row.where}: there is no agent {agent!r:.60}",
                hint="name one of simulation.agents",
            )
        if agent in found:
            raise ConfigError(f"{row.where}: {agent} has a persona already", hint="drop one")
        found[agent] = _persona(row)
    missing = [agent for agent in agents if agent not in found]
    if missing:
        raise ConfigError(f"{name} has no persona for {missing[0]!r:.60}", hint="add it")
    return {agent: found[agent] for agent in agents}


def _persona(row: _Row) -> Persona:
    text = row.values.get(_TEXT, "")
    if not isinstance(text, str):
        raise ConfigError(f"{row.where}: text is {text!r:.60}", hint="it is a text")
    attributes = {
        name: _attribute(f"{row.where}, {name}", value)
        for name, value in row.values.items()
        if name not in (_AGENT, _TEXT)
    }
    return Persona(text, attributes)


def _attribute(where: str, value: object) -> Scalar:
    is_good = type(value) in (str, int, bool) or (type(value) is float and math.isfinite(value))
    if not is_good or (type(value) is int and abs(value) > 2**53):
        raise ConfigError(
            f"{where}: {value!r:.60} is no value of an attribute",
            hint="it is a text, true or false, or a number up to 2^53",
        )
    return value  # type: ignore[return-value]


# Distributions


def _drawn(given: Mapping[str, Any], seed: int, agents: Sequence[str]) -> dict[str, Persona]:
    text = given.get(_TEXT, "")
    if not isinstance(text, str):
        raise ConfigError(f"{_KEY}.{_TEXT}: {text!r:.60} is not a text", hint="write a text")
    if _AGENT in given:
        raise ConfigError(f"{_KEY}.{_AGENT} is no attribute: each agent has its id", hint="drop it")
    draws = {name: _Draw(name, own) for name, own in given.items() if name != _TEXT}
    for place in _PLACE.findall(text):
        if place not in draws and place != _AGENT:
            known = ", ".join([_AGENT, *draws])
            raise ConfigError(
                f"{_KEY}.{_TEXT}: there is no attribute {place!r:.40}", hint=f"there are {known}"
            )
    begin = hashlib.sha256(f"tiermem\0{seed}\0personas".encode())
    found = {}
    for agent in agents:
        attributes = {name: draw.of(agent, begin) for name, draw in draws.items()}
        own = {_AGENT: agent, **attributes}
        found[agent] = Persona(_PLACE.sub(lambda place: _shown(own[place[1]]), text), attributes)  # noqa: B023
    return found


def _shown(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Draw:
    """How an attribute is drawn; a plain value is the same for all agents."""

    _parts: list[Any]

    def __init__(self, name: str, declared: object) -> None:
        self._where, self._name = f"{_KEY}.{name}", name
        if not isinstance(declared, Mapping):
            self._kind, self._parts = "same", [_attribute(self._where, declared)]
            return
        kinds = [each for each in ("normal", "uniform", "integers", "choice") if each in declared]
        if len(kinds) != 1 or not isinstance(declared[kinds[0]], list | tuple):
            raise self._error(f"{dict(declared)!r:.80} is no distribution", _FORMS)
        self._kind = kinds[0]
        self._parts = [*declared[self._kind]]
        self._weights: list[Any] | None = None
        self._least, self._most = -math.inf, math.inf
        self._digits: int = declared.get("digits", _DIGITS)
        allowed = {"normal": ("least", "most", "digits"), "uniform": ("digits",),
                   "choice": ("weights",)}.get(self._kind, ())  # fmt: skip
        for key in declared:
            if key != self._kind and key not in allowed:
                more = ", ".join(allowed) or "nothing else"
                raise self._error(f"{self._kind} takes no {key!r:.40}", f"it takes {more}")
        if type(self._digits) is not int or not 0 <= self._digits <= _DIGITS:
            raise self._error(f"digits is {self._digits!r:.40}", f"it is from 0 to {_DIGITS}")
        if self._kind == "choice":
            self._check_choice(declared.get("weights"))
        else:
            self._check_numbers(declared)

    def _check_choice(self, weights: object) -> None:
        if not self._parts:
            raise self._error("choice has no values", "give some")
        for at, value in enumerate(self._parts):
            _attribute(f"{self._where}.choice[{at}]", value)
        if weights is None:
            return
        if not isinstance(weights, list | tuple) or len(weights) != len(self._parts):
            raise self._error("weights are not as many as the values", "give each value a weight")
        if not all(map(_is_number, weights)) or min(weights) < 0 or not sum(weights) > 0:
            raise self._error(f"weights are {weights!r:.60}", "they are numbers from 0, not all 0")
        self._weights = list(weights)

    def _check_numbers(self, declared: Mapping[str, Any]) -> None:
        if len(self._parts) != 2 or not all(map(_is_number, self._parts)):
            raise self._error(
                f"{self._kind} is {self._parts!r:.60}", f"it is two numbers: {_FORMS}"
            )
        first, second = self._parts
        if self._kind == "integers" and not all(type(each) is int for each in self._parts):
            raise self._error(f"integers is {self._parts!r:.60}", "both are whole numbers")
        if self._kind == "normal":
            self._least, self._most = (
                declared.get("least", -math.inf),
                declared.get("most", math.inf),
            )
            bounds = [declared[each] for each in ("least", "most") if each in declared]
            if second < 0 or not all(map(_is_number, bounds)) or self._least > self._most:
                raise self._error(
                    f"{dict(declared)!r:.80} is no normal distribution",
                    "the deviation is at least 0, and least is not above most",
                )
        elif first > second:
            raise self._error(f"{self._kind} is {self._parts!r:.60}", "the least comes first")

    def of(self, agent: str, begin: Any) -> Scalar:
        """The attribute of an agent."""
        if self._kind == "same":
            return self._parts[0]  # type: ignore[no-any-return]
        stream = NamedStream(f"{self._name}\0{agent}")
        stream.begin(begin)
        if self._kind == "choice":
            return stream.choices(self._parts, self._weights)[0]  # type: ignore[no-any-return]
        first, second = self._parts
        if self._kind == "integers":
            return stream.randint(first, second)
        if self._kind == "uniform":
            return self._rounded(stream.uniform(first, second))
        return self._within(stream)

    def _within(self, stream: Random) -> Scalar:
        for _ in range(_TRIES):
            value = self._rounded(stream.gauss(*self._parts))
            if self._least <= value <= self._most:
                return value
        raise self._error(
            f"of {_TRIES} numbers none is from {self._least} to {self._most}", "widen the bounds"
        )

    def _rounded(self, value: float) -> int | float:
        return round(value) if self._digits == 0 else round(value, self._digits)

    def _error(self, why: str, hint: str) -> ConfigError:
        return ConfigError(f"{self._where}: {why}", hint=hint)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 2**53
