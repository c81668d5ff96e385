"""An embedding model of LangChain as the embedder of a bank."""

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final
from weakref import finalize

from langgraph.store.base import ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda

from ..errors import InvalidInput
from ..memory.records import shown

Vectors = list[list[float]]


@final
class LangChainEmbedder:
    """Gives a bank the vectors of a LangChain model: ``MemoryBank.open(…, embedder=…)``.

    ``embed`` is what LangGraph takes: an ``Embeddings`` object, a function of a list of texts, also
    an async one, or a name such as ``"openai:text-embedding-3-small"``. A bank refuses to mix the
    vectors of two models by their ``name``. It is made of the object's class and model, or of the
    function's module and name: say it where these do not tell the model. A lambda needs one.
    """

    def __init__(self, embed: Any, dims: int | None = None, name: str = "") -> None:
        self.embeddings = ensure_embeddings(embed)
        model = embed if isinstance(embed, str) else ""
        self.name = name or f"langchain/{model or _name_of(self.embeddings)}"
        self._loop: _OwnLoop | None = None
        self.dims = dims or len(self.embed(["dimensions"])[0])

    def embed(self, texts: Sequence[str], /) -> Vectors:
        """One vector per text."""
        if not isinstance(self.embeddings, EmbeddingsLambda) or hasattr(self.embeddings, "func"):
            return self.embeddings.embed_documents(list(texts))
        if self._loop is None or self._loop.process != os.getpid():  # a fork takes no threads along
            self._loop = _OwnLoop()
        return self._loop.run(self.embeddings.aembed_documents(list(texts)))

    @property
    def embed_queries(self) -> Callable[[Sequence[str]], Vectors] | None:
        """What embeds queries: the model's own way; None for a function, which knows one way."""
        return None if isinstance(self.embeddings, EmbeddingsLambda) else self._queries

    def _queries(self, texts: Sequence[str]) -> Vectors:
        if len(texts) == 1:
            return [self.embeddings.embed_query(texts[0])]
        with ThreadPoolExecutor() as threads:  # as LangGraph's own store does
            return list(threads.map(self.embeddings.embed_query, texts))


@final
class _OwnLoop:
    """An event loop in a thread: the loop of the caller waits for the bank, which waits for this.

    It is one loop for all calls: clients of servers belong to the loop that first used them.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_go, args=[self._loop], name="tiermem-embed", daemon=True).start()
        finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def run(self, work: Coroutine[Any, Any, Vectors]) -> Vectors:
        """The result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _go(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _name_of(embeddings: object) -> str:
    """The name of a model: of the function, if it is one, or of the object's class and model."""
    if not isinstance(embeddings, EmbeddingsLambda):
        return _model_of(embeddings)
    function: Any = getattr(embeddings, "func", None) or getattr(embeddings, "afunc", None)
    if not callable(function):
        raise InvalidInput(
            f"an embedder takes a model or a function of a list of texts, not {shown(function)}"
        )
    name = getattr(function, "__qualname__", None)
    if name is None and not isinstance(function, functools.partial):
        return _model_of(function)
    if name is None or "<lambda>" in name:
        raise InvalidInput(
            "a lambda or functools.partial has no name by which a bank can tell it from another",
            hint='give one: LangChainEmbedder(embed, dims, name="my-model-1")',
        )
    return f"{function.__module__}.{name}"


def _model_of(model: object) -> str:
    name = getattr(model, "model", None) or getattr(model, "model_name", None)
    return ":".join([type(model).__name__, *([name] if isinstance(name, str) else [])])
