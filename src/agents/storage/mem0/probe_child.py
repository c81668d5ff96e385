"""Tries a store that might crash its process: ``python -m tiermem.storage.mem0.probe_child``."""

import json
import sys

from .store import probe


def main() -> None:
    """Read a request as JSON from standard input; exit 0 if the store is sound."""
    request = json.load(sys.stdin)
    try:
        probe(request["config"], request["dims"], request["rows"])
    except Exception as error:  # noqa: BLE001 - the parent wants one line for every error
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
