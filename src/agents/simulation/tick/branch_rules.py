"""Standing rules: what holds in every tick of a branch, so that an experiment changes one thing.

A rule is a JSON value, and ``run.json`` keeps it: a branch that is resumed or replayed has it too.

* ``{"do": "never", "agent": "alice", "tick": 12, "content": "…"}``: the agent hears, sees or stores
  this in that tick, and no memory is born of it. A remark is not heard at all.
* ``{"do": "block", "from": "bob", "to": "alice", "after": 60}``: what bob says reaches alice never
  after that tick, and alice finds nothing that bob wrote, at any time, on a board of a group.
* ``{"do": "future", "number": 3, "after": 60}``: from then on, chance is different.
* ``{"do": "call", "function": "mine:close_the_bridge", "after": 60}``: this function of the user's
  changes the program that makes the ticks, before the next one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

from ...memory.sources import Telling
from ..protocols import Observation, Remark

_FORMS: Mapping[str, Mapping[str, type]] = {
    "never": {"agent": str, "tick": int, "content": str},
    "block": {"from": str, "to": str, "after": int},
    "future": {"number": int, "after": int},
    "call": {"function": str, "after": int},
}


@final
class BranchRules:
    """The rules of a run; most runs have none."""

    def __init__(self, rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self._never: set[tuple[str, int, str]] = set()
        self._blocked: dict[tuple[str, str], int] = {}
        self._futures: list[tuple[int, int]] = []
        self._calls: list[tuple[int, str]] = []
        for rule in check_rules(rules):
            if rule["do"] == "never":
                self._never.add((rule["agent"], rule["tick"], rule["content"]))
            elif rule["do"] == "block":
                pair = rule["from"], rule["to"]
                self._blocked[pair] = min(rule["after"], self._blocked.get(pair, rule["after"]))
            elif rule["do"] == "call":
                self._calls.append((rule["after"], rule["function"]))
            else:
                self._futures.append((rule["after"], rule["number"]))

    def __bool__(self) -> bool:
        return bool(self._never or self._blocked)

    def future(self, tick: int) -> str:
        """What the seeds of a tick's generators add to the run's own."""
        numbers = [f"{after}\0{number}\0" for after, number in self._futures if tick > after]
        return "".join(f"future\0{each}" for each in numbers)

    def calls(self, tick: int) -> list[str]:
        """The functions that change the program before this tick, in order."""
        return [function for after, function in self._calls if after == tick - 1]

    def is_never(self, agent: str, tick: int, content: object) -> bool:
        """Whether this may not become a memory of the agent in this tick."""
        return isinstance(content, str) and (agent, tick, content) in self._never

    def is_blocked(self, speaker: object, listener: str, tick: int) -> bool:
        """Whether what the speaker says in this tick does not reach the listener."""
        after = self._blocked.get((speaker, listener)) if isinstance(speaker, str) else None
        return after is not None and tick > after

    def unheard(self, listener: str, tick: int) -> list[str]:
        """Those whose words do not reach the listener in this tick."""
        return [
            speaker
            for (speaker, other), after in self._blocked.items()
            if other == listener and tick > after
        ]

    def is_unheard(self, told: Telling, tick: int) -> bool:
        """Whether what somebody tells does not reach its receiver."""
        blocked = self.is_blocked(told.sender, told.receiver, tick)
        return blocked or self.is_never(told.receiver, tick, told.content)

    def heard(self, seen: Mapping[str, Observation], tick: int) -> dict[str, Observation]:
        """What reaches each agent of what the world gives it."""
        return {agent: self._heard(agent, each, tick) for agent, each in seen.items()}

    def remembered(self, seen: Observation) -> Observation:
        """An observation without the text that may not become a memory; it was seen all the same.

        Its text stays the query.
        """
        if not self.is_never(seen.agent_id, seen.tick, seen.text):
            return seen
        return seen._replace(text="", query=seen.text if seen.query is None else seen.query)

    def _heard(self, agent: str, seen: Observation, tick: int) -> Observation:
        kept = [each for each in seen.heard if not self.is_unsaid(agent, each, tick)]
        return seen if len(kept) == len(seen.heard) else seen._replace(heard=kept)

    def is_unsaid(self, agent: str, remark: Remark, tick: int) -> bool:
        """Whether a remark does not reach an agent."""
        speaker = remark.speaker or (remark.metadata or {}).get("speaker")
        blocked = self.is_blocked(speaker, agent, tick)
        return blocked or self.is_never(agent, tick, remark.text)


def check_rules(rules: object) -> Sequence[Mapping[str, Any]]:
    """The rules themselves; ValueError if one has the wrong form."""
    if not isinstance(rules, list | tuple):
        raise ValueError(f"{rules!r:.60} is not a list of rules")
    for rule in rules:
        form = _FORMS.get(rule.get("do", "")) if isinstance(rule, dict) else None
        if form is None or rule.keys() != {"do", *form}:
            raise ValueError(f"{rule!r:.60} is not a rule")
        if not all(type(rule[key]) is kind for key, kind in form.items()):
            raise ValueError(f"{rule!r:.60} has a value of another type")
    return rules


NO_RULES = BranchRules()
