"""Settings as YAML: read as plain values with line numbers, and written.

Reading runs no code of the file. A :class:`ConfigError` refuses what is no plain value, and
aliases, with which a small file could become huge.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import yaml

from ..errors import ConfigError
from .plain import MAX_DEPTH, MAX_VALUES, Document, KeyPath, printable, show_path, unfit

MAX_FILE_BYTES = 1 << 20
MAX_NUMBER_LENGTH = 100

_UNREADABLE: dict[type[OSError], tuple[str, str]] = {
    FileNotFoundError: ("there is no such file", "check the path"),
    IsADirectoryError: ("this is a directory", "name a YAML file"),
    PermissionError: ("no permission to read this file", "let your user read it"),
}
"""The reason and the hint for an error of the system."""
_TAG = "tag:yaml.org,2002:"
# Dates stay text: no setting is a date, but the API versions of providers look like one.
_TEXT_TAGS = {_TAG + "str", _TAG + "timestamp", _TAG + "value"}


def read_file(path: str | os.PathLike[str]) -> Document:
    """The YAML file as a plain value; an empty file is ``None``."""
    name = os.fsdecode(path)
    # The path as the user gave it; one with control characters is escaped.
    shown = name if name and name.isprintable() else repr(name)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        unknown = (f"this file can't be read: {error.strerror}", "check the path")
        reason, hint = _UNREADABLE.get(type(error), unknown)
        raise ConfigError(f"{shown}: {reason}", hint=hint) from None
    except ValueError as error:  # a NUL inside the path
        raise ConfigError(f"{shown}: this is not a path: {error}", hint="check the path") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{shown}: larger than 1 MiB, which no settings file needs to be",
            hint="check the path",
        )
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise ConfigError(
            f"{shown}:{line}: holds a NUL byte", hint="settings are a text file in UTF-8"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{shown}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})",
            hint="save the file as UTF-8",
        ) from None
    return read_yaml(text, shown)


def read_yaml(text: str, source: str, *, under: KeyPath = (), numbered: bool = True) -> Document:
    """One YAML document as a plain value, whose place in the settings is ``under``.

    ``numbered=False`` leaves line numbers out, for text that is not a file.
    """
    reader = _Reader(Document(source, None), numbered)
    try:
        node = reader.compose(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reader.refuse(line, f"not valid YAML: the character {error.character:#x} is not allowed")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        reader.refuse(mark.line + 1 if mark else 1, f"not valid YAML: {reason}")
    except (ValueError, OverflowError):  # PyYAML leaves these bare
        reader.refuse(reader.line, "not valid YAML: an escape or a version number is out of range")
    value = None if node is None else reader.build(node, under)
    return Document(source, value, reader.document.lines, reader.document.written)


class _Composer(yaml.SafeLoader):
    """PyYAML's safe loader up to the tree of nodes."""

    def __init__(self, text: str, reader: "_Reader") -> None:
        self.reader = reader
        self.depth = 0
        super().__init__(text)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            name = printable(f"*{event.anchor}")
            self.reader.refuse(line, f"{name} is an alias", "write what it stands for out")
        self.depth += 1
        self.reader.count(line, self.depth)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Reader:
    """Reads one document; remembers the line that it is in and how many values there were."""

    def __init__(self, document: Document, numbered: bool) -> None:
        self.document = document
        self.numbered = numbered
        self.line = 1
        self.values = 0
        self.constructor = yaml.constructor.SafeConstructor()

    def count(self, line: int, depth: int) -> None:
        """Refuse the value that is one too many, or too deep, before what is in it is read."""
        self.line = line
        self.values += 1
        if self.values > MAX_VALUES:
            self.refuse(line, f"more than {MAX_VALUES:,} values", "settings are small")
        if depth > MAX_DEPTH:
            self.refuse(line, f"nested deeper than {MAX_DEPTH} levels")

    def refuse(self, line: int, reason: str, hint: str = "") -> NoReturn:
        place = f"{self.document.source}:{line}" if self.numbered else self.document.source
        raise ConfigError(f"{place}: {reason}", hint=hint) from None

    def compose(self, text: str) -> yaml.Node | None:
        composer = _Composer(text, self)
        node = composer.get_node() if composer.check_node() else None
        if composer.check_node():
            event = composer.peek_event()  # type: ignore[no-untyped-call]
            line = event.start_mark.line + 1
            self.refuse(line, "a second YAML document starts here", "settings are one document")
        return node

    def build(self, node: yaml.Node, path: KeyPath) -> object:
        line = node.start_mark.line + 1
        if self.numbered:
            self.document.lines.setdefault(path, line)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path, line)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.build(child, (*path, at)) for at, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self.mapping(node, path)
        return self.refuse_tag(node, path, line)

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        result: dict[str, object] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(line, f"a key in {show_path(path)} is a list or a mapping, not text")
            key = self.scalar(key_node, path, line, is_key=True)
            if key_node.tag not in _TEXT_TAGS or not isinstance(key, str):
                self.refuse(
                    line,
                    f"in {show_path(path)}, YAML does not read the key {printable(key_node.value)}"
                    " as text",
                    "keys are text",
                )
            here = (*path, key)
            if key in first:
                also = f"; the first is on line {first[key]}" if self.numbered else ""
                self.refuse(line, f"{show_path(here)} is given twice{also}", "keep one of them")
            first[key] = line
            if self.numbered:
                self.document.lines[here] = line  # its value may begin further down
            result[key] = self.build(value_node, here)
        return result

    def scalar(
        self, node: yaml.ScalarNode, path: KeyPath, line: int, *, is_key: bool = False
    ) -> object:
        text: str = node.value
        if node.tag in _TEXT_TAGS:
            value: object = text
        elif is_key and node.tag == _TAG + "merge":
            self.refuse(
                line, "merge keys (<<) are not read", f"write the keys of {show_path(path)} out"
            )
        elif node.tag == _TAG + "null":
            value = None
        elif node.tag in (_TAG + "int", _TAG + "float", _TAG + "bool"):
            if len(text) > MAX_NUMBER_LENGTH:
                self.refuse(
                    line,
                    f"{show_path(path)} must be a shorter number; it has {len(text)} characters",
                )
            try:
                value = self.constructor.construct_object(node)
            except (ValueError, KeyError, IndexError, OverflowError):
                kind = node.tag.removeprefix(_TAG)
                self.refuse(line, f"{show_path(path)}: {text!r} is not a YAML {kind}")
        else:
            self.refuse_tag(node, path, line)
        if not isinstance(value, str) and not is_key:
            self.document.written[path] = text
        if problem := unfit(value):
            written = "" if isinstance(value, str) else f", not {text}"
            self.refuse(line, f"{show_path(path)} {problem}{written}")
        return value

    def refuse_tag(self, node: yaml.Node, path: KeyPath, line: int) -> NoReturn:
        tag = str(node.tag)
        shown = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
        self.refuse(
            line,
            f"{show_path(path)} has the tag {printable(shown)}",
            "settings are plain text, numbers, booleans, null, lists and mappings",
        )


_NEXT_LINE = "\x85"
"""PyYAML writes this line break as it is, and reads it as a space."""


class _Dumper(yaml.SafeDumper):
    """Writes no alias where one object stands in two places."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def to_yaml(
    values: Mapping[str, Any] | Sequence[Any], *, sort_keys: bool = False, width: int = 80
) -> str:
    """The values as YAML, with the characters as they are where that can be read."""

    def written(allow_unicode: bool) -> str:
        text: str = yaml.dump(
            values, Dumper=_Dumper, sort_keys=sort_keys, width=width, allow_unicode=allow_unicode
        )
        return text

    text = written(allow_unicode=True)
    return written(allow_unicode=False) if _NEXT_LINE in text else text
