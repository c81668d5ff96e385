"""What few agents have: recalled memories, turns, cold critical memories, notes."""

from ...memory.records import Memory
from ..note import Note
from .turns import Turns


class Rarities:
    """What few agents have."""

    __slots__ = ("critical_elsewhere", "notes", "recalls", "turns")

    def __init__(self) -> None:
        self.recalls: dict[int, tuple[int, ...]] = {}
        self.critical_elsewhere: dict[int, Memory] = {}
        self.turns = Turns()
        self.notes: dict[str, Note] = {}
