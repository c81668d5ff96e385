"""Many clients at once against a bank that is served over HTTP: how many requests, how fast.

A real ``tiermem serve`` on this machine, and clients that add, search and read in turns, each with
the token of its agent. Then the server is told to stop, and every memory that it acknowledged must
be in the bank; one that is not, or an answer of 5xx, ends this with exit code 1.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from recall import texts
from report import console, machine, number, table

_AGENTS = 8
_WARM_UP = 1.0
"""Seconds that are not counted: the embedder's weights are read with the first request."""


class Answer(NamedTuple):
    """What came back, and how long it took."""

    kind: str
    status: int
    seconds: float


class Client:
    """One connection, kept open, with an agent's token; it remembers what was acknowledged."""

    def __init__(self, port: int, token: str, agent: str, seed: int) -> None:
        self._port = port
        self._head = (
            f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\n"
        )
        self._random = random.Random(seed)
        self._texts = texts(5000, seed)
        self.agent = agent
        self.kept: dict[str, str] = {}
        self.answers: list[Answer] = []

    async def run(self, until: float, counted_from: float) -> None:
        """Ask as fast as it is answered."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        while (began := perf_counter()) < until:
            kind, status = await self._one()
            if began >= counted_from:
                self.answers.append(Answer(kind, status, perf_counter() - began))
        self._writer.close()

    async def _one(self) -> tuple[str, int]:
        kind = self._random.choices(("add", "search", "query", "get"), (4, 3, 2, 1))[0]
        text = self._random.choice(self._texts)
        if kind == "add":
            status, made = await self._ask("POST", "/memory", {"content": text})
            if status == 201:
                self.kept[made["id"]] = text
        elif kind == "get" and self.kept:
            memory_id = self._random.choice(list(self.kept)[-50:])
            status, _ = await self._ask("GET", f"/memory/{memory_id}", None)
        else:
            kind = "query" if kind == "query" else "search"
            status, _ = await self._ask("POST", f"/memory/{kind}", {"query": text[:40]})
        return kind, status

    async def _ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        said = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(said.partition("content-length: ")[2].partition("\r\n")[0])
        return int(said[9:12]), json.loads(await self._reader.readexactly(length))


def serve(folder: Path) -> tuple["subprocess.Popen[str]", int]:
    """The server's process, and its port."""
    command = [str(Path(sys.executable).with_name("tiermem")), "serve", str(folder)]
    options = ["--create", "--port", "0", "--rate", "1000000", "--quiet"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"the server did not start ({process.wait()})")
    return process, int(line.partition("http://127.0.0.1:")[2].split()[0])


async def load(clients: list[Client], seconds: float) -> None:
    """All clients at once."""
    start = perf_counter() + _WARM_UP
    await asyncio.gather(*(client.run(start + seconds, start) for client in clients))


def lost(folder: Path, clients: list[Client]) -> int:
    """How many acknowledged memories are not in the bank, or not as they were."""
    from tiermem import MemoryBank

    missing = 0
    with MemoryBank.at(folder) as bank:
        stored = {name: {m.id: m.content for m in bank.agent(name).all()} for name in bank.agents()}
    for client in clients:
        own = stored.get(client.agent, {})
        missing += sum(own.get(identifier) != text for identifier, text in client.kept.items())
    return missing


def show(answers: list[Answer], seconds: float) -> None:
    """Requests per second and latencies, of each kind and of all."""
    rows = []
    for kind in (*sorted({answer.kind for answer in answers}), "all"):
        own = [each.seconds * 1000 for each in answers if kind in (each.kind, "all")]
        p50, p95, p99 = np.percentile(own, (50, 95, 99))
        rows.append((kind, number(len(own) / seconds), *map(number, (p50, p95, p99, max(own)))))
    table("Requests", ("", "per second", "p50 ms", "p95 ms", "p99 ms", "longest ms"), rows)


def main() -> int:
    from tiermem.interfaces import tokens

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32, help="at the same time")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long they ask")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    console.print(f"{machine()}; {given.clients} clients, {given.seconds:g} s")
    with tempfile.TemporaryDirectory(prefix="tiermem-http-") as place:
        folder = Path(place) / "bank"
        folder.mkdir()
        agents = [f"agent_{n % _AGENTS}" for n in range(given.clients)]
        keys = [tokens.create(folder, agent).token for agent in agents]
        process, port = serve(folder)
        try:
            clients = [
                Client(port, key, agent, given.seed + n)
                for n, (key, agent) in enumerate(zip(keys, agents, strict=True))
            ]
            asyncio.run(load(clients, given.seconds))
            began = perf_counter()
            process.send_signal(signal.SIGTERM)
            code = process.wait(600)
            stopping = perf_counter() - began
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
        missing = lost(folder, clients)
    answers = [answer for client in clients for answer in client.answers]
    show(answers, given.seconds)
    statuses = Counter(answer.status for answer in answers)
    errors = sum(count for status, count in statuses.items() if status >= 400)
    broken = sum(count for status, count in statuses.items() if status >= 500)
    kept = sum(len(client.kept) for client in clients)
    console.print(f"answers by status: {dict(sorted(statuses.items()))}; {errors} errors")
    console.print(f"{kept:,} memories acknowledged, {missing} lost; stopped in {stopping:.1f} s")
    return 0 if not (missing or broken or code) else 1


if __name__ == "__main__":
    sys.exit(main())
