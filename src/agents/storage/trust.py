"""What this user made on this machine, what else the user trusts, and what needs that trust.

A seal is a text that only this user can make: an HMAC with a key in the user's state folder. A
bank, a checkpoint or a run that carries the right seal of its own settings was made by this user.
The seals of what else the user trusts are in a list beside the key.

Settings that a bank remembers, or that are in a run's folder, may be somebody else's. A wish is
what such settings want to do beyond reading and searching offline; each function that looks for one
gives None if there is none.
"""

import fcntl
import functools
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from shlex import quote
from typing import Any, NamedTuple

from ..config.settings import EmbedderSettings, LlmSettings, StoreSettings, without_password
from ..errors import TrustError, Untrusted
from .files import FILE_MODE, make_folder, replace_file

_KEY_BYTES = 32
_MOST_LISTED = 10_000
"""When more are trusted, the earliest are forgotten."""


class Trusted(NamedTuple):
    """An entry of the list of what the user trusts."""

    path: str
    kind: str
    """bank, checkpoint or run."""
    seals: list[str]


def seal_of(*parts: str | bytes) -> str:
    """The user's seal over texts."""
    mac = hmac.new(_key(_state_folder()).value, digestmod=hashlib.sha256)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        mac.update(b"%d\0" % len(data) + data)
    return mac.hexdigest()


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with the user's seal over all of it, under the key ``seal``."""
    plain = {key: child for key, child in value.items() if key != "seal"}
    text = json.dumps(json.loads(json.dumps(plain)), sort_keys=True)
    return {**plain, "seal": seal_of("json", text)}


def place_seal(file: Path) -> str:
    """The user's seal over a file's place on this machine.

    A copy, and a file that was unpacked, has another number or another time of change. To rename
    the file's folder changes neither.
    """
    found = file.lstat()
    return seal_of("place", f"{found.st_ino} {found.st_ctime_ns}")


def file_seal(files: Iterable[tuple[str, Path]]) -> str:
    """The user's seal over the names and the contents of files."""
    parts: list[str | bytes] = ["files"]
    for name, path in files:
        if path.is_symlink():
            parts += [name, f"link {path.readlink()}"]
        elif path.is_file():
            with path.open("rb") as file:
                parts += [name, hashlib.file_digest(file, "sha256").digest()]
        else:
            parts += [name, "folder"]
    return seal_of(*parts)


def listed() -> list[Trusted]:
    """What the user trusts besides what the user made, the earliest first."""
    path = _state_folder() / "trusted.json"
    try:
        _check_private(path)
        entries = json.loads(path.read_text())["trusted"]
        return [Trusted(each["path"], each["kind"], list(each["seals"])) for each in entries]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise TrustError(f"{path} can't be read: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise TrustError(
            f"{path} is damaged ({error!r:.100})",
            hint="delete it, and trust again what you trusted",
        ) from error


def is_listed(*seals: str) -> bool:
    """Whether one of the seals is of something that the user trusts."""
    if _key(_state_folder()).problem:  # then no seal outlives this process
        return False
    return any(seal in each.seals for each in listed() for seal in seals)


def update_list(change: Callable[[list[Trusted]], list[Trusted]]) -> None:
    """Replace the list of what the user trusts; other processes wait meanwhile."""
    folder = _state_folder()
    if why := _key(folder).problem:
        raise TrustError(why, hint=_HINT)
    try:
        with _alone(folder):
            rows = [each._asdict() for each in change(listed())[-_MOST_LISTED:]]
            replace_file(folder / "trusted.json", json.dumps({"trusted": rows}, indent=1) + "\n")
    except OSError as error:
        raise TrustError(f"what you trust can't be kept in {folder}: {error}") from error


def refusal(place: Path, wish: str, instead: str = "") -> Untrusted:
    """The error for something that an untrusted bank, checkpoint or run may not do."""
    hint = f"if you trust the people who had it in hand: tiermem store trust {quote(str(place))}"
    problem = _key(_state_folder()).problem
    lost = f"; TierMem could not see whether it is yours: {problem}" if problem else ""
    return Untrusted(
        f"{place} is not known as yours on this machine, and it wants to {wish}{lost}",
        hint=f"{hint}; {instead}" if instead else hint,
    )


_HINT = "set XDG_STATE_HOME to a folder that only your user can read and write"


class _Key(NamedTuple):
    value: bytes
    problem: str
    """Why the key is only this process's; empty if it is the user's."""


def _state_folder() -> Path:
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given / "tiermem"
    home = os.path.expanduser("~")  # "~" itself where no home is known
    return Path(home if home != "~" else "/nonexistent") / ".local" / "state" / "tiermem"


@functools.cache
def _key(folder: Path) -> _Key:
    """The user's key, which is made if there is none; without a place for it, a passing one."""
    path = folder / "key"
    try:
        if not path.exists():
            make_folder(folder)
            with _alone(folder):
                if not path.exists():
                    replace_file(path, secrets.token_bytes(_KEY_BYTES))
        _check_private(path)
        value = path.read_bytes()
        problem = "" if len(value) == _KEY_BYTES else f"{path} holds no key; delete it"
    except (OSError, TrustError) as error:
        value, problem = b"", f"your key {path} can't be used: {error}"
    return _Key(value, "") if not problem else _Key(secrets.token_bytes(_KEY_BYTES), problem)


def _check_private(path: Path) -> None:
    mode = path.stat().st_mode & 0o777
    if mode & ~FILE_MODE:
        raise TrustError(
            f"{path} may be used by others (mode {mode:o})",
            hint=f"delete it, or if nobody else wrote to it: chmod 600 {quote(str(path))}",
        )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Inside, no other process changes the folder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(folder / "lock", flags, FILE_MODE)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# What settings want that only the user's own, or trusted ones, may have


_OFFLINE = ("offline", "none")
_PICKLED = ("qdrant", "faiss")
"""The local stores whose files are pickles: to open them can run code that is in them."""
_PLAIN_OPTIONS = {"collection_name", "path"}


def embedder_wish(embedder: EmbedderSettings) -> str | None:
    """What an embedder other than ours does with texts."""
    if embedder.provider in _OFFLINE:
        return None
    return f"give texts and your API key to {_named('the embedder', embedder)}"


def llm_wish(llm: LlmSettings) -> str | None:
    """What a language model does with conversations."""
    if llm.provider is None:
        return None
    return f"give texts and your API key to {_named('the LLM', llm)}"


def store_wish(store: StoreSettings, folder: Path) -> str | None:
    """What a store does, unless it is Chroma in the bank's folder."""
    path = PurePath(str(store.config.get("path", store.provider)))
    if store.provider == "chroma" and not store.config.keys() - _PLAIN_OPTIONS:
        inside = not path.is_absolute() and ".." not in path.parts
        if inside and not _has_link(folder, path):
            return None
        return f"write a store outside its folder, in {folder / path}"
    return f"write to {_named('the store', store)}"


def notes_wish(extra_paths: Sequence[str]) -> str | None:
    """What notes outside the bank's folder mean."""
    return f"read your files in {', '.join(map(repr, extra_paths))}" if extra_paths else None


def has_pickles(store: StoreSettings, folder: Path) -> bool:
    """Whether a store is local, in the bank's folder, and of pickles."""
    return store.provider in _PICKLED and lies_inside(store, folder)


def lies_inside(store: StoreSettings, folder: Path) -> bool:
    """Whether the files of a store, or a link to them, are in the bank's folder."""
    if store.config.keys() & {"host", "url", "api_key"}:
        return False
    path = folder / str(store.config.get("path", store.provider))
    written = Path(os.path.normpath(path))
    return written.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())


def _named(kind: str, section: EmbedderSettings | LlmSettings | StoreSettings) -> str:
    address = _address(section.config)
    return f"{kind} {section.provider}" + (f" at {address}" if address else "")


def _address(config: Mapping[str, object]) -> str:
    """The options that say where a provider is."""
    found = [
        without_password(value)
        for key, value in config.items()
        if key.endswith(("url", "host", "path", "endpoint", "connection_string"))
        and isinstance(value, str)
    ]
    return ", ".join(found)[:200]


def _has_link(folder: Path, path: PurePath) -> bool:
    """Whether a link leads out of the folder, on the way to the store or in it."""
    steps = [folder / part for part in (path, *path.parents) if part.parts]
    return any(step.is_symlink() for step in (*steps, *(folder / path).rglob("*")))
