"""Retention: whether a memory is visible at all."""

from enum import IntEnum

__all__ = ["RETENTION_NAMES", "Retention"]


class Retention(IntEnum):
    """Whether a memory is visible.

    Active is seen; archived can be read by its id alone; deleted can be restored for a while, and
    is then purged: its text and vector are gone.
    """

    ACTIVE = 0
    ARCHIVED = 1
    DELETED = 2


RETENTION_NAMES: dict[Retention, str] = {each: each.name.lower() for each in Retention}
