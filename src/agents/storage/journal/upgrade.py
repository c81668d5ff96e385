"""Reading what earlier versions wrote: checkpoints of format 1, and journals of formats 2 to 4.

The first of them know no temperature, no lifetime and no use of memories.
"""

import json
import sqlite3

import numpy as np

from ...errors import BankDamaged
from ...memory.records import NEVER, NEW_RELEVANCE, UNUSED
from ...memory.temperature import Temperature
from ...memory.tiers import Tier
from ..shelf.packs import PACKS_SCHEMA
from ..shelf.rows import SHELF_SCHEMA
from ..state.snapshots import NUMBERS, digest_of
from .schema import SnapshotRow

__all__ = ["add_packs", "upgrade_journal", "upgrade_snapshot"]


def upgrade_snapshot(row: SnapshotRow) -> SnapshotRow:
    """One agent's state, from four numbers per memory to nine."""
    if digest_of(row) != row.digest:
        raise BankDamaged(f"the snapshot of agent {row.agent} is not what was written")
    old = np.frombuffer(row.columns, "<i8").reshape(-1, 4)  # sequence, tier, created, entered
    new = np.empty((len(old), NUMBERS), "<i8")
    new[:, 0], new[:, 1], new[:, 2] = old[:, 0], old[:, 2], old[:, 3]
    new[:, 3], new[:, 4], new[:, 5] = NEVER, 0, UNUSED
    new[:, 6] = old[:, 1]
    new[:, 7] = np.where(old[:, 1] == Tier.PINNED, Temperature.HOT, Temperature.WARM)
    new[:, 8] = np.float64(NEW_RELEVANCE).view(np.int64)
    extras = {"metadata": json.loads(row.extras), "traits": [], "recalls": [], "shelf": "0"}
    text = json.dumps(extras, ensure_ascii=False)
    changed = row._replace(columns=new.tobytes(), extras=text)
    return changed._replace(digest=digest_of(changed))


def upgrade_journal(database: sqlite3.Connection) -> None:
    """Give a journal of format 2 the tables and columns of format 3.

    What it deleted is gone, as what is purged today.
    """
    database.execute("ALTER TABLE snapshots RENAME COLUMN metadata TO extras")
    database.execute(
        "CREATE TABLE redactions (commit_id INTEGER PRIMARY KEY, digest BLOB NOT NULL)"
    )
    for statement in SHELF_SCHEMA.split(";"):
        database.execute(statement)
    for raw in database.execute("SELECT * FROM snapshots").fetchall():
        row = upgrade_snapshot(SnapshotRow(*raw))
        database.execute("REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def add_packs(database: sqlite3.Connection) -> None:
    """Give a journal of format 3 or 4 the tables of format 5; what is on the shelf stays rows."""
    for statement in PACKS_SCHEMA.split(";"):
        database.execute(statement)
