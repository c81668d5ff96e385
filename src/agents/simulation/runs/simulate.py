"""A simulation in one call: made, run, and open for questions."""

from collections.abc import Callable, Mapping, Sequence
from inspect import isclass, isfunction
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import ConfigError, RunError
from ...packages import check_installed
from .. import small_world
from .above import above
from .live import name_of, only_here
from .plan import as_overrides, made_in
from .run import Run

_open = WeakValueDictionary[Path, Run]()
"""The runs of this process that have a folder of their own: one that is made again leaves it."""


def simulate(
    world: str | type | Callable[..., Any],
    agents: int | Sequence[str] = 10,
    ticks: int = 100,
    seed: int = 0,
    out: str | PathLike[str] | None = None,
    *,
    policy: str | type = "rules",
    preset: str | None = None,
    progress: bool | None = None,
    force: bool = False,
    **settings: Any,
) -> Run:
    """Make a run, run it to its end, and give it, open for questions.

    ``world`` is a class with the methods of :class:`tiermem.simulation.World`, a function as
    :func:`tiermem.world` takes it, or the name of a built-in one, such as ``market``; ``policy`` is
    a class, ``rules`` (the world's own), ``scripted`` or ``llm``. Of a class in a module, the run
    keeps a copy, and every command can repeat the run; a class of a notebook, of the script itself
    or of a function is in this process alone.

    ``agents`` is their number, or their names. ``out`` is the run's folder, which ``force`` lets it
    take from another run; without one, the run is in a temporary folder, which lives as long as the
    object. ``settings`` are named by section (``memory={"max_pinned": 2}``), with dots, or, if they
    are those of a simulation, by their own name (``world_options={…}``).

    ``progress`` is whether there is a bar; without it, there is one on a terminal and in a
    notebook. What ends the run early, be it an error or Ctrl-C, has it as its attribute ``run``,
    and the run can go on: :meth:`Run.resume`.
    """
    check_installed("a simulation", "pyarrow", "scipy")
    if isfunction(world):
        world = small_world.world(world)
    chosen, place = _named(world=world, policy=policy)
    people = agents if isinstance(agents, int) else list(agents)
    given = {"seed": seed, **chosen, "agents": people, "ticks": ticks, **settings}
    return _made(given, preset, place, out, force).resume(progress=progress)


def experiment(
    make_model: Callable[..., Any] | str,
    seed: int = 0,
    steps: int = 100,
    out: str | PathLike[str] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    preset: str | None = None,
    progress: bool | None = None,
    force: bool = False,
    **settings: Any,
) -> Run:
    """Make a program of your own, let it step, and give the run, open for questions.

    ``make_model`` is a Mesa model's class, or whatever makes a program: a function or class, or its
    name as ``module:function``. It is called with ``seed`` (or ``rng``), with ``options``, and, if
    it has such parameters, with ``bank``, the :class:`~tiermem.MemoryBank` of the run, and
    ``memories``, by which agents remember within steps (``memories["alice"].add(…)``). It gives an
    object with ``step()`` and perhaps ``metrics()``, or is a generator that yields after each step,
    if need be the step's metrics.

    The run can be resumed, replayed, branched and asked for effects, because the program can be
    made again: nothing but the seed may decide what it does. With ``get_state()`` and
    ``set_state()``, as JSON, it begins a branch from its state, else it steps there from the
    beginning. The other arguments are those of :func:`simulate`.
    """
    check_installed("an experiment", "pyarrow", "scipy")
    if "ticks" in settings:
        raise ConfigError("an experiment has steps, not ticks", hint="give steps=")
    name, place = (make_model, Path()) if isinstance(make_model, str) else name_of(make_model)
    own = {"model": name, "world_options": dict(options or {}), "ticks": steps}
    given = {"seed": seed, **own, **settings}
    return _made(given, preset, place, out, force).resume(progress=progress)


def _made(
    given: Mapping[str, Any],
    preset: str | None,
    place: Path | None,
    out: str | PathLike[str] | None,
    force: bool,
) -> Run:
    """A run with these settings at tick 0; the user's own modules are in the folder ``place``."""
    first = {"storage.sync": "manual"} if out is None else {}  # nobody else opens its store
    made_of = load_settings(preset=preset, overrides=as_overrides({**first, **given}))
    _check_engine(made_of)
    if out is not None:
        _leave(Path(out), force=force)

    def make(folder: Path) -> Run:
        return Run.create(folder, made_of, scenario=place, force=force, say=above("say"))

    name = str(made_of.simulation.model or made_of.simulation.world).rpartition(":")[2]
    run = made_in(out, f"{name}-{made_of.seed}", make)
    if out is not None:
        _open[Path(out).absolute()] = run
    return run


def _named(**things: object) -> tuple[dict[str, str], Path | None]:
    """The names of world and policy in settings, and the folder of the user's own modules."""
    names, places = dict[str, str](), dict[str, Path]()
    for what, thing in things.items():
        if isinstance(thing, str):
            names[what] = thing
            continue
        if not isclass(thing):
            kind = "function" if callable(thing) else "object"
            raise ConfigError(
                f"a {what} is a class or a name, not the {kind} {thing!r:.60}",
                hint=f"give the class of your {what}: each run makes its own {what} of it",
            )
        names[what], place = name_of(thing)
        if place is not None:
            places[what] = place
    if len({*places.values()}) > 1:
        where = " and ".join(map(str, places.values()))
        raise ConfigError(
            f"world and policy are modules of two folders: {where}",
            hint="a run copies the modules of one folder: put both into one",
        )
    return names, next(iter(places.values()), None)


def _check_engine(settings: Settings) -> None:
    engine = settings.simulation.engine
    if engine != "local" and only_here(settings):
        raise ConfigError(
            f"simulation.engine is {engine}, and its workers can't import a class of this program",
            hint="put world and policy into a module of their own, or leave engine out",
        )


def _leave(folder: Path, *, force: bool) -> None:
    """Refuse a folder that is taken, or close this process's own run that has it."""
    if folder.exists() and not force:
        raise RunError(
            f"{folder} exists already",
            hint="name another folder, or give force=True to lose the run that is in it; "
            "tiermem.simulation.Run.open goes on with it",
        )
    if former := _open.pop(folder.absolute(), None):
        former.close(sync=False)
