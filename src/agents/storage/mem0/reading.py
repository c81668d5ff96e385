"""Reading a mem0 store that another program filled."""

from collections.abc import Mapping
from typing import Any

from ...errors import StoreError
from .child_process import ChildLost, StoreChild

_SECONDS = 3600


def read_rows(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Ids and payloads of all rows in the store of a mem0 config.

    A process of its own reads them: the store may be damaged, or a stranger's.
    """
    child = StoreChild.take()
    try:
        found = child.ask("read", _SECONDS, mem0=dict(config))
    except ChildLost as error:
        raise StoreError(
            f"mem0 can't read its {config['provider']} store: it {error}",
            hint="check vector_store in the config that mem0 was used with",
        ) from error
    child.give_back()
    return [(key, dict(payload)) for key, payload in found]
