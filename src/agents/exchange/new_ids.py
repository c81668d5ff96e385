"""The ids of an import: a memory gets a new id, and what names the former id names the new one.

A key that :meth:`AgentMemory.update` made, the evidence of an insight and the source of a told
memory name memories by their ids. A memory that the file does not have before is not known: its id
is changed where a memory of the bank could have it, so that it names none.
"""

from ..memory.insights import EVIDENCE, evidence_of, evidence_text
from ..memory.metadata import KeptMetadata
from ..memory.records import KEY, sequence_of
from ..memory.sources import SOURCE, source_of, source_text
from ..storage.state.state import State
from .memory_rows import New

__all__ = ["NewIds"]

_ELSEWHERE = "imported:"


class NewIds:
    """The new ids of the memories that were stored, by their former ids."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._new: dict[str, str] = {}

    def know(self, row: New, new: str) -> None:
        """The memory of a row was stored with a new id."""
        if row.former_id is not None:
            self._new[row.former_id] = new
        key = None if row.memory[3] is None else row.memory[3].get(KEY)
        if isinstance(key, str) and self._is_version(row, key):
            self._new.setdefault(key, new)

    def forget(self, row: New) -> None:
        """The memory of a row was not stored after all."""
        if row.former_id is not None:
            self._new.pop(row.former_id, None)

    def renamed(self, row: New) -> New:
        """The row, with new ids in its metadata."""
        agent, content, tier, metadata, options = row.memory
        own = dict(metadata or ())
        key = own.get(KEY)
        if isinstance(key, str) and self._is_version(row, key):
            new = self._new.get(key)
            if new is None:  # the first of its versions that comes is the first here
                del own[KEY]
            else:
                own[KEY] = new
            options = options._replace(key=new)
        if EVIDENCE in own:
            own[EVIDENCE] = evidence_text([self._of(agent, each) for each in evidence_of(own)])
        source = source_of(own)
        if source is not None:
            source = source._replace(
                memory_id=self._of(source.teller, source.memory_id),
                origin_id=self._of(source.origin_agent, source.origin_id),
            )
            own[SOURCE] = source_text(source)
        kept = KeptMetadata(own) if own else None
        return row._replace(memory=(agent, content, tier, kept, options))

    def _of(self, agent: str, former: str) -> str:
        """The new id of an agent's memory, or an id that no memory here has."""
        new = self._new.get(former)
        if new is not None:
            return new
        is_ours = sequence_of(self._state.block(agent).prefix, former) is not None
        return f"{_ELSEWHERE}{former}" if is_ours else former

    def _is_version(self, row: New, key: str) -> bool:
        """Whether a key is the id of the memory's first version, where it came from."""
        former = row.former_id
        return former is not None and len(key) == len(former) and key[:24] == former[:24]
