"""Whose memories a call is about: ``user_id``, ``agent_id`` and ``run_id`` as agents of a bank.

A memory belongs to the first of these ids that it has; the ids after the first are its metadata.
User ``ann`` is the agent ``ann``. Agent ``ann`` without a user is the agent that stands for the
text ``agent_id=ann``, so it is never taken for the user of that name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, final

from ..adapting import DIRECTORY, Names
from ..bank.memory_bank import MemoryBank
from ..errors import InvalidInput
from ..storage.mem0.package import invalid_request

IDS: Final = ("user_id", "agent_id", "run_id")
ANYBODY: Final = "*"
"""The id that stands for any id in the filters of a search."""


class Owner(NamedTuple):
    """The agent of a bank that memories belong to, as mem0 names it."""

    name: str
    """Which id it is: one of ``IDS``."""
    value: str


class Part(NamedTuple):
    """Agents of the bank, and the ids that the metadata of their memories must have."""

    agents: list[str]
    ids: dict[str, str]


def checked_id(value: Any, name: str) -> str | None:
    """An id without the blanks around it; None if there is none. mem0 takes the same ids."""
    if value is None:
        return None
    trimmed = str(value).strip()
    if not trimmed:
        raise InvalidInput(
            f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier."
        )
    if any(map(str.isspace, trimmed)):
        raise InvalidInput(
            f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces."
        )
    return trimmed


def checked_ids(given: Mapping[str, Any]) -> dict[str, str]:
    """The ids of a call that stores or deletes: one at least, and each of them one id."""
    ids = {name: checked_id(given.get(name), name) for name in IDS}
    for name, value in ids.items():
        if value == ANYBODY:
            raise InvalidInput(
                f"Invalid {name}: '*' stands for every {name} in filters, and is nobody's id",
                hint="use reset() to delete the memories of all",
            )
    return {name: value for name, value in ids.items() if value is not None}


def required(ids: dict[str, str]) -> dict[str, str]:
    """The ids of a new memory; mem0's error if there is none."""
    if ids:
        return ids
    raise invalid_request(
        "At least one of 'user_id', 'agent_id', or 'run_id' must be provided.",
        "VALIDATION_001",
        {"provided_ids": dict.fromkeys(IDS)},
        "Please provide at least one identifier to scope the memory operation.",
    )


@final
class Scopes:
    """Translates ids to the agents of a bank, and back."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank
        self._names = Names(bank)
        self._owners: dict[str, Owner] = {}
        self._prefixes: dict[str, str] = {}

    def agent_id(self, owner: Owner) -> str:
        """The agent that an owner's memories belong to."""
        return self._names.agent_id(_text(owner))

    def keep(self, owner: Owner) -> None:
        """Keep the name of an owner, if it is longer than an agent id."""
        self._names.keep(_text(owner))

    def owner(self, agent_id: str) -> Owner:
        """Whom an agent of the bank stands for. One whose text is unknown is a user of that id."""
        if agent_id not in self._owners:
            text = self._names.known(agent_id)
            if text is None:
                return Owner("user_id", agent_id)
            name, found, value = text.partition("=")
            is_named = found and name in IDS
            self._owners[agent_id] = Owner(name, value) if is_named else Owner("user_id", text)
        return self._owners[agent_id]

    def parts(self, ids: Mapping[str, str]) -> Iterator[Part]:
        """The agents whose memories may have all of these ids."""
        wanted = {name: value for name, value in ids.items() if value != ANYBODY}
        first = next((name for name in IDS if name in wanted), None)
        before = IDS if first is None else IDS[: IDS.index(first)]
        if first is not None:
            agent_id = self.agent_id(Owner(first, wanted[first]))
            yield Part([agent_id], {name: wanted[name] for name in wanted if name != first})
        agents = self.agents() if before else []
        if owners := [agent for agent in agents if self.owner(agent).name in before]:
            yield Part(owners, wanted)

    def agents(self) -> list[str]:
        """The agents of the bank that stand for an owner: all but the directory of names."""
        return [name for name in self._bank.agents() if name != DIRECTORY]

    def agent_of(self, memory_id: object) -> str | None:
        """The agent that a memory's id names; None if there is no such agent."""
        if not isinstance(memory_id, str):
            return None
        prefix = memory_id[:24]
        if prefix not in self._prefixes:
            blocks = self._bank.engine.state.blocks
            new = set(self.agents()).difference(self._prefixes.values())
            self._prefixes |= {blocks.peek(agent).prefix: agent for agent in new}
        return self._prefixes.get(prefix)


def owner_of(ids: Mapping[str, str]) -> Owner:
    """Whom a new memory with these ids belongs to."""
    name = next(name for name in IDS if name in ids)
    return Owner(name, ids[name])


def _text(owner: Owner) -> str:
    """The text that stands for an owner; no two owners have the same one."""
    if owner.name == "user_id" and "=" not in owner.value:
        return owner.value
    return f"{owner.name}={owner.value}"
