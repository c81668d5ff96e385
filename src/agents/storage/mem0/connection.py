"""mem0's vector stores, as mem0 makes them."""

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from .package import import_mem0

__all__ = ["close", "connect", "rows_of"]


def connect(config: Mapping[str, Any]) -> Any:
    """mem0's store for a config with its provider and the provider's own config."""
    validated = import_mem0("mem0.vector_stores.configs").VectorStoreConfig(
        provider=config["provider"], config=dict(config["config"])
    )
    factory = import_mem0("mem0.utils.factory").VectorStoreFactory
    # mem0 logs each insert at INFO; memory text does not belong there.
    logging.getLogger("mem0").setLevel(logging.WARNING)
    return factory.create(validated.provider, validated.config)


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
