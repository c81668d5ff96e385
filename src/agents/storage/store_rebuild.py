"""Builds a bank's store anew in a new process: ``python -m tiermem.storage.store_rebuild``.

Chroma fills unused parts of its files with bytes from the memory of its process. A process that had
a forgotten text in memory could write that text again; a new process never had it.
"""

import json
import sys
from contextlib import closing
from pathlib import Path

from ..config.settings import StoreSettings
from .journal.journal import Journal
from .state.loading import load
from .state.state import State
from .store_sync import StoreSync

__all__ = ["main"]


def main() -> None:
    """Read a request as JSON from standard input; print the progress, a line at a time."""
    given = json.load(sys.stdin)
    folder = Path(given["folder"])
    with closing(Journal(folder / "journal.db")) as journal:
        resident = State(given["seed"], given["dims"], journal)
        load(resident, journal)
        settings = StoreSettings(given["provider"], given["config"])
        store = StoreSync(journal, resident, settings, folder, given["bank"])
        store.rebuild(lambda done, total: print(done, total, flush=True))  # noqa: T201
        store.close()


if __name__ == "__main__":
    main()
