"""Small files that become huge when somebody reads them."""

import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from agents import MemoryBank

HUGE = 300_000_000
"""Bytes that a child process of the tests does not get."""


def checkpoint(path: Path) -> sqlite3.Connection:
    """A checkpoint of a tiny bank with one tick, open for changes."""
    with MemoryBank.ephemeral() as bank:
        bank.agent("alice").add("a text")
        bank.checkpoint(path)
    return sqlite3.connect(path, isolation_level=None)


def of_a_state(path: Path) -> None:
    """A checkpoint whose world's state is a list of blanks, deflated."""
    state = b"[" + b" " * HUGE + b"]"
    row = (1, 1, "{}", b"", hashlib.sha256(state).digest(), zlib.compress(state, 1))
    with closing(checkpoint(path)) as database:
        database.execute("INSERT INTO ticks VALUES (?, ?, ?, ?, ?, ?)", row)


def of_a_view(path: Path) -> None:
    """A checkpoint whose agents are made by a query."""
    with closing(checkpoint(path)) as database:
        database.executescript(
            "DROP TABLE agents; CREATE VIEW agents AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
            "SELECT i + 1 FROM n) SELECT 'a' || i, 1, zeroblob(100000000), zeroblob(1), '', "
            "zeroblob(1), zeroblob(32) FROM n LIMIT 100"
        )


def of_a_generated_column(path: Path) -> None:
    """A checkpoint with a column that the file does not have."""
    with closing(checkpoint(path)) as database:
        database.executescript(
            "DROP TABLE embeddings; CREATE TABLE embeddings "
            "(hash BLOB PRIMARY KEY, vector BLOB AS (zeroblob(300000000)))"
        )
        database.executemany(
            "INSERT INTO embeddings (hash) VALUES (?)", [(b"%d" % n,) for n in range(9)]
        )


def of_shared_pages(path: Path) -> None:
    """A checkpoint in which many rows have their texts in the same pages of the file."""
    with closing(checkpoint(path)) as database:
        size = 20_000_000
        database.executemany(
            "INSERT INTO embeddings VALUES (?, zeroblob(?))",
            [(b"%04d" % n, size) for n in range(2)],
        )
        root, page_size = database.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master "
            "WHERE name = 'embeddings'"
        ).fetchone()
    data = bytearray(path.read_bytes())
    start = (root - 1) * page_size
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    pointers = start + 8
    first = data[pointers : pointers + 2]
    # Two hundred cells, each of them the first one.
    data[start + 3 : start + 5] = (200).to_bytes(2, "big")
    data[pointers : pointers + 400] = bytes(first) * 200
    assert cells == 2
    path.write_bytes(data)


CHECKPOINTS = (of_a_state, of_a_view, of_a_generated_column, of_shared_pages)


def of_one_text(path: Path) -> None:
    """Parquet: a thousand rows with the same text, which the file has once, deflated."""
    texts = pa.array(["y" * 1_000_000]).dictionary_encode()
    content = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), texts.dictionary)
    pq.write_table(pa.table({"content": content}), path, compression="zstd")


def of_one_huge_text(path: Path) -> None:
    """Parquet: one row with a text of 300 MB."""
    pq.write_table(pa.table({"content": ["y" * HUGE]}), path, compression="zstd")


def of_tags(path: Path) -> None:
    """Parquet: rows with the same long tag again and again."""
    tag = pa.DictionaryArray.from_arrays(
        pa.array([0] * 1_000, pa.int32()), pa.array(["t" * 1_000_000])
    )
    tags = pa.ListArray.from_arrays(pa.array([0, 1_000], pa.int32()), tag)
    pq.write_table(pa.table({"content": ["a"], "tags": tags}), path, compression="zstd")


def of_rows(path: Path) -> None:
    """Parquet: very many rows with the same short text."""
    rows = 5_000_000
    content = pa.DictionaryArray.from_arrays(
        pa.array(memoryview(bytes(rows)), pa.int8()), pa.array(["x"])
    )
    pq.write_table(pa.table({"content": content}), path, compression="zstd")


PARQUETS = (of_one_text, of_one_huge_text, of_tags, of_rows)


def json_lines(path: Path) -> None:
    """JSON Lines: a line of brackets, a number of many digits, a line that does not end."""
    path.write_text(
        "[" * 1_000_000 + "\n" + '{"content": ' + "9" * 100_000 + "}\n"
        + json.dumps({"content": "z" * (64 << 20)}) + "\n"
    )  # fmt: skip
