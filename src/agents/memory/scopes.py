"""Scopes: the projects and environments that agents are in.

A scope is a part of an agent's id, ``@@PROJECT@ENVIRONMENT@NAME``, and the agent is one like any
other: what keeps agents apart keeps projects and environments apart. Project and environment have
no ``@``, so no two scopes have an id in common. No free text has such an id.
"""

import re
from typing import NamedTuple

from ..errors import InvalidAgentId, InvalidInput
from .records import shown
from .requests import check_agent_id

_PART = "[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}"
_ID = re.compile(
    rf"(?P<scope>@@(?P<project>{_PART})?@(?P<environment>{_PART})?@)[A-Za-z0-9_@-][A-Za-z0-9._@-]*"
)
_LONGEST = 128


class Scope(NamedTuple):
    """A project, an environment, or both; or nothing, where agents are that are in no scope."""

    project: str = ""
    environment: str = ""

    def __str__(self) -> str:
        named = zip(self._fields, self, strict=True)
        return ", ".join(f"{field} {value}" for field, value in named if value) or "no project"

    @property
    def prefix(self) -> str:
        """The beginning of the ids of all that is in the scope."""
        return f"@@{self.project}@{self.environment}@" if any(self) else ""

    def agent_id(self, name: object) -> str:
        """The id of the agent, or of the group, that has this name here, or this id."""
        checked = check_agent_id(name)
        if scope_of(checked) == self:
            return checked
        whole = self.prefix + checked
        if len(whole) > _LONGEST:
            raise InvalidAgentId(
                f"{checked} in {self} would have an id of {len(whole)} characters",
                hint=f"an id has at most {_LONGEST}: shorten one of the names",
            )
        return whole

    def name(self, agent_id: str) -> str:
        """The name of an agent, or of a group, without the scope that it is in."""
        return agent_id.removeprefix(self.prefix)


NOWHERE = Scope()
"""The scope of agents that are in none."""


def check_scope(project: object = None, environment: object = None) -> Scope:
    """The scope of these names, of which either may be left out; or :class:`InvalidInput`."""
    for what, value in (("project", project), ("environment", environment)):
        if value is None or (isinstance(value, str) and re.fullmatch(_PART, value)):
            continue
        raise InvalidInput(
            f"{shown(value)} is not the name of {'a' if what == 'project' else 'an'} {what}",
            hint="use 1 to 64 of the characters A–Z a–z 0–9 . _ -, not starting with a dot",
        )
    return Scope(*(str.__str__(value) if value else "" for value in (project, environment)))


def scope_of(agent_id: str) -> Scope:
    """The scope that an agent, or a group, of this id is in."""
    if not agent_id.startswith("@@"):
        return NOWHERE
    found = _ID.fullmatch(agent_id)
    return NOWHERE if found is None else Scope(found["project"] or "", found["environment"] or "")


def check_same_scope(agent_id: str, other: str) -> None:
    """Raise :class:`InvalidInput` if something of one scope would reach another one."""
    here, there = scope_of(agent_id), scope_of(other)
    if here != there:
        raise InvalidInput(
            f"{other} is not in the scope of {agent_id}, which is {here}",
            hint=f"in that scope there may be {here.prefix}{there.name(other)}",
        )
