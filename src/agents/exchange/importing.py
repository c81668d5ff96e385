"""Stores rows in a bank in one commit: rows of a file, or of a mem0 store of another program.

Either all rows are stored, or only the rows that can be kept. A memory gets a new id, and what
names the former id names the new one: a key that :meth:`AgentMemory.update` made, the evidence of
an insight, the source of a told memory. A memory that the file does not have before is not known:
its id is changed where a memory of the bank could have it, so that it names none.
"""

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from ..bank.memory_bank import MemoryBank
from ..config.yaml_files import read_file
from ..engine import write
from ..engine.read import nth
from ..errors import ConfigError, InvalidAgentId, InvalidInput, StoreError, TierFull
from ..memory.records import KEY, KINDS, Memory, sequence_of
from ..memory.requests import (
    RESERVED_METADATA_KEYS,
    KeptMetadata,
    NewMemories,
    NewMemory,
    check_agent_id,
    check_tags,
)
from ..memory.sources import EVIDENCE, SOURCE, evidence_of, source_of, source_text
from ..memory.tiers import TEMPERATURE_NAMES, TIER_NAMES, TIER_VALUES, Retention, Temperature, Tier
from ..storage.embedding import CachedEmbedder, NoEmbedder
from ..storage.files import TemporaryFolder
from ..storage.mem0.child_process import read_rows
from ..storage.mem0.store import check_vector_store
from ..storage.state.state import State
from ..telling import groups
from .row_files import New, Row, check_row

_OWNERS = ("user_id", "agent_id")
_SAID_OTHERWISE = frozenset({"data", "hash", "text_lemmatized"})
"""Keys that mem0 derives from the text."""
_FILES = {"chroma": "chroma.sqlite3", "qdrant": "meta.json", "faiss": "{}.faiss"}
"""A file that every local store of a provider has; {} is the collection's name."""
_OURS_ALONE = frozenset({"tier_name", "created_tick", "tier_tick", "sequence", "expires_tick"})
"""Keys that only a bank writes to its store; the ticks of another bank mean nothing here."""


def mem0_rows(config: Path, agent_id: str | None = None) -> Iterator[Row]:
    """The memories in the store of mem0's own config, a YAML or JSON file, oldest first.

    A row whose owner can't be an agent's id goes to ``agent_id``; without ``agent_id`` it can't be
    kept. A row without a text is marked as blank.
    """
    store = _store_config(config)
    with _copied(store, config) as copy:
        found = read_rows(copy)
    found = [(key, own) for key, own in found if "tiermem_bank" not in own]
    if all(_is_blank(own) for _, own in found):
        name = store["config"].get("collection_name", "mem0")
        raise StoreError(
            f"{config}: the store has no memories in the collection {name!r:.80}",
            hint="is vector_store.config.collection_name the one that mem0 was used with?",
        )
    found.sort(key=lambda pair: (str(pair[1].get("created_at", "")), pair[0]))
    for key, own in found:
        yield _row(key, own, agent_id)


def _is_blank(own: Mapping[str, Any]) -> bool:
    text = own.get("data")
    return text is None or (isinstance(text, str) and not text.strip())


def _store_config(path: Path) -> dict[str, Any]:
    """Provider and config of the store, from the file."""
    whole = read_file(path).value
    store = whole.get("vector_store") if isinstance(whole, Mapping) else None
    if not isinstance(store, Mapping) or not isinstance(store.get("provider"), str):
        raise ConfigError(
            f"{path}: this is not a config of mem0: it needs vector_store with a provider",
            hint="write it as in "
            "vector_store: {provider: chroma, config: {path: db, collection_name: mem0}}",
        )
    check_vector_store(store["provider"], f"{path}: vector_store.provider")
    own = store.get("config", {})
    if not isinstance(own, Mapping):
        raise ConfigError(
            f"{path}: vector_store.config is not a mapping",
            hint="write config: {path: db, collection_name: mem0}",
        )
    return {"provider": store["provider"], "config": dict(own)}


@contextmanager
def _copied(store: dict[str, Any], config: Path) -> Iterator[dict[str, Any]]:
    """The same config for a copy of a local store, because to open a database changes its files."""
    path = store["config"].get("path")
    if path is None:
        if not store["config"].keys() & {"host", "url", "api_key"}:
            raise ConfigError(
                f"{config}: vector_store.config says neither path nor host",
                hint="say there where the store is",
            )
        yield store
        return
    if not isinstance(path, str) or not path.strip():
        raise ConfigError(
            f"{config}: vector_store.config.path is {path!r:.40}, and no folder's path",
            hint="say there in which folder the store is",
        )
    if store["provider"] not in _FILES:  # a provider without a path; mem0 tells what is wrong
        yield store
        return
    place = Path(path)
    name = _FILES[store["provider"]].format(store["config"].get("collection_name", "mem0"))
    if not (place / name).is_file():
        raise StoreError(
            f"there is no {store['provider']} store in {place.absolute()}: it has no {name:.80}",
            hint="a relative path is meant from the current folder, as mem0 means it",
        )
    with TemporaryFolder("adopt") as folder:
        copy = Path(folder) / "store"
        shutil.copytree(place, copy)
        yield {**store, "config": {**store["config"], "path": str(copy)}}


def _row(key: str, payload: Mapping[str, Any], agent_id: str | None) -> Row:
    place = f"mem0's memory {key}"
    if _is_blank(payload):
        return Row(place, {}, is_blank=True)
    try:
        owner = _owner(payload, agent_id)
    except InvalidInput as error:
        return Row(place, {}, error)
    tier = _tier(payload.get("tier"))
    is_ours = tier is not None and payload.get("tier_name") == TIER_NAMES[tier]
    values: dict[str, Any] = {"agent_id": owner, "content": payload["data"]}
    metadata: dict[str, Any] = {}
    renamed = [("id", key)]
    for name, value in payload.items():
        taken = _taken(name, value, tier)
        if taken is not None:
            values[name] = taken
        elif _is_dropped(name, value, owner, is_ours):
            continue
        elif _is_free(name):
            metadata[name] = _flat(value)
        else:
            renamed.append((name, _flat(value)))
    for name, value in renamed:  # last, so that the user's own keys keep their names
        metadata[_unused(f"mem0_{name}", metadata)] = value
    return Row(place, {**values, "metadata": metadata})


def _owner(own: Mapping[str, Any], agent_id: str | None) -> str:
    found = next((own[name] for name in _OWNERS if own.get(name)), None)
    try:
        return check_agent_id(found)
    except InvalidAgentId as error:
        if agent_id is not None:
            return agent_id
        if found is None:
            raise InvalidInput("it has neither user_id nor agent_id", hint="use --agent") from None
        raise InvalidInput(error.why, hint="--agent takes all such memories") from None


def _tier(value: Any) -> Tier | None:
    if isinstance(value, str):
        return TIER_VALUES.get(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return Tier(value) if is_number and value in range(len(Tier)) else None


def _taken(name: str, value: Any, tier: Tier | None) -> Any:
    """The value of a key that means the same in a bank and in mem0's store, or None."""
    if name == "tier":
        return tier
    if name == "kind":
        return value if value in KINDS else None
    if name == "temperature":
        known = ("hot",) if tier is Tier.PINNED else tuple(TEMPERATURE_NAMES.values())
        return value if value in known else None  # a pinned memory is always hot
    if name == "tags":
        try:
            texts = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
            return check_tags(texts)
        except InvalidInput:
            return None
    return None


def _is_dropped(name: str, value: Any, owner: str, is_ours: bool) -> bool:
    if name in _OWNERS:
        return bool(value == owner)
    return name in _SAID_OTHERWISE or (is_ours and name in _OURS_ALONE)


def _is_free(name: str) -> bool:
    """Whether metadata may have a key of this name."""
    is_reserved = name in RESERVED_METADATA_KEYS or name.startswith(("$", "#", "chroma:"))
    return bool(name) and not is_reserved


def _unused(name: str, metadata: Mapping[str, Any]) -> str:
    while name in metadata:
        name = f"mem0_{name}"
    return name


def _flat(value: Any) -> Any:
    """The value as metadata can hold it: a nested value, or one that is not JSON, becomes text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


_ELSEWHERE = "imported:"


class NewIds:
    """The new ids of the memories that were stored, by their former ids."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._new: dict[str, str] = {}
        self._first: dict[str, str] = {}
        """By the former id of a first version, the oldest version that is stored here."""
        self._undo: list[tuple[dict[str, str], str, str | None]] = []

    def begin(self) -> None:
        """What is known from now on may be dropped."""
        self._undo.clear()

    def drop(self) -> None:
        """The rows since :meth:`begin` were not stored after all."""
        for names, former, before in reversed(self._undo):
            if before is None:
                del names[former]
            else:
                names[former] = before
        self._undo.clear()

    def know(self, row: New, new: str) -> None:
        """The memory of a row was stored with a new id."""
        if row.former_id is not None:
            self._keep(self._new, row.former_id, new)
        if row.first_version is not None and row.first_version not in self._first:
            self._keep(self._first, row.first_version, new)

    def renamed(self, row: New) -> New:
        """The row, with new ids in its metadata."""
        if not row.names:
            return row
        agent, content, tier, metadata, options = row.memory
        entries = dict(metadata or ())
        first = row.first_version
        if first is not None:
            new = self._new.get(first) or self._first.get(first)
            if new is None:  # the first of its versions that comes is the first here
                del entries[KEY]
            else:
                entries[KEY] = new
        evidence = evidence_of(entries)
        now = [self._of(agent, each) for each in evidence]
        if now != [*evidence]:
            entries[EVIDENCE] = json.dumps(now)
        source = source_of(entries)
        if source is not None:
            source = source._replace(
                memory_id=self._of(source.teller, source.memory_id),
                origin_id=self._of(source.origin_agent, source.origin_id),
            )
            entries[SOURCE] = source_text(source)
        kept = KeptMetadata(entries) if entries else None
        return row._replace(memory=(agent, content, tier, kept, options))

    def _keep(self, names: dict[str, str], former: str, new: str) -> None:
        self._undo.append((names, former, names.get(former)))
        names[former] = new

    def _of(self, agent: str, former: str) -> str:
        """The new id of an agent's memory, or an id that no memory here has."""
        new = self._new.get(former)
        if new is not None:
            return new
        is_ours = sequence_of(self._state.block(agent).prefix, former) is not None
        return f"{_ELSEWHERE}{former}" if is_ours else former


_CHUNK = 2000
"""Rows that are embedded at once; this bounds the memory that an import takes."""
_MOST_NAMED = 5
"""How many of the rows that were left out a report names."""
_CAPPED = (Tier.PINNED, Tier.CRITICAL)


class Refused(NamedTuple):
    """A row that can't be kept."""

    place: str
    why: str


class Imported(NamedTuple):
    """The outcome of an import."""

    agents: Counter[str]
    """How many memories, by agent."""
    archived: int
    moved_down: int
    """How many memories the bank's caps moved to a lower tier, new and old ones."""
    blank: int = 0
    """How many rows of a mem0 store had no text."""
    bad: int = 0
    """How many rows were left out because they can't be kept."""
    first_bad: Sequence[Refused] = ()

    @property
    def total(self) -> int:
        """How many memories in all."""
        return self.agents.total()


def store_rows(
    bank: MemoryBank, rows: Iterable[Row], agent_id: str | None = None, *, skip_bad: bool = False
) -> Imported:
    """Store rows in one commit, all or none; ``agent_id`` owns the rows that name no agent.

    The first row that can't be kept raises an :class:`InvalidInput` or a :class:`TierFull` with the
    row's place; with ``skip_bad``, rows that can't be kept are left out and counted.
    """
    sieve = _Sieve(skip_bad)
    agents: Counter[str] = Counter()
    archived = 0
    with bank.transaction():
        capped = [m for name in bank.agents() for t in _CAPPED for m in bank.agent(name).all(t)]
        news = _memories(bank, _checked(bank, rows, agent_id, sieve))
        ids = NewIds(bank.engine.state)
        while chunk := list(islice(news, _CHUNK)):
            for new, memory in _stored(bank, chunk, sieve, ids):
                agents[memory.agent_id] += 1
                tier = memory.tier if new.memory[4].keeps_tier else new.memory[2]
                if new.is_archived:
                    archived += 1
                    _archive(bank, memory, new.memory[2])
                elif tier in _CAPPED:
                    capped.append(memory._replace(tier=tier))
        moved = sum(_is_moved(bank, each) for each in capped)
    return Imported(agents, archived, moved, sieve.blank, sieve.bad, sieve.first)


def check_rows(
    copy: MemoryBank, rows: Iterable[Row], agent_id: str | None = None, *, skip_bad: bool = False
) -> Imported:
    """:func:`store_rows` on a copy of a bank that is thrown away.

    No text is embedded: an embedder may cost money, and sees the texts.
    """
    copy.engine.embedder = CachedEmbedder(
        _Unembedded(copy.engine.embedder.dims), 0, lambda keys: {}
    )
    return store_rows(copy, rows, agent_id, skip_bad=skip_bad)


class _Unembedded(NoEmbedder):
    def __init__(self, dims: int) -> None:
        self.dims = dims


class _Sieve:
    """Raises an error for a row that can't be kept, or leaves the row out and counts it."""

    def __init__(self, skip_bad: bool) -> None:
        self._skip_bad = skip_bad
        self.blank = self.bad = 0
        self.first: list[Refused] = []

    def refuse(self, place: str, error: InvalidInput | TierFull) -> None:
        if not self._skip_bad:
            raise _placed(place, error) from error
        self.bad += 1
        if len(self.first) < _MOST_NAMED:
            self.first.append(Refused(place, error.why))


def _placed(place: str, error: InvalidInput | TierFull) -> InvalidInput | TierFull:
    why = f"{place}: {error.why}"
    hint = "; ".join(filter(None, [error.hint, "--skip-bad leaves out such rows"]))
    if isinstance(error, TierFull):
        return TierFull(why, tier=error.tier, cap=error.cap, hint=hint)
    return type(error)(why, hint=hint)


def _checked(
    bank: MemoryBank, rows: Iterable[Row], agent_id: str | None, sieve: _Sieve
) -> Iterator[New]:
    most = bank.settings.memory.max_content_bytes
    for row in rows:
        if row.is_blank:
            sieve.blank += 1
            continue
        try:
            new = check_row(row, agent_id, most)
        except InvalidInput as error:
            sieve.refuse(row.place, error)
        else:
            yield new


def _memories(bank: MemoryBank, news: Iterable[New]) -> Iterator[New]:
    """The rows that are memories; the other rows make agents members of a group."""
    for new in news:
        if new.members is None:
            yield new
        else:
            groups.join(bank.engine, groups.group_of(new.memory[0]), new.members)


def _is_moved(bank: MemoryBank, memory: Memory) -> bool:
    """Whether a memory is in another tier than it was, or was meant for."""
    now = nth(bank.engine, memory.agent_id, memory.sequence)
    if now is None or now.retention is not Retention.ACTIVE:
        return False
    return now.tier is not memory.tier


def _stored(
    bank: MemoryBank, chunk: Sequence[New], sieve: _Sieve, ids: NewIds
) -> Iterable[tuple[New, Memory]]:
    ids.begin()
    try:
        with bank.transaction():
            return zip(chunk, list(_added(bank, chunk, ids)), strict=True)
    except (InvalidInput, TierFull):
        ids.drop()
        return _stored_singly(bank, chunk, sieve, ids)  # to find the row that is wrong


def _added(bank: MemoryBank, chunk: Iterable[New], ids: NewIds) -> Iterator[Memory]:
    """Add rows in order; one that names others comes when their new ids are known."""
    part: list[New] = []
    waiting: set[str] = set()
    for new in chunk:
        if not waiting.isdisjoint(new.names):
            yield from _added_part(bank, part, ids)
            part, waiting = [], set()
        part.append(new)
        waiting.update(filter(None, (new.former_id, new.first_version)))
    if part:
        yield from _added_part(bank, part, ids)


def _added_part(bank: MemoryBank, part: Sequence[New], ids: NewIds) -> Iterator[Memory]:
    """Add rows, of which none names another.

    One that is archived, or is on a board, supersedes nothing, and is not a repetition.
    """
    for new, memory in zip(part, _added_apart(bank, map(ids.renamed, part)), strict=True):
        ids.know(new, memory.id)
        yield memory


def _added_apart(bank: MemoryBank, rows: Iterable[New]) -> Iterator[Memory]:
    for is_apart, run in groupby(rows, _is_apart):
        if is_apart:
            yield from write.store(bank.engine, NewMemories.of(map(_startable, run)))
        else:
            yield from write.add_new(bank.engine, NewMemories.of(map(_startable, run)))


def _is_apart(new: New) -> bool:
    return new.is_archived or groups.group_of(new.memory[0]) is not None


def _stored_singly(
    bank: MemoryBank, chunk: Sequence[New], sieve: _Sieve, ids: NewIds
) -> Iterator[tuple[New, Memory]]:
    for new in chunk:
        try:
            (memory,) = _added(bank, [new], ids)
        except (InvalidInput, TierFull) as error:
            sieve.refuse(new.place, error)
        else:
            yield new, memory


def _startable(new: New) -> NewMemory:
    """The memory to store. One to be archived starts low and not hot, to displace nothing."""
    if not new.is_archived:
        return new.memory
    agent, content, _, metadata, options = new.memory
    if options.temperature is Temperature.HOT:
        options = options._replace(temperature=Temperature.WARM)
    return agent, content, Tier.LOW, metadata, options


def _archive(bank: MemoryBank, memory: Memory, tier: Tier) -> None:
    agent = bank.agent(memory.agent_id)
    agent.update(memory.id, retention="archived")
    agent.set_tier(memory.id, tier)
