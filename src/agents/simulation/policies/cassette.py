"""The cassette: the questions to a language model and its answers, for replays.

The file has one JSON object per line, in the order of the answers. Each line holds the whole
prompt, for people to read. Tick, agent, hash of the prompt and attempt identify a line.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import Diverged, RunError
from ...storage import formats
from ...storage.files import FILE_MODE
from ...storage.sqlite import sync_folder

_Key = tuple[int, str, str, int]
_Place = tuple[int, int, bool]
"""Where a line starts, its length, and whether it has an answer."""
_START = b'{"agent":'
"""The start of every line, since its keys are sorted."""


class Exchange(NamedTuple):
    """An answer to a question; or, if the run passed the question over, why there was none."""

    tick: int
    agent: str
    attempt: int
    """Counted from 0."""
    messages: Sequence[Mapping[str, str]]
    reply: str | None = None
    kind: str | None = None
    """What kind of error kept the model from answering; None where it answered."""
    error: str | None = None
    problem: str | None = None
    """Why the reply was not usable when it came."""
    purpose: str | None = None
    """What the question was for, such as decision or flush."""
    model: str | None = None
    read: int | None = None
    """The tokens of the prompt, cached ones included, if the model counted them."""
    cached: int | None = None
    written: int | None = None
    seconds: float | None = None
    """How long the answer took: a fact about this call, which decides nothing."""
    shared: bool | None = None
    """True if the answer is one that another agent of the tick got to the same question."""

    @property
    def prompt_hash(self) -> str:
        """The hash of the messages."""
        return hash_prompt(self.messages)

    @property
    def key(self) -> _Key:
        """Identifies the exchange in its file."""
        return self.tick, self.agent, self.prompt_hash, self.attempt


def hash_prompt(messages: Sequence[Mapping[str, str]]) -> str:
    """SHA-256, in hex, of the messages as canonical JSON."""
    return hashlib.sha256(_canonical([dict(message) for message in messages])).hexdigest()


class Cassette:
    """The exchanges in one file. Threads may share a cassette; processes may not.

    The first ``record`` makes the file. An exchange is on the disk when ``record`` returns. A last
    line that a kill cut short is dropped; any other damage is :class:`RunError`. With ``replay``
    the file never changes, and a missing exchange is :class:`Diverged`.

    Of two lines for a question the first counts, but an answer counts before a line that says that
    there was none. Only a replay finds the latter: whoever may ask, asks again.
    """

    def __init__(self, path: str | Path, replay: bool = False) -> None:
        self.path = Path(path)
        self.replay = replay
        self._lock = threading.RLock()
        self._places: dict[_Key, _Place] | None = None
        self._lines = 0
        self._end = 0

    @property
    def position(self) -> int:
        """How many whole exchanges the file holds."""
        with self._lock:
            self._index()
            return self._lines

    def find(
        self, tick: int, agent: str, prompt_hash: str, attempt: int, *, passed_over: bool = False
    ) -> Exchange | None:
        """The recorded exchange, or None; in a replay, a missing exchange raises Diverged.

        A question that was passed over is found in a replay, with ``passed_over``, and before an
        answer to a later attempt.
        """
        key = (tick, agent, prompt_hash, attempt)
        with self._lock:
            places = self._index()
            place = places.get(key)
            if place is not None:
                start, length, is_answer = place
                is_passed = self.replay or passed_over or (*key[:3], attempt + 1) in places
                return self._read(start, length) if is_answer or is_passed else None
            if self.replay:
                raise self._diverged(key)
            return None

    def has(self, key: _Key) -> bool:
        """Whether the file has a line of this key, with or without an answer."""
        with self._lock:
            return key in self._index()

    def passed_over(self, after: int = 0) -> int | None:
        """The first tick after ``after`` in which a question was passed over; None for none."""
        with self._lock:
            places = self._index()
            ticks = [
                key[0]
                for key, (_, _, is_answer) in places.items()
                if not is_answer and key[0] > after and (*key[:3], key[3] + 1) not in places
            ]
        return min(ticks, default=None)

    def of(self, tick: int, agent: str) -> list[Exchange]:
        """The exchanges of an agent in a tick, in the order of the answers."""
        with self._lock:
            places = [at for key, at in self._index().items() if key[:2] == (tick, agent)]
            return [self._read(start, length) for start, length, _ in sorted(places)]

    def __iter__(self) -> Iterator[Exchange]:
        """All exchanges, in the order of the answers."""
        with self._lock:
            places = sorted(self._index().values())
        return (self._read(start, length) for start, length, _ in places)

    def record(self, exchange: Exchange) -> Exchange:
        """Write an exchange to the file. If its key has an earlier answer, give that instead."""
        key = exchange.key
        with self._lock:
            found = self.find(*key)
            if found is not None:
                return found
            line, places = _line(exchange), self._index()
            self._places = None  # after an interrupt in between, the file is read again
            self._append(line)
            _put(places, exchange, self._end, len(line))
            self._places, self._lines, self._end = places, self._lines + 1, self._end + len(line)
            return exchange

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Within the block, the cassette is one of a replay: nobody is asked, nothing written."""
        before, self.replay = self.replay, True
        try:
            yield
        finally:
            self.replay = before

    def _index(self) -> dict[_Key, _Place]:
        if self._places is None:
            places: dict[_Key, _Place] = {}
            lines = end = 0
            try:
                with self.path.open("rb") as file:
                    for lines, line in enumerate(file, 1):
                        if not line.endswith(b"\n") and _is_torn(line):
                            lines -= 1
                            self._drop_tail(end)
                            break
                        _put(places, self._parse(line, lines), end, len(line))
                        end += len(line)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise RunError(
                    f"the cassette {self.path} can't be read: {error}",
                    hint="let your user read it",
                ) from error
            self._places, self._lines, self._end = places, lines, end
        return self._places

    def _parse(self, line: bytes, number: int) -> Exchange:
        try:
            return _exchange(line)
        except _TooNew as error:
            raise RunError(
                f"{self.path}, line {number} can't be read: {error}", hint=_UP
            ) from error
        except (ValueError, RecursionError) as error:
            raise RunError(
                f"{self.path}, line {number} is damaged: {error}",
                hint="restore the file from a copy, or delete the line; without it a replay stops "
                "there and a resumed run asks again",
            ) from error

    def _read(self, start: int, length: int) -> Exchange:
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                line = file.read(length)
            return _exchange(line)
        except (OSError, ValueError) as error:
            raise RunError(
                f"{self.path} was changed while in use: {error}",
                hint="let nothing else write to it, and run it again",
            ) from error

    def _append(self, line: bytes) -> None:
        new = self._end == 0
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with os.fdopen(os.open(self.path, flags, FILE_MODE), "ab", buffering=0) as file:
                try:
                    rest = memoryview(line)
                    while rest:
                        rest = rest[file.write(rest) :]
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(self._end)  # so that the next line starts a line
                    raise
            if new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise RunError(
                f"the cassette {self.path} can't be written: {error}",
                hint="make room on the disk, and let your user write there",
            ) from error

    def _drop_tail(self, end: int) -> None:
        if not self.replay:
            with self.path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())

    def _diverged(self, key: _Key) -> Diverged:
        tick, agent, prompt_hash, attempt = key
        same = [
            found
            for found in self._index()
            if (found[0], found[1], found[3]) == (tick, agent, attempt)
        ]
        why = (
            f"its prompt was different when recorded ({same[0][2]})"
            if same
            else "nothing was recorded for this agent in this tick"
            if attempt == 0
            else "the recorded run made fewer attempts"
        )
        return Diverged(
            f"tick {tick}, agent {agent!r}, attempt {attempt + 1}: {self.path.name} holds no "
            f"exchange for the prompt {prompt_hash}; {why}"
        )


def read_from(path: Path, start: int, end: int | None = None) -> tuple[list[Exchange], int]:
    """The exchanges on the whole lines of a file from a byte on, and where the last line ends."""
    exchanges = []
    try:
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n") or (end is not None and start >= end):
                    break
                exchanges.append(_exchange(line))
                start += len(line)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, RecursionError) as error:
        hint = _UP if isinstance(error, _TooNew) else "restore it from a copy"
        raise RunError(f"{path} can't be read: {error}", hint=hint) from error
    return exchanges, start


class _TooNew(ValueError):
    """A line of a later format."""


_UP = "upgrade with: pip install -U tiermem"


def _put(places: dict[_Key, _Place], exchange: Exchange, start: int, length: int) -> None:
    """Add the place of a line to the places of all."""
    key, is_answer = exchange.key, exchange.reply is not None
    if key not in places or (is_answer and not places[key][2]):
        places[key] = start, length, is_answer


def _canonical(value: object) -> bytes:
    # Text may hold half a surrogate pair, which strict UTF-8 refuses.
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _line(exchange: Exchange) -> bytes:
    entry: dict[str, Any] = {
        **{name: each for name, each in exchange._asdict().items() if _is_kept(name, each)},
        "messages": [dict(message) for message in exchange.messages],
        "prompt_hash": exchange.prompt_hash,
    }
    entry["digest"] = hashlib.sha256(_canonical(entry)).hexdigest()
    return _canonical(entry) + b"\n"


def _is_kept(name: str, value: object) -> bool:
    return value is not None or name in ("reply", "kind", "error")


def _exchange(line: bytes) -> Exchange:
    """The exchange on a line; ValueError if the line was changed."""
    entry = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(entry, dict):
        raise ValueError("not an object")
    digest = entry.pop("digest", None)
    if digest != hashlib.sha256(_canonical(entry)).hexdigest():
        raise ValueError("its digest is wrong")
    version = entry.pop("format", 1)
    if type(version) is not int or version < 1:
        raise ValueError(f"there is no format {version!r:.20}")
    if version > formats.CASSETTE:
        raise _TooNew(f"it has format {version}, and a later version of TierMem wrote it")
    formats.migrate("cassette", version, entry)
    prompt_hash = entry.pop("prompt_hash", None)
    try:
        exchange = Exchange(**entry)
        if exchange.prompt_hash != prompt_hash:
            raise ValueError("its prompt is not the one of its hash")
    except TypeError:
        raise ValueError("it is not an exchange of this version") from None
    return exchange


def _is_torn(tail: bytes) -> bool:
    """Whether a last line without an end is half a write of ours, which may be dropped."""
    return tail.startswith(_START[: len(tail)]) or not tail.strip(b"\0")
