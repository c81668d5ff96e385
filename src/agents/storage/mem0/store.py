"""A bank's memories in one of mem0's vector stores, and which providers mem0 has."""

import contextlib
import difflib
import functools
import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config.settings import Settings, StoreSettings, without_password
from ...errors import ConfigError, StoreDamaged, StoreError
from ...memory.records import Memory
from ...memory.tiers import TEMPERATURE_NAMES, TIER_NAMES
from ...packages import missing
from ..beside_journal import STORE_RECORD, Acknowledged, HeadRecord
from ..files import make_folder
from .child_process import ChildLost, StoreChild, end_idle

logger = logging.getLogger(__name__)

_ASIDE = "set-aside"
_BATCH = 2000
_START_SECONDS = 120
"""A process may take this long to start, even if a store has less time to answer."""
_MEMORIES_A_SECOND = 1000
"""Each memory in a store lengthens the time that an answer may take."""
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
        "updated_at": _time(max(memory.created_tick, memory.tier_tick)),
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
    """A bank's memories in a mem0 vector store, which a child process uses.

    Every call ends: a store that does not answer in time is given up with its process, and a new
    process tries it again when it is next needed. ``size`` says how many memories there are.
    """

    def __init__(
        self,
        settings: StoreSettings,
        folder: Path,
        dims: int,
        bank_id: str,
        size: Callable[[], int] = lambda: 0,
    ) -> None:
        self._settings = settings
        self._mem0 = store_config(settings, folder, dims)
        self._folder = folder
        self._dims = dims
        self._bank_id = bank_id
        self._size = size
        self._child: StoreChild | None = None
        self._is_open = False

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
        place |= {k: config[k] for k in ("connection_string", "dbname") if k in config}
        place = {k: without_password(v) if isinstance(v, str) else v for k, v in place.items()}
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
        listing, ours = [], self._record().path
        for folder, _, names in os.walk(path):
            for file in (Path(folder, name) for name in names):
                # A file may go meanwhile: the process that a killed bank left behind still ends.
                with contextlib.suppress(FileNotFoundError):
                    if file != ours:
                        status = file.stat()
                        name = str(file.relative_to(path))
                        listing.append((name, status.st_size, status.st_mtime_ns))
        return hashlib.sha256(repr(sorted(listing)).encode()).hexdigest() if listing else None

    def recorded(self) -> Acknowledged | None:
        """The commit up to which a local store was written; None if nobody knows."""
        if self.path is None:
            return None
        found = self._record().find()
        found.warn()
        return found.last

    def record(self, commit: int, digest: bytes) -> None:
        """Keep with a local store up to which commit it was written."""
        if self.path is not None:
            self._record().update(commit, digest)

    def _record(self) -> HeadRecord:
        return HeadRecord((self.path or self._folder) / STORE_RECORD, self._bank_id)

    @property
    def is_open(self) -> bool:
        """Whether the store is connected: it answered, and belongs to this bank."""
        return self._is_open

    def open(self, *, written: bool = False) -> None:
        """Connect; the store must belong to this bank or, unless it was ``written``, be empty."""
        if not self._is_open:
            self._make_folder()
            self._ask("open", written=written)
            self._is_open = True

    def _make_folder(self) -> None:
        """Make the folder of a local store: its library makes files that the umask allows to all.

        If it can't be made, the store says why.
        """
        if self.path is not None:
            with contextlib.suppress(OSError):
                make_folder(self.path)

    def close(self) -> None:
        """Let go of the store's files and connections."""
        if self._child is None:
            return
        try:
            self._ask("close")
        except StoreError as error:
            logger.warning("%s", error.why)
        else:
            self._child.give_back()
        self._child, self._is_open = None, False

    def close_for_new_process(self) -> None:
        """:meth:`close`; from now on, a new process uses the store.

        Chroma fills unused parts of its files with bytes from the memory of its process. A process
        that had a forgotten text in memory could write that text again; a new process never had it.
        """
        self.close()
        end_idle()

    def upsert(self, memories: Sequence[Memory], vectors: NDArray[np.float32], known: bool) -> None:
        """Write memories; ``known`` says that the store may have some of them already."""
        self._write("upsert", memories, vectors, known=known)

    def update(self, memories: Sequence[Memory], vectors: NDArray[np.float32]) -> None:
        """Write what changed about memories that are in the store."""
        self._write("update", memories, vectors)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete memories; a memory that is not there is no error."""
        self.open()
        for start in range(0, len(ids), _BATCH):
            self._ask("delete", ids=list(ids[start : start + _BATCH]))

    def search(
        self, vector: NDArray[np.float32], most: int, filters: Mapping[str, object]
    ) -> list[str]:
        """The ids of the memories nearest to a vector that pass mem0's filters."""
        self.open()
        found: list[str] = self._ask("search", vector, most=most, filters=dict(filters))
        return found

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Ids and payloads of all rows, the mark of the bank among them."""
        self.open()
        return [(each, dict(entry)) for each, entry in self._ask("rows")]

    def set_aside(self, name: str = _ASIDE) -> Path | None:
        """Make way for a new store: move the folder of a local store, or empty a remote store.

        Returns the folder's new path. A remote store of another bank is :class:`StoreMismatch`.
        """
        path = self.path
        if path is None:
            self.open()
            self._ask("empty")
            return None
        self.close()
        if not path.exists():
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.{name}-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside

    def folders(self) -> list[Path]:
        """The folder of a local store, and what was set aside of it, if they are there."""
        path = self.path
        if path is None:
            return []
        found = _found(path.parent, f"{escape(path.name)}.{_ASIDE}-*")
        return [*found, path] if path.exists() else found

    def unused(self) -> list[Path]:
        """Folders in the bank's folder in which another setting kept a store."""
        usual = [
            path
            for name in sorted(_LOCAL_PROVIDERS)
            for path in (self._folder / name, *_found(self._folder, f"{name}.{_ASIDE}-*"))
        ]
        # A store of this bank at a path of the user's own has a record that says so.
        records = [
            HeadRecord(path, self._bank_id) for path in _found(self._folder, f"*/{STORE_RECORD}")
        ]
        own = [each.path.parent for each in records if each.read() is not None]
        used = None if self.path is None else self.path.resolve()
        return sorted(path for path in {*usual, *own} if path.is_dir() and path.resolve() != used)

    def probe(self, rows: int = 0) -> str | None:
        """What is wrong with a local store, which should hold ``rows`` memories; None: nothing."""
        try:
            self._ask("probe", rows=rows)
        except StoreDamaged as error:
            return error.why
        return None

    def _write(
        self,
        call: str,
        memories: Sequence[Memory],
        vectors: NDArray[np.float32],
        **arguments: object,
    ) -> None:
        self.open()
        for start in range(0, len(memories), _BATCH):
            part = memories[start : start + _BATCH]
            self._ask(
                call,
                vectors[start : start + _BATCH],
                ids=[memory.id for memory in part],
                payloads=list(map(payload, part)),
                **arguments,
            )

    def _ask(
        self, call: str, vectors: NDArray[np.float32] | None = None, **arguments: object
    ) -> Any:
        """What the child process answers; after an error, there is no child process."""
        seconds = self._settings.timeout + self._size() / _MEMORIES_A_SECOND
        data = None if vectors is None else np.ascontiguousarray(vectors, np.float32).tobytes()
        try:
            if self._child is None:
                self._child = self._started(max(seconds, _START_SECONDS))
            return self._child.ask(call, seconds, data, **arguments)
        except BaseException as error:
            self._child, self._is_open = None, False
            if isinstance(error, ChildLost):
                raise self._lost(error, is_probe=call == "probe") from error
            raise

    def _started(self, seconds: float) -> StoreChild:
        try:
            child = StoreChild.take()
            child.ask(
                "prepare",
                seconds,
                mem0=self._mem0,
                place=self._place(),
                folder=str(self._folder),
                bank=self._bank_id,
                dims=self._dims,
                remote=self.path is None,
            )
        except OSError as error:
            raise StoreError(
                f"{self._place()} can't be used: no process could be started for it ({error})",
                hint="the journal has every memory, and the next sync goes on",
            ) from error
        except ChildLost as error:
            if error.crashed:
                raise
            raise StoreError(
                f"{self._place()} can't be used: its process did not start within {seconds:,.0f} "
                "seconds",
                hint="the journal has every memory, and the next sync tries again; if the machine "
                f"stays as busy, set store.timeout above {seconds:,.0f}",
            ) from error
        return child

    def _lost(self, error: ChildLost, *, is_probe: bool) -> StoreError:
        if is_probe:
            return StoreDamaged(f"{'opening it' if error.crashed else 'it'} {error}")
        if error.crashed:
            return StoreDamaged(f"{self._place()} can't be used: it {error}")
        return StoreError(
            f"{self._place()} {error}",
            hint="the journal has every memory, and the next sync tries again; look for a full "
            "disk, or set store.timeout higher",
        )

    def _place(self) -> str:
        where = self.path or self._mem0["config"]["collection_name"]
        return f"mem0's store ({self._settings.provider}, {where})"


def _found(folder: Path, pattern: str) -> list[Path]:
    """The paths in a folder that match a pattern, in alphabetical order."""
    try:
        return sorted(folder.glob(pattern))
    except OSError as error:
        raise StoreError(f"the folder {folder} can't be read: {error}") from error


# The providers that mem0 has, found without importing mem0


_STORES = "configs/vector_stores"
_OWN_EMBEDDERS = {"offline", "minilm", "both", "none"}


def check_providers(settings: Settings) -> None:
    """Raise :class:`ConfigError` for a provider that mem0 does not have; mem0 is not imported."""
    for key, name, folder, ours in (
        ("store.provider", settings.store.provider, _STORES, {"none"}),
        ("embedder.provider", settings.embedder.provider, "embeddings", _OWN_EMBEDDERS),
        ("llm.provider", settings.llm.provider, "llms", {"local"}),
    ):
        if name is None or name in ours or (folder == _STORES and not _is_installed()):
            continue
        known = _known(folder) | ours
        if name not in known:
            raise ConfigError(
                f"{key}: mem0 has no provider {name!r:.40}", hint=_instead(name, known)
            )


def check_installed(settings: Settings) -> None:
    """Raise :class:`ConfigError` if the settings write a store and mem0 is not installed."""
    if settings.storage.sync != "manual" and not _is_installed():
        raise missing(
            f"mem0's store ({settings.store.provider})",
            "mem0",
            otherwise=", or go without a store: store.provider=none",
        )


def _is_installed() -> bool:
    return importlib.util.find_spec("mem0") is not None


def check_vector_store(provider: str, place: str) -> None:
    """Raise :class:`ConfigError` for a store that mem0 lacks; ``place`` is where it is named."""
    known = _known(_STORES)
    if provider not in known:
        raise ConfigError(
            f"{place}: there is no vector store {provider!r:.40}", hint=_instead(provider, known)
        )


def _known(folder: str) -> set[str]:
    """The names of mem0's modules in a folder: mem0 itself finds a provider by its module."""
    spec = importlib.util.find_spec("mem0")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise missing(f"to list mem0's {folder}", "mem0")
    return set(_modules_in(Path(places[0], folder)))


@functools.cache
def _modules_in(folder: Path) -> frozenset[str]:
    found = {file.stem for file in folder.glob("[a-z]*.py")}
    return frozenset(found - {"base", "configs", "mock"})


def _instead(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(known))}"
