"""Processes that use mem0's stores. A process that is not needed waits for the next bank."""

import atexit
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from ... import errors
from ...errors import StoreError

_MOST_IDLE = 2
"""A process takes seconds to import mem0 and Chroma, and keeps 200 MB."""
_LAST_SECONDS = 10


class ChildLost(Exception):
    """The process crashed, or did not answer in time and was killed; the text goes after "it"."""

    def __init__(self, why: str, *, crashed: bool) -> None:
        super().__init__(why)
        self.crashed = crashed


class StoreChild:
    """A process that uses one store at a time. After an error it can't be used again."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as undo:
            undo.enter_context(ours)
            self._complaints = undo.enter_context(tempfile.TemporaryFile())
            # -P: the current folder may be a stranger's, and no module is to come from it.
            self._process = subprocess.Popen(
                [sys.executable, "-Pm", "tiermem.storage.mem0.store_child"],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=self._complaints,
            )  # fmt: skip
            undo.pop_all()
        self._link = Connection(ours.detach())

    @classmethod
    def take(cls) -> "StoreChild":
        """A process that is idle, or a new one."""
        while _idle:
            child = _idle.pop()
            if child.is_running:
                return child
            child.end()
        return cls()

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def give_back(self) -> None:
        """Keep the process for the next bank, or end it."""
        if len(_idle) < _MOST_IDLE:
            _idle.append(self)
        else:
            self.end()

    def ask(self, call: str, seconds: float, vectors: bytes | None = None, **arguments: Any) -> Any:
        """The value of a call. Its own error is raised; :class:`ChildLost` if there is no answer.

        After an error, the process has ended.
        """
        request = [call, {**arguments, "with_vectors": vectors is not None}]
        try:
            self._wait_at_most(seconds)
            self._link.send_bytes(json.dumps(request).encode())
            if vectors is not None:
                self._link.send_bytes(vectors)
            if not self._link.poll(seconds):
                raise BlockingIOError
            answer = json.loads(self._link.recv_bytes())
            if "error" in answer:
                error = getattr(errors, answer["error"])
                raise error(answer["why"], hint=answer["hint"])
        except BlockingIOError:
            self.end()
            raise ChildLost(
                f"did not answer within {seconds:,.0f} seconds", crashed=False
            ) from None
        except (EOFError, OSError) as error:
            raise ChildLost(self._last_words(), crashed=True) from error
        except BaseException:
            self.end()
            raise
        return answer["value"]

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a disk that never answers
            self._process.wait(1)
        self._link.close()
        self._complaints.close()

    def _wait_at_most(self, seconds: float) -> None:
        """A process that is stopped reads nothing: sending must not wait for ever either."""
        with socket.socket(fileno=os.dup(self._link.fileno())) as end:
            limit = struct.pack("ll", int(seconds) + 1, 0)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_SECONDS)
        code = self._process.poll()
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip().splitlines()
        self.end()
        if code is not None and code < 0:
            return f"crashes (signal {-code})"
        return f"fails: {said[-1] if said else f'exit code {code}'}"


_idle: list[StoreChild] = []
os.register_at_fork(after_in_child=_idle.clear)  # they belong to the process that started them


def end_idle() -> None:
    """End the processes that wait: they may still have texts in memory."""
    while _idle:
        _idle.pop().end()


atexit.register(end_idle)


# A mem0 store that another program filled


_SECONDS = 3600


def read_rows(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Ids and payloads of all rows in the store of a mem0 config.

    A process of its own reads them: the store may be damaged, or a stranger's.
    """
    child = StoreChild.take()
    try:
        found = child.ask("read", _SECONDS, mem0=dict(config))
    except ChildLost as error:
        raise StoreError(
            f"mem0 can't read its {config['provider']} store: it {error}",
            hint="check vector_store in the config that mem0 was used with",
        ) from error
    child.give_back()
    return [(key, dict(payload)) for key, payload in found]
