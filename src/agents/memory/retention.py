"""Retention: whether a memory is visible at all."""

from enum import IntEnum


class Retention(IntEnum):
    """Whether a memory is visible.

    Searches see active memories. An archived memory can be read by its id. A deleted memory can be
    restored for a while; then it is purged: its text and vector are gone.
    """

    ACTIVE = 0
    ARCHIVED = 1
    DELETED = 2


RETENTION_NAMES: dict[Retention, str] = {each: each.name.lower() for each in Retention}
