"""The laws of a vector store of mem0's kind, as a bank uses it."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from ..storage.files import TemporaryFolder
from .laws import for_all, law, must
from .strategies import contents

Rows = dict[str, dict[str, Any]]
"""Payloads by id."""

_DIMS = 4
_EVERYTHING = 1_000_000
_AGENTS = ("alice", "bob")
_FIELDS = {"tier": 3, "pinned": True, "weight": 0.5, "source": "שלום 🙂 “quoted”"}

_numbers = st.integers(1, 12)
_writes = st.tuples(
    st.sampled_from(["insert", "insert", "update", "delete"]),
    _numbers,
    st.sampled_from(_AGENTS),
    contents,
)
_histories = st.lists(st.one_of(_writes, st.just("reopen")), min_size=1, max_size=12)


class StoreLaws:
    """The laws of a store: ``class TestMine(StoreLaws)`` with ``make``.

    A store has mem0's methods: ``insert``, ``get``, ``list``, ``update``, ``delete``, ``search``
    and ``reset``.
    """

    examples: int = 10

    def make(self, folder: Path) -> Any:
        """The store in a folder, made or opened again; it takes vectors of four numbers."""
        raise NotImplementedError(f"{type(self).__name__} needs make(self, folder): a store")

    def close(self, store: Any) -> None:
        """Let go of a store's files; by default, close its client if it has one."""
        client = getattr(store, "client", store)
        with contextlib.suppress(AttributeError):  # nothing to close
            client.close()

    @law
    def test_what_was_written_is_there_and_nothing_else(self) -> None:
        """any writes, changes, deletions and openings, beside a dictionary that does the same"""

        def lived(history: list[Any]) -> None:
            rows: Rows = {}
            with TemporaryFolder("laws") as folder:
                store = self.make(Path(folder))
                try:
                    for step in history:
                        if step == "reopen":
                            self.close(store)
                            store = self.make(Path(folder))
                        else:
                            _write(store, rows, *step)
                        found = _rows_of(store)
                        must(found == rows, f"after {step}, the store has {found}, and not {rows}")
                finally:
                    self.close(store)

        for_all(lived, self.examples, _histories)

    @law
    def test_what_was_written_survives_a_new_opening(self) -> None:
        """hundreds of rows, closed and opened again"""
        wanted = {_id(n): _payload("alice", f"memory {n}") for n in range(1, 301)}
        with TemporaryFolder("laws") as folder:
            with self._open(folder) as store:
                store.insert(vectors=list(map(_vector, range(1, 301))),
                             payloads=list(wanted.values()), ids=list(wanted))  # fmt: skip
            with self._open(folder) as store:
                found = _rows_of(store)
        lost = wanted.keys() - found.keys()
        must(not lost, f"{len(lost)} of 300 rows are lost")
        must(found == wanted, "a row is not what was written")

    @law
    def test_a_value_keeps_its_type(self) -> None:
        """numbers, texts and true, as they were"""
        with self._filled() as store:
            found = dict(store.get(_id(1)).payload)
            for name, own in _FIELDS.items():
                got = found.get(name)
                is_same = got == own and type(got) is type(own)
                must(is_same, f"{name} was {own!r}, and is {got!r}")

    @law
    def test_a_search_gives_only_the_rows_of_its_agent(self) -> None:
        """the filter user_id, alone and with another one"""
        with self._filled() as store:
            for agent in _AGENTS:
                found = _found(store, agent)
                own = {row.payload["user_id"] for row in found}
                must(own == {agent}, f"the search of {agent} gives rows of {sorted(own)}")
                must(len(found) == 6, f"the search of {agent} gives {len(found)} of its 6 rows")
            few = _found(store, "alice", tier=4)
            must(not few, f"a filter that no row passes gives {len(few)} rows")

    @law
    def test_the_nearest_is_first_and_the_order_stays(self) -> None:
        """the same search again and again"""
        with self._filled() as store:
            first = [str(row.id) for row in _found(store, "alice")]
            must(first[0] == _id(1), f"the nearest row is not first, but {first[0]}")
            for _ in range(10):
                again = [str(row.id) for row in _found(store, "alice")]
                must(again == first, "the same search gives another order")

    @law
    def test_a_row_that_is_not_there_can_be_deleted(self) -> None:
        """deleting twice, and writing again"""
        with self._filled() as store:
            for _ in range(2):
                store.delete(_id(1))
            must(store.get(_id(1)) is None, "a deleted row is still there")
            store.insert(vectors=[_vector(1)], payloads=[_payload("bob", "new")], ids=[_id(1)])
            data = _rows_of(store).get(_id(1), {}).get("data")
            must(data == "new", f"a row that was deleted and written again has {data!r}")

    @law
    def test_what_it_gives_belongs_to_the_caller(self) -> None:
        """who changes a row that was read changes nothing in the store"""
        with self._filled() as store:
            for read in (store.get, lambda each: _by_id(store)[each]):
                row = read(_id(1))
                row.payload["data"] = "changed by a reader"
                row.payload.clear()
            data = _rows_of(store)[_id(1)].get("data")
            must(data == "memory 1", f"a reader changes what is stored to {data!r}")

    @law
    def test_after_a_reset_it_is_empty(self) -> None:
        """a reset, and a write after it"""
        with self._filled() as store:
            store.reset()
            must(not _rows_of(store), "rows are left after a reset")
            store.insert(vectors=[_vector(1)], payloads=[_payload("bob", "new")], ids=[_id(1)])
            must(len(_rows_of(store)) == 1, "nothing can be written after a reset")

    @contextlib.contextmanager
    def _open(self, folder: str) -> Iterator[Any]:
        store = self.make(Path(folder))
        try:
            yield store
        finally:
            self.close(store)

    @contextlib.contextmanager
    def _filled(self) -> Iterator[Any]:
        """A store with twelve rows, of two agents."""
        with TemporaryFolder("laws") as folder, self._open(folder) as store:
            for number in range(1, 13):
                payload = _payload(_AGENTS[(number - 1) % 2], f"memory {number}")
                store.insert(vectors=[_vector(number)], payloads=[payload], ids=[_id(number)])
            yield store


def _write(store: Any, rows: Rows, name: str, number: int, agent: str, text: str) -> None:
    """Write to the store and to the dictionary, as a bank would."""
    identifier, payload = _id(number), _payload(agent, text)
    is_known = identifier in rows
    if name == "delete":
        store.delete(identifier)
        rows.pop(identifier, None)
    elif name == "update" and is_known:
        store.update(identifier, vector=_vector(number), payload=payload)
        rows[identifier] = payload
    elif not is_known:
        store.insert(vectors=[_vector(number)], payloads=[payload], ids=[identifier])
        rows[identifier] = payload


def _payload(agent: str, text: str) -> dict[str, Any]:
    return {"data": text, "user_id": agent, "agent_id": agent, **_FIELDS}


def _id(number: int) -> str:
    return str(UUID(int=number))


def _vector(number: int) -> list[float]:
    """Vectors of length one, each farther from the first than the one before."""
    angle = number / 400
    return [1 - angle**2 / 2, angle * (1 - angle**2 / 4) ** 0.5, 0.0, 0.0]


def _by_id(store: Any) -> Mapping[str, Any]:
    listed = list(store.list(top_k=_EVERYTHING) or ())
    rows = list(listed[0]) if listed and isinstance(listed[0], list | tuple) else listed
    by_id = {str(row.id): row for row in rows}
    must(len(by_id) == len(rows), "a row is listed twice")
    return by_id


def _rows_of(store: Any) -> Rows:
    return {each: dict(row.payload) for each, row in _by_id(store).items()}


def _found(store: Any, agent: str, **more: Any) -> list[Any]:
    filters = {"user_id": agent, **more}
    return list(store.search(query="", vectors=_vector(1), top_k=20, filters=filters))
