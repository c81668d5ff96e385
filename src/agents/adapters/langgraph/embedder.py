"""An embedding model of LangChain as the embedder of a bank."""

from collections.abc import Sequence
from typing import Any, final

from langgraph.store.base import ensure_embeddings

__all__ = ["LangChainEmbedder"]


@final
class LangChainEmbedder:
    """Gives a bank the vectors of a LangChain model: ``MemoryBank.open(…, embedder=…)``.

    ``embed`` is what LangGraph takes: an ``Embeddings`` object, a function of a list of texts, or a
    name such as ``"openai:text-embedding-3-small"``. A bank refuses to mix the vectors of two
    models by their ``name``: say it where the object does not name its model.
    """

    def __init__(self, embed: Any, dims: int | None = None, name: str = "") -> None:
        self.embeddings = ensure_embeddings(embed)
        model = embed if isinstance(embed, str) else _model_of(self.embeddings)
        self.name = name or f"langchain/{model}"
        self.dims = dims or len(self.embed(["dimensions"])[0])

    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """One vector per text."""
        return self.embeddings.embed_documents(list(texts))


def _model_of(embeddings: object) -> str:
    own = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    return ":".join([type(embeddings).__name__, *([own] if isinstance(own, str) else [])])
