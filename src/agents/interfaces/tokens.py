"""Tokens: each opens the memory of one agent of a bank, over a network.

A token may be bound to a project and an environment instead. It opens the memory of any agent in
them, and each request names one.

``tokens.json`` in the bank's folder holds the hashes of the tokens, and only its owner may read it.
A change holds at once, also for a program that serves the bank. From the first token on, every
client needs a token, even after all tokens are revoked; only deleting the file undoes that.
"""

import contextlib
import fcntl
import functools
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from ..errors import BankError, InvalidAgentId, InvalidInput
from ..memory.requests import check_agent_id
from ..memory.scopes import NOWHERE, Scope, check_scope, scope_of
from ..storage.files import replace_file
from ..storage.sqlite import sync_folder

if TYPE_CHECKING:
    from ..tools.operations import Permission

FILE = "tokens.json"

_PREFIX = "tm_"
_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,127}")


class Grant(NamedTuple):
    """What the bearer of a token may do."""

    name: str
    """The token's name, for listing and revoking; no secret."""
    agent_id: str
    """Empty for a token of a whole scope, until a request names an agent."""
    permission: "Permission"
    """``write`` includes ``read``; ``tell``, which reaches the memories of other agents, includes
    both; ``advance``, which moves the bank's clock, includes all."""
    scope: Scope = NOWHERE
    """The project and the environment that the token is bound to. An agent's id has them, too."""

    @property
    def whose(self) -> str:
        """Whose memory it opens, in words."""
        return self.agent_id or f"any agent of {self.scope}"


class Created(NamedTuple):
    """A new token, and what its bearer may do."""

    token: str
    grant: Grant


class _Kept(NamedTuple):
    grant: Grant
    digest: str


def create(
    folder: Path,
    agent_id: str | None,
    permission: "Permission" = "write",
    name: str | None = None,
    *,
    scope: Scope = NOWHERE,
) -> Created:
    """Make a token for an agent and keep its hash; the token is never shown again.

    In a ``scope``, ``agent_id`` is the agent's name there, or None for any agent of the scope. The
    default name is the agent's id, or the scope's, with a number behind it if the name is taken.
    """
    if permission not in _permissions():
        raise InvalidInput(
            f"a token's permission is read, write, tell or advance, not {permission!r:.40}"
        )
    if agent_id is None and scope == NOWHERE:
        raise InvalidInput("whose memory does the token open?", hint="name an agent, or a project")
    owner = "" if agent_id is None else scope.agent_id(agent_id)
    within = scope_of(owner) if owner else scope
    if permission == "advance" and within != NOWHERE:
        raise InvalidInput(
            f"a token of {within} can't move the clock, which is that of all projects",
            hint="make a token for it in no project",
        )
    if name is not None and (not isinstance(name, str) or not _NAME.fullmatch(name)):
        raise InvalidInput(
            f"{name!r:.80} is not a token's name",
            hint="use 1 to 128 of the characters A–Z a–z 0–9 . _ - @, not starting with a dot",
        )
    token = _PREFIX + secrets.token_urlsafe(32)
    with _changing(folder) as kept:
        taken = {each.grant.name for each in kept}
        if name in taken:
            raise InvalidInput(
                f"there is a token {name} already", hint="revoke it, or choose another name"
            )
        chosen = name or _free_name(owner or within.prefix.strip("@"), taken)
        grant = Grant(chosen, owner, permission, within)
        kept.append(_Kept(grant, _digest(token)))
    return Created(token, grant)


def are_needed(folder: Path) -> bool:
    """Whether a client needs a token: from the first token on, even after all are revoked."""
    return _found(folder) is not None


def grants(folder: Path) -> list[Grant]:
    """What the bank's tokens allow, oldest first."""
    return [each.grant for each in _read(folder)]


def revoke(folder: Path, name: str) -> None:
    """Revoke a token, at once and for good."""
    with _changing(folder) as kept:
        names = [each.grant.name for each in kept]
        if name not in names:
            has = ", ".join(names) or "none"
            raise InvalidInput(f"there is no token {name!r:.80}", hint=f"there is {has}")
        del kept[names.index(name)]


def check(folder: Path, token: str) -> Grant | None:
    """What this token allows; None for an unknown token.

    The time it takes tells nothing about the token, which is compared with all tokens.
    """
    digest, found = _digest(token), None
    for each in _read(folder):
        if hmac.compare_digest(each.digest, digest):
            found = each.grant
    return found


def _digest(token: str) -> str:
    # A token has 256 random bits, so a slow hash, as for passwords, would add nothing.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _free_name(agent_id: str, taken: set[str]) -> str:
    if agent_id not in taken:
        return agent_id
    stem = agent_id[:120]
    return next(each for n in range(2, len(taken) + 3) if (each := f"{stem}-{n}") not in taken)


# The file


@contextlib.contextmanager
def _changing(folder: Path) -> Iterator[list[_Kept]]:
    """The tokens, for a change; the folder is locked against other changes."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError):  # a NUL in a path is a ValueError
        from ..bank.history import no_bank

        raise no_bank(folder) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        kept = list(_read(folder))
        yield kept
        _write(folder, kept)
    finally:
        os.close(descriptor)


def _found(folder: Path) -> os.stat_result | None:
    try:
        return (folder / FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(folder / FILE, error) from None


def _read(folder: Path) -> tuple[_Kept, ...]:
    path, found = folder / FILE, _found(folder)
    if found is None:
        return ()
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise BankError(
            f"{path} is open to others than its owner, who may have changed it",
            hint="revoke what you do not know, and make it private again with chmod 600",
        )
    return _parsed(path, (found.st_ino, found.st_mtime_ns, found.st_size))


@functools.lru_cache(maxsize=8)
def _parsed(path: Path, stamp: tuple[int, int, int]) -> tuple[_Kept, ...]:
    """The content of the file; ``stamp`` changes whenever the file changes."""
    try:
        values = json.loads(path.read_text("utf-8"))
        if values["version"] != _VERSION:
            raise ValueError(f"version {values['version']!r:.20} is not one this TierMem knows")
        kept = tuple(_entry(each) for each in values["tokens"])
        if len({each.grant.name for each in kept}) != len(kept):
            raise ValueError("two tokens have one name")
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError, InvalidAgentId) as error:
        raise BankError(
            f"{path} is damaged ({type(error).__name__}: {error!s:.120})",
            hint="move it away and create the tokens anew",
        ) from None
    return kept


def _unreadable(path: Path, error: Exception) -> BankError:
    return BankError(f"{path} can't be read: {error}", hint="let your user read it")


def _entry(values: dict[str, Any]) -> _Kept:
    name, permission, digest = values["name"], values["permission"], values["sha256"]
    if permission not in _permissions():
        raise ValueError(f"permission {permission!r:.20}")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise ValueError("a token without a name")
    if not (isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)):
        raise ValueError(f"the hash of {name}")
    if values["agent"] is not None:
        agent_id = check_agent_id(values["agent"])
        return _Kept(Grant(name, agent_id, permission, scope_of(agent_id)), digest)
    scope = check_scope(values["project"], values["environment"])
    if scope == NOWHERE:
        raise ValueError(f"{name} is of no agent and of no project")
    return _Kept(Grant(name, "", permission, scope), digest)


def _write(folder: Path, kept: list[_Kept]) -> None:
    """Replace the file in one step; only its owner can read it, at any time."""
    rows = [
        {
            "name": each.grant.name,
            "agent": each.grant.agent_id or None,
            **({} if each.grant.agent_id else _named(each.grant.scope)),
            "permission": each.grant.permission,
            "sha256": each.digest,
        }
        for each in kept
    ]
    text = json.dumps({"version": _VERSION, "tokens": rows}, indent=1) + "\n"
    try:
        replace_file(folder / FILE, text)
        sync_folder(folder)
    except OSError as error:
        raise BankError(
            f"{folder / FILE} can't be written: {error}",
            hint="make room on the disk, and let your user write there",
        ) from None


def _named(scope: Scope) -> dict[str, str | None]:
    return {field: value or None for field, value in scope._asdict().items()}


def _permissions() -> tuple[str, ...]:
    """What a token may allow. The operations are imported when a token is looked at, not before."""
    from ..tools.operations import Permission

    return get_args(Permission)
