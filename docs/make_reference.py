"""Makes the pages of the reference, each from the one table that the code has.

``make reference`` writes docs/reference/operations.md. The pages of commands, settings and Python
are made when the site is built: ``make docs``.
"""

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tiermem import errors
from tiermem.config.settings import Settings
from tiermem.interfaces.cli import app
from tiermem.interfaces.cli.failures import usage
from tiermem.interfaces.cli.help import meaning, value
from tiermem.tools import ERROR, OPERATIONS, Failure, Operation
from tiermem.tools.shapes import MEMORY, Schema

PAGE = Path(__file__).with_name("reference") / "operations.md"
SCHEMA = Path(__file__).parents[1] / "config/schema.yaml"

_INTRODUCTION = """\
# Operations

What an agent can do with its memory, through MCP, HTTP, or the tool calls of a language model: the
names, arguments and results are the same everywhere. None of them can reach another agent's memory.
In Python, [a loop with a model](../howto/llm-loop.md) calls them with
`tools.call(memory, name, arguments)`, and `agent.call(name, …)` gives the result itself. A bank
with a [profile](../howto/profiles.md) has the operations of the profile instead.

Arguments that are not listed are refused; `null` for an optional one means that it is not given.
Names of other clients are understood where they mean one thing: camelCase (`autoPromote`,
`memoryId`), `sessionId` for `session`, `type` for `kind`, `limit` for `max_results`, and hot, warm
or cold as a `tier`, which are temperatures.
Over HTTP, what is in braces in a path is an argument, and the others are the JSON body, or for GET
and DELETE the query string.
"""

_ERRORS = """\
## Errors

An operation that is refused has changed nothing (but see `CommitUnknown`). It gives, instead of its
result, an error that a model or a person can act on:

{example}

{fields}
{table}
`tools.call` never raises an exception: it gives an `Outcome`, whose `is_error` says which of the
two it is.

## Other errors

What else Python code can meet when it opens, keeps or simulates a bank. `except TierMemError`
catches all errors of TierMem; the tree is in `src/agents/errors.py`.

{others}"""

_TOLD = (
    errors.InvalidInput,
    errors.InvalidContent,
    errors.InvalidMetadata,
    errors.MemoryNotFound,
    errors.MemoryPinned,
    errors.TierFull,
    errors.NoteRefused,
    errors.EmbedderError,
    errors.StoreError,
    errors.CommitFailed,
    errors.CommitUnknown,
    errors.BankClosed,
    errors.BankBroken,
    errors.BankDamaged,
    errors.Untrusted,
)
"""The errors that an operation can meet."""


def operations() -> str:
    """The page of all operations, as Markdown."""
    parts = [_INTRODUCTION, _overview(), *map(_section, OPERATIONS.values()), _memory(), _errors()]
    return "\n".join(parts)


def _overview() -> str:
    rows = (
        (f"[`{each.name}`](#{each.name})", each.permission, _route(each), each.description)
        for each in OPERATIONS.values()
    )
    return _table(("operation", "permission", "HTTP", "what it does"), rows)


def _section(operation: Operation) -> str:
    lasting = " What it deletes may be gone for good." if operation.destroys else ""
    return "\n".join(
        (
            f"## {operation.name}\n",
            f"{operation.description}\n",
            f"Permission: {operation.permission}.{lasting} "
            f"HTTP: {_route(operation)}, answers {operation.route.status}.\n",
            _arguments(operation.arguments),
            f"Result:{_result(operation.result)}",
            f"Example:\n\n{_json(operation.example)}\n",
        )
    )


def _route(operation: Operation) -> str:
    return f"`{operation.route.method} {operation.route.path}`"


# Arguments


def _arguments(schema: Schema) -> str:
    if not schema["properties"]:
        return "It takes no arguments.\n"
    required = schema.get("required", ())
    rows = (
        (f"`{name}`", _type(each), _allowed(each), "yes" if name in required else "", _said(each))
        for name, each in schema["properties"].items()
    )
    return _table(("argument", "type", "allowed", "required", "description"), rows)


def _type(schema: Schema) -> str:
    """The type of a value, in words."""
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_type(schema['items'])}"
    return str(kind)


def _allowed(schema: Schema) -> str:
    """The values that the schema allows, in words."""
    if "anyOf" in schema:
        return _allowed(schema["anyOf"][0])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    parts = [
        _span(schema.get("minimum"), schema.get("maximum"), ""),
        _span(schema.get("minLength"), schema.get("maxLength"), " characters"),
        _span(schema.get("minItems"), schema.get("maxItems"), " entries"),
        _span(schema.get("minProperties"), schema.get("maxProperties"), " entries"),
    ]
    if "items" in schema and (each := _allowed(schema["items"])):
        parts.append(f"each {each}")
    return "; ".join(part for part in parts if part)


def _span(least: float | None, most: float | None, unit: str) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f"from {least:,}{unit}"
    return f"up to {most:,}{unit}" if least is None else f"{least:,} to {most:,}{unit}"


def _said(schema: Schema) -> str:
    return str(schema.get("description", ""))


# Results


def _result(schema: Schema) -> str:
    if "anyOf" in schema:
        return "\n\n" + "\nor\n\n".join(_fields_table(each) for each in schema["anyOf"])
    if schema == MEMORY:
        return " [a memory](#a-memory).\n"
    if "properties" not in schema:
        return " an object.\n"
    return "\n\n" + _fields_table(schema)


def _fields_table(schema: Schema) -> str:
    rows = ((f"`{path}`", kind, _said(each)) for path, kind, each in _fields(schema, ""))
    return _table(("field", "type", "description"), rows)


def _fields(schema: Schema, before: str) -> Iterator[tuple[str, str, Schema]]:
    """Path, type and schema of each field of an object, and of the objects in its lists."""
    for name, each in schema["properties"].items():
        path = f"{before}{name}"
        inner, shown = (each["items"], f"{path}[]") if "items" in each else (each, path)
        if "properties" not in inner:
            yield path, _type(each), each
        elif MEMORY["properties"].items() <= inner["properties"].items():
            yield shown, "[a memory](#a-memory)", each
            yield from _fields({"properties": _beyond_a_memory(inner)}, f"{shown}.")
        else:
            yield from _fields(inner, f"{shown}.")


def _beyond_a_memory(schema: Schema) -> dict[str, Schema]:
    return {
        name: each
        for name, each in schema["properties"].items()
        if name not in MEMORY["properties"]
    }


def _memory() -> str:
    rows = (
        (f"`{name}`", _type(each), _allowed(each), _said(each))
        for name, each in MEMORY["properties"].items()
    )
    table = _table(("field", "type", "allowed", "description"), rows)
    optional = [f"`{name}`" for name in MEMORY["properties"] if name not in MEMORY["required"]]
    some = f"{', '.join(optional[:-1])} and {optional[-1]}"
    said = f"All of these fields are always there, but for {some}, where a memory has none."
    return f"## A memory\n\n{said}\n\n{table}"


def _errors() -> str:
    failure = Failure("MemoryNotFound", "alice has no memory '42'")
    rows = [_meaning(each) for each in _TOLD]
    rows.append(("`InternalError`", "Something went wrong inside TierMem; its log says what."))
    every = (each for each in vars(errors).values() if isinstance(each, type))
    others = [each for each in every if each not in _TOLD and issubclass(each, Exception)]
    heads = ("type", "meaning")
    return _ERRORS.format(
        example=_json(failure.to_dict()),
        fields=_fields_table(ERROR),
        table=_table(heads, rows),
        others=_table(heads, map(_meaning, others)),
    )


def _meaning(error: type) -> tuple[str, str]:
    return f"`{error.__name__}`", _first_line(error)


# Settings

_SETTINGS = """\
# Settings

Every setting with its default, what it does, and what it accepts. Your own file names only what it
changes, and so do `--set memory.max_pinned=3` and keyword arguments: [settings and
presets](../guide.md#settings-and-presets). `tiermem config` checks a file and prints the result.
"""


def settings() -> str:
    """The page of all settings, as Markdown."""
    schema = yaml.safe_load(SCHEMA.read_text("utf-8"))
    of_all, parts = [], [_SETTINGS]
    for name, each in schema["properties"].items():
        default = Settings().to_dict()[name]
        if "properties" not in each:
            of_all.append(_setting(name, each, default))
            continue
        rows = [_setting(*row) for row in _settings_of(each, default, "", schema)]
        parts.append(f"## {name}\n\n{_about(each)}\n\n{_table(_SETTING, rows)}")
    return "\n".join([parts[0], _table(_SETTING, of_all), *parts[1:]])


_SETTING = ("setting and default", "what it does, and what it accepts")


def _settings_of(
    section: Schema, defaults: Any, before: str, schema: Schema
) -> Iterator[tuple[str, Schema, Any]]:
    """Name, schema and default of each setting of a section, and of the sections in it."""
    for key, each in section["properties"].items():
        default = defaults.get(key) if isinstance(defaults, Mapping) else None
        if "$ref" in each:
            each = {"type": "object", "description": "A condition; see `rules` above."}
        yield f"{before}{key}", each, default
        if "properties" in each:
            yield from _settings_of(each, default, f"{before}{key}.", schema)


def _setting(name: str, schema: Schema, default: Any) -> tuple[str, str]:
    if "properties" in schema:
        return f"`{name}`", _about(schema)
    shown = f"`{name}: {json.dumps(default, ensure_ascii=False)}`"
    if len(shown) > 60:
        shown = f"`{name}` ([default](../../config/config.yaml))"
    return shown, f"{_about(schema)} *{_accepts(schema)}*".strip()


def _accepts(schema: Schema) -> str:
    """The type of a setting and what it allows, in words."""
    if "else" in schema:
        return f"{_accepts(schema['else'])}; or a list"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`".replace('"', "") for each in schema["enum"])
    kind = schema.get("type", "any")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    words = words.replace("array", "list").replace("object", "mapping")
    above = schema.get("exclusiveMinimum")
    allowed = [
        schema.get("title", ""),
        "" if above is None else f"above {above:,}",
        _span(schema.get("minimum"), schema.get("maximum"), ""),
        _span(schema.get("minItems"), schema.get("maxItems"), " entries"),
    ]
    return "; ".join([words, *filter(None, allowed)])


def _about(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split())


# Commands

_COMMANDS = """\
# Commands

`tiermem COMMAND --help` prints the same. Results go to standard output: tables on a terminal, lines
with tabs elsewhere, JSON with `--json`. Errors and progress go to standard error. Exit codes: 0
done; 1 it could not be done, or a replay differs; 2 wrong use or wrong settings; 3 a run is paused
and can go on later; 130 or 143 stopped by Ctrl-C or SIGTERM.
"""


def commands() -> str:
    """The page of all commands, as Markdown."""
    parts = [_COMMANDS]
    for title, entries in app.COMMANDS.items():
        rows = [(f"[`{name}`](#{_anchor(name)})", line) for name, _, line in entries]
        parts.append(f"{title}:\n\n{_table(('command', 'what it does'), rows)}")
    names = [name for entries in app.COMMANDS.values() for name, _, _ in entries]
    return "\n".join([*parts, *map(_of_command, names)])


def _anchor(command: str) -> str:
    return f"tiermem-{command.replace(' ', '-')}"


def _of_command(name: str) -> str:
    """What the page says of a command."""
    first, *rest = name.split()
    command = app._command(first)
    context = command.make_context(f"tiermem {first}", [], resilient_parsing=True)
    if rest:
        command = command.get_command(context, rest[0])
        context = command.make_context(rest[0], [], parent=context, resilient_parsing=True)
    help_text = inspect.cleandoc(command.help or "")
    shown = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    rows = [
        (f"`{_named(each)}`", _escaped(meaning(each, " (required)").plain))
        for each in shown
        if each.name != "help"
    ]
    form = f"```console\n$ {context.command_path} {usage(context)}\n```\n"
    table = _table(("argument or option", "what it is for"), rows)
    return f"## tiermem {name}\n\n{_escaped(help_text)}\n\n{form}\n{table}"


def _named(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    return f"{', '.join(parameter.opts)} {value(parameter)}".strip()


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")


# Markdown


def _first_line(described: type) -> str:
    return (inspect.getdoc(described) or "").partition("\n")[0].replace("``", "`")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(heads), "|---" * len(heads) + "|", *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _json(value: Any) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"


# Python

PYTHON: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "bank": (
        "A bank",
        "`from tiermem import MemoryBank`. A bank holds the memories of all agents. "
        "`checkpoint_extra`, `backup` and `reembed` are called on the class: "
        "`MemoryBank.backup(…)`.",
        (
            "tiermem.bank.memory_bank.MemoryBank",
            "tiermem.bank.memory_bank.Group",
            "tiermem.bank.history.checkpoint_extra",
            "tiermem.bank.backup.backup",
            "tiermem.bank.backup.Backup",
            "tiermem.bank.history.reembed",
            "tiermem.bank.async_bank.AsyncMemoryBank",
        ),
    ),
    "agent": (
        "An agent's memory",
        "`bank.agent('alice')` gives an `AgentMemory`; the others are parts of it.",
        (
            "tiermem.bank.agent_memory.AgentMemory",
            "tiermem.bank.agent_session.AgentSession",
            "tiermem.bank.agent_social.AgentSocial",
            "tiermem.notes.agent_notes.AgentNotes",
        ),
    ),
    "values": (
        "Memories and results",
        "What calls take and give. All values are frozen.",
        (
            "tiermem.memory.records.Memory",
            "tiermem.memory.sources.Source",
            "tiermem.memory.records.Hit",
            "tiermem.memory.records.Hits",
            "tiermem.memory.records.Explanation",
            "tiermem.memory.records.Recall",
            "tiermem.memory.records.Spill",
            "tiermem.memory.records.Compaction",
            "tiermem.memory.tiers.Tier",
            "tiermem.memory.tiers.Temperature",
            "tiermem.memory.tiers.Retention",
        ),
    ),
    "errors": (
        "Errors",
        "`except TierMemError` catches all of them. Each says what happened, why, and what to do.",
        ("tiermem.errors",),
    ),
    "simulation": (
        "Simulations",
        "`from tiermem import simulate, experiment, world, trust`, and `tiermem.simulation`.",
        (
            "tiermem.simulation.runs.simulate.simulate",
            "tiermem.simulation.runs.simulate.experiment",
            "tiermem.simulation.small_world.world",
            "tiermem.simulation.small_world.Tick",
            "tiermem.simulation.small_world.Turn",
            "tiermem.simulation.runs.run.Run",
            "tiermem.simulation.tick.loop.Loop",
            "tiermem.simulation.protocols",
            "tiermem.simulation.society.Place",
            "tiermem.simulation.society.Society",
            "tiermem.simulation.runs.trust.trust",
        ),
    ),
    "studies": (
        "Effects, sweeps and studies",
        "`tiermem.simulation.effects`, `tiermem.simulation.sweeps` and `tiermem.analysis`.",
        (
            "tiermem.simulation.effects.experiment.effect",
            "tiermem.simulation.effects.experiment.expected_cost",
            "tiermem.simulation.effects.which.which",
            "tiermem.simulation.effects.which.which_cost",
            "tiermem.simulation.effects.results.Effect",
            "tiermem.simulation.effects.results.Ranked",
            "tiermem.simulation.sweeps.record.SweepRecord",
            "tiermem.simulation.sweeps.fit.fit",
            "tiermem.analysis",
        ),
    ),
    "tools": (
        "Tools for language models",
        "`from tiermem import tools`: [the operations](../operations.md), for a model to call.",
        ("tiermem.tools.calling", "tiermem.tools.operations"),
    ),
    "testing": (
        "Tests of your own",
        "`from tiermem.testing import …`: [laws](../../howto/test-your-own.md) that pytest tries.",
        (
            "tiermem.testing.embedder_laws.EmbedderLaws",
            "tiermem.testing.store_laws.StoreLaws",
            "tiermem.testing.world_laws.WorldLaws",
            "tiermem.testing.policy_laws.PolicyLaws",
            "tiermem.testing.agent_memory_laws.AgentMemoryLaws",
            "tiermem.testing.laws",
            "tiermem.testing.small.SmallEmbedder",
            "tiermem.testing.strategies",
        ),
    ),
    "adapters": (
        "Adapters",
        "Memory for the agents of other frameworks, and what adapters are made with.",
        (
            "tiermem.mesa.memories.Memories",
            "tiermem.simulation.runs.model_memory.ModelMemory",
            "tiermem.mesa.page.make_memory_component",
            "tiermem.mesa_llm",
            "tiermem.langgraph.store",
            "tiermem.langgraph.embedder",
            "tiermem.mem0",
            "tiermem.concordia",
            "tiermem.autogen",
            "tiermem.camel",
            "tiermem.llama_index",
            "tiermem.oasis",
            "tiermem.agent_society",
            "tiermem.openai_agents",
            "tiermem.pydantic_ai",
            "tiermem.google_adk",
            "tiermem.agent_ecology",
            "tiermem.adapting",
        ),
    ),
}
"""Pages of the Python API: title, what stands first, and the classes, functions and modules."""


def python_page(name: str) -> str:
    """A page whose text mkdocstrings makes of docstrings, as Markdown."""
    title, about, things = PYTHON[name]
    # A bank and its agents are opened, not constructed.
    options = "\n    options: {merge_init_into_class: false}" if name in ("bank", "agent") else ""
    return "\n\n".join([f"# {title}", about, *(f"::: {each}{options}" for each in things)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(operations(), encoding="utf-8")
