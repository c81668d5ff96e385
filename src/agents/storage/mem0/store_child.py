"""Uses mem0's store for a bank, whose process has the other end of the socket that is stdin.

A store that hangs or crashes takes this process with it, and not the process of the bank.
"""

import contextlib
import ctypes
import fcntl
import importlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ...errors import ConfigError, StoreDamaged, StoreError, StoreMismatch, TierMemError
from .package import import_mem0, import_store, remove_folder, without_secrets

# mem0's vector stores, as mem0 makes them


_CONNECT_SECONDS = 10


def connect(config: Mapping[str, Any]) -> Any:
    """mem0's store for a config with its provider and the provider's own config."""
    own = dict(config["config"])
    if config["provider"] == "pgvector":
        own = _with_address(own)
    validated = import_mem0("mem0.vector_stores.configs").VectorStoreConfig(
        provider=config["provider"], config=own
    )
    factory = import_mem0("mem0.utils.factory").VectorStoreFactory
    # mem0 logs each insert at INFO; memory text does not belong there.
    logging.getLogger("mem0").setLevel(logging.WARNING)
    store = factory.create(validated.provider, validated.config)
    if config["provider"] == "pgvector":
        _reach(store)
    return store


def _with_address(config: dict[str, Any]) -> dict[str, Any]:
    """The config with its address as one text; mem0 makes one that a password with @ breaks."""
    if config.keys() & {"connection_string", "connection_pool"}:
        return config
    names = {"user", "password", "host", "port", "dbname"}
    if not ({"user", "password"} & config.keys() and {"host", "port"} & config.keys()):
        return config  # mem0 says what is missing
    with contextlib.suppress(ImportError):  # mem0 takes psycopg2 as well
        from psycopg.conninfo import make_conninfo

        parts = {name: config.pop(name) for name in names & config.keys()}
        return {**config, "connection_string": make_conninfo(**{"dbname": "postgres", **parts})}
    return config


def _reach(store: Any) -> None:
    """Connect once: mem0's pool waits half a minute for a server that is away, and says no why."""
    if (address := getattr(store.connection_pool, "conninfo", None)) is not None:
        import psycopg

        psycopg.connect(address, connect_timeout=_CONNECT_SECONDS).close()


def rows_of(listed: Any) -> list[Any]:
    """The rows of mem0's ``list``, which some providers wrap once more."""
    rows = list(listed or [])
    return list(rows[0]) if rows and isinstance(rows[0], (list, tuple)) else rows


def close(store: Any) -> None:
    """Close mem0's store, if its client or its connections can be closed."""
    for name in ("client", "connection_pool"):
        close_own = getattr(getattr(store, name, None), "close", None)
        if close_own is not None:
            with contextlib.suppress(Exception):  # closing what is broken may fail
                close_own()


# Many rows at once, for the stores whose provider in mem0 takes one row at a time


Rows = NDArray[np.float32]
Payloads = Sequence[dict[str, Any]]


class Batches:
    """Any store of mem0's, by the calls that all providers have."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def upsert(self, ids: list[str], rows: Rows, payloads: Payloads, *, known: bool) -> None:
        """Write rows; ``known`` says that some of them may be there."""
        if known:
            self.delete(ids)
        self.store.insert(vectors=rows.tolist(), payloads=list(payloads), ids=ids)

    def update(self, ids: list[str], rows: Rows, payloads: Payloads) -> None:
        """Write rows that are there."""
        for identifier, row, entry in zip(ids, rows.tolist(), payloads, strict=True):
            self.store.update(identifier, vector=row, payload=entry)

    def delete(self, ids: list[str]) -> None:
        """Delete rows; a row that is not there is no error."""
        for identifier in ids:
            self.store.delete(identifier)


class _Chroma(Batches):
    def upsert(self, ids: list[str], rows: Rows, payloads: Payloads, *, known: bool) -> None:
        self.store.collection.upsert(ids=ids, embeddings=rows.tolist(), metadatas=payloads)

    def update(self, ids: list[str], rows: Rows, payloads: Payloads) -> None:
        self.store.collection.update(ids=ids, metadatas=payloads)

    def delete(self, ids: list[str]) -> None:
        self.store.collection.delete(ids=ids)


class _Qdrant(Batches):
    """Its insert in mem0 takes many rows, and replaces those that are there."""

    def upsert(self, ids: list[str], rows: Rows, payloads: Payloads, *, known: bool) -> None:
        self.store.insert(vectors=rows.tolist(), payloads=list(payloads), ids=ids)

    def update(self, ids: list[str], rows: Rows, payloads: Payloads) -> None:
        self.upsert(ids, rows, payloads, known=True)

    def delete(self, ids: list[str]) -> None:
        self.store.client.delete(self.store.collection_name, points_selector=ids)


class _PgVector(Batches):
    """mem0's table, through mem0's pool of connections: a transaction for each batch."""

    _WRITE = (
        'INSERT INTO "{}" (id, vector, payload) VALUES (%s, %s, %s) '
        "ON CONFLICT (id) DO UPDATE SET vector = EXCLUDED.vector, payload = EXCLUDED.payload"
    )
    _DELETE = 'DELETE FROM "{}" WHERE id = ANY(%s::uuid[])'

    def upsert(self, ids: list[str], rows: Rows, payloads: Payloads, *, known: bool) -> None:
        entries = [json.dumps(entry) for entry in payloads]
        # orjson writes a row in a tenth of the time of Python, and in half the digits.
        texts = [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY).decode() for row in rows]
        values = list(zip(ids, texts, entries, strict=True))
        with self.store.connection_pool.connection() as connection, connection.cursor() as cursor:
            cursor.executemany(self._WRITE.format(self._table()), values)

    def update(self, ids: list[str], rows: Rows, payloads: Payloads) -> None:
        self.upsert(ids, rows, payloads, known=True)

    def delete(self, ids: list[str]) -> None:
        with self.store.connection_pool.connection() as connection:
            connection.execute(self._DELETE.format(self._table()), (ids,))

    def _table(self) -> str:
        name: str = self.store.collection_name
        return name.replace('"', '""').replace("%", "%%")


_KINDS: dict[str, type[Batches]] = {"chroma": _Chroma, "qdrant": _Qdrant, "pgvector": _PgVector}


def batches_of(provider: str, store: Any) -> Batches:
    """The calls for many rows of a store that mem0 made."""
    if provider == "pgvector" and not hasattr(store.connection_pool, "connection"):
        return Batches(store)  # psycopg2, whose pool is another one
    return _KINDS.get(provider, Batches)(store)


# The process


_MARK_ID = "7469656d-656d-8000-8000-000000000000"
"""The row that names the bank of the store. It has no user_id, so no agent's query finds it."""

_EVERYTHING = 1_000_000_000
"""More rows than a store has; without a number, mem0 gives a hundred rows."""
_LOCK_SECONDS = 10
_M_PERTURB = -6
"""glibc's number for the option that overwrites memory."""
_FULL = ("disk is full", "no space left", "file too large", "quota exceeded")
_PACKAGES = {
    "chroma": "pip install 'chromadb>=1.5,<2'",
    "pgvector": "pip install 'tiermem[pgvector]'",
}
_OWN = "give this bank a store of its own (store.config.collection_name or path)"


class ServedStore:
    """A bank's store. Its methods are the calls that the process of the bank sends."""

    def __init__(self) -> None:
        self._store: Any = None
        self._lock: int | None = None
        self._mem0: dict[str, Any] = {}
        self._place = ""
        self._bank = ""
        self._dims = 0
        self._is_remote = False

    def prepare(
        self, mem0: dict[str, Any], place: str, folder: str, bank: str, dims: int, remote: bool
    ) -> None:
        """Import what a store needs, and wait until no other process uses it for the bank."""
        self._mem0, self._place, self._bank, self._dims = mem0, place, bank, dims
        self._is_remote = remote
        try:
            _import(mem0["provider"])
        except ImportError as error:
            raise self._lacking(error) from error
        self._lock_folder(folder)

    def open(self, written: bool) -> None:
        """Connect; the store must belong to the bank or, unless it was ``written``, be empty."""
        if self._store is not None:
            return
        with self._failing("opened"):
            store = connect(self._mem0)
            mark = store.get(_MARK_ID)
            owner = (mark.payload or {}).get("tiermem_bank") if mark else None
            if owner is None:
                if written:
                    raise StoreDamaged(f"{self._place} has lost this bank's memories")
                if rows_of(store.list(top_k=1)):
                    raise StoreMismatch(
                        f"{self._place} holds memories that no bank put there", hint=_OWN
                    )
                self._mark(store)
            elif owner != self._bank:
                raise StoreMismatch(f"{self._place} belongs to another bank", hint=_OWN)
            self._store = store

    def close(self) -> None:
        """Let go of the store's files and connections, and of the bank's folder."""
        if self._store is not None:
            close(self._store)
        if self._lock is not None:
            os.close(self._lock)
        self._store = self._lock = None

    def upsert(
        self, ids: list[str], payloads: list[dict[str, Any]], known: bool, vectors: bytes
    ) -> None:
        """Write memories; ``known`` says that the store may have some of them already."""
        rows = _rows(vectors, len(ids))
        with self._failing("written"):
            self._batches.upsert(ids, rows, self._with_keywords(payloads), known=known)

    def update(self, ids: list[str], payloads: list[dict[str, Any]], vectors: bytes) -> None:
        """Write what changed about memories that are in the store."""
        with self._failing("written"):
            self._batches.update(ids, _rows(vectors, len(ids)), self._with_keywords(payloads))

    def delete(self, ids: list[str]) -> None:
        """Delete memories; a memory that is not there is no error."""
        with self._failing("written"):
            self._batches.delete(ids)

    def search(self, most: int, filters: dict[str, Any], vectors: bytes) -> list[str]:
        """The ids of the memories nearest to a vector that pass mem0's filters.

        Rows of another agent, which no store should give, are left out.
        """
        with self._failing("searched"):
            # Some providers also search by the words of the query; only the vector counts here.
            found = self._store.search(
                query="", vectors=_rows(vectors, 1)[0].tolist(), top_k=most, filters=filters
            )
            agent = filters["user_id"]
            return [str(row.id) for row in found if (row.payload or {}).get("user_id") == agent]

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Ids and payloads of all rows, the mark of the bank among them."""
        with self._failing("read"):
            return _all_rows(self._store)

    def empty(self) -> None:
        """Delete all rows of the bank's store."""
        with self._failing("emptied"):
            self._store.reset()
            self._mark(self._store)

    def probe(self, rows: int) -> None:
        """Use the store in every way a bank does, so that damage shows.

        A store with fewer than ``rows`` memories is damaged.
        """
        try:
            store = connect(self._mem0)
            store.get(_MARK_ID)
            store.list(top_k=1)
            vector = [1.0] + [0.0] * (self._dims - 1)
            if self._mem0["provider"] == "chroma":
                _probe_chroma(store.collection, vector, rows)
            else:
                store.search(query="probe", vectors=vector, top_k=10)
            close(store)
        except Exception as error:  # each provider has errors of its own
            why = f"{type(error).__name__}: {self._reason(error)}"
            raise _full(error, why) or StoreDamaged(why) from error

    def read(self, mem0: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Ids and payloads of all rows in the store of a mem0 config, which is not a bank's."""
        try:
            _import(mem0["provider"])
            store = connect(mem0)
            try:
                return _all_rows(store)
            finally:
                close(store)
        except Exception as error:  # each provider has errors of its own
            if refused := _refused_config(error):
                raise ConfigError(
                    f"mem0 does not take this config of a {mem0['provider']} store: {refused}",
                    hint="put it right in vector_store.config, as mem0 was used with it",
                ) from error
            raise StoreError(
                f"mem0 can't read its {mem0['provider']} store: "
                + without_secrets(" ".join(str(error).split()), mem0["config"]),
                hint="check vector_store in the config that mem0 was used with",
            ) from error

    def _with_keywords(self, payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The payloads, with the words that some providers search by."""
        base = import_mem0("mem0.vector_stores.base").VectorStoreBase
        if type(self._store).keyword_search is base.keyword_search:
            return payloads
        lemmatize = import_mem0("mem0.utils.lemmatization").lemmatize_for_bm25
        return [{**entry, "text_lemmatized": lemmatize(entry["data"])} for entry in payloads]

    @property
    def _batches(self) -> Batches:
        return batches_of(self._mem0["provider"], self._store)

    def _mark(self, store: Any) -> None:
        vector = [1.0] + [0.0] * (self._dims - 1)
        mark = {"tiermem_bank": self._bank, "data": "(whose store this is)"}
        store.insert(vectors=[vector], payloads=[mark], ids=[_MARK_ID])

    def _lock_folder(self, folder: str) -> None:
        """A child of a killed process may still write the bank's store for an instant."""
        self._lock = os.open(folder, os.O_RDONLY)
        for _ in range(_LOCK_SECONDS * 20):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                return  # a file system that locks no folders
            else:
                return
        raise StoreError(
            f"{self._place} is in use by a process that was left behind",
            hint="end that process: its command names store_child",
        )

    def _lacking(self, why: ImportError) -> ConfigError:
        """The error for a missing package, which is no damage of the store."""
        return ConfigError(
            f"{self._place} needs a package that is missing: {why}",
            hint=_PACKAGES.get(self._mem0["provider"], "install it with pip"),
        )

    @contextlib.contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except TierMemError:
            raise
        except ImportError as error:
            raise self._lacking(error) from error
        except Exception as error:  # each provider has errors of its own
            why = f"{self._place} could not be {what}: {self._reason(error)}"
            raise _full(error, why) or self._failed(why) from error

    def _failed(self, why: str) -> StoreError:
        """The error for a store that can't be used: a server that is away is not damaged."""
        if not self._is_remote:
            return StoreDamaged(why)
        return StoreError(
            why,
            hint="the journal has every memory, and the next sync goes on; see that the server "
            "runs and that store.config says where it is, with its password",
        )

    def _reason(self, error: Exception) -> str:
        """What an error says, in a line without secrets."""
        said = _refused_config(error) or str(error) or type(error).__name__
        return without_secrets(" ".join(said.split()), self._mem0["config"])


def _full(error: Exception, why: str) -> StoreError | None:
    """The error for a full disk, which is no damage; None for another reason."""
    if not any(each in str(error).lower() for each in _FULL):
        return None
    return StoreError(
        why,
        hint="make room on its disk; the journal has every memory, and the next sync goes on",
    )


def _probe_chroma(collection: Any, vector: list[float], rows: int) -> None:
    total = collection.count()
    found = collection.get(include=["embeddings", "metadatas"])
    if len(found["ids"]) != total:
        raise StoreDamaged(f"it counts {total} rows and gives {len(found['ids'])}")
    if rows and total <= rows:  # the mark is one more
        raise StoreDamaged(f"it holds {max(0, total - 1)} memories and should hold {rows}")
    if total > 0:
        collection.query(query_embeddings=[vector], n_results=min(10, total))


def _refused_config(error: Exception) -> str | None:
    """Why pydantic, with which mem0 checks a config, refuses it; None for another error.

    The text of pydantic's error quotes the config, which may hold a password.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):  # the provider's config, inside mem0's
        return _refused_config(inner)
    place = ".".join(map(str, first["loc"]))
    reason = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {reason}" if place else reason


def _import(provider: str) -> None:
    """Import what a store needs, and leave Chroma nothing to build but the store.

    Chroma builds the embedding function that a collection's row names, with the options in that
    row: it may run a model's code, or send texts away. It also imports the classes that a file
    .env in the current folder names. The store may be a stranger's, and so may the folder; a bank
    needs neither, because it brings its vectors along.
    """
    import_store(provider)
    remove_folder()
    if provider == "chroma":
        functions = importlib.import_module("chromadb.utils.embedding_functions")
        functions.known_embedding_functions.clear()
        functions.sparse_known_embedding_functions.clear()
        importlib.import_module("chromadb.config").Settings.model_config["env_file"] = None


def _all_rows(store: Any) -> list[tuple[str, dict[str, Any]]]:
    found = rows_of(store.list(top_k=_EVERYTHING))
    return [(str(row.id), dict(row.payload or {})) for row in found]


def _rows(vectors: bytes, number: int) -> NDArray[np.float32]:
    return np.frombuffer(vectors, np.float32).reshape(number, -1)


def _answer(store: ServedStore, call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"value": getattr(store, call)(**arguments)}
    except TierMemError as error:
        return {
            "error": type(error).__name__,
            "why": error.why,
            "hint": vars(error).get("hint", ""),
        }


def _receive(link: Connection, requests: SimpleQueue[tuple[str, dict[str, Any]]]) -> None:
    """Take in requests; when the process of the bank has ended, end at once."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            call, arguments = json.loads(link.recv_bytes())
            if arguments.pop("with_vectors"):
                arguments["vectors"] = link.recv_bytes()
            requests.put((call, arguments))
    os._exit(0)


def _overwrite_memory() -> None:
    """Let glibc overwrite the memory that it hands out.

    Chroma fills unused parts of its files with what was in that memory before, which may be a
    text that was forgotten, or another bank's.
    """
    with contextlib.suppress(AttributeError):  # another system's library
        ctypes.CDLL(None).mallopt(_M_PERTURB, 0xFF)


def main() -> None:
    """Answer requests from the socket that is standard input, until it is closed."""
    _overwrite_memory()
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the process of the bank decides when this one ends
    link = Connection(sys.stdin.fileno())
    requests: SimpleQueue[tuple[str, dict[str, Any]]] = SimpleQueue()
    Thread(target=_receive, args=(link, requests), daemon=True).start()
    store = ServedStore()
    while True:
        answer = json.dumps(_answer(store, *requests.get()), default=str)
        link.send_bytes(answer.encode())


if __name__ == "__main__":
    main()
