"""Refusals and failures as ``application/problem+json`` (RFC 9457)."""

import json
import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.responses import Response

from ... import errors
from ...config.settings import Settings
from ...errors import (
    BankBroken,
    BankClosed,
    CommitFailed,
    CommitUnknown,
    EmbedderError,
    InvalidInput,
    MemoryNotFound,
    MemoryPinned,
    NoteRefused,
    TierFull,
)
from ...tools import Failure

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of every answer."""

_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (InvalidInput, 422),
    (NoteRefused, 422),
    (MemoryNotFound, 404),
    (MemoryPinned, 409),
    (TierFull, 409),
    (BankClosed, 503),
    (BankBroken, 503),
    (CommitFailed, 503),
    (EmbedderError, 503),
)
_FAULTS = {
    CommitFailed.__name__: "nothing was changed: the journal can't be written",
    CommitUnknown.__name__: "the disk failed, and the change may be kept or not: look, then repeat",
    EmbedderError.__name__: "nothing was changed: the embedder failed",
}
"""What a client learns of a fault of the machine, by the error's name; else what it is."""
_LOG = "the service's log says why"


class Problem(Exception):
    """A request that failed, and what its sender learns about it."""

    def __init__(
        self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        return encoded(
            {
                "type": f"urn:tiermem:problem:{self.kind}",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "detail": self.detail,
            }
        )

    def response(self) -> Response:
        return Response(self.body(), self.status, {**self.headers, **ALWAYS}, MEDIA_TYPE)

    @classmethod
    def internal(cls) -> "Problem":
        """The answer to a fault of TierMem or of its machine; the log has more."""
        return cls(500, "InternalError", "something went wrong inside TierMem; its log says what")


def told(failure: Failure, private: Iterable[str]) -> str:
    """What a client far away learns of a failure: nothing of the machine, which the log has."""
    fault = _fault(failure.type)
    if fault is None and not any(text in failure.message for text in private):
        return failure.message
    logger.error("%s: %s", failure.type, failure.message)
    return f"{fault or 'it was refused'}; {_LOG}"


def _fault(kind: str) -> str | None:
    """What is wrong with the machine, by the error's name; None if the sender is at fault."""
    error = getattr(errors, kind, None)
    if not isinstance(error, type) or not issubclass(error, errors.TierMemError):
        return None
    return _FAULTS.get(kind, error.what) if status_of(kind) >= HTTPStatus(500) else None


def status_of(kind: str) -> int:
    """The status for an error of TierMem, by its name; 500 if the sender is not at fault."""
    error = getattr(errors, kind, None)
    if isinstance(error, type):
        for family, status in _STATUSES:
            if issubclass(error, family):
                return status
    return 500


def private_paths(folder: Path, settings: Settings) -> list[str]:
    """Paths of this machine that a client must not learn from an error."""
    return [str(each.absolute()) for each in (folder, *map(Path, settings.notes.extra_paths))]


def encoded(value: Any) -> bytes:
    """JSON as bytes. A lone surrogate, which an error may quote, becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
