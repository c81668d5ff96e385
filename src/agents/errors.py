"""Everything that TierMem raises on purpose.

TierMemError
├── InvalidInput (also ValueError)   the call was refused before anything happened
│   ├── InvalidTier
│   ├── InvalidTemperature
│   ├── InvalidAgentId
│   ├── InvalidContent
│   └── InvalidMetadata
├── MemoryNotFound (also KeyError)   no such memory for this agent
├── MemoryPinned                     pinned memories stay; unpin it first
├── NoteRefused                      no note's path, or a file that can't be one
├── TierFull                         a cap would be broken and the config says reject
├── ConfigError                      a setting is wrong: file, line, key and what is allowed
├── BankError                        the bank as a whole
│   ├── BankNotFound
│   ├── BankLocked                   another process has it open
│   ├── BankClosed
│   ├── BankDamaged                  the journal cannot be read
│   │   └── BankTooNew               … because a later version wrote it
│   ├── TickNotKept                  the bank does not go back that far
│   └── CommitFailed                 nothing of this commit was kept
├── EmbedderError                    the embedder failed, or is not the one the bank was made with
├── StoreError                       mem0's store; the journal is untouched
│   ├── StoreDamaged
│   └── StoreMismatch
├── ExtractionError                  mem0's LLM extraction is not configured or failed
├── CheckpointError                  a checkpoint can't be written
│   └── CheckpointDamaged            a file that is not a whole checkpoint of this version
└── SimulationError                  a world or a policy failed; the run is as it was before
    ├── InvalidAction                one agent's action was refused, and the agent is told
    ├── ChatFailed                   an LLM gave no answer this time; its policy tries again
    ├── RunError                     a run's folder is missing something, in the way or in use
    └── Diverged                     a replay is not what was recorded
"""

__all__ = [
    "BankClosed",
    "BankDamaged",
    "BankError",
    "BankLocked",
    "BankNotFound",
    "BankTooNew",
    "ChatFailed",
    "CheckpointDamaged",
    "CheckpointError",
    "CommitFailed",
    "ConfigError",
    "Diverged",
    "EmbedderError",
    "ExtractionError",
    "InvalidAction",
    "InvalidAgentId",
    "InvalidContent",
    "InvalidInput",
    "InvalidMetadata",
    "InvalidTemperature",
    "InvalidTier",
    "MemoryNotFound",
    "MemoryPinned",
    "NoteRefused",
    "RunError",
    "SimulationError",
    "StoreDamaged",
    "StoreError",
    "StoreMismatch",
    "TickNotKept",
    "TierFull",
    "TierMemError",
]


class TierMemError(Exception):
    """Base of every error that TierMem raises on purpose."""


class InvalidInput(TierMemError, ValueError):
    """An argument was refused; nothing was stored or changed."""


class InvalidTier(InvalidInput):
    """Not a tier: neither 0–4, nor one of their names, nor a ``Tier``."""


class InvalidTemperature(InvalidInput):
    """Not a temperature: neither hot, warm or cold, nor a ``Temperature``."""


class InvalidAgentId(InvalidInput):
    """Not an agent id: 1–128 of letters, digits, ``. _ - @``, not starting with a dot."""


class InvalidContent(InvalidInput):
    """A memory's text or a query that can't be kept as it is."""


class InvalidMetadata(InvalidInput):
    """Metadata that is not flat JSON, or uses a reserved key."""


class MemoryNotFound(TierMemError, KeyError):
    """This agent has no memory with that id. Another agent's id gives the same answer."""

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0]) if self.args else ""


class MemoryPinned(TierMemError):
    """A pinned memory is active and hot; what would change that is refused until it is unpinned."""


class NoteRefused(TierMemError):
    """A path that is no note's, or a file that can't be one. Nothing was read or changed."""


class TierFull(TierMemError):
    """The tier is at its cap and ``memory.on_tier_full`` says reject."""

    def __init__(self, message: str, *, tier: int, cap: int) -> None:
        super().__init__(message)
        self.tier = tier
        self.cap = cap


class ConfigError(TierMemError):
    """A setting is wrong. The message names file, line where known, key and what is allowed."""


class BankError(TierMemError):
    """Something about the bank as a whole."""


class BankNotFound(BankError):
    """There is no bank in that folder."""


class BankLocked(BankError):
    """Another process, or another ``MemoryBank`` in this one, has the bank open."""

    def __init__(self, message: str, *, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class BankClosed(BankError):
    """The bank was closed; open it again."""


class BankDamaged(BankError):
    """The journal can't be read, was changed from outside, or is of a later version."""


class BankTooNew(BankDamaged):
    """A later version of TierMem wrote the journal."""


class TickNotKept(BankError):
    """The bank was made from a checkpoint, and knows nothing of what was before it."""


class CommitFailed(BankError):
    """The journal could not be written; the bank is as it was before the call."""


class EmbedderError(TierMemError):
    """The embedder failed, or differs from the one this bank's vectors came from."""


class StoreError(TierMemError):
    """mem0's store can't be used. The journal holds every memory; repair rebuilds the store."""


class StoreDamaged(StoreError):
    """mem0's store is missing, broken, or crashes when opened."""


class StoreMismatch(StoreError):
    """mem0's store holds another bank's memories."""


class ExtractionError(TierMemError):
    """mem0's LLM extraction is not configured, or the LLM failed."""


class CheckpointError(TierMemError):
    """A checkpoint can't be written; nothing was changed."""


class CheckpointDamaged(CheckpointError):
    """Not a whole checkpoint: cut short, changed, of another program or of a later version."""


class SimulationError(TierMemError):
    """A world or a policy failed. The run is as it was after the last whole tick."""


class InvalidAction(SimulationError):
    """An action that can't be done: unknown, malformed or not allowed now.

    A world raises it from ``apply``. The agent is told in its next observation, and the tick goes
    on. Any other error out of a world ends the run.
    """


class ChatFailed(SimulationError):
    """An LLM gave no answer this time. The message is one line, without secrets."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RunError(SimulationError):
    """A run's folder is missing something, in the way, or in use."""


class Diverged(SimulationError):
    """A replay is not what was recorded."""
