"""Refusals and failures as ``application/problem+json`` (RFC 9457)."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from ... import errors
from ...errors import (
    BankBroken,
    BankClosed,
    InvalidInput,
    MemoryNotFound,
    MemoryPinned,
    NoteRefused,
    TierFull,
)

__all__ = ["ALWAYS", "MEDIA_TYPE", "Problem", "encoded", "status_of"]

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
)


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


def status_of(kind: str) -> int:
    """The status for an error of TierMem, by its name; 500 if the sender is not at fault."""
    error = getattr(errors, kind, None)
    if isinstance(error, type):
        for family, status in _STATUSES:
            if issubclass(error, family):
                return status
    return 500


def encoded(value: Any) -> bytes:
    """JSON as bytes. A lone surrogate, which an error may quote, becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")
