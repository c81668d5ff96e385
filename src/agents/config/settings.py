"""Every setting and its type; ``load_settings`` makes the values as these types say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from ..errors import InvalidInput
from ..rules.weights import Generative, Spread

Duration: TypeAlias = int | str
"""Ticks, or text such as ``7d`` or ``12h``; :meth:`ClockSettings.ticks` translates it."""

WITH_PROVIDER = ("embedder", "store", "llm")
"""The sections that name a provider and hold its options."""
_DURATION = re.compile("[0-9]{1,9}[dh]?")
_PASSWORD = re.compile(r"://[^:/@\s]*:([^\s]+)@|(?:^|[\s?&])password=('[^']+'|[^\s&']+)", re.I)
_USER_PART = r"(?<=://)[^\s]+@|(?:^|(?<=[\s?&]))password=('[^']*'|[^\s&']*)"
"""A password in ``postgresql://user:password@host``, or in ``host=… password=…``."""
_PLAIN = {str, int, float, bool, type(None)}
_SECRET_ENDINGS = ("key", "token", "password", "secret", "credentials")


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """The bank's time, and what durations mean."""

    mode: Literal["ticks", "wall"]
    ticks_per_day: int

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


class TierBoosts(NamedTuple):
    """What is added to a memory's similarity, by tier, from 0 (pinned) to 4 (low)."""

    pinned: float
    critical: float
    important: float
    normal: float
    low: float


class TierImportance(NamedTuple):
    """The importance of a memory that was given none, by tier; from 1 to 10."""

    pinned: float
    critical: float
    important: float
    normal: float
    low: float


TIERS = TierBoosts._fields
"""The names of the tiers, from 0 to 4."""


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What an agent keeps in front of itself, and how its memories are ranked."""

    max_pinned: int
    max_critical: int
    on_tier_full: Literal["demote", "reject"]
    tier_boosts: TierBoosts
    candidate_multiplier: int
    default_limit: int
    context_tokens: int | None
    max_content_bytes: int
    merge_duplicates: bool


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """How memories are found."""

    mode: Literal["hybrid", "vector", "keyword"]
    score: Literal["tiers", "generative", "forgetting", "recency"]
    pins_first: bool
    vector_weight: float
    text_weight: float
    sif: float
    bm25_k1: float
    bm25_b: float
    stemmer: str
    trust: bool
    spread: Spread
    generative: Generative
    tier_importance: TierImportance


@dataclass(frozen=True, slots=True)
class TemperatureSettings:
    """How active memories are, and what moves them between hot, warm and cold."""

    initial: Literal["hot", "warm", "cold"]
    ttl_cold_below: Duration | None
    ttl_warm_below: Duration | None
    hot_max_tokens: int
    hot_max_facts: int | None
    auto_spill: bool
    warm_access_threshold: int
    auto_promote: bool
    promote_threshold: float
    promote_accesses: int
    promote_window: Duration
    min_score: float
    max_cold_items: int
    auto_prune: bool
    compact_every: Duration | None
    compact_on_close: bool
    inactive_preference: Duration
    rules: tuple[Mapping[str, Any], ...] = field(hash=False)
    """In order: mappings with ``name``, ``when``, ``to`` and maybe ``unless``; lists are tuples."""


@dataclass(frozen=True, slots=True)
class DecaySettings:
    """How memories that nobody uses fade."""

    enabled: bool
    half_life: Mapping[str, Duration] = field(hash=False)
    """By the name of the tier; pinned memories never fade, so pinned is not in it."""
    hot_below: float
    warm_below: float
    every: Duration


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """What becomes of deleted memories."""

    grace: Duration


@dataclass(frozen=True, slots=True)
class StatusSettings:
    """When the status of a bank suggests something."""

    spill_above: float


@dataclass(frozen=True, slots=True)
class NotesSettings:
    """The agents' Markdown notes, and the search with citations."""

    chunk_tokens: int
    chunk_overlap: int
    daily: Literal["auto", "date", "tick"]
    extra_paths: tuple[str, ...]
    citations: Literal["on", "off", "auto"]
    max_results: int
    min_score: float
    sync_on_open: bool
    sync_on_search: bool
    watch: bool
    watch_debounce: float
    transcripts: bool
    read_only: bool


@dataclass(frozen=True, slots=True)
class FlushSettings:
    """When agents of a simulation save what should last, before their context is compacted."""

    enabled: bool
    context_window: int
    reserve_tokens: int
    soft_threshold: int
    summary_tokens: int


@dataclass(frozen=True, slots=True)
class ReflectionSettings:
    """When agents of a simulation reflect, and on what."""

    enabled: bool
    threshold: float
    memories: int
    questions: int
    insights: int
    ratings: Literal["tier", "policy"]


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """What turns text into vectors."""

    provider: str
    config: Mapping[str, object] = field(hash=False, repr=False)  # may hold an API key
    cache_size: int


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where mem0 keeps its copy of the memories."""

    provider: str
    config: Mapping[str, object] = field(hash=False, repr=False)  # may hold an API key
    timeout: float


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """How memories reach mem0's store."""

    sync: Literal["commit", "checkpoint", "close", "manual"]


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The language model that extracts memories from a conversation, if there is one."""

    provider: str | None
    config: Mapping[str, object] = field(hash=False, repr=False)  # may hold an API key


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """A scenario: a world, its agents, and how they decide."""

    world: str | None
    world_options: Mapping[str, Any] = field(hash=False)
    agents: int | tuple[str, ...]
    ticks: int
    policy: str
    policy_options: Mapping[str, Any] = field(hash=False)
    asks: int
    engine: str
    workers: int | None
    memories: tuple[Mapping[str, Any], ...] = field(hash=False)

    def agent_ids(self) -> list[str]:
        """The agents' names."""
        if isinstance(self.agents, int):
            digits = max(2, len(str(self.agents - 1)))
            return [f"agent_{number:0{digits}}" for number in range(self.agents)]
        return list(self.agents)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """How often a run writes a checkpoint, and how many it keeps."""

    every: int
    keep: int


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Whether metrics go out through the OpenTelemetry API."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, checked. Made by ``load_settings``; never changes afterwards."""

    seed: int
    clock: ClockSettings
    memory: MemorySettings
    retrieval: RetrievalSettings
    temperature: TemperatureSettings
    decay: DecaySettings
    retention: RetentionSettings
    status: StatusSettings
    notes: NotesSettings
    flush: FlushSettings
    reflection: ReflectionSettings
    embedder: EmbedderSettings
    store: StoreSettings
    storage: StorageSettings
    llm: LlmSettings
    simulation: SimulationSettings
    checkpoint: CheckpointSettings
    telemetry: TelemetrySettings

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
