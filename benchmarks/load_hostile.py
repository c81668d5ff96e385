"""Clients that mean harm: slow, large, deep, and many that are left."""

import asyncio
import contextlib
import json
from collections import Counter
from urllib.parse import urlsplit

__all__ = ["attack"]

_SLOW = 1_200
"""Slow connections to a server, more than it keeps open."""
_LEFT_OPEN = 500
"""Sessions that are open at the same time; the oldest is left then."""
_OPENERS = 10
"""How many of them are opened at the same time."""
_MIB = 1 << 20
_HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "load", "version": "1"},
        },
    }
).encode()


class _Target:
    """A server, and the head of a request to it."""

    def __init__(self, url: str, token: str, *, by_mcp: bool) -> None:
        where = urlsplit(url)
        self.host, self.port = where.hostname, where.port
        path = "/mcp" if by_mcp else "/memory"
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        )

    def head(self, size: int) -> bytes:
        return f"{self._head}Content-Length: {size}\r\n\r\n".encode()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def ask(self, request: bytes) -> int:
        """The status of the answer, 0 if the connection ends without one."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await self.open()
            try:
                writer.write(request)
                await writer.drain()
                return int((await reader.readuntil(b"\r\n"))[9:12])
            finally:
                writer.close()
        return 0


async def attack(
    url: str, token: str, sessions: int, seconds: float, *, by_mcp: bool
) -> Counter[str]:
    """All of it at once, for so long and until the sessions were opened: what was done."""
    target, done = _Target(url, token, by_mcp=by_mcp), Counter[str]()
    end = asyncio.get_running_loop().time() + seconds
    shares = [sessions // _OPENERS + (n < sessions % _OPENERS) for n in range(_OPENERS)]
    left = [asyncio.create_task(_sessions(target, share, done)) for share in shares]
    others = [
        *(asyncio.create_task(_slow_head(target, end, done)) for _ in range(_SLOW)),
        *(asyncio.create_task(_slow_body(target, end, done)) for _ in range(20)),
        *(asyncio.create_task(_again(target, body, name, end, done)) for name, body in _bodies()),
    ]
    await asyncio.gather(*left, *others)
    return done


def _bodies() -> list[tuple[str, bytes]]:
    deep = b'{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return [
        ("bodies of 32 MiB", b'{"content":"' + b"x" * (32 * _MIB) + b'"}'),
        ("bodies of 6 MiB", b'{"content":"' + b"x" * (6 * _MIB) + b'"}'),
        ("deep JSON", deep),
        ("broken JSON", b'{"content":'),
    ]


async def _again(target: _Target, body: bytes, name: str, end: float, done: Counter[str]) -> None:
    """Send a body again and again."""
    while asyncio.get_running_loop().time() < end:
        status = await target.ask(target.head(len(body)) + body)
        done[f"{name}: {status or 'cut off'}"] += 1
        await asyncio.sleep(0.05)


async def _slow_head(target: _Target, end: float, done: Counter[str]) -> None:
    """A head that comes letter by letter; when it is cut off, another."""
    while asyncio.get_running_loop().time() < end:
        with contextlib.suppress(OSError):
            _, writer = await target.open()
            done["slow heads"] += 1
            try:
                for letter in target.head(0)[:-4].decode():
                    writer.write(letter.encode())
                    await writer.drain()
                    await asyncio.sleep(0.5)
                    if asyncio.get_running_loop().time() > end:
                        break
            finally:
                writer.close()
        await asyncio.sleep(0.5)


async def _slow_body(target: _Target, end: float, done: Counter[str]) -> None:
    """A body that never comes to its end."""
    while asyncio.get_running_loop().time() < end:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            reader, writer = await target.open()
            done["slow bodies"] += 1
            try:
                writer.write(target.head(1000) + b"{")
                await reader.readuntil(b"\r\n")
            finally:
                writer.close()
        await asyncio.sleep(0.1)


async def _sessions(target: _Target, number: int, done: Counter[str]) -> None:
    """Sessions that are opened and left: the client asks, reads nothing, and goes."""
    open_ones: list[asyncio.StreamWriter] = []
    for _ in range(number):
        if len(open_ones) >= _LEFT_OPEN // _OPENERS:
            open_ones.pop(0).close()
        with contextlib.suppress(OSError):
            reader, writer = await target.open()
            open_ones.append(writer)
            writer.write(target.head(len(_HELLO)) + _HELLO)
            with contextlib.suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n")  # it was answered; without this, it were a flood
            done["sessions opened and left"] += 1
    for writer in open_ones:
        writer.close()
