"""A small OpenAI-compatible server on loopback, for what would otherwise cost money."""

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from waiting import until


class _Server(ThreadingHTTPServer):
    """Knows which connections it took, and which of them are open."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.taken: set[Any] = set()
        self.open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(client_address)
        self.taken.add(client_address)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.discard(client_address)


class Fault(Exception):
    """No answer: a status with headers; or pieces of bytes, and then the end of the connection."""

    def __init__(
        self,
        code: int = 500,
        headers: dict[str, str] | None = None,
        raw: bytes | Iterable[bytes] | None = None,
    ) -> None:
        super().__init__(f"status {code}")
        self.code, self.headers, self.raw = code, headers or {}, raw


class OpenAIServer:
    """Answers chat completions with ``reply`` and embeddings with vectors from a hash.

    ``reply`` gets the request and returns the message's text; raising a :class:`Fault` gives no
    answer, and raising another error refuses the request.
    """

    dims = 32

    def __init__(self, reply: Callable[[dict[str, Any]], str] = lambda _: "") -> None:
        self.reply = reply
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.keys: list[str | None] = []
        """What each request had as its key."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, body))
                server.keys.append(self.headers.get("Authorization"))
                headers: dict[str, str] = {}
                try:
                    answer, code = server.answer(self.path, body), 200
                except Fault as fault:
                    if fault.raw is not None:
                        with suppress(ConnectionError):  # the client has gone
                            for piece in [fault.raw] if isinstance(fault.raw, bytes) else fault.raw:
                                self.wfile.write(piece)
                        self.close_connection = True
                        return
                    answer, code = {"error": {"message": str(fault)}}, fault.code
                    headers = fault.headers
                except Exception as error:
                    answer, code = {"error": {"message": str(error)}}, 400
                data = json.dumps(answer).encode()
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def settle(self) -> None:
        """Wait for all that was sent until now: what a killed client sent may be read late."""
        with socket.create_connection(("127.0.0.1", self._server.server_port)) as last:
            name = last.getsockname()
            until("the last connection is taken", lambda: name in self._server.taken)
        until("all connections are closed", lambda: not self._server.open)

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": self.reply(body)}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return {"id": "1", "object": "chat.completion", "created": 0, "model": "m",
                    "choices": [choice]}  # fmt: skip
        rows = [
            {"object": "embedding", "index": index, "embedding": self.vector(text)}
            for index, text in enumerate(body["input"])
        ]
        return {"object": "list", "model": "m", "data": rows,
                "usage": {"prompt_tokens": 0, "total_tokens": 0}}  # fmt: skip

    def vector(self, text: str) -> list[float]:
        return [byte / 255 - 0.5 for byte in hashlib.sha256(text.encode()).digest()]

    def __enter__(self) -> "OpenAIServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
