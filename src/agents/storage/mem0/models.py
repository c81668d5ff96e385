"""mem0's embedders, its LLM extraction and its LLMs."""

import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ...config.settings import EmbedderSettings, LlmSettings
from ...errors import (
    BankBroken,
    BankClosed,
    ChatFailed,
    ConfigError,
    EmbedderError,
    ExtractionError,
    InvalidInput,
    SimulationError,
)
from .package import import_mem0, without_secrets

Message = Mapping[str, str]
Encode = Callable[[Sequence[str]], list[list[float]]]
Nearest = Callable[[str, str, int], list[tuple[str, dict[str, Any]]]]
"""Called with an agent, a query and a number; gives ids and payloads."""

_TELLING_QUERIES = frozenset({"vertexai"})
"""The embedders of mem0 that use what a vector is for; all others embed a query like a text."""


class Mem0Embedder:
    """Any embedder that mem0 has, by its name and config."""

    def __init__(self, settings: EmbedderSettings, dims: int | None) -> None:
        self._settings = settings
        self._dims = dims
        self._model: Any = None

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"mem0/{self._settings.provider}/{self._settings.config.get('model', 'default')}"

    @property
    def dims(self) -> int:
        """The length of its vectors; it embeds a word to find out, if the bank doesn't know."""
        if self._dims is None:
            self._dims = len(self.embed(["dimensions"])[0])
        return self._dims

    @property
    def embed_queries(self) -> Callable[[Sequence[str]], list[list[float]]] | None:
        """For queries, where mem0's embedder tells them from texts; else None."""
        if self._settings.provider not in _TELLING_QUERIES:
            return None
        return lambda texts: self._embed(texts, "search")

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """One vector per text, in one call where the provider can."""
        return self._embed(texts, "add")

    def _embed(self, texts: Sequence[str], action: str) -> list[list[float]]:
        try:
            if self._model is None:
                factory = import_mem0("mem0.utils.factory").EmbedderFactory
                config = dict(self._settings.config)
                self._model = factory.create(self._settings.provider, config, None)
            vectors: list[list[float]] = self._model.embed_batch(list(texts), action)
        except MemoryError:
            raise
        except Exception as error:  # each provider has errors of its own
            raise EmbedderError(
                f"mem0's embedder {self._settings.provider} failed: {error}"
            ) from error
        return vectors


def as_messages(messages: object) -> list[dict[str, str]]:
    """Chat messages from a text, a message or a list of messages: mem0 takes each of these."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    listed = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(listed, Sequence):
        raise InvalidInput(f"messages are a text or a list of messages, not {messages!r:.80}")
    result = []
    for message in listed:
        if not (
            isinstance(message, Mapping)
            and isinstance(message.get("role"), str)
            and isinstance(message.get("content"), str)
        ):
            raise InvalidInput(
                f"a message has a role and a content, both text; got {message!r:.80}"
            )
        result.append({key: value for key, value in message.items() if isinstance(value, str)})
    return result


class Extractor:
    """mem0's own extraction of facts from messages, with the bank in the place of its store.

    mem0 sees the agent's nearest memories through ``nearest`` and embeds through ``encode``. The
    facts are returned and not inserted, so that the bank can store them like any other memory.
    Threads may share it: ``encode`` and ``nearest`` are called in the thread that extracts.
    """

    def __init__(self, settings: LlmSettings, encode: Encode, nearest: Nearest) -> None:
        if not settings.is_set:
            raise ExtractionError(
                "add_messages(infer=True) needs an LLM and none is configured",
                hint="set llm.base_url and llm.model, or llm.provider and llm.config (for example "
                "anthropic with model), or pass infer=False to store the messages as they are",
            )
        if settings.provider == "local":
            raise ExtractionError(
                "add_messages(infer=True) asks a server or a provider of mem0, and llm.provider is "
                "local",
                hint="set llm.base_url to a server, or pass infer=False",
            )
        self._memory = _memory(settings, _Model(encode), _Catcher(nearest))

    def extract(
        self,
        agent_id: str,
        messages: Sequence[Message],
        *,
        prompt: str | None = None,
        procedural: bool = False,
    ) -> list[str]:
        """The facts that the LLM finds in ``messages`` and the agent does not know yet.

        ``prompt`` has instructions of the caller's own. With ``procedural``, the only text is a
        summary of what was done. :class:`ExtractionError` if the LLM fails, or if its answer can't
        be read.
        """
        kind = {"agent_id": agent_id, "memory_type": "procedural_memory"} if procedural else {}
        try:
            found = self._memory.add(list(messages), user_id=agent_id, prompt=prompt, **kind)
        except (BankClosed, BankBroken):  # by another thread, while the LLM was asked
            raise
        except Exception as error:  # each provider has errors of its own
            if isinstance(error.__cause__, ExtractionError):  # of _FactsLlm, wrapped by mem0
                raise error.__cause__ from None
            raise ExtractionError(f"mem0's extraction failed: {error}") from error
        texts: list[str] = [entry["memory"] for entry in found["results"]]
        return [text for text in texts if text.strip()]  # mem0 itself skips an empty one


class _Model:
    """The bank's embedder, in the shape of mem0's."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._encode([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        try:
            return self._encode(texts)
        except Exception:  # noqa: BLE001 - the bank embeds the facts it stores, and says what failed
            return [[] for _ in texts]  # mem0 would drop the facts, and has no use for vectors here


class _FactsLlm:
    """mem0's LLM; an error for facts that can't be read, which mem0 would take for no facts."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def generate_response(self, messages: Any, **options: Any) -> Any:
        reply = self._llm.generate_response(messages=messages, **options)
        if "response_format" in options and not _has_facts(reply):  # mem0 asks for facts in JSON
            raise ExtractionError(
                f"the LLM's answer can't be read as facts: {reply!r:.80}",
                hint="ask again, or set llm.config to a model that answers in JSON",
            )
        return reply


def _has_facts(reply: object) -> bool:
    """Whether mem0 would read all that an answer says; no facts are an answer too."""
    utils = import_mem0("mem0.memory.utils")
    text = utils.remove_code_blocks(reply)
    try:
        try:
            answer = json.loads(text, strict=False)
        except json.JSONDecodeError:
            answer = json.loads(utils.extract_json(text), strict=False)
    except (ValueError, RecursionError):
        return False
    if not isinstance(answer, dict) or (answer and "memory" not in answer):
        return False
    found = answer.get("memory")
    return found is None or (isinstance(found, list) and all(map(_is_fact, found)))


def _is_fact(entry: object) -> bool:
    """Whether an entry has a text; mem0 skips an entry whose text is empty or null."""
    return (
        isinstance(entry, dict)
        and "text" in entry
        and (entry["text"] is None or isinstance(entry["text"], str))
    )


class _Catcher:
    """A vector store that searches the bank and keeps nothing."""

    def __init__(self, nearest: Nearest) -> None:
        self._nearest = nearest

    def search(self, query: str, vectors: object, top_k: int, filters: Mapping[str, str]) -> Any:
        rows = self._nearest(filters["user_id"], query, top_k)
        return [SimpleNamespace(id=i, score=0.0, payload=entry) for i, entry in rows]

    def insert(self, vectors: object, payloads: object = None, ids: object = None) -> None:
        pass


class _NoEntities:
    """An empty store of entities: mem0 links entities, and extraction here needs none."""

    def list(self, filters: object = None, top_k: object = None) -> Sequence[Any]:
        return []

    def search_batch(self, queries: Sequence[str], **_: object) -> Sequence[Sequence[Any]]:
        return [[] for _ in queries]

    def insert(self, vectors: object, payloads: object = None, ids: object = None) -> None:
        pass


def _make_llm(settings: LlmSettings) -> Any:
    """mem0's LLM; an error if mem0 would ask another service than the settings name."""
    provider, config = _of_mem0(settings)
    named = any("openrouter" in key for key in config)
    if provider == "openai" and os.environ.get("OPENROUTER_API_KEY") and not named:
        raise ConfigError(
            "OPENROUTER_API_KEY is set, and mem0 would send everything to openrouter.ai instead",
            hint="unset it, or name openrouter_base_url in llm.config",
        )
    factory = import_mem0("mem0.utils.factory").LlmFactory
    return factory.create(provider, config)


def _of_mem0(settings: LlmSettings) -> tuple[str | None, dict[str, object]]:
    """Provider and options as mem0 has them. A server of OpenAI's protocol is its ``openai``."""
    named = {} if settings.model is None else {"model": settings.model}
    if settings.base_url is None:
        return settings.provider, {**named, **settings.config}
    key = os.environ.get(settings.api_key_env or "") or "none"
    server = {"openai_base_url": settings.base_url, "api_key": key}
    return "openai", {**server, **named, **settings.config}


def _memory(settings: LlmSettings, model: _Model, store: _Catcher) -> Any:
    """A ``mem0.Memory`` with these parts; its constructor would open a store and a history."""
    main = import_mem0("mem0.memory.main")
    provider, config = _of_mem0(settings)
    llm = {"provider": provider, "config": config}
    try:
        without_entities = type("Memory", (main.Memory,), {"entity_store": _NoEntities()})
        memory: Any = object.__new__(without_entities)
        memory.config = import_mem0("mem0.configs.base").MemoryConfig(llm=llm)
        memory.llm = _FactsLlm(_make_llm(settings))
    except Exception as error:  # each provider has errors of its own
        raise ExtractionError(f"mem0's LLM {provider} can't be set up: {error}") from error
    memory.db = import_mem0("mem0.memory.storage").SQLiteManager(":memory:")
    memory.embedding_model = model
    memory.vector_store = store
    memory.collection_name = "tiermem"
    memory.api_version = memory.config.version
    memory.custom_instructions = None
    memory.reranker = None
    return memory


class ChatModel:
    """Any LLM that mem0 has, asked for JSON. Threads may share it; no error shows a secret.

    A provider's client that takes a ``timeout`` gets that of the settings. It bounds each wait
    for data and not the whole call: a caller that must go on needs its own deadline.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings
        self._model: Any = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str | None:
        """The name of the model, if the settings have one."""
        name = self._settings.config.get("model") or self._settings.model
        return None if name is None else str(name)

    def prepare(self) -> None:
        """Make the client, unless it is there; :class:`SimulationError` if that fails."""
        provider = self._settings.provider
        if provider is None:
            raise SimulationError(
                "the agents' policy asks an LLM and none is configured",
                hint="set llm.base_url and llm.model, or llm.provider (local, or one of mem0's)",
            )
        settings = self._settings
        sampled = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
        }
        known = {name: value for name, value in sampled.items() if value is not None}
        with self._lock:
            if self._model is not None:
                return
            try:
                model = _make_llm(replace(settings, config={**known, **settings.config}))
            except Exception as error:  # noqa: BLE001 - each provider has errors of its own
                why = self._without_secrets(error)
                raise SimulationError(
                    f"mem0's LLM {provider} can't be set up: {why}",
                    hint="check the section llm of the settings",
                ) from None
            client = getattr(model, "client", None)
            # A client that retries would go on asking after a deadline, and each try costs money.
            for name, value in (("max_retries", 0), ("timeout", self._settings.timeout)):
                if hasattr(client, name):
                    setattr(client, name, value)
            self._model = model

    def reply(self, messages: list[dict[str, str]]) -> str:
        """The text of the answer to one call; :class:`ChatFailed` if there is none."""
        self.prepare()
        try:
            # mem0 itself asks for JSON in this way; some providers ignore it.
            text = self._model.generate_response(messages, response_format={"type": "json_object"})
        except Exception as error:  # noqa: BLE001 - each provider has errors of its own
            raise ChatFailed(
                type(error).__name__,
                self._without_secrets(error),
                retry_after=_retry_after(error),
                is_final=_is_final(error),
            ) from None
        if text is None:  # the model answered, and said nothing
            return ""
        if not isinstance(text, str):
            raise ChatFailed("NoText", f"the answer is not text but {type(text).__name__}")
        return text

    def _without_secrets(self, error: Exception) -> str:
        text = without_secrets(str(error) or type(error).__name__, self._settings.config)
        return "".join(each if each.isprintable() else " " for each in text)[:1000]


_LATER = (408, 409, 425, 429)
"""The refusals that may be answers later."""


def _is_final(error: Exception) -> bool:
    """Whether a provider's error says that the question itself is refused, now and later."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in _LATER


def _retry_after(error: Exception) -> float | None:
    """The seconds that the server asks to wait, by the header of its refusal."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", ""))
    except (TypeError, ValueError):  # no header, or a date
        return None
    return seconds if 0 <= seconds < math.inf else None
