"""The answers about two runs: where they part, and a branch from an agent and a tick."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import orjson

from ...config.yaml_files import to_yaml
from ...errors import RunError, TierMemError
from ...memory.records import Memory
from ...simulation.effects.interventions import branch_with, read_intervention
from ...simulation.runs.branch import changed_settings
from ...simulation.runs.compare import only_in
from ...simulation.runs.edits import read_edits
from ...simulation.runs.run import Run
from ...storage.files import TemporaryFolder
from .agent_view import agent_at, memory_row
from .inspected import Inspected
from .parameters import CantTell, NotThere, Parameters, WrongParameter
from .run_view import commits_of, decisions_in

_MOST_EDITS = 1000
_MOST_OPTIONS = 100
_MOST_ONLY = 100
"""Memories that only one run has, and that are listed."""
_MOST_NEIGHBOURS = 200
_MOST_FOLDERS = 2_000


class Parting:
    """The first tick after which two runs differ; it is looked for once, and then remembered."""

    def __init__(self, left: Inspected, right: Inspected) -> None:
        self._runs = left, right
        self._equal_up_to = -1
        self._found: dict[str, Any] | None = None

    def found(self) -> dict[str, Any] | None:
        """The tick, the agent and what differs; None while nothing does."""
        tick = None if self._found else self._first()
        if tick is not None:
            self._found = {"tick": tick, **self._agent(tick)}
        return self._found

    def _first(self) -> int | None:
        records = [{each["tick"]: each for each in run.records()} for run in self._runs]
        common: list[int] = sorted(records[0].keys() & records[1].keys())
        for tick in common:
            if tick > self._equal_up_to:
                one, other = (each[tick] for each in records)
                if (one["state_hash"], one["metrics"]) != (other["state_hash"], other["metrics"]):
                    return tick
                self._equal_up_to = tick
        return None

    def _agent(self, tick: int) -> dict[str, Any]:
        """The first agent whose events or decision differ in a tick, and what differs."""
        for run in self._runs:
            run.need(tick)
        (ours, we), (theirs, they) = (_in_tick(run, tick) for run in self._runs)
        left, right = self._runs
        for agent in left.agents:
            if we.get(agent) != they.get(agent):
                return {"agent": agent, "what": "decision"}
            if ours.get(agent) != theirs.get(agent):
                return {"agent": agent, "what": "memories"}
        if left.agents != right.agents:
            return {"agent": None, "what": "agents"}
        return {"agent": None, "what": "settings or the world's numbers"}


def _in_tick(run: Inspected, tick: int) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """By agent, the events and the decision of a tick."""
    events: dict[str, list[Any]] = {}
    with run.journal() as journal:
        for commit in commits_of(journal, tick):
            for event in orjson.loads(commit.events):
                if event[0] != "tick":
                    events.setdefault(event[1], []).append(event)
        return events, decisions_in(run, journal, tick)


def compare(
    runs: Sequence[Inspected],
    parting: Parting,
    given: Parameters,
    sides: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Two runs side by side: an agent's decision in a tick, and its memories after it.

    ``sides`` are both decisions, where they are known.
    """
    agent = given.text("agent")
    tick = given.whole("tick", min(run.last_tick() for run in runs))
    for run in runs:
        run.need(min(tick, run.last_tick()))
    parted = parting.found()
    both = Parameters({"agent": agent, "tick": str(tick)})
    if sides is None:
        sides = [_side(run, both) for run in runs]
    if sides[0] is None and sides[1] is None:
        raise NotThere(f"neither run has agent {agent!r:.60} in tick {tick}", hint="see api/about")
    after = [
        [] if side is None else _memories(run, both) for run, side in zip(runs, sides, strict=True)
    ]
    only_left, only_right = only_in(*after)
    return {
        "first_difference": parted,
        "left": sides[0],
        "right": sides[1],
        "only_left": list(map(memory_row, only_left[:_MOST_ONLY])),
        "only_left_total": len(only_left),
        "only_right": list(map(memory_row, only_right[:_MOST_ONLY])),
        "only_right_total": len(only_right),
    }


def _side(run: Inspected, given: Parameters) -> dict[str, Any] | None:
    try:
        return agent_at(run, given)
    except NotThere:
        return None


def _memories(run: Inspected, given: Parameters) -> list[Memory]:
    agent = run.agent(given)
    with run.past.after(agent, run.tick(given)) as bank:
        return bank.agent(agent).all()


# The runs around a run


def neighbours(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The other runs in the folder in which a run lies, and the command that compares with each."""
    names = _runs_beside(run) if run.is_run else []
    here = quote(str(run.folder))
    return {
        "total": len(names),
        "runs": [
            {"name": name, "command": f"tiermem inspect {here} {quote(str(beside(run) / name))}"}
            for name in names[:_MOST_NEIGHBOURS]
        ],
    }


def neighbour(run: Inspected, name: str) -> Path:
    """The folder of another run that lies beside a run."""
    if not run.is_run or name not in _runs_beside(run):
        raise NotThere(f"there is no run {name!r:.80} beside {run.name}", hint="see api/beside")
    return beside(run) / name


def _runs_beside(run: Inspected) -> list[str]:
    own = run.folder.resolve()
    try:
        found = [
            each.name
            for each in islice(own.parent.iterdir(), _MOST_FOLDERS)
            if each != own and (each / "run.json").is_file() and (each / "bank").is_dir()
        ]
    except OSError:  # a folder that may not be listed
        return []
    return sorted(name for name in found if not name.startswith("."))


# Branches


def planned(run: Inspected, given: Parameters) -> dict[str, Any]:
    """The command and the file of edits that make a branch."""
    if not run.is_run:
        raise CantTell("a bank without a run can't be branched", hint="tiermem run makes runs")
    tick = run.tick(given)
    edits = _edits(given.text("edits", "[]"))
    out = beside(run) / _free_name(run, given.text("out", ""), tick)
    text = to_yaml(edits)
    name = f"{out.name}-edits.yaml"
    _checked(text)
    options = _options(given.text("options", "[]"))
    _check_options(run, tick, options)
    command = f"tiermem branch {quote(str(run.folder))} --at {tick} --out {quote(str(out))}"
    if edits:
        command += f" --edit {quote(name)}"
    for option, value in options:
        command += f" --{option} {quote(value)}" if value else f" --{option}"
    return {
        "command": command,
        "edits_file": text if edits else "",
        "edits_name": name,
        "out": str(out),
    }


def beside(run: Inspected) -> Path:
    """The folder in which a run lies, as its own was named: a relative path stays relative."""
    named = run.folder.name not in ("", "..")
    return run.folder.parent if named else run.folder / ".."


def branch_name(run: Inspected, tick: int | str) -> str:
    """The name of a branch's folder, if nobody names one."""
    return f"{run.name}-branch-{tick}"


def branched(run: Inspected, given: Parameters, is_stopped: Callable[[], bool]) -> Path:
    """Make the branch, run it to its end unless it is only made, and give its folder.

    :class:`RunError` says that it was stopped, and how it goes on.
    """
    plan = planned(run, given)
    out, edits = Path(plan["out"]), _edits(given.text("edits", "[]"))
    options = _options(given.text("options", "[]"))
    branch_with(
        run.folder,
        run.tick(given),
        out,
        assignments=_changes(options),
        edits=edits,
        forget=_values(options, "forget"),
        never_heard=_values(options, "never-heard"),
        block=_values(options, "block"),
        pin=_values(options, "pin"),
        call=_values(options, "call"),
    )
    if _MAKE_ONLY in options:
        return out
    with Run.open(out) as opened:
        last = opened.settings.simulation.ticks
        for record in opened.advance(last):
            if is_stopped() and record["tick"] < last:
                raise RunError(
                    f"the branch {out.name} was stopped after tick {record['tick']}",
                    hint=f"tiermem resume {quote(str(out))} goes on",
                )
        opened.finish()
    return out


def _edits(text: str) -> list[Mapping[str, Any]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongParameter(f"edits is not JSON: {error}", hint="give a list of edits") from None
    if not isinstance(found, list) or len(found) > _MOST_EDITS:
        raise WrongParameter(f"edits is a list of up to {_MOST_EDITS} edits")
    return found


_Options = Sequence[tuple[str, str]]
"""Names of options of ``tiermem branch``, and their values."""
_OPTIONS = ("set", "forget", "never-heard", "block", "pin", "call", "ticks")
_MAKE_ONLY = ("make-only", "")


def _options(text: str) -> _Options:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongParameter(f"options is not JSON: {error}", hint=_PAIRS) from None
    if not isinstance(found, list) or len(found) > _MOST_OPTIONS:
        raise WrongParameter(f"options is a list of pairs, up to {_MOST_OPTIONS}", hint=_PAIRS)
    for pair in found:
        if not isinstance(pair, list) or [type(each) for each in pair] != [str, str]:
            raise WrongParameter("options is a list of pairs of texts", hint=_PAIRS)
        name, value = pair
        if name == _MAKE_ONLY[0] and value:
            raise WrongParameter(f"--{name} has no value, and got {value!r:.40}", hint=_PAIRS)
        if name not in (*_OPTIONS, _MAKE_ONLY[0]):
            known = ", ".join(f"--{each}" for each in (*_OPTIONS, _MAKE_ONLY[0]))
            raise WrongParameter(f"there is no option --{name:.40}", hint=f"use one of {known}")
        if name in _OPTIONS and (not value.strip() or not value.isprintable()):
            raise WrongParameter(f"--{name} has no value that can be typed", hint=_PAIRS)
    return [(name, value) for name, value in found]


_PAIRS = 'give pairs such as ["set", "memory.max_pinned=3"]'


def _values(options: _Options, name: str) -> list[str]:
    return [value for option, value in options if option == name]


def _changes(options: _Options) -> list[str]:
    """The settings that are changed, as texts."""
    ticks = [f"simulation.ticks={value}" for value in _values(options, "ticks")]
    return [*_values(options, "set"), *ticks]


def _check_options(run: Inspected, tick: int, options: _Options) -> None:
    """Refuse settings and pairs of agents that the command refuses.

    Memories are looked up when the branch is made: in a large run that takes minutes.
    """
    settings, block = run.settings, _values(options, "block")
    try:
        if settings is not None:
            changed_settings(settings, tick, _changes(options))
        if block:
            read_intervention(run.folder, tick, block=block)
    except TierMemError as error:
        raise WrongParameter(error.why, hint=error.hint) from None


def _checked(text: str) -> Sequence[Mapping[str, Any]]:
    """The edits of a file's text, as ``tiermem branch`` reads them."""
    with TemporaryFolder("inspector") as folder:
        path = Path(folder) / "edits.yaml"
        path.write_text(text)
        try:
            return read_edits(path)
        except TierMemError as error:
            why = error.why.replace(f"{path}:", "").strip()
            raise WrongParameter(why, hint=error.hint) from None


def _free_name(run: Inspected, wanted: str, tick: int) -> str:
    if wanted:
        if wanted != Path(wanted).name or wanted.startswith(".") or not wanted.isprintable():
            raise WrongParameter(
                f"out is {wanted!r:.60}", hint="name a folder beside the run, without a path"
            )
        return wanted
    for number in range(1, 10_000):
        name = branch_name(run, tick) + ("" if number == 1 else f"-{number}")
        if not (beside(run) / name).exists():
            return name
    raise CantTell("there are too many branches already", hint="name another with out")
