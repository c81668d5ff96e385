"""``mem0.Memory`` and ``mem0.AsyncMemory`` over a bank: the same calls, results and errors."""

import functools
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from ..adapting import remove, text_of
from ..bank.agent_memory import AgentMemory
from ..bank.async_bank import AsyncMemoryBank
from ..bank.memory_bank import MemoryBank
from ..engine.upkeep import forget_unused_names
from ..engine.write import add_many, extract
from ..errors import ConfigError, ExtractionError, InvalidInput
from ..memory.records import Memory as Record
from ..memory.tiers import Retention, Tier
from ..storage.mem0.package import extraction_failed, invalid_request
from ..storage.state.ledger import AddedMemories
from ..telling.groups import board_of
from .filters import read_filters
from .finding import Finder
from .payloads import checked_date, id_of, item, kept, live, payload, rows_of, without_ids
from .scopes import Scopes, checked_id, checked_ids, owner_of, required

logger = logging.getLogger(__name__)

_UNSET: Final[Any] = object()


class Memory:
    """The memories of users, agents and runs, with the calls of ``mem0.Memory``, in a bank.

    ``bank`` is an open bank, a folder, or None for a bank in memory. ``now`` gives the time, for
    ``created_at``, ``updated_at`` and what is expired. ``instructions`` is what mem0's config calls
    ``custom_instructions``. ``infer`` is what :meth:`add` does unless it is told: a bank without an
    LLM needs ``infer=False``. A tier is metadata: ``metadata={"tier": "critical"}``.
    """

    def __init__(
        self,
        bank: MemoryBank | str | PathLike[str] | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        instructions: str | None = None,
        infer: bool = True,
        closes: bool = False,
    ) -> None:
        """``closes`` says that :meth:`close` closes a bank that was given open, too."""
        self.closes = closes or not isinstance(bank, MemoryBank)
        """Whether :meth:`close` closes the bank."""
        if bank is None:
            bank = MemoryBank.ephemeral()
        elif isinstance(bank, str | PathLike):
            bank = MemoryBank.open(bank)
        elif not isinstance(bank, MemoryBank):
            raise InvalidInput(
                f"Memory() takes a bank or a folder, not {type(bank).__name__}",
                hint="use Memory.from_config() for a config of mem0's",
            )
        self.bank = bank
        """The bank that keeps the memories."""
        self._now = now
        self._instructions, self._infer = instructions, infer
        self._scopes = Scopes(bank)
        self._finder = Finder(bank, self._scopes)

    @classmethod
    def from_config(
        cls,
        config_dict: Mapping[str, Any],
        folder: str | PathLike[str] | None = None,
        *,
        infer: bool = True,
        **settings: Any,
    ) -> Self:
        """Open the bank in ``folder`` with the embedder and the LLM that a config of mem0's names.

        Without ``folder``, the bank is beside the config's local store: for ``path: db`` it is in
        ``db.tiermem``. ``infer`` is that of :class:`Memory`, ``settings`` are those of
        :meth:`MemoryBank.open`. A config without an embedder gets the offline one.
        """
        bank = bank_of(config_dict, folder, settings)
        instructions = config_dict.get("custom_instructions")
        return cls(bank, instructions=instructions, infer=infer, closes=True)

    # Storing

    def add(
        self,
        messages: Any,
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool | None = None,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Store messages, or with ``infer`` the facts that the bank's LLM finds in them.

        All of a call is stored, or nothing. ``expiration_date`` is the last day on which searches
        see the memories.
        """
        if timestamp is not None:
            raise InvalidInput(
                "timestamp is not supported", hint="metadata={'created_at': …} sets the time"
            )
        date = checked_date(expiration_date)
        ids = required(checked_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id}))
        entries = without_ids(metadata, {})
        if date is not None:
            entries["expiration_date"] = date
        check_memory_type(memory_type)
        chat = chat_of(messages)
        if memory_type == PROCEDURAL and "agent_id" in ids:
            entries["memory_type"] = PROCEDURAL
            texts = self._extracted(ids, chat, prompt, procedural=True)
        elif self._infer if infer is None else infer:
            texts = self._extracted(ids, chat, prompt or self._instructions, procedural=False)
        else:
            return {"results": self._add(ids, entries, said(chat), "message")}
        return {"results": self._add(ids, entries, [(text, {}) for text in texts], "fact")}

    def _add(
        self,
        ids: dict[str, str],
        entries: dict[str, Any],
        texts: list[tuple[Any, dict[str, Any]]],
        kind: str,
    ) -> list[dict[str, Any]]:
        """Store texts, each with what its message says beside it; results as mem0 gives them."""
        if not texts:
            return []
        owner, bank = owner_of(ids), self.bank.engine
        agent_id = self._scopes.agent_id(owner)
        rest = {name: value for name, value in ids.items() if name != owner.name}
        rows = []
        for text, said_so in texts:
            times = {} if "created_at" in entries else {"created_at": self._now().isoformat()}
            metadata, value, tier = kept({**entries, **times, **said_so, **rest})
            options = {"kind": kind, "value": value or None}
            rows.append((agent_id, text, tier, metadata, options))
        if text_of(agent_id) is not None:
            stored = add_many(bank, rows)
        else:
            with bank.changing():  # the bank keeps the owner's long name as well
                self._scopes.keep(owner)
                stored = add_many(bank, rows)
        made: Iterable[tuple[str, str]]
        if isinstance(stored, AddedMemories):  # no records are made for the ids alone
            made = stored.ids_and_texts()
        else:
            made = [(id_of(memory), memory.content) for memory in stored]
        return [
            {"id": memory_id, "memory": text, "event": "ADD"}
            | ({"actor_id": more.get("actor_id"), "role": more["role"]} if more else {})
            for (memory_id, text), (_, more) in zip(made, texts, strict=True)
        ]

    def _extracted(
        self, ids: dict[str, str], chat: list[dict[str, Any]], prompt: str | None, procedural: bool
    ) -> list[str]:
        agent = self._scopes.agent_id(owner_of(ids))
        try:
            return extract(self.bank.engine, agent, chat, prompt=prompt, procedural=procedural)
        except ExtractionError as error:
            raise extraction_failed(error) from error

    # Reading

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """The memory with this id; None if there is none."""
        with self.bank.engine.using():
            memory = self._live(memory_id)
            owner = self._scopes.owner
            return None if memory is None else item(memory, owner(memory.agent_id), score=None)

    def get_all(
        self,
        /,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that pass the filters, oldest first, ``top_k`` at most.

        As with mem0 1, ids may stand beside the filters, and ``limit`` means ``top_k``.
        """
        filters, top_k = _older(filters, top_k, kwargs)
        _check_numbers(None, top_k)
        ids, wanted = read_filters(filters)
        with self.bank.engine.using():
            memories = self._finder.all(ids, wanted, None if show_expired else self._today())
            owner = self._scopes.owner
            return {"results": [item(own, owner(own.agent_id)) for own in memories[:top_k]]}

    def search(
        self,
        /,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The memories that match the query, ``top_k`` at most: pinned ones first, then the best.

        ``threshold`` is the least score; pinned memories need none. A blank query asks for the
        newest memories by tier, and has no threshold. ``rerank`` has no effect: the bank ranks by
        meaning, by words and by tier already. As with mem0 1, ids may stand beside the filters, and
        ``limit`` means ``top_k``.
        """
        if reference_date is not None:
            raise InvalidInput("reference_date is not supported", hint="leave it out")
        filters, top_k = _older(filters, top_k, kwargs)
        _check_numbers(threshold, top_k)
        if not isinstance(query, str):
            raise InvalidInput("Invalid query: must be a string.")
        ids, wanted = read_filters(filters)
        least = 0.1 if threshold is None else float(threshold)
        if not query.strip():
            least = 0.0
        today = None if show_expired else self._today()
        with self.bank.engine.using():
            about, owner = (query.strip(), top_k, ids, wanted, least, today), self._scopes.owner
            if explain:
                hits = self._finder.best(*about)
                results = [
                    item(hit.memory, owner(hit.memory.agent_id), score=hit.score) for hit in hits
                ]
                details = self._finder.details(query.strip(), hits, least)
                for result, parts in zip(results, details, strict=True):
                    result["score_details"] = parts
            else:
                results = [
                    item(memory, owner(memory.agent_id), score=score)
                    for memory, score in self._finder.scored(*about)
                ]
        return {"results": results}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What happened to a memory: ADD, each UPDATE, DELETE. Purged texts are not in it."""
        with self.bank.engine.using():
            agent = self._scopes.agent_of(memory_id)
            return [] if agent is None else rows_of(self.bank.engine, agent, memory_id)

    # Changing

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory's text, or entries of its metadata; it keeps its id and its history.

        ``expiration_date=None`` clears the date. ``data`` is an older name of ``text``.
        """
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidInput(
                "At least one of text, metadata, or expiration_date must be provided."
            )
        with self.bank.transaction():
            memory = self._live(memory_id)
            if memory is None:
                raise InvalidInput(
                    f"Memory with id {memory_id} not found. Please provide a valid 'memory_id'"
                )
            now = payload(memory, self._scopes.owner(memory.agent_id))
            changes = without_ids(metadata, now)
            if expiration_date is not _UNSET:
                changes["expiration_date"] = checked_date(expiration_date)
            owner = self._scopes.owner(memory.agent_id).name
            times = {"created_at": now["created_at"], "updated_at": self._now().isoformat()}
            entries = {name: value for name, value in now.items() if name != owner}
            new = kept({**entries, **changes, **times})
            tier = Tier.NORMAL if new.tier is None else new.tier
            self._agent(memory).update(
                memory.id,
                memory.content if text is None else text,
                tier if "tier" in changes else None,
                new.metadata,
                value=new.value if new.value or isinstance(memory.value, dict) else None,
            )
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory, pinned or not. The bank restores it until its grace has passed."""
        with self.bank.transaction():
            memory = self._live(memory_id)
            if memory is None:
                raise InvalidInput(f"Memory with id {memory_id} not found")
            if memory.kind == "note":
                raise InvalidInput(
                    f"memory {memory_id} can't be deleted: it is a part of a note",
                    hint="edit the note",
                )
            remove(self._agent(memory), memory)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: Any = None, agent_id: Any = None, run_id: Any = None
    ) -> dict[str, str]:
        """Delete the memories that have all of the given ids; notes stay."""
        ids = checked_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not ids:
            raise InvalidInput(
                "At least one filter is required to delete all memories. If you want to delete all "
                "memories, use the `reset()` method."
            )
        with self.bank.transaction():
            for memory in self._finder.all(ids, read_filters(ids)[1], None):
                if memory.kind != "note":
                    remove(self._agent(memory), memory)
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Purge the memories of all agents and boards, with their history; notes stay."""
        logger.warning("resetting all memories")
        with self.bank.transaction():
            boards = map(board_of, self.bank.groups())
            for owner in [*self._scopes.agents(), *boards]:
                agent = AgentMemory(self.bank.engine, owner)
                everything = [each for kept in Retention for each in agent.all(retention=kept)]
                for memory in everything:
                    if memory.kind != "note":
                        if memory.tier is Tier.PINNED:
                            agent.unpin(memory.id)
                        agent.forget(memory.id)
            forget_unused_names(self.bank.engine)

    # Closing

    def close(self) -> None:
        """Close the bank, unless it was given open."""
        if self.closes:
            self.bank.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def chat(self, query: str) -> None:
        """mem0 has no chat either."""
        raise NotImplementedError("Chat function not implemented yet.")

    # Parts

    def _today(self) -> str:
        return self._now().astimezone(UTC).date().isoformat()

    def _agent(self, memory: Record) -> AgentMemory:
        return self.bank.agent(memory.agent_id)

    def _live(self, memory_id: object) -> Record | None:
        """The active memory that an id of mem0's stands for."""
        agent = self._scopes.agent_of(memory_id)
        return None if agent is None else live(self.bank.engine, agent, str(memory_id))


def _older(
    filters: Mapping[str, Any] | None, top_k: int, given: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, int]:
    """The filters and ``top_k`` of a call; mem0 1 has ids beside the filters, and ``limit``."""
    ids = checked_ids(given)
    for name in ids.keys() & (filters or {}).keys():
        if checked_id((filters or {})[name], name) != ids[name]:
            raise InvalidInput(f"{name} is given twice, and differs", hint="leave one of both out")
    return ({**(filters or {}), **ids} if ids else filters), given.get("limit", top_k)


def _check_numbers(threshold: Any, top_k: Any) -> None:
    if threshold is not None:
        if not isinstance(threshold, int | float):
            raise InvalidInput("threshold must be a valid number")
        if not 0 <= threshold <= 1:
            raise InvalidInput(
                f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive)."
            )
    if not isinstance(top_k, int) or isinstance(top_k, bool):
        raise InvalidInput("top_k must be a valid integer")
    if top_k < 0:
        raise InvalidInput(f"Invalid top_k: {top_k}. Must be a non-negative integer.")


# The methods as coroutines


P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Memory, P], T],
) -> "Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]":
    """The method as a coroutine, with the same arguments, result and documentation."""

    @functools.wraps(method)
    async def awaited(self: "AsyncMemory", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.bank.run(lambda _: method(self.memory, *args, **kwargs))

    # Programs look behind a wrapper whether it is async, and would find the method that is not.
    vars(awaited).update(__signature__=inspect.signature(method))
    del vars(awaited)["__wrapped__"]
    return awaited


class AsyncMemory:
    """:class:`Memory` for asyncio: calls happen one after the other, in the bank's own thread."""

    def __init__(
        self,
        bank: MemoryBank | str | PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        """The arguments are those of :class:`Memory`."""
        self.memory = Memory(bank, **options)
        """The same memories, for callers that do not wait."""
        self.bank = AsyncMemoryBank(self.memory.bank)
        """The bank that keeps the memories."""

    @classmethod
    def from_config(
        cls,
        config_dict: Mapping[str, Any],
        folder: str | PathLike[str] | None = None,
        *,
        infer: bool = True,
        **settings: Any,
    ) -> Self:
        """:meth:`Memory.from_config`."""
        made = Memory.from_config(config_dict, folder, **settings)
        instructions = config_dict.get("custom_instructions")
        return cls(made.bank, instructions=instructions, infer=infer, closes=True)

    add = _awaited(Memory.add)
    get = _awaited(Memory.get)
    get_all = _awaited(Memory.get_all)
    search = _awaited(Memory.search)
    history = _awaited(Memory.history)
    update = _awaited(Memory.update)
    delete = _awaited(Memory.delete)
    delete_all = _awaited(Memory.delete_all)
    reset = _awaited(Memory.reset)
    chat = _awaited(Memory.chat)

    def close(self) -> None:
        """Close the bank, unless it was given open."""
        self.memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.memory.closes:
            await self.bank.__aexit__(*error)  # it closes the bank even if this is cancelled


# Chat messages, as mem0 takes them


logger = logging.getLogger(__name__)

PROCEDURAL: Final = "procedural_memory"


def check_memory_type(memory_type: object) -> None:
    """Raise mem0's error for a type of memory that there is not."""
    if memory_type not in (None, PROCEDURAL):
        raise invalid_request(
            f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
            "VALIDATION_002",
            {"provided_type": memory_type, "valid_type": PROCEDURAL},
            f"Use '{PROCEDURAL}' to create procedural memories.",
        )


def chat_of(messages: Any) -> list[dict[str, Any]]:
    """A list of messages with role and content, from a text, a message or a list of messages.

    A message without either is left out, and of a content in parts only the texts count.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    _check_list(messages)
    chat = []
    for message in messages:
        text = _text(message.get("content"))
        if text is None or message.get("role") is None:
            logger.warning("a message without role or text is left out")
        else:
            in_parts = not isinstance(message["content"], str)
            name = {} if in_parts else {"name": message.get("name")}
            chat.append({"role": message["role"], "content": text, **name})
    return chat


def _check_list(messages: Any) -> None:
    """Raise mem0's error for what is not a list of messages, before anything of it is stored."""
    wrong = type(messages).__name__
    if isinstance(messages, list):
        odd = [each for each in messages if not isinstance(each, Mapping)]
        wrong = f"list[{type(odd[0]).__name__}]" if odd else ""
    if wrong:
        raise invalid_request(
            "messages must be str, dict, or list[dict]",
            "VALIDATION_003",
            {"provided_type": wrong, "valid_types": ["str", "dict", "list[dict]"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
        )


def said(chat: list[dict[str, Any]]) -> list[tuple[Any, dict[str, Any]]]:
    """The texts of a chat, each with its role and its speaker; system messages are left out."""
    return [
        (
            message["content"],
            {"role": message["role"]}
            | ({"actor_id": message["name"]} if message.get("name") else {}),
        )
        for message in chat
        if message["role"] != "system"
    ]


def _text(content: Any) -> Any:
    """The text of a message; None if it has none. Pictures are left out."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
        return " ".join(texts) if texts else None
    if isinstance(content, Mapping) and content.get("type") == "image_url":
        return None
    return content


# mem0's config as the settings of a bank


_KNOWN = (
    "vector_store", "embedder", "llm", "history_db_path", "version", "custom_instructions",
    "reranker",
)  # fmt: skip


def bank_of(
    config: Mapping[str, Any], folder: str | PathLike[str] | None, settings: dict[str, Any]
) -> MemoryBank:
    """Open the bank that stands for a config of mem0's."""
    if not isinstance(config, Mapping):
        raise ConfigError(f"a config of mem0's is a mapping, not {type(config).__name__}")
    if unknown := [name for name in config if name not in _KNOWN]:
        is_ours = unknown[0] == "infer"
        hint = "write Memory.from_config(…, infer=False)" if is_ours else "leave it out"
        raise ConfigError(f"mem0's config has no {unknown[0]!r:.80}", hint=hint)
    if config.get("reranker"):
        raise ConfigError(
            "a bank has no reranker: it ranks by meaning, by words and by tier",
            hint="leave reranker out of the config",
        )
    for name in ("embedder", "llm"):
        if section := config.get(name):
            settings.setdefault(name, _section(section, name))
    store = _section(config.get("vector_store") or {"provider": "chroma"}, "vector_store")
    path = store["config"].get("path")
    if path is None and store["config"]:
        settings.setdefault("store", store)
    if folder is None and path is None:
        raise ConfigError(
            "the config does not say where the memories are",
            hint="name a folder: Memory.from_config(config, 'my-bank')",
        )
    return MemoryBank.open(Path(f"{path}.tiermem") if folder is None else folder, **settings)


def _section(section: Any, name: str) -> dict[str, Any]:
    if not isinstance(section, Mapping) or not isinstance(section.get("provider"), str):
        raise ConfigError(f"{name} of mem0's config names no provider", hint="name one")
    return {"provider": section["provider"], "config": dict(section.get("config") or {})}
