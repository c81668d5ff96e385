"""Files of rows: JSON Lines and Parquet, read row by row and written whole or not at all.

JSON Lines has one object a line. Parquet has a column for each field; metadata, whose keys differ
from memory to memory, is JSON text there.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO

from agents.errors import InvalidInput
from agents.exchange.rows import FIELDS, Row
from agents.memory.context import one_line

__all__ = ["Format", "format_of", "lines", "read", "write"]

_LONGEST_LINE = 8 << 20
"""More than the longest memory takes, were each of its characters escaped."""
_ROWS_AT_ONCE = 2000
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


class Format(StrEnum):
    """What sort of file."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def format_of(path: Path) -> Format:
    """The format that a file's name says."""
    name = _SUFFIXES.get(path.suffix.lower())
    if name is None:
        raise InvalidInput(
            f"{path}: the name does not say what sort of file it is; end it with .jsonl or .parquet"
        )
    return Format(name)


def read(path: Path, form: Format) -> Iterator[Row]:
    """The rows of a file; ``-`` is standard input. What is wrong is :class:`InvalidInput`."""
    if str(path) == "-":
        if form is Format.PARQUET:
            raise InvalidInput("Parquet can't be read from standard input; name a file")
        yield from _read_lines(sys.stdin.buffer, "standard input")
        return
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file")
    try:
        if form is Format.PARQUET:
            yield from _read_parquet(path)
        else:
            with path.open("rb") as file:
                yield from _read_lines(file, str(path))
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}") from error


def write(path: Path, form: Format, rows: Iterable[dict[str, Any]], *, force: bool) -> int:
    """Write rows to a file, which gets its name when all of it is on disk; how many there were."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it")
    if not force and (path.exists() or path.is_symlink()):
        raise InvalidInput(f"{path} exists already; --force replaces it")
    try:
        with _replacing(path) as file:
            return _write_lines(file, rows) if form is Format.JSONL else _write_parquet(file, rows)
    except OSError as error:
        raise InvalidInput(f"{path} can't be written: {error.strerror or error}") from error


def lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Rows as JSON Lines. What could draw on a terminal, or end a line for somebody, is escaped."""
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        yield f"{one_line(text)}\n".encode()


def _write_lines(file: BinaryIO, rows: Iterable[dict[str, Any]]) -> int:
    number = 0
    for line in lines(rows):
        file.write(line)
        number += 1
    return number


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_lines(file: BinaryIO, name: str) -> Iterator[Row]:
    for number in count(1):
        raw = file.readline(_LONGEST_LINE + 1)
        if not raw:
            return
        place = f"{name}, line {number}"
        if len(raw) > _LONGEST_LINE:
            raise InvalidInput(f"{place}: longer than {_LONGEST_LINE:,} bytes; no memory is")
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield Row(place, _object(raw, place))


def _object(raw: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{place}: not UTF-8 (byte {error.start + 1})") from None
    except json.JSONDecodeError as error:
        cut = "" if raw.endswith(b"\n") else "; was the file cut short?"
        raise InvalidInput(f"{place}: not JSON: {error.msg} (column {error.colno}){cut}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a thousand brackets
        raise InvalidInput(f"{place}: not JSON that can be read: {error!s:.100}") from None
    if not isinstance(value, dict):
        raise InvalidInput(f'{place}: not an object, such as {{"content": "…"}}')
    return value


# Parquet


def _schema() -> Any:
    import pyarrow as pa

    types = {
        "tags": pa.list_(pa.string()),
        **dict.fromkeys(
            ("created_tick", "expires_tick", "access_count", "last_access_tick"), pa.int64()
        ),
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in FIELDS])


def _write_parquet(file: BinaryIO, rows: Iterable[dict[str, Any]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, waiting, number = _schema(), iter(rows), 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while chunk := list(islice(waiting, _ROWS_AT_ONCE)):
            for row in chunk:
                row["metadata"] = json.dumps(row["metadata"], ensure_ascii=False)
            writer.write_batch(pa.RecordBatch.from_pylist(chunk, schema=schema))
            number += len(chunk)
    return number


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                for values in batch.to_pylist():
                    number += 1
                    yield _of_parquet(values, f"{path}, row {number}")
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(f"{path} is no Parquet file that can be read: {reason:.200}") from error


def _of_parquet(values: dict[str, Any], place: str) -> Row:
    metadata = values.get("metadata")
    if isinstance(metadata, str):
        values["metadata"] = _object(metadata.encode(), f"{place}, metadata")
    return Row(place, values)
