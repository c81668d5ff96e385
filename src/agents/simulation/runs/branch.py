"""Branches: a new run starts from a tick of another run, with changed settings or memories.

A copy of a run in which all agents are in one bank is made in the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from ...bank import history
from ...bank.agent_memory import AgentMemory
from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings
from ...config.yaml_files import read_file
from ...errors import ConfigError, RunError, TierMemError
from ...memory.records import Memory, id_prefix, whole_id
from ...storage.files import copy_file
from ...version import __version__
from ..policies.cassette import Cassette
from ..workers.cells import CASSETTE, SHARDS, base_of, gather_cassettes
from ..worlds.outside import check_inside
from .folder import as_run_error, make_folder, places_of_code
from .placement import LOCAL, is_over_workers, reading
from .record import last_tick
from .run import Run
from .scenario import check_scenario
from .trust import check_run, is_trusted_run, seal_run

_FORM = (
    "an edit is {agent: alice, do: add, content: …, tier: pinned}, or "
    "{agent: alice, do: pin|unpin|set_tier|delete|forget, memory: ID} with `matching: text` in the "
    "place of `memory` for every memory that holds this text"
)
_CHOICE = ("agent", "do", "memory", "matching")
_KEYS = {
    "add": ("agent", "do", "content", "tier", "metadata"),
    "pin": _CHOICE,
    "unpin": _CHOICE,
    "set_tier": (*_CHOICE, "tier"),
    "delete": _CHOICE,
    "forget": _CHOICE,
}
"""The keys of an edit, by its ``do``."""


def branch(
    parent: Path,
    tick: int,
    folder: Path,
    *,
    assignments: Iterable[str] = (),
    edits: Sequence[Mapping[str, Any]] = (),
    rules: Sequence[Mapping[str, Any]] = (),
    force: bool = False,
    asks_anew: bool = False,
) -> None:
    """Make the folder of a run that starts from ``parent`` after ``tick``, and apply the edits.

    ``rules`` hold in every tick of the new run, beside those of ``parent``: see
    :mod:`tiermem.simulation.tick.branch_rules`. A language model's answers of ``parent`` are those
    of the new run where the prompts are the same; with ``asks_anew``, only those up to ``tick``.
    """
    settings, about = reading(parent)
    check_inside(settings)
    last = last_tick(parent)
    if not 0 <= tick <= last:
        raise RunError(
            f"{parent} has ticks 0 to {last}; it can't be branched at {tick}",
            hint=f"give --at a tick from 0 to {last}",
        )
    changed = changed_settings(settings, tick, assignments)
    if folder.resolve() == parent.resolve():
        raise RunError(
            f"{folder} is the run itself", hint="a branch needs a folder of its own: name another"
        )
    known = changed.simulation.agent_ids()
    for index, edit in enumerate(edits, start=1):
        if edit["agent"] not in known:
            raise RunError(
                f"edit {index}: there is no agent {edit['agent']!r:.60} in {parent}",
                hint=f"list its agents with: tiermem show {quote(str(parent))}",
            )
    check_run(parent, changed, is_parent=True)
    code = check_scenario(changed, places_of_code(parent, about))

    def fill(new: Path) -> None:
        with as_run_error(f"{parent} can't be branched at tick {tick}"):
            _copy(parent, tick, new, changed, tick if asks_anew else None)
        with MemoryBank.open(new / "bank", changed, storage={"sync": "manual"}) as bank:
            apply_edits(bank, edits)

    made = {
        "format": about["format"],
        "tiermem": __version__,
        "scenario": about.get("scenario"),
        "parent": {"run": str(parent.absolute()), "tick": tick, "edits": len(edits)},
    }
    if not asks_anew and (parent / CASSETTE).exists():  # what it begins with is paid for
        made["parent"]["cassette"] = (parent / CASSETTE).stat().st_size
    if standing := [*about.get("rules", ()), *rules]:
        made["rules"] = standing
    make_folder(folder, changed, made, code, force=force, fill=fill)


def merge(folder: Path, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Copy a run to the folder ``out``, with all agents in one bank; the summary of the copy."""
    settings, about = reading(folder)
    if out.resolve() == folder.resolve():
        raise RunError(f"{out} is the run itself", hint="name another folder with --out")
    check_run(folder, settings, is_parent=True)
    code = check_scenario(settings, places_of_code(folder, about))

    def fill(new: Path) -> None:
        with as_run_error(f"{folder} can't be copied"):
            _copy(folder, last_tick(folder), new, settings)
        if is_over_workers(folder):
            shards = folder / SHARDS
            gather_cassettes(shards, base_of(shards).cells, Cassette(new / CASSETTE))

    kept = {name: value for name, value in about.items() if name != "engine"}
    make_folder(out, settings, kept, code, force=force, fill=fill)
    with Run.open(out, engine=LOCAL) as run:
        return run.finish()


def _copy(
    run: Path, tick: int, new: Path, settings: Settings, last_answers: int | None = None
) -> None:
    """Copy what a run has up to a tick to the folder of a new run with these settings.

    A language model's answers are copied whole, so that none is paid for twice, or up to a tick.
    """
    history.branch(run / "bank", tick, new / "bank")
    if last_answers is not None:
        answers = Cassette(new / CASSETTE)
        for exchange in Cassette(run / CASSETTE, replay=True):
            if exchange.tick <= last_answers:
                answers.record(exchange)
    elif (run / CASSETTE).exists():
        copy_file(run / CASSETTE, new / CASSETTE)
    if is_trusted_run(run):
        seal_run(new, settings)


def changed_settings(settings: Settings, tick: int, assignments: Iterable[str]) -> Settings:
    """The settings of a branch after ``tick``; an error says which of them can't be changed."""
    changed = load_settings(settings, assignments=assignments)
    _refuse_what_is_fixed(settings, changed)
    if changed.simulation.ticks < tick:
        raise RunError(
            f"a branch at tick {tick} can't be {changed.simulation.ticks} ticks long",
            hint=f"give --ticks from {tick} on, or leave it out",
        )
    return changed


def read_edits(path: Path) -> list[Mapping[str, Any]]:
    """The edits in a YAML file; ConfigError if an edit has the wrong form."""
    document = read_file(path)
    edits = document.value
    if not isinstance(edits, list):
        raise ConfigError(f"{document.source}: a list of edits is needed", hint=_FORM)
    for index, edit in enumerate(edits):
        where = f"{document.place((index,))}: edit {index + 1}"
        if not isinstance(edit, dict) or not isinstance(edit.get("agent"), str):
            raise ConfigError(f"{where} names no agent", hint=_FORM)
        if edit.get("do") not in list(_KEYS):
            raise ConfigError(f"{where} has no such `do`: {edit.get('do')!r:.40}", hint=_FORM)
        unknown = [key for key in edit if key not in _KEYS[edit["do"]]]
        if unknown:
            raise ConfigError(f"{where} has an unknown key {unknown[0]!r:.40}", hint=_FORM)
        if edit["do"] == "add" and not isinstance(edit.get("content"), str):
            raise ConfigError(f"{where} adds nothing: it needs a content", hint=_FORM)
        if edit["do"] != "add" and ("memory" in edit) == ("matching" in edit):
            raise ConfigError(f"{where} needs either memory or matching", hint=_FORM)
        if edit["do"] == "set_tier" and "tier" not in edit:
            raise ConfigError(f"{where} needs a tier", hint=_FORM)
    return edits


def apply_edits(bank: MemoryBank, edits: Sequence[Mapping[str, Any]]) -> None:
    """Change the memories of a branch's bank as the edits say, in one commit."""
    with bank.transaction():
        for index, edit in enumerate(edits, start=1):
            try:
                _apply(bank.agent(edit["agent"]), edit)
            except TierMemError as error:
                raise RunError(
                    f"edit {index} can't be made: {error.why}", hint=error.hint
                ) from error


def _apply(agent: AgentMemory, edit: Mapping[str, Any]) -> None:
    do = edit["do"]
    if do == "add":
        agent.add(edit["content"], edit.get("tier", "normal"), edit.get("metadata"))
        return
    for memory in _chosen(agent, edit):
        if do == "pin":
            agent.pin(memory.id)
        elif do == "unpin":
            agent.unpin(memory.id)
        elif do == "set_tier":
            agent.set_tier(memory.id, edit["tier"])
        elif do == "forget":  # also a pinned memory: an edit is not the agent's own doing
            agent.unpin(memory.id)
            agent.forget(memory.id)
        else:
            agent.delete(memory.id)


def _chosen(agent: AgentMemory, edit: Mapping[str, Any]) -> list[Memory]:
    if "memory" in edit:
        identifier = edit["memory"]
        if isinstance(identifier, str):
            identifier = whole_id(id_prefix(agent.engine.settings.seed, agent.agent_id), identifier)
        return [agent.get(identifier)]
    text = str(edit["matching"])
    memories = [memory for memory in agent.all() if text in memory.content]
    if not memories:
        raise RunError(
            f"{agent.agent_id} has no memory with the text {text!r:.60}",
            hint="`matching` takes a part of a memory's text, letter by letter",
        )
    return memories


def _refuse_what_is_fixed(before: Settings, after: Settings) -> None:
    """Refuse new values for the settings that the shared past depends on."""
    for name, one, other in (
        ("seed", before.seed, after.seed),
        ("embedder", before.embedder, after.embedder),
        ("simulation.agents", before.simulation.agent_ids(), after.simulation.agent_ids()),
    ):
        if one != other:
            raise ConfigError(
                f"{name} can't be changed in a branch: it keeps its parent's",
                hint="leave it out, or start a new run with it: tiermem run",
            )
