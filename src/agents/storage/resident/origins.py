"""An agent's told memories by their origins and by their tellers."""

from typing import final

from ...memory.metadata import KeptMetadata
from ...memory.sources import SOURCE, source_of


@final
class Origins(dict[str, list[int]]):
    """By the id of an origin, the sequence numbers of the agent's copies of it, oldest first.

    A copy that was purged stays: no sequence number is used twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_teller: dict[str, list[int]] = {}
        """By the id of a teller, the sequence numbers of what it told, oldest first."""
        self.upto = 1
        """The first sequence number that nobody has looked at."""

    def know(self, sequence: int, metadata: KeptMetadata | None) -> None:
        """Look at the metadata of a memory."""
        if metadata is not None and SOURCE in metadata:
            source = source_of(metadata)
            if source is not None:
                self.setdefault(source.origin_id, []).append(sequence)
                self.by_teller.setdefault(source.teller, []).append(sequence)
