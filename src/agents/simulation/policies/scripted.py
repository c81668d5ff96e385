"""The policy ``scripted``: a list of actions per tick and agent."""

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, final

from ...errors import ConfigError, InvalidInput
from ...memory.records import Hits
from ...memory.requests import check_agent_id, check_whole
from ..protocols import Action, Observation
from . import as_actions

_KEYS = ("tick", "agent", "actions")
_FORM = "an entry is {tick: 3, agent: alice, actions: [{name: …, arguments: {…}}]}"


@final
class Scripted:
    """A script has entries like ``{"tick": 3, "agent": "alice", "actions": [{"name": "wait"}]}``.

    An entry without ``agent`` is for all agents. Entries for the same agent and tick are done in
    the order of the script. An invalid entry is :class:`ConfigError`; the loop refuses an invalid
    action and tells the agent.
    """

    def __init__(self, script: Sequence[Mapping[str, Any]]) -> None:
        if isinstance(script, str | bytes | Mapping) or not isinstance(script, Sequence):
            raise ConfigError(f"script: {script!r:.60} is not a list of entries", hint=_FORM)
        self._by_tick: dict[int, list[tuple[str | None, list[Any]]]] = {}
        for index, entry in enumerate(script):
            tick, agent, actions = _checked(f"script[{index}]", entry)
            self._by_tick.setdefault(tick, []).append((agent, actions))

    def decide(self, observation: Observation, memories: Hits, rng: Random) -> Sequence[Action]:
        """The script's actions for this tick and agent."""
        given: list[Any] = []
        for agent, actions in self._by_tick.get(observation.tick, ()):
            if agent is None or agent == observation.agent_id:
                given += actions
        # A world that changes an action's arguments must not change the script.
        return as_actions(copy.deepcopy(given))


def _checked(where: str, entry: object) -> tuple[int, str | None, list[Any]]:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}: {entry!r:.60} is not a mapping", hint=_FORM)
    for key in entry:
        if key not in _KEYS:
            raise ConfigError(
                f"{where}: there is no key {key!r:.40}", hint=f"allowed: {', '.join(_KEYS)}"
            )
    for key in ("tick", "actions"):
        if key not in entry:
            raise ConfigError(f"{where}: {key} is missing", hint=_FORM)
    try:
        tick = check_whole("tick", entry["tick"], least=1)
        agent = check_agent_id(entry["agent"]) if "agent" in entry else None
    except InvalidInput as error:
        raise ConfigError(f"{where}: {error.why}", hint=error.hint) from None
    actions = entry["actions"]
    if not isinstance(actions, list | tuple):
        raise ConfigError(f"{where}: actions {actions!r:.60} is not a list", hint=_FORM)
    return tick, agent, copy.deepcopy(list(actions))
