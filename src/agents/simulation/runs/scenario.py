"""The world and the policy that the settings name: built-in ones, or a user's own classes."""

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config.load import load_settings
from ...config.settings import Settings
from ...errors import ConfigError, TierMemError
from ...memory.requests import check_agent_id, check_new
from ...storage.mem0.store import check_providers
from .. import named_society
from ..policies.cassette import Cassette
from ..policies.clients import model_of
from ..policies.llm import Llm
from ..policies.model import Model
from ..policies.scripted import Scripted
from ..protocols import Policy, World
from ..society import Society
from ..tick import user_code
from ..tick.actions import (
    ASK_ACTIONS,
    FEW_ACTIONS,
    GROUP_ACTIONS,
    GROUP_ASKS,
    JOIN_GROUP,
    MEMORY_ACTIONS,
    OWN_ACTIONS,
    SESSION_ACTIONS,
    TELL_ACTIONS,
    actions_of_profile,
)
from ..tick.streams import Streams
from ..tick.user_code import where_in
from ..worlds import WORLDS
from ..worlds.outside import OUTSIDE, Outside, check_inside, is_outside
from .budget import check_prices
from .live import HERE, is_live, live
from .personas import named_file, persona_file, personas_of, read_text, template_file

_PACKAGE = __name__.partition(".")[0]
PROGRAM = (
    "it takes seed, and bank or memories if it wants them, and gives an object with step(), or is "
    "a generator that yields after each step"
)
"""What is asked of a program of the user's."""
_OF_PROGRAMS = frozenset({"seed", "rng", "bank", "memories"})
_WORLD_METHODS = ("setup", "observe", "apply", "end_tick", "metrics", "get_state", "set_state")


def check_scenario(
    settings: Settings, places: list[Path], calls: Iterable[str] = ()
) -> dict[str, Path | bytes]:
    """Refuse a scenario that can't run; otherwise give what a run keeps of it, by name.

    ``calls`` are functions that rules of a branch name.
    """
    check_settings(settings)
    if settings.simulation.model is not None:
        check_program(settings, places)
    try_world(settings, places)
    for name in calls:
        function_of("a call", name, places)
    return {**code_of(settings, *places, calls=calls), **society_record(settings, *places)}


def check_settings(settings: Settings) -> None:
    """Refuse settings with which no run can be made, whatever the world and the policy are."""
    check_inside(settings)
    check_repeatable(settings)
    check_prices(settings)
    first_memories(settings)


def try_world(settings: Settings, places: list[Path]) -> World:
    """The world that the settings name, set up, once its policy could be made; nobody is asked."""
    world = make_world(settings, *places)
    make_policy(settings, world, Cassette(Path("cassette.jsonl"), replay=True), *places)
    set_up(world, settings, *places)
    return world


def make_world(settings: Settings, *folders: Path) -> World:
    """The world that the settings name; a user's own class comes from one of ``folders``."""
    simulation = settings.simulation
    if simulation.model is not None and simulation.world not in (None, OUTSIDE):
        raise ConfigError(
            f"simulation.world is {simulation.world} and simulation.model is {simulation.model}",
            hint="a run has a world or a program of your own: leave one out",
        )
    if is_outside(settings) and simulation.society is not None:
        raise ConfigError(
            f"{named_society.KEY}: a program of your own says itself who can hear whom",
            hint="leave it out",
        )
    if simulation.model is not None:
        return Outside("the program", simulation.model)
    if is_outside(settings):
        outside: World = _call("simulation.world_options", Outside, dict(simulation.world_options))
        return outside
    if simulation.world is None:
        raise ConfigError(
            "simulation.world is not set, so there is nothing to run",
            hint=f"name one of {', '.join(WORLDS)}, or a class of your own as module:Class",
        )
    name = WORLDS.get(simulation.world, simulation.world)
    if ":" not in name:
        raise ConfigError(
            f"simulation.world: there is no world {name!r:.60}",
            hint=f"there are {', '.join(WORLDS)}, or write module:Class for one of your own",
        )
    world = _make("simulation.world", name, simulation.world_options, folders)
    missing = [method for method in _WORLD_METHODS if not callable(getattr(world, method, None))]
    if missing or not isinstance(world, World):
        raise ConfigError(
            f"simulation.world: {name} has no {' and no '.join(missing)}",
            hint=f"a world has {', '.join(_WORLD_METHODS)}",
        )
    if settings.simulation.society is not None:
        if hasattr(type(world), "society") or hasattr(world, "society"):
            raise ConfigError(
                f"{named_society.KEY}: the world {name} has a society of its own",
                hint="leave it out, or derive a world without one",
            )
        world.society = society_of(settings, *folders)  # type: ignore[attr-defined]
    return world


def society_of(settings: Settings, *folders: Path) -> Society | None:
    """The society that the settings name; of a run, the one that its folder has on record."""
    entry = settings.simulation.society
    if entry is None:
        return None
    agents = settings.simulation.agent_ids()
    records = (folder / named_society.RECORD for folder in folders)
    record = next(filter(Path.is_file, records), None)

    def find(name: str) -> Path:
        return _edge_file(name, *folders)

    return named_society.society_of(entry, agents, settings.seed, find, record)


def _edge_file(name: str, *folders: Path) -> Path:
    return named_file(f"{named_society.KEY}.file", name, named_society.ENDINGS, *folders)


def society_record(settings: Settings, *folders: Path) -> dict[str, bytes]:
    """What a run keeps of a society that was drawn, by the name of the file."""
    society, entry = society_of(settings, *folders), settings.simulation.society
    kept = entry and society and named_society.recorded(entry, society, settings.seed)
    return {named_society.RECORD: kept} if kept else {}


def check_repeatable(settings: Settings) -> None:
    """Refuse settings with which no run could be made, or repeated."""
    check_providers(settings)
    for name in ("extra_paths", "transcripts"):
        if getattr(settings.notes, name):
            raise ConfigError(
                f"notes.{name}: a run has none, because what is in these files may change and is "
                "not recorded, and the run could not be repeated",
                hint="write it to the agents' own notes",
            )


def set_up(world: World, settings: Settings, *folders: Path) -> None:
    """Set a world up as a run does; :class:`SimulationError` if the world can't be set up."""
    agents = settings.simulation.agent_ids()
    streams = Streams(settings.seed, agents)
    streams.begin(0)
    user_code.set_up(world, streams.world, agents, personas_of(settings, *folders))


def check_program(settings: Settings, places: Sequence[Path]) -> None:
    """Refuse settings by which no program can be made."""
    simulation = settings.simulation
    usual = load_settings().simulation
    for name in ("agents", "memories", "personas", "policy", "engine", "society"):
        if getattr(simulation, name, None) != getattr(usual, name, None):
            raise ConfigError(
                f"simulation.{name}: a program of your own has none, for it makes its agents, "
                "their memories and their decisions itself",
                hint="leave it out; simulation.world_options are the program's arguments",
            )
    make = function_of("simulation.model", str(simulation.model), places)
    named = _parameters(make)
    if not {"seed", "rng"} & named.keys() and not _takes_all(named):
        raise ConfigError(
            f"simulation.model: {simulation.model} takes no seed, so all its runs would be one",
            hint=f"give it a parameter seed (or rng); {PROGRAM}",
        )
    given = given_to(make, settings.seed, None, None)
    if taken := _OF_PROGRAMS & simulation.world_options.keys():
        raise ConfigError(
            f"simulation.world_options: a program gets its {min(taken)} from its run",
            hint="leave it out; the seed of a run is its setting seed",
        )
    try:
        inspect.signature(make).bind(**{**given, **simulation.world_options})
    except TypeError as error:
        raise ConfigError(
            f"simulation.world_options: {error}", hint=f"it takes {', '.join(named) or 'nothing'}"
        ) from None


def _parameters(make: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(make).parameters
    except (TypeError, ValueError) as error:
        raise ConfigError(f"simulation.model: {make!r:.60} can't be called: {error}") from None


def _takes_all(named: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is each.VAR_KEYWORD for each in named.values())


def given_to(make: Any, seed: int, bank: Any, memories: Any) -> dict[str, Any]:
    """What a program is made with beside its options: those of the three that it names."""
    named = _parameters(make)
    name = "rng" if "rng" in named and "seed" not in named else "seed"
    room = {"bank": bank, "memories": memories}
    return {name: seed, **{key: each for key, each in room.items() if key in named}}


def make_policy(
    settings: Settings,
    world: World,
    cassette: Cassette,
    *folders: Path,
    model: Model | None = None,
) -> Policy:
    """The policy that the settings name; ``model`` stands in the place of the language model."""
    name, options = settings.simulation.policy, dict(settings.simulation.policy_options)
    where = "simulation.policy_options"
    if name == "rules":
        rules = getattr(world, "rules", None)
        if rules is None:
            raise ConfigError(
                f"simulation.policy: {type(world).__name__} has no rules()",
                hint="use scripted, llm, or a class of your own as module:Class",
            )
        policy = _call(where, rules, options)
    elif name == "scripted":
        policy = _call(where, Scripted, options)
    elif name == "llm":
        if not settings.llm.is_set:
            raise ConfigError(
                "simulation.policy is llm, and no LLM is configured",
                hint="set llm.base_url and llm.model, or llm.provider (local, or one of mem0's)",
            )
        if moved := next((each for each in ("timeout", "concurrency") if each in options), None):
            raise ConfigError(
                f"{where}: {moved} is a setting of the language model",
                hint=f"set llm.{moved}",
            )
        named = model_of(settings.llm, settings.simulation.agent_ids(), folders)
        actions = getattr(world, "actions", {})
        own = own_actions(settings, world)
        known = getattr(world, "action_arguments", {})
        options = {"arguments": known, "can_ask": bool(settings.simulation.asks), **options}
        if template := template_file(settings, *folders):
            options["template"] = read_text(str(options["template"]), template)
        policy = _call(
            where,
            Llm,
            options,
            model or named,
            cassette,
            actions,
            own,
            settings.reflection,
            settings.llm,
        )
    elif ":" in name:
        policy = _make("simulation.policy", name, options, folders)
    else:
        raise ConfigError(
            f"simulation.policy must be rules, scripted, llm or module:Class, not {name!r:.60}",
            hint="use one of these",
        )
    if not isinstance(policy, Policy):
        raise ConfigError(
            f"simulation.policy: {type(policy).__name__} has no decide()",
            hint="a policy has decide(observation, memories, rng)",
        )
    return policy


def own_actions(settings: Settings, world: World) -> dict[str, str]:
    """What a language model is offered beside the world's actions: descriptions by name.

    ``simulation.memory_actions`` chooses among the actions on memories and notes. Beside the few,
    those of a profile and of sessions, and a note to save to, are offered where the settings have
    these, and those of groups, and to tell, where the world has groups or says who may tell whom.
    """
    chosen = settings.simulation.memory_actions
    known = _known_actions(settings, world)
    if chosen == "all":
        return known
    if chosen == "few":
        turned_on = {*GROUP_ACTIONS, *GROUP_ASKS, *SESSION_ACTIONS}
        if settings.flush.enabled:
            turned_on.add("append_note")
        if callable(getattr(world, "may_tell", None)) or hasattr(world, "society"):
            turned_on.add("tell")
        if settings.profile is not None:
            turned_on |= actions_of_profile(settings.profile).keys()
        return {**FEW_ACTIONS, **{name: own for name, own in known.items() if name in turned_on}}
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"simulation.memory_actions: there is no action {name!r:.60} in this simulation",
                hint=f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}",
            )
    return {name: known[name] for name in chosen}


def _known_actions(settings: Settings, world: World) -> dict[str, str]:
    actions = {**(MEMORY_ACTIONS if settings.notes.read_only else OWN_ACTIONS), **TELL_ACTIONS}
    temperature = settings.temperature
    of_sessions = temperature.session_max_tokens, temperature.session_max_facts
    if of_sessions == (None, None):  # conversations have no fronts of their own
        actions = {each: text for each, text in actions.items() if each not in SESSION_ACTIONS}
    else:
        actions |= SESSION_ACTIONS
    if settings.profile is not None:
        actions |= actions_of_profile(settings.profile)
    may_join = callable(getattr(world, "may_join", None))
    has_groups = may_join or callable(getattr(world, "groups", None))
    if has_groups:
        actions |= {
            each: text for each, text in GROUP_ACTIONS.items() if each != JOIN_GROUP or may_join
        }
    if settings.simulation.asks:
        actions |= {**ASK_ACTIONS, **(GROUP_ASKS if has_groups else {})}
    return actions


_BESIDE_OPTIONS = ("agent", "content", "tier", "metadata")


def first_memories(settings: Settings) -> list[tuple[object, ...]]:
    """The agents' first memories, in the form that :meth:`MemoryBank.add_many` takes."""
    known = [check_agent_id(agent) for agent in settings.simulation.agent_ids()]
    result: list[tuple[object, ...]] = []
    for index, entry in enumerate(settings.simulation.memories):
        where = f"simulation.memories[{index}]"
        if entry.get("agent", known[0]) not in known:
            raise ConfigError(
                f"{where}: there is no agent {entry['agent']!r:.60}",
                hint="name one of simulation.agents",
            )
        options = {name: own for name, own in entry.items() if name not in _BESIDE_OPTIONS}
        agents = [entry["agent"]] if "agent" in entry else known
        for agent in agents:
            new = (agent, entry["content"], entry.get("tier"), entry.get("metadata"), options)
            try:
                check_new(new, settings.memory.max_content_bytes)
            except TierMemError as error:
                raise ConfigError(f"{where}: {error.why}", hint=error.hint) from None
            result.append(new)
    return result


def code_of(settings: Settings, *folders: Path, calls: Iterable[str] = ()) -> dict[str, Path]:
    """The user's own files that the settings name: modules, what these import, and a table.

    ``calls`` are functions that rules of a branch name.
    """
    simulation = settings.simulation
    names = (simulation.world, simulation.model, simulation.policy, *calls)
    own = [name for name in names if name and ":" in name and not is_live(name)]
    modules = [name.partition(":")[0] for name in own]
    code: dict[str, Path] = {}
    for module in dict.fromkeys(modules):
        folder = next((folder for folder in folders if _has(folder, module)), None)
        if folder is not None:
            _, files = _import_from(module, folder, *folders)
            place = folder.absolute()
            code |= {str(file.relative_to(place)): file for file in files}
    if template := template_file(settings, *folders):
        code[str(settings.simulation.policy_options["template"])] = template
    if isinstance(settings.simulation.personas, str):
        code[settings.simulation.personas] = persona_file(settings, *folders)
    if isinstance(name := (settings.simulation.society or {}).get("file"), str):
        code[name] = _edge_file(name, *folders)
    return code


def _make(key: str, name: str, options: Mapping[str, Any], folders: tuple[Path, ...]) -> Any:
    made = _named(key, name, folders, inspect.isclass, "class")
    return _call(f"{key}_options", made, dict(options))


def kind_of(name: str, *folders: Path) -> str:
    """The setting that a name is for: ``simulation.world``, or ``simulation.model``."""
    if ":" not in name:
        return "simulation.world"
    named = function_of("simulation.world", name, folders)
    is_world = inspect.isclass(named) and all(hasattr(named, each) for each in _WORLD_METHODS)
    looks = inspect.isclass(named) and not callable(getattr(named, "step", None))
    return "simulation.world" if is_world or looks else "simulation.model"


def function_of(key: str, name: str, folders: Sequence[Path]) -> Any:
    """A function or class of the user's by its name, as module:function."""
    if ":" not in name:
        raise ConfigError(f"{key}: {name!r:.60} names no function", hint="write module:function")
    return _named(key, name, tuple(folders), callable, "function or class")


def _named(
    key: str, name: str, folders: tuple[Path, ...], fits: Callable[[Any], bool], what: str
) -> Any:
    """What the user's own module has by that name, or this process alone."""
    module_name, _, own_name = name.partition(":")
    if module_name == HERE:
        return live(key, own_name)
    module = _import(key, module_name, folders)
    made = getattr(module, own_name, None)
    if not fits(made):
        known = [name for name, each in vars(module).items() if fits(each)]
        near = difflib.get_close_matches(own_name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "check the name after the colon"
        raise ConfigError(f"{key}: {module_name} has no {what} {own_name!r:.60}", hint=hint)
    return made


def _import(key: str, name: str, folders: tuple[Path, ...]) -> Any:
    if not name.replace(".", "a").isidentifier():
        raise ConfigError(f"{key}: {name!r:.60} is not a module", hint="write module:Class")
    try:
        for folder in folders:
            if _has(folder, name):
                return _import_from(name, folder, *folders)[0]
        return importlib.import_module(name)
    except Exception as error:  # a user's own module may raise anything
        looked = " or ".join(str(folder) for folder in folders) or "the environment"
        raise ConfigError(
            f"{key}: {name} can't be imported ({type(error).__name__}: {error}{where_in(error)})",
            hint=f"it was looked for in {looked} and among what is installed"
            if isinstance(error, ModuleNotFoundError)
            else "the module is there: mend it, and try again",
        ) from error


def _has(folder: Path, module: str) -> bool:
    place = folder.joinpath(*module.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def _import_from(name: str, folder: Path, *neighbours: Path) -> tuple[Any, list[Path]]:
    """Import a module from a folder; give the module and all files that it imported from there.

    ``sys.modules`` does not keep these modules: two scenarios may each have a ``world.py``.
    """
    folder = folder.absolute()
    places = [folder, *(each.absolute() for each in neighbours)]
    tops = {top for place in places for top in _modules_in(place)} - {_PACKAGE}
    loaded = tops & sys.modules.keys()
    below = [key for key in sys.modules if key.partition(".")[0] in loaded] if loaded else []
    hidden = {key: sys.modules.pop(key) for key in below}
    before = set(sys.modules)
    paths = [str(place) for place in places]
    sys.path[:0] = paths
    importlib.invalidate_caches()
    # Python's copies of compiled code would be files that the run's seal does not know.
    writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        module = importlib.import_module(name)
        new = [key for key in set(sys.modules) - before if _is_own(key, [folder])]
        return module, sorted(Path(str(_file_of(key))) for key in new)
    finally:
        sys.dont_write_bytecode = writes_none
        del sys.path[: len(paths)]
        # At the end of sys.path the folders stay, because a method may import later.
        sys.path += [path for path in paths if path not in sys.path]
        for key in set(sys.modules) - before:
            if _is_own(key, places):
                del sys.modules[key]
        sys.modules.update(hidden)


def _modules_in(folder: Path) -> list[str]:
    files = [file.stem for file in folder.glob("*.py")]
    return files + [file.parent.name for file in folder.glob("*/__init__.py")]


def _is_own(module: str, folders: list[Path]) -> bool:
    """Whether a module is the user's own: not TierMem's, not an installed one."""
    file = _file_of(module)
    real_name = getattr(sys.modules.get(module), "__name__", module)  # not the alias `agents`
    if real_name.partition(".")[0] == _PACKAGE:
        return False
    if file is None or "site-packages" in Path(file).parts or file.startswith(sys.prefix):
        return False
    return any(Path(file).is_relative_to(folder) for folder in folders)


def _file_of(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__file__", None)


def _call(key: str, made: Any, options: dict[str, Any], *positional: object) -> Any:
    try:
        inspect.signature(made).bind(*positional, **options)
    except TypeError as error:
        taken = list(inspect.signature(made).parameters)[len(positional) :]
        raise ConfigError(
            f"{key}: {error}", hint=f"it takes {', '.join(taken) or 'none'}"
        ) from None
    try:
        return made(*positional, **options)
    except ConfigError:
        raise  # the error names the wrong option
    except Exception as error:  # a user's own class may raise anything
        name = getattr(made, "__name__", "it")
        raise ConfigError(
            f"{key}: {name} raised {type(error).__name__}: {error}",
            hint=f"check {key}, or mend {name}",
        ) from error
