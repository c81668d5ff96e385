"""The ids of an import: a memory gets a new id, and what names the former id names the new one.

A key that :meth:`AgentMemory.update` made, the evidence of an insight and the source of a told
memory name memories by their ids. A memory that the file does not have before is not known: its id
is changed where a memory of the bank could have it, so that it names none.
"""

import json

from ..memory.insights import EVIDENCE, evidence_of
from ..memory.metadata import KeptMetadata
from ..memory.records import KEY, sequence_of
from ..memory.sources import SOURCE, source_of, source_text
from ..storage.state.state import State
from .memory_rows import New

_ELSEWHERE = "imported:"


class NewIds:
    """The new ids of the memories that were stored, by their former ids."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._new: dict[str, str] = {}
        self._first: dict[str, str] = {}
        """By the former id of a first version, the oldest version that is stored here."""
        self._undo: list[tuple[dict[str, str], str, str | None]] = []

    def begin(self) -> None:
        """What is known from now on may be dropped."""
        self._undo.clear()

    def drop(self) -> None:
        """The rows since :meth:`begin` were not stored after all."""
        for names, former, before in reversed(self._undo):
            if before is None:
                del names[former]
            else:
                names[former] = before
        self._undo.clear()

    def know(self, row: New, new: str) -> None:
        """The memory of a row was stored with a new id."""
        if row.former_id is not None:
            self._keep(self._new, row.former_id, new)
        if row.first_version is not None and row.first_version not in self._first:
            self._keep(self._first, row.first_version, new)

    def renamed(self, row: New) -> New:
        """The row, with new ids in its metadata."""
        if not row.names:
            return row
        agent, content, tier, metadata, options = row.memory
        own = dict(metadata or ())
        first = row.first_version
        if first is not None:
            new = self._new.get(first) or self._first.get(first)
            if new is None:  # the first of its versions that comes is the first here
                del own[KEY]
            else:
                own[KEY] = new
            options = options._replace(key=new)
        evidence = evidence_of(own)
        now = [self._of(agent, each) for each in evidence]
        if now != [*evidence]:
            own[EVIDENCE] = json.dumps(now)
        source = source_of(own)
        if source is not None:
            source = source._replace(
                memory_id=self._of(source.teller, source.memory_id),
                origin_id=self._of(source.origin_agent, source.origin_id),
            )
            own[SOURCE] = source_text(source)
        kept = KeptMetadata(own) if own else None
        return row._replace(memory=(agent, content, tier, kept, options))

    def _keep(self, names: dict[str, str], former: str, new: str) -> None:
        self._undo.append((names, former, names.get(former)))
        names[former] = new

    def _of(self, agent: str, former: str) -> str:
        """The new id of an agent's memory, or an id that no memory here has."""
        new = self._new.get(former)
        if new is not None:
            return new
        is_ours = sequence_of(self._state.block(agent).prefix, former) is not None
        return f"{_ELSEWHERE}{former}" if is_ours else former
