"""Journals that an earlier version wrote open to the state that it left."""

import gzip
import json
from pathlib import Path

import pytest

from agents import MemoryBank

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "journal-6.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("preset", EXPECTED)
def test_a_journal_of_before_opens_to_the_same_state(preset: str, folder: Path) -> None:
    folder.mkdir()
    packed = (GOLDEN / f"journal-6-{preset}.db.gz").read_bytes()
    (folder / "journal.db").write_bytes(gzip.decompress(packed))
    for _ in range(2):  # the second opening reads what the first one wrote
        with MemoryBank.open(folder) as bank:
            assert (bank.state_hash(), bank.tick) == tuple(EXPECTED[preset].values())
