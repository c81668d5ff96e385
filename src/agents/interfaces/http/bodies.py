"""Reading the body of a request, which may be too large, too slow, or not JSON."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from email.message import Message
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request

from .limits import Limits
from .problems import Problem

_CLOSE = {"Connection": "close"}
_DRAINED_BYTES, _DRAINING_SECONDS = 8 * 1024 * 1024, 1.0


async def read_body(request: Request, limits: Limits, keep: Callable[[int], None]) -> bytes:
    """The whole body: 413 if it is too large, 408 if it is too slow.

    ``keep`` gets the size of every part, and may refuse the part. Starlette's own limit knows
    neither slow senders nor the sum over all senders.
    """
    declared = request.headers.get("content-length", "")
    too_large = declared.isdecimal() and (len(declared) > 18 or int(declared) > limits.body_bytes)
    parts, body = request.stream(), bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            while not too_large and (part := await anext(parts, b"")):
                keep(len(part))
                body += part
                too_large = len(body) > limits.body_bytes
    except Problem:
        await _drain(parts)
        raise
    except TimeoutError:
        raise Problem(
            408, "TooSlow", "the body did not arrive in time; send it again, whole", _CLOSE
        ) from None
    if too_large:
        await _drain(parts)
        detail = f"the body is over {limits.body_bytes:,} bytes; send less at once"
        raise Problem(413, "TooLarge", detail, _CLOSE)
    return bytes(body)


async def _drain(parts: AsyncGenerator[bytes, None]) -> None:
    """Read on for a second: many clients read no answer before they have sent their body."""
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAINING_SECONDS):
            while taken < _DRAINED_BYTES and (part := await anext(parts, b"")):
                taken += len(part)


def check_type(headers: Headers) -> None:
    """415 for a body that is not JSON by its Content-Type, or is compressed."""
    said = Message()
    said["content-type"] = headers.get("content-type", "")
    parameters = said.get_params([])[1:]  # the first is the type
    charsets = {str(value).lower() for name, value in parameters if name.lower() == "charset"}
    if said.get_content_type() != "application/json" or charsets - {"utf-8"}:
        raise Problem(
            415, "NotJson", "send the arguments as JSON, with Content-Type: application/json"
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "Packed", "send the body as it is, without a Content-Encoding")


def parse(body: bytes, nesting: int) -> Any:
    """The JSON of a body; 400 if it is not JSON, or if two readers could read it differently."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise _too_deep(nesting) from None
    except ValueError as error:
        # For a number of over 4,300 digits, Python's message is about a setting of Python.
        too_long = "set_int_max_str_digits" in str(error)
        raise _malformed("a number is too long" if too_long else str(error)) from None
    # Few opening brackets can't nest deep, and counting them is a thousand times faster.
    if body.count(b"[") + body.count(b"{") > nesting and _is_deeper(value, nesting):
        raise _too_deep(nesting)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _is_deeper(value: Any, nesting: int) -> bool:
    level: list[Any] = [value]
    for _ in range(nesting):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(each, list | dict) for each in level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _malformed(reason: str) -> Problem:
    return Problem(400, "MalformedJson", f"the body is not JSON: {reason:.200}")


def _too_deep(nesting: int) -> Problem:
    return Problem(400, "MalformedJson", f"the JSON is nested more than {nesting} deep")
