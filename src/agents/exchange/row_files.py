"""Memories as rows, and files of rows: JSON Lines and Parquet.

A row has the fields of :func:`memory_json`, and the id of the memory's agent. A row of an import
needs ``content``; the other fields may be missing or null. The bank gives new ids and ticks:
``access_count`` and ``last_access_tick`` are ignored, a lifetime, from ``created_tick`` to
``expires_tick``, begins anew, and ``id`` says which memory other rows name.

A file is read row by row, and written whole or not at all. JSON Lines has one object a line.
Parquet has a column for each field; metadata, whose keys differ from memory to memory, is JSON
text there.
"""

import difflib
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..bank.memory_bank import MemoryBank
from ..errors import InvalidInput, InvalidMetadata
from ..memory.context import one_line
from ..memory.records import KEY, Memory, sequence_of
from ..memory.requests import (
    KeptMetadata,
    NewMemory,
    check_agent_id,
    check_new,
    check_text,
    check_whole,
)
from ..memory.sources import EVIDENCE, SOURCE, evidence_of, source_of, source_text
from ..memory.tiers import Retention, Temperature, Tier
from ..storage.files import sweep_beside
from ..telling import groups
from ..tools.shapes import KEPT, memory_json

FIELDS = ("agent_id", *KEPT["properties"])
MEMBERS = "members"
"""The kind of a row that says who is a member of a group."""
_NAMING = frozenset({KEY, EVIDENCE, SOURCE})
READ_OVER = frozenset({"id", "access_count", "last_access_tick"})
"""Fields that an import checks no further, because a new memory gets its own."""


class Row(NamedTuple):
    """A row of an import, and its place in the file or store, for messages."""

    place: str
    values: Mapping[str, Any]
    problem: InvalidInput | None = None
    """Why the row could not be read; then it has no values."""
    is_blank: bool = False
    """Whether the row has no text; then it is left out."""


class New(NamedTuple):
    """A row that was checked."""

    place: str
    memory: NewMemory
    is_archived: bool
    members: Sequence[str] | None = None
    """The members of a group; then the row is not a memory."""
    former_id: str | None = None
    """The memory's id where it came from."""

    @property
    def first_version(self) -> str | None:
        """Its key, if that is the id of its first version where it came from."""
        metadata, former = self.memory[3], self.former_id
        key = None if metadata is None else metadata.get(KEY)
        if not isinstance(key, str) or former is None:
            return None
        return key if len(key) == len(former) and key[:24] == former[:24] else None

    @property
    def names(self) -> frozenset[str]:
        """The ids of other memories, where they came from, that its metadata has."""
        metadata = self.memory[3]
        if metadata is None or _NAMING.isdisjoint(metadata):
            return frozenset()
        found = {*evidence_of(metadata)}
        if (source := source_of(metadata)) is not None:
            found |= {source.memory_id, source.origin_id}
        if (first := self.first_version) is not None:
            found.add(first)
        return frozenset(found)


def exported(
    bank: MemoryBank, agents: Iterable[str], *, archived: bool
) -> Iterator[dict[str, Any]]:
    """The agents' memories as rows, oldest first; chunks of notes are left out.

    A memory that an agent was told comes after the memory of its teller.
    """
    left: dict[str, deque[Memory]] = {name: deque() for name in agents}
    begun: set[str] = set()
    for name in left:
        under_way = {name: sys.maxsize}  # the last memory that is wanted, by agent
        while under_way:
            current, last = next(reversed(under_way.items()))
            own = left[current]
            if current not in begun:
                begun.add(current)
                own.extend(_memories_of(bank, current, archived))
            if not own or own[0].sequence > last:
                del under_way[current]
                continue
            before = _told_from(bank, own[0])
            if before is not None and before[0] in left and before[0] not in under_way:
                waiting = left[before[0]]
                if before[0] not in begun or (waiting and waiting[0].sequence <= before[1]):
                    under_way[before[0]] = before[1]
                    continue
            yield {"agent_id": current, **memory_json(own.popleft())}


def _memories_of(bank: MemoryBank, name: str, archived: bool) -> list[Memory]:
    agent = bank.agent(name)
    memories = agent.all()
    if archived:
        memories += agent.all(retention=Retention.ARCHIVED)
    memories = [memory for memory in memories if not is_chunk(bank, memory)]
    return sorted(memories, key=lambda memory: memory.sequence)


def _told_from(bank: MemoryBank, memory: Memory) -> tuple[str, int] | None:
    """The agent that told a memory, and the sequence number of its memory."""
    source = memory.source
    if source is None:
        return None
    block = bank.engine.state.block(source.teller)
    number = sequence_of(block.prefix, source.memory_id)
    return None if number is None else (source.teller, number)


def exported_boards(bank: MemoryBank) -> Iterator[dict[str, Any]]:
    """The groups as rows: the members of each, then what is on its board, oldest first.

    ``agent_id`` is a dot and the group's name. A row of the kind ``members`` has the members as its
    metadata, each with the tick in which it joined.
    """
    for name in bank.groups():
        group = bank.group(name)
        own = {"agent_id": groups.board_of(name)}
        yield {**own, "content": name, "kind": MEMBERS, "metadata": group.members()}
        for memory in group.all():
            yield {**own, **memory_json(memory)}


def is_chunk(bank: MemoryBank, memory: Memory) -> bool:
    """Whether a memory is a chunk of a note: the note's file holds its text."""
    return memory.kind == "note" and bank.agent(memory.agent_id).notes.citation(memory) is not None


def check_row(row: Row, agent_id: str | None, most_bytes: int) -> New:
    """The memory of a row, or :class:`InvalidInput`, which does not name the row's place."""
    if row.problem is not None:
        raise row.problem
    values = {name: value for name, value in row.values.items() if value is not None}
    for name in values:
        check_name(name)
    owner = values.get("agent_id", agent_id)
    group = groups.group_of(owner) if isinstance(owner, str) else None
    if group is not None:
        return _of_group(row.place, group, values, most_bytes)
    if owner is None:
        raise InvalidInput(
            "it does not say whose memory it is", hint="give agent_id, or use --agent"
        )
    if "content" not in values:
        raise InvalidInput(
            "it has no content, which is the memory's text", hint="give it a content"
        )
    options: dict[str, Any] = {"ttl": _lifetime(values)}
    options |= {name: values.get(name) for name in ("kind", "tags", "temperature")}
    metadata, source = _apart(values.get("metadata"))
    item = (owner, values["content"], values.get("tier"), metadata, options)
    memory = check_new(item, most_bytes)
    if source is not None:
        entries = {**(memory[3] or {}), SOURCE: source}
        memory = (
            *memory[:3],
            KeptMetadata({key: entries[key] for key in sorted(entries)}),
            memory[4],
        )
    is_archived = _is_archived(values)
    if memory[2] is Tier.PINNED:
        _check_pinned(memory[4].temperature, is_archived)
    former = values.get("id")
    return New(
        row.place, memory, is_archived, former_id=former if isinstance(former, str) else None
    )


def _of_group(place: str, name: str, values: Mapping[str, Any], most_bytes: int) -> New:
    """The members of a group, or what one of them wrote on its board."""
    board = groups.board_of(name)
    metadata = values.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            "a row of a group has metadata: who is a member, or the speaker", hint="give it some"
        )
    if values.get("kind") == MEMBERS:
        members = [check_agent_id(each) for each in metadata]
        memory = check_new((name, name), most_bytes)
        return New(place, (board, *memory[1:]), False, members)
    if _is_archived(values):
        raise InvalidInput("nothing on a board is archived", hint="leave retention out")
    author = check_agent_id(metadata.get("speaker"))
    post = check_row(Row(place, {**values, "agent_id": author}), None, most_bytes)
    groups.check_board_tier(post.memory[2])
    return post._replace(memory=(board, *post.memory[1:]))


def _apart(metadata: object) -> tuple[object, str | None]:
    """Metadata without the memory's source, and the source: only an import may give one."""
    if not isinstance(metadata, Mapping) or SOURCE not in metadata:
        return metadata, None
    source = source_of(metadata)
    if source is None:
        raise InvalidMetadata(
            f"metadata {SOURCE} is not a memory's source", hint="leave it out, or export it again"
        )
    for field in source:
        if isinstance(field, str):
            check_text(field, f"text in {SOURCE}")
    rest = {key: value for key, value in metadata.items() if key != SOURCE}
    return rest, source_text(source)


def check_name(name: str) -> None:
    """Raise :class:`InvalidInput` for a name that is not a field of a memory."""
    if name not in FIELDS:
        near = difflib.get_close_matches(str(name), FIELDS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(FIELDS)}"
        raise InvalidInput(f"{name!r:.60} is not a field of a memory", hint=hint)


def _lifetime(given: Mapping[str, Any]) -> int | None:
    if "expires_tick" not in given:
        return None
    if "created_tick" not in given:
        raise InvalidInput(
            "expires_tick needs created_tick: a lifetime is from one to the other",
            hint="give both, or neither",
        )
    expires = check_whole("expires_tick", given["expires_tick"], least=1)
    created = check_whole("created_tick", given["created_tick"])
    if expires <= created:
        raise InvalidInput(
            f"expires_tick {expires} is not after created_tick {created}",
            hint="give a later expires_tick, or leave both out",
        )
    return expires - created


def _is_archived(given: Mapping[str, Any]) -> bool:
    retention = given.get("retention", "active")
    if retention not in ("active", "archived"):
        raise InvalidInput(
            f"retention is active or archived, not {retention!r:.40}", hint="use one of the two"
        )
    return bool(retention == "archived")


def _check_pinned(temperature: Temperature | None, is_archived: bool) -> None:
    if is_archived or temperature not in (None, Temperature.HOT):
        raise InvalidInput(
            "a pinned memory is active and hot", hint="give it another tier, or neither"
        )


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
            hint="name a file that tiermem store export or another program wrote as Parquet",
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
