"""What a run will ask its language model, by its first ticks with a model that says the least."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from ...bank.memory_bank import MemoryBank
from ...config.settings import LlmSettings, Settings
from ...errors import ConfigError
from ...storage.files import TemporaryFolder
from ..policies.cassette import Cassette
from ..policies.costs import calls_of, spent, spent_by
from ..policies.model import Question, Reply
from ..tick.loop import Loop
from .personas import personas_of
from .scenario import check_scenario, first_memories, make_policy, make_world

_TICKS = 3
WRITTEN = 100
"""The tokens that a reply is taken to have: nobody knows before it is asked for."""


@final
class _Least:
    """A model that gives the least reply of the form asked for, at once."""

    def __init__(self, settings: LlmSettings) -> None:
        self._settings = settings

    def prepare(self) -> None:
        """Nothing is needed."""

    def reply(self, question: Question) -> Reply:
        """The least value that the schema of a question allows."""
        own = self._settings.of(question.agent)
        name = own.model or own.config.get("model")
        text = json.dumps(least({"type": "object"} if question.schema is None else question.schema))
        return Reply(text, written=WRITTEN, seconds=0.0, model=None if name is None else str(name))


def least(schema: Mapping[str, Any]) -> Any:
    """The least value of a JSON schema, as far as our schemas go."""
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return least(schema[choice][0])
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        return {name: least(schema.get("properties", {}).get(name, {})) for name in required}
    if kind == "array":
        return [least(schema.get("items", {}))] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return "-" * schema.get("minLength", 0) if kind == "string" else None


def estimate(settings: Settings, places: Sequence[Path]) -> dict[str, Any]:
    """The calls, tokens and cost of a run, by its first ticks; nobody is asked.

    The last tick that is tried stands for all later ones. In it agents do nothing, so they remember
    less than in the run.
    """
    check_scenario(settings, list(places))
    simulation = settings.simulation
    if simulation.model is not None:
        raise ConfigError(
            "a dry run estimates what the agents of a world ask a language model; "
            f"{simulation.model} is a program of its own",
            hint="leave --dry-run out; TierMem asks no language model for it",
        )
    world = make_world(settings, *places)
    with TemporaryFolder("dry-run") as folder:
        cassette = Cassette(Path(folder) / "cassette.jsonl")
        model = _Least(settings.llm)
        policy = make_policy(settings, world, cassette, *places, model=model)
        tried = min(simulation.ticks, _TICKS)
        with MemoryBank.ephemeral(settings) as bank:
            personas = personas_of(settings, *places)
            loop = Loop(bank, world, policy, simulation.agent_ids(), personas=personas)
            loop.begin(first_memories(settings))
            for _ in range(tried):
                loop.tick()
        calls = calls_of(cassette, settings.llm)
    all_, last = spent(calls), spent([call for call in calls if call.tick == tried])
    more = simulation.ticks - tried
    costs = None if all_.cost is None or last.cost is None else all_.cost + more * last.cost
    return {
        "ticks": simulation.ticks,
        "tried": tried,
        "calls": all_.calls + more * last.calls,
        "read": all_.read + more * last.read,
        "written": all_.written + more * last.written,
        "cost": costs,
        "by_kind": {
            kind: own.calls + more * sum(call.tick == tried for call in calls if call.kind == kind)
            for kind, own in spent_by(calls, "kind").items()
        },
    }
