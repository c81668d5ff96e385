"""A bank's memories in one of mem0's vector stores."""

import contextlib
import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config.settings import StoreSettings
from ...errors import ConfigError, StoreDamaged, StoreError, StoreMismatch
from ...memory.records import Memory
from ...memory.temperature import TEMPERATURE_NAMES
from ...memory.tiers import TIER_NAMES
from ..private_files import make_folder
from .package import import_mem0
from .providers import check_providers

__all__ = [
    "Mem0Store",
    "check_providers",
    "close",
    "connect",
    "payload",
    "probe",
    "rows_of",
    "store_config",
]

_MARK_ID = "7469656d-656d-8000-8000-000000000000"
"""The row that names the bank of the store. It has no user_id, so no agent's query finds it."""

_BATCH = 2000
_PROBE_SECONDS = 120
_LOCAL_PROVIDERS = {"chroma", "qdrant", "faiss"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TICK = int((datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds())


def store_config(settings: StoreSettings, folder: Path, dims: int) -> dict[str, Any]:
    """mem0's config for this store: the settings, and defaults for what they leave out."""
    config = dict(settings.config)
    config.setdefault("collection_name", "tiermem")
    if settings.provider in _LOCAL_PROVIDERS and not (config.keys() & {"host", "url", "api_key"}):
        # A relative path begins at the bank's folder, wherever the program was started.
        config["path"] = str(folder / str(config.get("path", settings.provider)))
    if settings.provider != "chroma":
        config.setdefault("embedding_model_dims", dims)
    return {"provider": settings.provider, "config": config}


def payload(memory: Memory) -> dict[str, Any]:
    """The memory in mem0's own form, so that a plain ``mem0.Memory`` can read it."""
    return {
        **{key: value for key, value in memory.metadata.items() if value is not None},
        "data": memory.content,
        "hash": hashlib.md5(memory.content.encode(), usedforsecurity=False).hexdigest(),
        "created_at": _time(memory.created_tick),
        "updated_at": _time(memory.tier_tick),
        "user_id": memory.agent_id,
        "agent_id": memory.agent_id,
        "tier": int(memory.tier),
        "tier_name": TIER_NAMES[memory.tier],
        "created_tick": memory.created_tick,
        "tier_tick": memory.tier_tick,
        "sequence": memory.sequence,
        "temperature": TEMPERATURE_NAMES[memory.temperature],
        "kind": memory.kind,
        **({"tags": ",".join(memory.tags)} if memory.tags else {}),
        **({"expires_tick": memory.expires_tick} if memory.expires_tick is not None else {}),
    }


def _time(tick: int) -> str:
    """A tick as a time, which mem0 wants: a tick is a second after the beginning of 1970."""
    return (_EPOCH + timedelta(seconds=min(tick, _LAST_TICK))).isoformat()


class Mem0Store:
    """A bank's memories in a mem0 vector store."""

    def __init__(self, settings: StoreSettings, folder: Path, dims: int, bank_id: str) -> None:
        self._settings = settings
        self._mem0 = store_config(settings, folder, dims)
        self._folder = folder
        self._dims = dims
        self._bank_id = bank_id
        self._store: Any = None

    @property
    def path(self) -> Path | None:
        """The folder of a local store."""
        path = self._mem0["config"].get("path")
        return Path(path) if path and self._settings.provider in _LOCAL_PROVIDERS else None

    @property
    def name(self) -> str:
        """Provider and place, without secrets; they tell this store from another."""
        config = self._mem0["config"]
        place = {k: config.get(k) for k in ("collection_name", "host", "port", "url")}
        # The path as the user wrote it, because the bank's folder may be moved.
        place["path"] = self._settings.config.get("path", "")
        return f"{self._settings.provider} {json.dumps(place, sort_keys=True)}"

    @property
    def is_inside_bank(self) -> bool:
        """Whether the store lies in the bank's folder, which no other program should use."""
        return self.path is not None and self.path.is_relative_to(self._folder)

    def files(self) -> str | None:
        """A digest of the names, sizes and times of a local store's files; None if it has none."""
        path = self.path
        if path is None or not path.is_dir():
            return None
        listing = sorted(
            (str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns)
            for file in path.rglob("*")
            if file.is_file()
        )
        return hashlib.sha256(repr(listing).encode()).hexdigest() if listing else None

    @property
    def is_open(self) -> bool:
        """Whether the store is connected: it answered, and belongs to this bank."""
        return self._store is not None

    def open(self, *, written: bool = False) -> None:
        """Connect; the store must belong to this bank or, unless it was ``written``, be empty."""
        if self._store is not None:
            return
        store = self._connect()
        try:
            mark = store.get(_MARK_ID)
            owner = (mark.payload or {}).get("tiermem_bank") if mark else None
            if owner is None:
                if written:
                    raise StoreDamaged(f"{self._place()} has lost this bank's memories")
                if rows_of(store.list(top_k=1)):
                    raise StoreMismatch(
                        f"{self._place()} holds memories that no bank put there",
                        hint="give this bank a store of its own (store.config.collection_name or "
                        "path)",
                    )
                self._mark(store)
            elif owner != self._bank_id:
                raise StoreMismatch(
                    f"{self._place()} belongs to another bank",
                    hint="each needs a store of its own (store.config.collection_name or path)",
                )
        except StoreError:
            close(store)
            raise
        except Exception as error:  # each provider has errors of its own
            close(store)
            raise StoreDamaged(f"{self._place()} does not answer: {error}") from error
        self._store = store

    def close(self) -> None:
        """Let go of the store's files and connections."""
        if self._store is not None:
            close(self._store)
            self._store = None

    def upsert(self, memories: Sequence[Memory], vectors: NDArray[np.float32], known: bool) -> None:
        """Write memories; ``known`` says that the store may have some of them already."""
        with self._failing("written"):
            for part in _parts(len(memories)):
                ids = [memory.id for memory in memories[part]]
                payloads = list(map(self._payload, memories[part]))
                rows = vectors[part].tolist()
                if collection := self._collection():
                    collection.upsert(ids=ids, embeddings=rows, metadatas=payloads)
                    continue
                if known:
                    for identifier in ids:
                        self._store.delete(identifier)
                self._store.insert(vectors=rows, payloads=payloads, ids=ids)

    def update(self, memories: Sequence[Memory], vectors: NDArray[np.float32]) -> None:
        """Write what changed about memories that are in the store."""
        with self._failing("written"):
            if collection := self._collection():
                for part in _parts(len(memories)):
                    ids = [memory.id for memory in memories[part]]
                    collection.update(ids=ids, metadatas=list(map(self._payload, memories[part])))
                return
            for memory, vector in zip(memories, vectors.tolist(), strict=True):
                self._store.update(memory.id, vector=vector, payload=self._payload(memory))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete memories; a memory that is not there is no error."""
        with self._failing("written"):
            if collection := self._collection():
                for part in _parts(len(ids)):
                    collection.delete(ids=list(ids[part]))
                return
            for identifier in ids:
                self._store.delete(identifier)

    def search(
        self, vector: NDArray[np.float32], most: int, filters: Mapping[str, object]
    ) -> list[str]:
        """The ids of the memories nearest to a vector that pass mem0's filters.

        Rows of another agent, which no store should give, are left out.
        """
        with self._failing("searched"):
            # Some providers also search by the words of the query; only the vector counts here.
            found = self._store.search(
                query="", vectors=vector.tolist(), top_k=most, filters=dict(filters)
            )
            agent = filters["user_id"]
            return [str(row.id) for row in found if (row.payload or {}).get("user_id") == agent]

    def set_aside(self) -> Path | None:
        """Make way for a new store: move the folder of a local store, or empty a remote store.

        Returns the folder's new path. A remote store of another bank is :class:`StoreMismatch`.
        """
        self.close()
        path = self.path
        if path is None:
            with self._failing("emptied"):
                self._store.reset()
                self._mark(self._store)
            return None
        if not path.exists():
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.set-aside-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside

    def probe(self, rows: int = 0) -> str | None:
        """What is wrong with a local store; None if nothing is. It should hold ``rows`` memories.

        A child process opens the store, because a damaged index can crash the process.
        """
        request = {"config": self._mem0, "dims": self._dims, "rows": rows}
        child = [sys.executable, "-m", "tiermem.storage.mem0.probe_child"]
        try:
            done = subprocess.run(
                child, input=json.dumps(request), capture_output=True, text=True,
                timeout=_PROBE_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it did not answer within {_PROBE_SECONDS} seconds"
        if done.returncode < 0:
            return f"opening it crashes (signal {-done.returncode})"
        if done.returncode:
            last = done.stderr.strip().splitlines()
            if last and last[-1].startswith(("ImportError:", "ModuleNotFoundError:")):
                raise self._lacking(last[-1].partition(": ")[2])
            return last[-1] if last else f"opening it fails (exit code {done.returncode})"
        return None

    def _payload(self, memory: Memory) -> dict[str, Any]:
        entry = payload(memory)
        if self._has_keywords:
            lemmatize = import_mem0("mem0.utils.lemmatization").lemmatize_for_bm25
            entry["text_lemmatized"] = lemmatize(memory.content)
        return entry

    @property
    def _has_keywords(self) -> bool:
        base = import_mem0("mem0.vector_stores.base").VectorStoreBase
        return type(self._store).keyword_search is not base.keyword_search

    def _collection(self) -> Any:
        """Chroma's own collection, whose calls take many rows; mem0's calls take one row."""
        return self._store.collection if self._settings.provider == "chroma" else None

    def _connect(self) -> Any:
        try:
            if self.path is not None:  # mem0's libraries make files that the umask allows to all
                make_folder(self.path)
            return connect(self._mem0)
        except ImportError as error:
            raise self._lacking(str(error)) from error
        except Exception as error:  # each provider has errors of its own
            raise StoreDamaged(f"{self._place()} can't be opened: {error}") from error

    def _lacking(self, why: str) -> ConfigError:
        """The error for a missing package, which is no damage of the store."""
        is_chroma = self._settings.provider == "chroma"
        return ConfigError(
            f"{self._place()} needs a package that is missing: {why}",
            hint="pip install 'chromadb>=1.5,<2'" if is_chroma else "install it with pip",
        )

    def _mark(self, store: Any) -> None:
        vector = [1.0] + [0.0] * (self._dims - 1)
        mark = {"tiermem_bank": self._bank_id, "data": "(whose store this is)"}
        store.insert(vectors=[vector], payloads=[mark], ids=[_MARK_ID])

    def _place(self) -> str:
        where = self.path or self._mem0["config"]["collection_name"]
        return f"mem0's store ({self._settings.provider}, {where})"

    @contextlib.contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            self.open()
            yield
        except (StoreError, ConfigError):
            raise
        except Exception as error:  # each provider has errors of its own
            raise StoreDamaged(f"{self._place()} could not be {what}: {error}") from error


def connect(config: Mapping[str, Any]) -> Any:
    """mem0's store for a config made by :func:`store_config`."""
    validated = import_mem0("mem0.vector_stores.configs").VectorStoreConfig(
        provider=config["provider"], config=dict(config["config"])
    )
    factory = import_mem0("mem0.utils.factory").VectorStoreFactory
    # mem0 logs each insert at INFO; memory text does not belong there.
    logging.getLogger("mem0").setLevel(logging.WARNING)
    return factory.create(validated.provider, validated.config)


def probe(config: Mapping[str, Any], dims: int, rows: int) -> None:
    """Use a store in every way a bank does, so that damage shows; a child process calls this."""
    store = connect(config)
    vector = [1.0] + [0.0] * (dims - 1)
    store.get(_MARK_ID)
    store.list(top_k=1)
    if config["provider"] == "chroma":
        total = store.collection.count()
        found = store.collection.get(include=["embeddings", "metadatas"])
        if len(found["ids"]) != total:
            raise StoreDamaged(f"it counts {total} rows and gives {len(found['ids'])}")
        if rows and total <= rows:  # the mark is one more
            raise StoreDamaged(f"it holds {max(0, total - 1)} memories and should hold {rows}")
        if total > 0:
            store.collection.query(query_embeddings=[vector], n_results=min(10, total))
    else:
        store.search(query="probe", vectors=vector, top_k=10)
    close(store)


def rows_of(listed: Any) -> list[Any]:
    """The rows of mem0's ``list``, which some providers wrap once more."""
    rows = list(listed or [])
    return list(rows[0]) if rows and isinstance(rows[0], (list, tuple)) else rows


def close(store: Any) -> None:
    """Close mem0's store, if its client can be closed."""
    close_client = getattr(getattr(store, "client", None), "close", None)
    if close_client is not None:
        with contextlib.suppress(Exception):  # closing what is broken may fail
            close_client()


def _parts(size: int) -> Iterator[slice]:
    return (slice(start, start + _BATCH) for start in range(0, size, _BATCH))
