"""Builds a bank's store anew in a process of its own: ``python -m tiermem.storage.store_rebuild``.

Chroma fills parts of its files that it does not use with whatever lay in the process's memory.
A process that knew a forgotten text could so write it again; a new one never had it.
"""

import json
import sys
from pathlib import Path

from ..config.settings import StoreSettings
from .journal.journal import Journal
from .state.loading import load
from .state.state import State
from .store_sync import StoreSync

__all__ = ["main"]


def main() -> None:
    """Read what to do as JSON, and say how far it is, a line at a time."""
    given = json.load(sys.stdin)
    folder = Path(given["folder"])
    journal = Journal(folder / "journal.db")
    try:
        resident = State(given["seed"], given["dims"], journal)
        load(resident, journal)
        settings = StoreSettings(given["provider"], given["config"])
        store = StoreSync(journal, resident, settings, folder, given["bank"])
        store.rebuild(lambda done, total: print(done, total, flush=True))  # noqa: T201
        store.close()
    finally:
        journal.close()


if __name__ == "__main__":
    main()
