"""The tables of a journal, and rows of them."""

from typing import NamedTuple

from ..shelf import SHELF_SCHEMA

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    tick INTEGER NOT NULL,   -- after the commit
    -- These two first: SQLite reads a row up to the last column that is asked for.
    note BLOB NOT NULL,      -- digest of the row in ticks, if the commit has an attachment
    hash BLOB NOT NULL,      -- over the hash before it and all of the others
    events TEXT NOT NULL,    -- JSON array of events
    vectors BLOB NOT NULL    -- int8, one vector per added memory, in order
);
-- Attachments of commits: what a simulation keeps of each tick, beside the memories.
CREATE TABLE ticks (
    tick INTEGER PRIMARY KEY,
    commit_id INTEGER NOT NULL,
    record TEXT NOT NULL,     -- JSON: state hash, counts, metrics
    retrieved BLOB NOT NULL,  -- uint32: how many memories each agent got, then which
    state_hash BLOB NOT NULL,
    state BLOB                -- the world's state after the tick: JSON, deflated
);
CREATE TABLE decisions (
    tick INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, data BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE snapshots (
    agent TEXT PRIMARY KEY,
    next_sequence INTEGER NOT NULL,
    columns BLOB NOT NULL,
    contents BLOB NOT NULL,
    extras TEXT NOT NULL,     -- JSON: metadata, kinds and tags, recalls
    vectors BLOB NOT NULL,
    digest BLOB NOT NULL
);
-- A commit that lost purged texts no longer fits its hash; this hash covers what is left of it.
CREATE TABLE redactions (commit_id INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE embeddings (hash BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
-- For people who look at the file with a database tool.
CREATE VIEW events AS
    SELECT commits.id AS commit_id, commits.tick AS tick,
           json_extract(e.value, '$[0]') AS kind, json_extract(e.value, '$[1]') AS agent,
           json_extract(e.value, '$[2]') AS sequence, json_extract(e.value, '$[3]') AS tier,
           json_extract(e.value, '$[4]') AS content, json_extract(e.value, '$[5]') AS metadata
    FROM commits, json_each(commits.events) AS e;
"""
SCHEMA = _TABLES + SHELF_SCHEMA


class Commit(NamedTuple):
    """What one transaction recorded."""

    id: int
    tick: int
    note: bytes
    hash: bytes
    events: str
    vectors: bytes


class Snapshot(NamedTuple):
    """The commit after which the snapshots were made, and the number of their agents."""

    commit: int
    tick: int
    hash: str
    agents: int


class SnapshotRow(NamedTuple):
    """One agent's whole state, as a row."""

    agent: str
    next_sequence: int
    columns: bytes
    contents: bytes
    extras: str
    vectors: bytes
    digest: bytes
