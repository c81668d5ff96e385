"""The errors that TierMem raises on purpose.

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
│   └── NotInstalled (also ImportError)  it needs a package that is not installed
├── BankError                        the bank as a whole
│   ├── BankNotFound
│   ├── BankLocked                   another process has it open
│   ├── BankClosed
│   ├── BankBroken                   memory may differ from the journal; open the bank again
│   ├── BankDamaged                  the journal cannot be read
│   │   ├── BankTooNew               … because a later version wrote it
│   │   └── BankTooOld               … because an earlier version wrote it
│   ├── TickNotKept                  the bank does not go back that far
│   └── CommitFailed                 nothing of this commit was kept
│       └── CommitUnknown            … or all of it was: open the bank again
├── EmbedderError                    the embedder failed, or is not the one the bank was made with
├── StoreError                       mem0's store; the journal is untouched
│   ├── StoreDamaged
│   └── StoreMismatch
├── ExtractionError                  mem0's LLM extraction is not configured or failed
├── Untrusted                        it is somebody else's, and wants to do what only yours may do
├── TrustError                       what you trust can't be read or kept
├── CheckpointError                  a checkpoint can't be written, read or restored now
│   └── CheckpointDamaged            a file that is not a whole checkpoint of this version
└── SimulationError                  a world or a policy failed; the run is as it was before
    ├── InvalidAction                one agent's action was refused, and the agent is told
    ├── ChatFailed                   an LLM gave no answer this time; its policy tries again
    ├── RunPaused                    a run waits between two ticks: no model, or no budget, now
    ├── RunError                     a run's folder is missing something, in the way or in use
    └── Diverged                     a replay is not what was recorded

An error says three things: ``what`` could not be done (by its class), ``why`` (the message), and
``hint``, what to do next. ``str()`` is the message, and the error's own hint, if it has one.
"""

import copyreg
from typing import Any, ClassVar


class TierMemError(Exception):
    """Base of every error that TierMem raises on purpose."""

    what: ClassVar[str] = "it could not be done"
    """What could not be done, in a line."""
    hint: str = ""
    """What to do next; may be empty."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.hint = hint

    @property
    def why(self) -> str:
        """The message, without its hint."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        # Some classes take more than a message; __dict__ has the rest.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        own = self.__dict__.get("hint")  # a hint of the class is not a part of the message
        return f"{self.why}; {own}" if own else self.why


class InvalidInput(TierMemError, ValueError):
    """An argument was refused; nothing was stored or changed."""

    what = "that was refused, and nothing was changed"


class InvalidTier(InvalidInput):
    """Not a tier: neither 0–4, nor one of their names, nor a ``Tier``."""

    what = "that is not a tier, and nothing was changed"
    hint = "use pinned, critical, important, normal or low, or 0 to 4"


class InvalidTemperature(InvalidInput):
    """Not a temperature: neither hot, warm or cold, nor a ``Temperature``."""

    what = "that is not a temperature, and nothing was changed"
    hint = "use hot, warm or cold"


class InvalidAgentId(InvalidInput):
    """Not an agent id: 1–128 of letters, digits, ``. _ - @``, not starting with a dot."""

    what = "that is not a name for an agent, and nothing was changed"
    hint = "use 1 to 128 of letters, digits and . _ - @, not starting with a dot"


class InvalidContent(InvalidInput):
    """A memory's text or a query that can't be kept as it is."""

    what = "that text can't be kept as it is, and nothing was changed"
    hint = "use text that is neither blank nor too long, and has no NUL in it"


class InvalidMetadata(InvalidInput):
    """Metadata that is not flat JSON, or uses a reserved key."""

    what = "that metadata can't be kept, and nothing was changed"
    hint = "use an object of texts, numbers, true, false and null, under names of your own"


class MemoryNotFound(TierMemError, KeyError):
    """This agent has no memory with that id. Another agent's id gives the same answer."""

    what = "there is no such memory"
    hint = "tiermem search and tiermem show give ids; each agent has its own memories"


class MemoryPinned(TierMemError):
    """A pinned memory is active and hot; what would change that is refused until it is unpinned."""

    what = "a pinned memory stays as it is"
    hint = "unpin it first"


class NoteRefused(TierMemError):
    """A path that is not a note's, or a file that can't be one. Nothing was read or changed."""

    what = "that is not a note, and nothing was read or changed"
    hint = "a note is MEMORY.md or memory/NAME.md: a plain file of UTF-8 that you may write"


class TierFull(TierMemError):
    """The tier is at its cap and ``memory.on_tier_full`` says reject."""

    what = "the tier is full, and nothing was changed"
    hint = "move a memory out of it, raise its cap, or set memory.on_tier_full to demote"

    def __init__(self, message: str, *, tier: int, cap: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.tier = tier
        self.cap = cap


class ConfigError(TierMemError):
    """A setting is wrong. The message names file, line where known, key and what is allowed."""

    what = "that can't be done with these settings or options"
    hint = "put it right there; tiermem config checks settings, and prints all of them"


class NotInstalled(ConfigError, ImportError):
    """It needs a package that is not installed; the hint is the command that installs it."""

    what = "a package is missing"


class BankError(TierMemError):
    """Something about the bank as a whole."""

    what = "the bank can't do that"
    hint = "tiermem doctor BANK may know more"


class BankNotFound(BankError):
    """There is no bank in that folder."""

    what = "there is no such bank"
    hint = "make one with: tiermem init FOLDER"


class BankLocked(BankError):
    """Another process, or another ``MemoryBank`` in this one, has the bank open."""

    what = "the bank is in use"
    hint = "close it there, or wait until it is done"

    def __init__(self, message: str, *, pid: int | None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


class BankClosed(BankError):
    """The bank was closed; open it again."""

    what = "the bank is closed"
    hint = "open it again"


class BankBroken(BankError):
    """A change and its undoing both failed: the bank in memory may differ from its journal.

    Only ``close`` works. Nothing is written any more, and the journal has everything that was
    acknowledged.
    """

    what = "the bank in memory can't be trusted"
    hint = "close it and open it again: the journal has everything"


class BankDamaged(BankError):
    """The journal can't be read, was changed from outside, or is of another version."""

    what = "the bank's journal can't be trusted"
    hint = (
        "restore a backup or a checkpoint; tiermem store export BANK --salvage saves what is whole"
    )


class BankTooNew(BankDamaged):
    """A later version of TierMem wrote the journal."""

    what = "the bank is newer than this TierMem"
    hint = "upgrade with: pip install -U tiermem"


class BankTooOld(BankDamaged):
    """An earlier version of TierMem wrote the journal, in a format that is no longer read."""

    what = "the bank is older than what this TierMem reads"
    hint = "use the version of TierMem that wrote it"


class TickNotKept(BankError):
    """The bank was made from a checkpoint, and knows nothing of what was before it."""

    what = "the bank does not go back that far"
    hint = "name a later tick"


class CommitFailed(BankError):
    """The journal could not be written; the bank is as it was before the call."""

    what = "nothing was stored: the journal can't be written"
    hint = "make room on the disk or let it be written, and do it again"


class CommitUnknown(CommitFailed):
    """The disk failed while a commit was made durable: it may be kept or not, and as a whole.

    The bank is broken from then on (:class:`BankBroken`), until it is opened again.
    """

    what = "the disk failed: the last change may be stored or not"
    hint = "look after the disk, open the bank again, and see whether the change is there"


class EmbedderError(TierMemError):
    """The embedder failed, or differs from the one this bank's vectors came from."""

    what = "the embedder can't be used"
    hint = "check the section embedder of the settings, or the embedder that was given"


class StoreError(TierMemError):
    """mem0's store can't be used. The journal holds every memory; repair rebuilds the store."""

    what = "mem0's store can't be used"
    hint = "the journal has every memory; rebuild the store with: tiermem store rebuild BANK"


class StoreDamaged(StoreError):
    """mem0's store is missing, broken, or crashes when opened."""

    what = "mem0's store is damaged"


class StoreMismatch(StoreError):
    """mem0's store holds another bank's memories."""

    what = "mem0's store is another bank's"
    hint = "give this bank a store of its own: store.config.collection_name or path"


class ExtractionError(TierMemError):
    """mem0's LLM extraction is not configured, the LLM failed, or its answer can't be read."""

    what = "nothing was extracted or stored"
    hint = "check the section llm of the settings, and that the LLM answers"


class Untrusted(TierMemError):
    """A bank, a checkpoint or a run of somebody else wants to run code or to use the network.

    Reading and searching need no trust. The message says what it wants to do.
    """

    what = "that is only done for what you made or trust"
    hint = "if you trust the people who had it in hand: tiermem store trust PATH"


class TrustError(TierMemError):
    """The key or the list that says what you made and what you trust can't be used."""

    what = "what you trust can't be read or kept"
    hint = "let only your user read and write the folder that XDG_STATE_HOME names"


class CheckpointError(TierMemError):
    """A checkpoint can't be written, read or restored now; the bank is as it was."""

    what = "the checkpoint can't be used; the bank is as it was"
    hint = "make room on the disk and let your user read and write there, or name another path"


class CheckpointDamaged(CheckpointError):
    """Not a whole checkpoint: cut short, changed, of another program or of another version."""

    what = "that is not a whole checkpoint"
    hint = "use another copy of it, or an earlier checkpoint"


class SimulationError(TierMemError):
    """A world or a policy failed. The run is as it was after the last whole tick."""

    what = "the simulation can't go on; whole ticks are kept"
    hint = "mend the world or the policy, then go on with: tiermem resume RUN"


class InvalidAction(SimulationError):
    """An action that can't be done: unknown, malformed or not allowed now.

    A world raises it from ``apply``. The agent is told in its next observation, and the tick goes
    on. Any other error out of a world ends the run.
    """

    what = "the action was refused"
    hint = "use an action that there is now, with the arguments that it takes"


class ChatFailed(SimulationError):
    """An LLM gave no answer this time. The message is one line, without secrets.

    ``retry_after`` is how many seconds the server asks to be left alone. ``is_final`` says that the
    same question has the same failure later: a wrong key, an unknown model.
    """

    what = "the LLM gave no answer"
    hint = "check the section llm of the settings, and that the LLM answers"

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after: float | None = None,
        is_final: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.is_final = is_final


class RunPaused(SimulationError):
    """A run stands between two ticks and can go on later: its model is away, or its budget spent.

    The tick that was under way is undone, and no answer that was given is lost: going on asks only
    what was not answered. The command line ends with an exit code of its own, 3.
    """

    what = "the run is paused; whole ticks and all answers are kept"
    hint = "go on with: tiermem resume RUN"


class RunError(SimulationError):
    """A run's folder is missing something, in the way, or in use."""

    what = "that can't be done with this run"
    hint = "check the run's folder"


class Diverged(SimulationError):
    """A replay is not what was recorded."""

    what = "the replay is not what was recorded"
    hint = "replay it with the code, the settings and the versions that recorded it"
