"""Reading a mem0 store that another program filled."""

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigError, StoreError
from .connection import close, connect, rows_of
from .secret_texts import without_secrets

__all__ = ["read_rows", "refused_config"]

_EVERYTHING = 1_000_000_000
"""More rows than a store has; without a number, mem0 gives a hundred rows."""


def read_rows(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Ids and payloads of all rows in the store of a mem0 config."""
    try:
        store = connect(config)
        try:
            found = rows_of(store.list(top_k=_EVERYTHING))
            return [(str(row.id), dict(row.payload or {})) for row in found]
        finally:
            close(store)
    except Exception as error:  # each provider has errors of its own
        if refused := refused_config(error):
            raise ConfigError(
                f"mem0 does not take this config of a {config['provider']} store: {refused}",
                hint="put it right in vector_store.config, as mem0 was used with it",
            ) from error
        raise StoreError(
            f"mem0 can't read its {config['provider']} store: "
            + without_secrets(" ".join(str(error).split()), config["config"]),
            hint="check vector_store in the config that mem0 was used with",
        ) from error


def refused_config(error: Exception) -> str | None:
    """Why pydantic, with which mem0 checks a config, refuses it; None for another error.

    The text of pydantic's error quotes the config, which may hold a password.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return None
    first = error.errors(include_url=False, include_input=False)[0]
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, ValidationError):  # the provider's config, inside mem0's
        return refused_config(inner)
    place = ".".join(map(str, first["loc"]))
    reason = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {reason}" if place else reason
