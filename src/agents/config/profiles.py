"""Profiles: what a source document calls our operations, arguments, results and settings.

A profile is a packaged file, ``config/profiles/NAME.yaml``. What it says of operations is made into
a table of operations in ``tools/profiles.py``; what it says of settings counts when settings are
loaded. ``docs/architecture/profiles.md`` explains the form of the file.
"""

import difflib
import functools
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import fields
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import ConfigError
from .packaged import named, packaged
from .plain import Document, KeyPath, show_path
from .settings import Settings


class Argument(NamedTuple):
    """An argument of a document's operation."""

    name: str
    """The document's name."""
    ours: str
    """The name of ours; or ours, a dot and a key, where ours is a mapping: metadata.source."""
    schema: Mapping[str, Any] | None
    """The document's; None: that of our argument."""
    required: bool | None
    """None: as our argument is."""
    default: object
    """What stands for an argument that is not given; None: nothing."""
    convert: str | None
    """The name of a converter of ``bank/renaming.py``."""
    values: Mapping[str, Any]
    """Our values, by the document's; a value that is not among them is ours already."""
    listed: bool = True
    """Whether the schemas for models name it; if not, only a host gives it."""


class Renamed(NamedTuple):
    """An operation of a document."""

    name: str
    description: str | None
    """None: that of our operation."""
    does: str
    """The name of our operation."""
    arguments: tuple[Argument, ...]
    others: bool
    """Whether all other arguments of our operation are taken as well, under our names."""
    fixed: Mapping[str, Any]
    """Our arguments that this operation always gives."""
    result: Mapping[str, Any] | str | None
    """The result's keys, as ``tools/profiles.py`` reads them, or the name of a shape; None: our
    result."""
    failed: Mapping[str, Any] | None
    """The keys of the result of a call whose arguments our operation refuses, of which ``error``
    says why; None: the call fails."""
    route: Mapping[str, Any]
    """What is other than in our HTTP route: method, path, status."""
    example: Mapping[str, Any]


class Profile(NamedTuple):
    """What a source document calls things."""

    name: str
    about: str
    settings: tuple[Document, ...]
    """Those of the preset that it names, then its own."""
    config: Mapping[KeyPath, tuple[tuple[str, ...], str | None]]
    """Where a key of the document's settings stands in ours, and the name of its converter."""
    keeps: tuple[str, ...]
    """Our operations that are there under our names."""
    shapes: Mapping[str, Mapping[str, Any]]
    """The keys of objects that are parts of several results."""
    operations: Mapping[str, Renamed]


def _days(value: object) -> object:
    return f"{value}d" if isinstance(value, int) and not isinstance(value, bool) else value


def _above(value: object) -> object:
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else value


def _milliseconds(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value / 1000 if is_number else value  # type: ignore[operator]


def _hybrid(value: object) -> object:
    return value if not isinstance(value, bool) else "hybrid" if value else "vector"


def _embedder(value: object) -> object:
    return "offline" if value in ("auto", "local") else value


CONVERTERS: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        "days": _days,
        "above": _above,
        "milliseconds": _milliseconds,
        "hybrid": _hybrid,
        "embedder": _embedder,
    }
)
"""How the value of a document's setting becomes one of ours, by name: a number of ``days`` is a
duration, ``above`` 3 is at least 4, ``milliseconds`` become seconds, ``hybrid`` says whether words
count beside vectors, and an ``embedder`` of the machine itself is ours. A value of a wrong type
stays, and is refused as ours."""


@functools.cache
def profile(name: str) -> Profile:
    """The packaged profile of this name, or :class:`ConfigError`."""
    document = named("profile", name)
    parts = _Part(document, document.value, ())
    about = parts.text("about")
    settings = [Document(document.source, parts.mapping("settings"))]
    if (preset := parts.take("preset")) is not None:
        settings.insert(0, named("preset", preset))
    around = [(), *(tuple(each.split(".")) for each in parts.take("within") or [])]
    keys: dict[KeyPath, tuple[tuple[str, ...], str | None]] = {
        (*section, *key.split(".")): _place_of(parts, key, to)
        for key, to in parts.mapping("config").items()
        for section in around
    }
    keeps, shapes = parts.take("keeps") or [], parts.mapping("shapes")
    operations = {
        name: _operation(_Part(document, own, ("operations", name)), name)
        for name, own in parts.mapping("operations").items()
    }
    parts.end()
    return Profile(name, about, tuple(settings), keys, tuple(keeps), shapes, operations)


def _place_of(parts: "_Part", key: str, to: object) -> tuple[tuple[str, ...], str | None]:
    own = _Part(parts.document, {"to": to} if isinstance(to, str) else to, ("config", key))
    place, convert = own.text("to"), own.take("as")
    own.end()
    if convert is not None and convert not in CONVERTERS:
        raise own.wrong(f"there is no converter {convert!r:.40}")
    return tuple(place.split(".")), convert


def _operation(parts: "_Part", name: str) -> Renamed:
    made = Renamed(
        name,
        parts.take("description"),
        parts.text("does"),
        tuple(
            _argument(_Part(parts.document, own or {}, (*parts.place, "arguments", key)), key)
            for key, own in parts.mapping("arguments").items()
        ),
        bool(parts.take("others")),
        parts.mapping("with"),
        parts.take("result"),
        parts.take("failed"),
        parts.mapping("route"),
        parts.mapping("example"),
    )
    parts.end()
    return made


def _argument(parts: "_Part", name: str) -> Argument:
    schema = parts.take("schema")
    default = (schema or {}).get("default")
    made = Argument(
        name,
        parts.take("to") or name,
        schema,
        parts.take("required"),
        parts.take("default") if default is None else default,
        parts.take("as"),
        parts.mapping("values"),
        parts.take("listed") is not False,
    )
    parts.end()
    return made


class _Part:
    """A mapping of the file, whose keys are taken one by one; what is left is unknown."""

    def __init__(self, document: Document, value: object, place: KeyPath) -> None:
        self.document, self.place = document, place
        if not isinstance(value, dict):
            raise self.wrong("is not a mapping")
        self._left = dict(value)

    def take(self, key: str) -> Any:
        """The value of a key, or None."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str:
        """The text of a key that must be there."""
        value = self.take(key)
        if not isinstance(value, str):
            raise self.wrong(f"needs {key}, a text")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """The mapping of a key, which may be missing."""
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(f"{key} is not a mapping")
        return value or {}

    def end(self) -> None:
        """Refuse the keys that nobody took."""
        if self._left:
            raise self.wrong(f"has unknown keys: {', '.join(self._left)}")

    def wrong(self, why: str) -> ConfigError:
        """The error of this part."""
        return ConfigError(f"{self.document.place(self.place)}: {show_path(self.place)} {why}")


def profiles_with(section: str) -> list[str]:
    """The names of the profiles whose documents have this section of settings."""
    names = sorted(path.stem for path in packaged("profiles").glob("*.yaml"))
    return [
        name
        for name in names
        if any(key[0] == section and len(key) > 1 for key in profile(name).config)
    ]


# Settings under a document's names


def in_our_words(document: Document, profile: Profile) -> Document:
    """Settings in which a document's keys stand where ours do, with the lines of the document's.

    A key beside the document's own that it does not have is a :class:`ConfigError`, and so is a
    setting that is given under both names.
    """
    if not profile.config or not isinstance(document.value, dict):
        return document
    theirs: dict[KeyPath, object] = {}
    ours = _without_theirs(document, profile, document.value, (), theirs)
    lines, written = dict(document.lines), dict(document.written)
    for path, value in theirs.items():
        place, convert = profile.config[path]
        section: Any = ours
        for part in place[:-1]:
            section = section.setdefault(part, {}) if isinstance(section, dict) else section
        if not isinstance(section, dict):  # which is told where all is checked
            continue
        if place[-1] in section:
            raise ConfigError(
                f"{document.place(path)}: {show_path(path)} and {show_path(place)} mean the same",
                hint="give one of them",
            )
        section[place[-1]] = value if convert is None else CONVERTERS[convert](value)
        if path in lines:
            lines[place] = lines[path]
        if path in written and convert is None:
            written[place] = written[path]
    names: dict[KeyPath, KeyPath] = {profile.config[path][0]: path for path in theirs}
    return Document(document.source, ours, lines, written, names)


def _without_theirs(
    document: Document,
    profile: Profile,
    value: Mapping[str, object],
    under: tuple[str, ...],
    theirs: dict[KeyPath, object],
) -> dict[str, Any]:
    """What is left of a mapping without the document's keys, which go into ``theirs``."""
    left: dict[str, Any] = {}
    for key, child in value.items():
        path = (*under, key)
        beside = [own for own in profile.config if own[: len(path)] == path]
        if path in profile.config:
            theirs[path] = child
        elif beside and isinstance(child, dict | None):
            if own := _without_theirs(document, profile, child or {}, path, theirs):
                left[key] = own
        elif path[0] not in _SECTIONS and (hint := _instead(path, profile)):
            raise ConfigError(f"{document.place(path)}: unknown key {show_path(path)}", hint=hint)
        else:
            left[key] = deepcopy(child)
    return left


def _instead(path: tuple[str, ...], profile: Profile) -> str:
    """A hint for an unknown key: the document's key that is most like it, or those beside it.

    Nothing for a key at the top that is like none.
    """
    own = list(profile.config)[::-1]  # of keys that end alike, the first is meant
    there = {show_path(each[: len(path)]).lower(): each[: len(path)] for each in own}
    ends = {str(each[-1]).lower(): each for each in own}
    near = [
        *(
            there[each]
            for each in difflib.get_close_matches(show_path(path).lower(), there, 1, 0.8)
        ),
        *(ends[each] for each in difflib.get_close_matches(path[-1].lower(), ends, 1, 0.8)),
    ]
    if near:
        return f"did you mean {show_path(near[0])}?"
    beside = [show_path(each) for each in profile.config if each[: len(path) - 1] == path[:-1]]
    return f"the profile {profile.name} has {', '.join(beside)}" if len(path) > 1 else ""


_SECTIONS = frozenset(each.name for each in fields(Settings))
