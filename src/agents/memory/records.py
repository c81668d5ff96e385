"""What a memory is: its record, id, kind and tags; and what calls that move memories give back."""

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .sources import Source, evidence_of, given_importance, source_of
from .tiers import Retention, Temperature, Tier

if TYPE_CHECKING:
    from .views import View

Scalar = str | int | float | bool | None
Metadata = Mapping[str, Scalar]

NEVER = 1 << 62
"""Stands for the expiry tick of a memory that never expires."""
UNUSED = -1
"""Stands for the last access tick of a memory that no search has returned yet."""
KEY = "memory_key"
"""The name under which the metadata keeps a memory's key."""
VALUE = "memory_value"
"""The name under which the metadata keeps a memory's value, as JSON text."""
SESSION = "session"
"""The name under which the metadata keeps the session that a memory is part of."""
NO_METADATA: Metadata = MappingProxyType({})
NEW_RELEVANCE = 0.5
"""The relevance of a memory that no search has returned yet."""


# Records are named tuples, not dataclasses: a tick makes thousands of records, and a named tuple
# takes a fifth of the time.
class Memory(NamedTuple):
    """One memory of one agent, as it was when the caller asked for it. A record never changes.

    Equality compares every field up to ``expires_tick``. It leaves out how often the memory was
    used: the same search twice returns equal records.
    """

    id: str
    agent_id: str
    content: str
    tier: Tier
    created_tick: int
    tier_tick: int
    """The tick in which the memory entered its tier."""
    sequence: int
    """1 for the agent's first memory, 2 for its second, and so on; no number is used twice."""
    metadata: Metadata
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    temperature: Temperature = Temperature.WARM
    retention: Retention = Retention.ACTIVE
    expires_tick: int | None = None
    """From this tick on, the memory is expired; None if it never expires."""
    access_count: int = 0
    """How many searches returned the memory."""
    last_access_tick: int | None = None
    relevance: float = NEW_RELEVANCE
    """From 0.5 for a memory that was never used towards 1; a use never lowers it."""

    @property
    def usage_count(self) -> int:
        """``access_count`` by another name."""
        return self.access_count

    @property
    def session(self) -> Scalar:
        """The conversation or episode that the metadata names; None if it names none."""
        return self.metadata.get(SESSION)

    @property
    def speaker(self) -> Scalar:
        """The speaker that the metadata names; None if it names none."""
        return self.metadata.get("speaker")

    @property
    def importance(self) -> float | None:
        """From 1 (mundane) to 10 (poignant), if the memory was given an importance; else None.

        A memory without one counts by its tier: ``retrieval.tier_importance``.
        """
        return given_importance(self.metadata)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The ids of the memories that an insight is drawn from; none for other memories."""
        return evidence_of(self.metadata)

    @property
    def key(self) -> str | None:
        """The key under which the memory is stored; None if it has none.

        The successor of a memory without a key has the id of that memory as its key.
        """
        own = self.metadata.get(KEY)
        return own if isinstance(own, str) else None

    @property
    def value(self) -> Any:
        """The JSON value that was stored with the memory; None if it has none.

        Each call returns a new object.
        """
        own = self.metadata.get(VALUE)
        return json.loads(own) if isinstance(own, str) else None

    @property
    def source(self) -> Source | None:
        """Who told the memory, and where it came from; None for a memory that nobody told."""
        return source_of(self.metadata)

    def is_expired(self, tick: int) -> bool:
        """Whether the lifetime is over in ``tick``. A pinned or archived memory does not expire."""
        return (
            self.expires_tick is not None
            and self.expires_tick <= tick
            and self.tier is not Tier.PINNED
            and self.retention is Retention.ACTIVE
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        return tuple.__eq__(self[:_UNCOMPARED], other[:_UNCOMPARED])

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.tier, self.tier_tick))  # a mapping has no hash

    def __str__(self) -> str:
        from .views import memory_line

        return memory_line(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # in lists that IPython shows

    def _repr_html_(self) -> str:
        from .views import memory_view

        return memory_view(self).html()


def session_of(metadata: Metadata | None) -> str | None:
    """The name of the session that metadata says; None if it says none.

    Every part of the package that asks whether a memory is of a session asks here.

    >>> session_of({"session": 7}), session_of({"session": "7"}), session_of({})
    ('7', '7', None)
    """
    said = None if metadata is None else metadata.get(SESSION)
    if said is None or type(said) is str:
        return said
    return str(int(said)) if isinstance(said, float) and said.is_integer() else str(said)


_UNCOMPARED = Memory._fields.index("access_count")
_DIGITS = 12


def id_prefix(seed: int, agent_id: str) -> str:
    """The first 24 characters of every memory id of this agent, in a bank with this seed.

    An id is a UUID of version 8 (RFC 9562, "custom"): 72 bits of a hash over seed and agent, then
    the sequence number in the last 48 bits. An id therefore tells without a lookup which agent owns
    the memory, and an agent's ids do not depend on what other agents do.
    """
    digest = hashlib.sha256(f"tiermem\0{seed}\0{agent_id}".encode()).hexdigest()
    variant = "89ab"[int(digest[15], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[12:15]}-{variant}{digest[16:19]}-"


def memory_id(prefix: str, sequence: int) -> str:
    """The id of the agent's ``sequence``-th memory."""
    return prefix + sequence_digits(sequence)


def sequence_of(prefix: str, identifier: object) -> int | None:
    """The sequence number in an id with this prefix; None for any other value."""
    if not isinstance(identifier, str) or len(identifier) != len(prefix) + _DIGITS:
        return None
    if not identifier.startswith(prefix):
        return None
    try:
        sequence = int(identifier[len(prefix) :], 16)
    except ValueError:
        return None
    return sequence if sequence > 0 and memory_id(prefix, sequence) == identifier else None


def short_id(identifier: str) -> str:
    """The last digits of an id, which tell an agent's memories apart."""
    return f"{int(identifier[-_DIGITS:], 16):04x}"


def whole_id(prefix: str, given: str) -> str:
    """The id with this prefix of which ``given`` has the last digits; ``given`` if it has none."""
    if len(given) > _DIGITS or not (given.isascii() and given.isalnum()):
        return given
    try:
        return memory_id(prefix, int(given, 16))
    except ValueError:
        return given


sequence_digits = "%012x".__mod__
"""The last 12 characters of a memory's id, from its sequence number."""


class Hit(NamedTuple):
    """A memory that a search returned, with the numbers that decided its place."""

    memory: Memory
    score: float
    """How well the memory matches the query, from 0 to 1; ``explain()`` shows its parts."""
    boost: float
    """What the memory's tier adds to the score."""
    boosted_score: float
    """Score plus boost. Hits are ordered by it; pinned memories come before them."""
    match: float | None = None
    """What ``min_score`` was compared with: the largest of the score, the similarity and the share
    of the query's words. None without a ``min_score``, and for pinned memories, which need none."""
    relevance_probability: float | None = None
    """How likely the memory is part of the answer, if the agent's memories have one. It says the
    same with every embedder. None without a ``min_probability``, which may be 0, unless
    ``temperature.measure`` is probability."""

    def __str__(self) -> str:
        return f"{self.boosted_score:.4f} {self.memory}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        from .views import hits_view

        return hits_view([self]).html()


class Explanation(NamedTuple):
    """How a search scored one memory, and why it returned or dropped the memory."""

    memory: Memory
    score: float
    boost: float
    boosted_score: float
    rank: int | None
    """The memory's place in the result, from 1; None if the search dropped the memory."""
    reason: str
    """Why the search chose or dropped the memory."""
    vector: float = 0.0
    """The similarity of the memory's vector to the query's."""
    keyword: float = 0.0
    """How well the memory's words match the query's."""
    fusion: float = 0.0
    """The score made of ``vector`` and ``keyword`` together."""
    context: float = 0.0
    """What session and speaker add or take, or a classic score: the score less the other parts."""
    recency: float = 0.0
    """How recent the memory is, or how much of it is retained, where ``retrieval.score`` asks."""
    importance: float = 0.0
    """The importance, scaled over the memories of the search; for ``retrieval.score: generative``.
    """
    trust: float = 1.0
    """The trust in the memory's teller, by which ``retrieval.trust`` multiplied score and boost."""
    match: float | None = None
    """What ``min_score`` is compared with, as in :class:`Hit`; None if it was not."""
    relevance_probability: float | None = None
    """As in :class:`Hit`; None for memories that the search does not see, and of a blank query."""
    note: str = ""
    """As in :class:`Hits`, the same for all memories: which words were read as other ones."""
    reading: float = 0.0
    """What reading the memory word by word adds or takes, where ``retrieval.read_closely`` asks."""


class Hits(list[Hit]):
    """A search's result: a list of :class:`Hit`, pinned memories first.

    ``pinned_left_out`` holds the pinned memories that had no room in the token budget, oldest pin
    first. It is empty unless the pinned memories alone exceed the budget. ``note`` is empty, or
    says which words of the query were read as other ones, and what the search could not do: without
    a vector of the query, it compares words alone.
    """

    pinned_left_out: tuple[Memory, ...] = ()
    note: str = ""

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()

    def _view(self) -> "View":
        from .views import hits_view

        return hits_view(self, len(self.pinned_left_out), self.note)


def shown(value: object) -> str:
    """The beginning of a value, or its type, if Python can't print it."""
    try:
        return f"{value!r:.80}"
    except (RecursionError, ValueError):  # nested too deeply, or too long a number
        return type(value).__name__


KINDS = (
    "message",
    "fact",
    "decision",
    "preference",
    "entity",
    "context",
    "observation",
    "action",
    "note",
    "insight",
)


class Traits(NamedTuple):
    """Kind and tags, made by :func:`traits`."""

    kind: str
    tags: tuple[str, ...]
    """In alphabetical order."""
    json: str
    """Kind and tags as JSON text."""


def traits(kind: str, tags: tuple[str, ...]) -> Traits:
    """The traits with this checked kind and these checked tags."""
    return _WITHOUT_TAGS.get((kind, tags)) or _traits(kind, tags)


def _traits(kind: str, tags: tuple[str, ...]) -> Traits:
    return Traits(kind, tags, json.dumps([kind, tags], ensure_ascii=False, separators=(",", ":")))


_NO_TAGS: tuple[str, ...] = ()
_WITHOUT_TAGS = MappingProxyType({(kind, _NO_TAGS): _traits(kind, _NO_TAGS) for kind in KINDS})
PLAIN = traits("fact", ())
"""The traits of a memory without options."""


class Spill(NamedTuple):
    """The memories that left hot."""

    moved: dict[str, Temperature]
    """The new temperature of each memory, by id."""
    notes: tuple[str, ...] = ()
    """Remarks for a person, such as that a memory is larger than all of hot."""


class Recall(NamedTuple):
    """The memories that a recall found, best first; each says how hot it is."""

    items: tuple[Memory, ...]
    """The memories as they are after promotion."""
    scores: tuple[float, ...]
    """How well each memory matches the query, from 0 to 1."""
    promoted: tuple[str, ...]
    """The ids of the found memories that this recall made hot."""
    notes: tuple[str, ...] = ()
    matches: tuple[float | None, ...] = ()
    """For each memory, what ``min_relevance`` was compared with: the largest of the score, the
    similarity and the share of the query's words. None without ``min_relevance``."""
    likenesses: tuple[float, ...] = ()
    """How alike the query and each memory are, from 0 to 1, whatever other memories there are: what
    ``temperature.promote_threshold`` is compared with."""
    probabilities: tuple[float | None, ...] = ()
    """The ``relevance_probability`` of each memory, as in :class:`Hit`; None where nobody asked."""


class RuledMove(NamedTuple):
    """A move of a memory by a rule."""

    memory: Memory
    """The memory as it was before the move."""
    to: Temperature
    rule: str
    """The name of the rule."""


class Compaction(NamedTuple):
    """The number of memories that a compaction moved, or would move, to each temperature."""

    hot: int
    warm: int
    cold: int
    pruned: int
    """How many cold memories were archived because there were too many."""
    moves: tuple[RuledMove, ...]
    """The moves of a dry run; empty otherwise."""


class TimePassed(NamedTuple):
    """What happened to a bank's memories as its clock moved."""

    before: int
    """The tick before."""
    tick: int
    """The tick now."""
    expired: int
    """How many memories were deleted because their lifetime is over."""
    purged: int
    """How many deleted memories are gone for good, because their grace is over."""
    promoted: int
    """How many memories became hot by ``temperature.rules``."""
    cooled: int
    """How many memories became warm or cold, by decay or by ``temperature.rules``."""
    archived: int
    """How many cold memories were archived because there were too many."""


class Reembedding(NamedTuple):
    """What another embedder does to a bank."""

    before: str
    """The name of the embedder that the bank had."""
    after: str
    texts: int
    """How many texts the bank has, those of its history too; 0 if both embedders are the same."""
    agreement: float | None
    """The share of each text's nearest texts, up to ten, that stay its nearest.

    None for too few texts.
    """
    compared: int
    """How many texts were compared for it."""
