"""Arguments and options that several commands take, and what they say."""

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Argument, BadParameter, Option

from ...errors import InvalidInput
from ...memory.requests import FIELDS, Field
from .output import say

if TYPE_CHECKING:
    from ...config.settings import Settings
    from ...memory.records import Scalar


BankFolder = Annotated[Path, Argument(metavar="BANK", help="The bank's folder.")]
RunFolder = Annotated[Path, Argument(metavar="RUN", help="The run's folder.")]
Whose = Annotated[str, Option("--agent", "-a", help="The agent whose memory it is.")]
OneAgent = Annotated[str | None, Option("--agent", "-a", help="Only the memories of this agent.")]
Session = Annotated[
    str | None,
    Option("--session", metavar="NAME", help="Only what is part of this session of the agent."),
]
Config = Annotated[
    Path | None,
    Option("--config", "-c", metavar="FILE", help="A YAML file with settings of your own."),
]
Preset = Annotated[
    str | None,
    Option(
        "--preset",
        metavar="NAME",
        help="Settings for a way of working: tiers, hot-warm-cold, hot-cold-session or lifetime; "
        "or of searching: hybrid, quality, vector or weighted-sum; or a classic agent: "
        "generative-agents, memorybank or recency.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as memory.max_pinned=3; can be repeated.",
    ),
]
Profile = Annotated[
    str | None,
    Option(
        "--profile",
        metavar="NAME",
        help="Stand in the place of another system, with its names and defaults: such as "
        "memorysync.",
    ),
]
Create = Annotated[bool, Option("--create", help="Make the bank if there is none.")]
DryRun = Annotated[bool, Option("--dry-run", "-n", help="List what would change; change nothing.")]
OutFolder = Annotated[
    Path, Option("--out", "-o", metavar="FOLDER", help="The folder of the new run.")
]
Limit = Annotated[
    int | None,
    Option(
        "--limit", "-l", min=1, help="At most this many memories; without it, memory.default_limit."
    ),
]
Force = Annotated[bool, Option("--force", help="Replace an existing file or folder.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors only.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON, and nothing else.")]
Address = Annotated[
    str | None,
    Option(help="Ray's cluster: local starts one here, auto finds one, or host:port."),
]
AllowHosts = Annotated[
    list[str] | None,
    Option(
        "--allow-host",
        metavar="NAME",
        help="Another host name by which clients reach the service; can be repeated.",
    ),
]
AllowOrigins = Annotated[
    list[str] | None,
    Option(
        "--allow-origin", help="Web pages that may use the service from a browser; can be repeated."
    ),
]


def no_nan(value: float | None) -> float | None:
    """A callback of an option that takes a number: nan is neither too small nor too large."""
    if value is not None and math.isnan(value):
        raise BadParameter("nan is not a number.")
    return value


def flags(
    preset: str | None, assignments: Sequence[str] | None, profile: str | None = None
) -> list[str]:
    """What --preset, --profile and --set say, as assignments.

    --preset and --set beat a file, and --set beats --preset; a file beats what the profile says.
    """
    chosen = [
        *([] if profile is None else [f"profile={json.dumps(profile)}"]),
        *(assignments or ()),
    ]
    if preset is None:
        return chosen
    from ...config.load import preset_settings

    named = preset_settings(preset).items()
    return [*(f"{key}={json.dumps(value)}" for key, value in named), *chosen]


def tell_idle(
    preset: str | None,
    assignments: Sequence[str] | None,
    load: "Callable[[list[str]], Settings]",
    tell: Callable[[str], None] | None = None,
    profile: str | None = None,
) -> None:
    """Tell of the flags without which ``load`` gives the same settings, with the same profile.

    Without ``tell``, standard error gets it. The value of a provider's option may be a secret, and
    is not repeated.
    """
    tell = tell or partial(say, err=True)
    chosen = list(assignments or ())
    without = []
    for at, text in enumerate(chosen):
        key = text.partition("=")[0]
        shown = key if "config" in key.split(".") else text
        without.append((f"--set {shown}", (preset, [*chosen[:at], *chosen[at + 1 :]])))
    if preset is not None:
        without.append((f"--preset {preset}", (None, chosen)))
    settings = load(flags(preset, chosen, profile)) if without else None
    for flag, left in without:
        if load(flags(*left, profile)) == settings:
            tell(f"{flag} changes nothing here: these settings are so already")


# What options say


_Command = TypeVar("_Command", bound=Callable[..., None])

_SIGNS = {">=": "$gte", "<=": "$lte", "!=": "$ne", ">": "$gt", "<": "$lt"}
_COMPARED = re.compile(r"([^<>=!]+)([<>=!]+)(.*)", re.DOTALL)
_NO_MAXIMUM = 2**31
_WRITE = """write --filter place=bay, 'day>=3' (or <=, >, <, !=), or JSON, or 'sign="<"'"""


def tier_of(text: str) -> str | int:
    """What a --tier says: a name, or a number."""
    return int(text) if text in ("0", "1", "2", "3", "4") else text


def condition(text: str) -> dict[str, Any]:
    """What a --filter says: JSON, or a name of metadata and its value."""
    if not text.lstrip().startswith("{"):
        compared = _COMPARED.fullmatch(text)
        if compared is None:
            raise InvalidInput(f"--filter {text!r:.80} compares nothing", hint=_WRITE)
        name, sign, value = (each.strip() for each in compared.groups())
        if sign != "=" and (sign not in _SIGNS or not value):
            raise InvalidInput(f"--filter {text!r:.80} can't be read", hint=_WRITE)
        meant = _scalar(value)
        if name.removeprefix("metadata.") == "session" and sign in ("=", "!="):
            from ...memory.filters import in_session

            return in_session(meant) if sign == "=" else {"$not": in_session(meant)}
        is_ = meant if sign == "=" else {_SIGNS[sign]: meant}
        return {f"metadata.{name.removeprefix('metadata.')}": is_}
    try:
        conditions = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--filter {text!r:.80} is not JSON: {error}", hint=_WRITE) from None
    return dict(conditions)


def pair(text: str) -> "tuple[str, Scalar]":
    """What a --meta says."""
    key, sign, value = text.partition("=")
    if not sign:
        raise InvalidInput(
            f"--meta takes KEY=VALUE; got {text!r:.80}", hint="write it as in --meta source=chat"
        )
    return key, _scalar(value)


def _scalar(text: str) -> "Scalar":
    """A number, true, false or null, if the text is one in JSON; else the text."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(parsed, list | dict) else parsed


def value_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"--value {text!r:.80} is not JSON: {error!s:.80}",
            hint="""write --value '{"a": [1]}'""",
        ) from None


# The optional fields of a new memory


def with_fields(command: _Command) -> _Command:
    """The command with an option for each optional field of a memory, after ``--tier``.

    The command takes them as its keyword arguments; :func:`field_of` reads them.
    """
    given = signature(command).parameters.values()
    plain = [each for each in given if each.kind is not Parameter.VAR_KEYWORD]
    place = [each.name for each in plain].index("tier") + 1
    plain[place:place] = [_parameter(field) for field in FIELDS.values() if field.schema]
    whole = signature(command).replace(parameters=plain)
    command.__signature__ = whole  # type: ignore[attr-defined]
    return command


ALSO = {"kind": ("--category",)}
"""What profiles call an option: a command is read before its bank, and the bank's profile, is."""


def _parameter(field: Field) -> Parameter:
    schema, names = field.schema, [f"--{field.name}", *ALSO.get(field.name, ())]
    text, more = field.option or schema["description"], dict[str, Any]()
    kind: Any = str | None
    if schema["type"] == "integer":
        kind, more["min"] = int | None, schema["minimum"]
        if schema["maximum"] < _NO_MAXIMUM:
            more["max"] = schema["maximum"]
    elif schema["type"] == "array":
        kind, names = list[str] | None, [f"--{field.name.removesuffix('s')}"]
        text += "; can be repeated."
    said = Option(*names, metavar=field.metavar, help=text, **more)
    return Parameter(
        field.name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[kind, said]
    )


def field_of(field: Field, value: Any, id_of: Callable[[str], str]) -> Any:
    """What the option of a field says; ``id_of`` gives the whole id of a memory."""
    if field.names_memories:
        return list(map(id_of, value)) if isinstance(value, list) else id_of(value)
    return value_of(value) if field.schema["type"] == "object" else value


# Texts

_MOST_STDIN = 4 << 20
"""Bytes that are read; no memory and no note may have as many."""


def text_of(words: Sequence[str]) -> str:
    """The words as one text; a single ``-`` stands for the text on standard input."""
    if list(words) != ["-"]:
        return " ".join(words)
    data = sys.stdin.buffer.read(_MOST_STDIN)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"standard input is not UTF-8 (byte {error.start + 1})", hint="convert it first"
        ) from None
