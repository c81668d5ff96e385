"""Branches: a new run starts from a tick of another run, with changed settings or memories.

A copy of a run in which all agents are in one bank is made in the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from ...bank import history
from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import ConfigError, RunError
from ...storage.files import copy_file
from ...version import __version__
from ..policies.cassette import Cassette
from ..workers.cells import CASSETTE, SHARDS, base_of, gather_cassettes
from ..worlds.outside import check_inside
from .edits import begin_branch
from .folder import as_run_error, calls_of, make_folder, places_of_code
from .placement import LOCAL, is_over_workers, reading
from .programs import PAST
from .record import agents_of_run, last_tick
from .run import Run
from .scenario import check_scenario
from .trust import check_run, is_trusted_run, seal_run


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
    came = about.get("parent")
    if settings.simulation.model is not None and came and tick < came["tick"]:
        raise RunError(
            f"{parent} branched from {came['run']} at tick {came['tick']}",
            hint="what was before is that run's: branch that one",
        )
    changed = changed_settings(settings, tick, assignments)
    if folder.resolve() == parent.resolve():
        raise RunError(
            f"{folder} is the run itself", hint="a branch needs a folder of its own: name another"
        )
    known = agents_of_run(parent)
    for index, edit in enumerate(edits, start=1):
        if edit["agent"] not in known:
            raise RunError(
                f"edit {index}: there is no agent {edit['agent']!r:.60} in {parent}",
                hint=f"list its agents with: tiermem show {quote(str(parent))}",
            )
    check_run(parent, changed, is_parent=True)
    standing = [*about.get("rules", ()), *rules]
    calls = calls_of({"rules": standing})
    if calls and changed.simulation.model is None:
        raise RunError(
            f"{calls[0]} changes a program, and a world makes the ticks of {parent}",
            hint="leave the call out; --set, --edit and --forget change a world's run",
        )
    code = check_scenario(changed, places_of_code(parent, about), calls)

    def fill(new: Path) -> None:
        with as_run_error(f"{parent} can't be branched at tick {tick}"):
            _copy(parent, tick, new, changed, tick if asks_anew else None)
        begin_branch(new / "bank", changed, edits)

    made = {
        "format": about["format"],
        "tiermem": __version__,
        "scenario": about.get("scenario"),
        "parent": {"run": str(parent.absolute()), "tick": tick, "edits": len(edits)},
    }
    if not asks_anew and (parent / CASSETTE).exists():  # what it begins with is paid for
        made["parent"]["cassette"] = (parent / CASSETTE).stat().st_size
    if standing:
        made["rules"] = standing
    if settings.simulation.model is not None:
        own = {"until": tick, "settings": settings.to_dict(redact=True), "edits": list(edits)}
        made[PAST] = [*about.get(PAST, ()), own]
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


def _refuse_what_is_fixed(before: Settings, after: Settings) -> None:
    """Refuse new values for the settings that the shared past depends on."""
    for name, one, other in (
        ("seed", before.seed, after.seed),
        ("embedder", before.embedder, after.embedder),
        ("simulation.agents", before.simulation.agent_ids(), after.simulation.agent_ids()),
        ("simulation.model", before.simulation.model, after.simulation.model),
        *_of_programs(before, after),
    ):
        if one != other:
            raise ConfigError(
                f"{name} can't be changed in a branch: it keeps its parent's",
                hint="leave it out, or start a new run with it: tiermem run",
            )


def _of_programs(before: Settings, after: Settings) -> list[tuple[str, object, object]]:
    """A program was made with its options at the beginning, and can't be made with others later."""
    if before.simulation.model is None:
        return []
    name = "simulation.world_options"
    return [(name, before.simulation.world_options, after.simulation.world_options)]
