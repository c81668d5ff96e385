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

from ..errors import InvalidInput
from ..memory.context import one_line
from ..storage.leftovers import sweep_beside
from .memory_rows import FIELDS, READ_OVER, Row, check_name

_LONGEST_LINE = 8 << 20
"""More bytes than the longest memory takes with each of its characters escaped."""
_ROWS_AT_ONCE = 2000
_SMALL = 64 << 20
_MOST_TIMES = 100
"""Without another limit, rows unpack to at most this many times their file, or ``_SMALL`` bytes."""
_ROW_BYTES = 32
"""What a row counts at least: a file can say in a few bytes that it has very many rows."""
_FORM = 'a line is an object, such as {"content": "…"}'
_TORN = "was the file cut short?"
_WHOLE = ("tier", "created_tick", "expires_tick")


class Format(StrEnum):
    """The format of a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"


_SUFFIXES = {".jsonl": Format.JSONL, ".ndjson": Format.JSONL, ".parquet": Format.PARQUET}


def format_of(path: Path) -> Format:
    """The format, by the end of the file's name."""
    form = _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise InvalidInput(
            f"{path}: the name does not say what sort of file it is",
            hint="end it with .jsonl or .parquet",
        )
    return form


def read(path: Path, form: Format, max_unpacked: int | None = None) -> Iterator[Row]:
    """The rows of a file; ``-`` is standard input.

    A row that can't be read has a ``problem``; a file that can't be read raises
    :class:`InvalidInput`, or the system's own error. So does a Parquet file whose rows have more
    than ``max_unpacked`` bytes, before they are unpacked.
    """
    if str(path) == "-":
        if form is Format.PARQUET:
            raise InvalidInput("Parquet can't be read from standard input", hint="name a file")
        yield from _read_lines(sys.stdin.buffer, "standard input")
        return
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder", hint="name a file")
    # To open one waits for whoever writes to it; a shell's own, as of <(command), is open already.
    if path.is_fifo() and not path.is_relative_to("/dev"):
        raise InvalidInput(
            f"{path} is a named pipe, and nobody may ever write to it",
            hint="name a file, or send the rows to standard input, which is called -",
        )
    with _named(path), path.open("rb") as file:
        if form is Format.PARQUET:
            yield from _read_parquet(file, path, max_unpacked)
        else:
            yield from _read_lines(file, str(path))


def write(path: Path, form: Format, rows: Iterable[dict[str, Any]], *, force: bool) -> int:
    """Write rows to a file, which gets its name once it is whole on disk; return their number."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder", hint="name a file in it")
    if not force and (path.exists() or path.is_symlink()):
        raise InvalidInput(f"{path} exists already", hint="--force replaces it")
    with _named(path), _replacing(path) as file:
        return _write_lines(file, rows) if form is Format.JSONL else _write_parquet(file, rows)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of the system names this path, and not a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def lines(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Rows as JSON Lines. Characters that steer a terminal or end a line are escaped."""
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
    sweep_beside(path)
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
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _of_line(raw, f"{name}, line {number}")
        while len(raw) > _LONGEST_LINE and not raw.endswith(b"\n"):  # skip the rest of the line
            raw = file.readline(_LONGEST_LINE + 1)


def _of_line(raw: bytes, place: str) -> Row:
    try:
        if len(raw) > _LONGEST_LINE:
            raise InvalidInput(
                f"longer than {_LONGEST_LINE:,} bytes; no memory is",
                hint="write each memory on a line of its own",
            )
        return Row(place, _object(raw.decode(), _FORM if raw.endswith(b"\n") else _TORN))
    except UnicodeDecodeError as error:
        problem = InvalidInput(f"not UTF-8 (byte {error.start + 1})", hint="save the file as UTF-8")
        return Row(place, {}, problem)
    except InvalidInput as error:
        return Row(place, {}, error)


def _object(text: str, hint: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"not JSON: {error.msg} (character {error.pos + 1})", hint=hint
        ) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a thousand brackets
        raise InvalidInput(f"not JSON that can be read: {error!s:.100}", hint=hint) from None
    if not isinstance(value, dict):
        raise InvalidInput("not an object", hint=hint)
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


def _read_parquet(file: BinaryIO, path: Path, max_unpacked: int | None) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        size = os.fstat(file.fileno()).st_size
        budget = _Budget(path, max_unpacked or max(_SMALL, _MOST_TIMES * size))
        meta = pq.read_metadata(file)
        names = _columns(meta.schema.to_arrow_schema(), path)
        groups = (meta.row_group(place).total_byte_size for place in range(meta.num_row_groups))
        budget.check(max(_ROW_BYTES * meta.num_rows, sum(groups)))
        leaves = [meta.schema.column(place) for place in range(meta.num_columns)]
        # A text that is in the file once stays in memory once, until its size is known.
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        with pq.ParquetFile(file, metadata=meta, read_dictionary=texts) as table:
            number = 0
            for batch in table.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
                for values in budget.unpacked(batch):
                    number += 1
                    yield _of_parquet(values, f"{path}, row {number}")
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk failed; the file may be right
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"{path} is not a Parquet file that can be read: {reason:.200}",
            hint="name a file that tiermem export or another program wrote as Parquet",
        ) from error


class _Budget:
    """How many bytes the rows of a file may still have."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = self._left = most

    def check(self, size: int) -> None:
        if size > self._left:
            raise InvalidInput(
                f"{self._path} unpacks to more than {self._most:,} bytes",
                hint="if you trust the file, --max-unpacked allows more",
            )

    def unpacked(self, batch: Any) -> Iterator[dict[str, Any]]:
        """The rows of a batch, a few megabytes at a time."""
        size = _ROW_BYTES * len(batch) + sum(map(_unpacked_size, batch.columns))
        self.check(size)
        self._left -= size
        step = max(1, len(batch) * _LONGEST_LINE // max(size, 1))
        for start in range(0, len(batch), step):
            yield from batch.slice(start, step).to_pylist()


def _unpacked_size(column: Any) -> int:
    """The bytes of a column's values, of which the column may have equal ones once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_nested(column.type):
        inner = column.flatten()
        return sum(map(_unpacked_size, inner if isinstance(inner, list) else [inner]))
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    try:
        sizes = pc.binary_length(column.dictionary)
    except pa.ArrowNotImplementedError:  # not of text
        return int(column.nbytes)
    return pc.sum(pc.cast(sizes.take(column.indices), pa.int64())).as_py() or 0


def _columns(schema: Any, path: Path) -> list[str]:
    """The columns to read, or :class:`InvalidInput` for one that no memory has."""
    import pyarrow as pa

    names: list[str] = []
    for column in schema:
        if pa.types.is_null(column.type):
            continue  # the column is empty
        try:
            check_name(column.name)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: the column {error.why}", hint=error.hint) from None
        if column.name in READ_OVER:
            continue
        if not _is_plain(column.type):
            raise InvalidInput(
                f"{path}: the column {column.name!r} is {column.type!s:.60}, "
                "which is nothing that a memory has",
                hint="write it as text, as whole numbers, or (tags) as lists of text",
            )
        names.append(column.name)
    return names


def _is_plain(kind: Any) -> bool:
    """Whether Python has a value for each value of an Arrow type; it has none for some times."""
    import pyarrow as pa

    is_a = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _is_plain(kind.storage_type)
    if is_a.is_dictionary(kind):
        return _is_plain(kind.value_type)
    if is_a.is_nested(kind):
        return all(_is_plain(kind.field(place).type) for place in range(kind.num_fields))
    return any(
        test(kind)
        for test in (is_a.is_null, is_a.is_boolean, is_a.is_integer, is_a.is_floating,
                     is_a.is_string, is_a.is_large_string, is_a.is_string_view,
                     is_a.is_binary, is_a.is_large_binary, is_a.is_binary_view)
    )  # fmt: skip


def _of_parquet(values: dict[str, Any], place: str) -> Row:
    for name in _WHOLE:
        value = values.get(name)
        if isinstance(value, float) and value.is_integer():
            values[name] = int(value)  # pandas makes floats of whole numbers where some are missing
    metadata = values.get("metadata")
    if isinstance(metadata, str):
        try:
            values["metadata"] = _object(metadata, 'write it as in {"source": "chat"}')
        except InvalidInput as error:
            problem = InvalidInput(f"column metadata: {error.why}", hint=error.hint)
            return Row(place, {}, problem)
    return Row(place, values)
