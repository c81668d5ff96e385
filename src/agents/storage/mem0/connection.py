"""mem0's vector stores, as mem0 makes them."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from .package import import_mem0

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
