"""Opens a run or a bank for a study of its population."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...bank.history import journal_of
from ...bank.memory_bank import MemoryBank
from ...config.settings import Settings
from ...errors import BankDamaged, BankError, InvalidInput, RunError, SimulationError
from ...memory.records import Scalar
from ...storage.journal.journal import Journal
from ...storage.sqlite import looks_of
from ..analysis.beliefs import Facts
from ..analysis.columns import Earlier, read_columns
from ..analysis.study import Sides, Study
from ..kept_ticks import KeptTicks
from ..protocols import NO_ARGUMENTS, World
from ..society import Society, society_at
from ..tick.user_code import call
from ..worlds import WORLDS
from ..worlds.outside import agents_of, is_outside
from .folder import as_run_error, places_of_code, read_folder
from .personas import personas_of
from .scenario import make_world, set_up, society_of
from .trust import is_trusted_run


def study(
    folder: str | PathLike[str], tick: int | None = None, sides: Sides | None = None
) -> Study:
    """A study of a run or a bank, up to a tick; the default is its last one.

    The journal is read once, in place; the run may go on meanwhile. Each table is made when it is
    asked for. What the world says is true comes from the world: a world of somebody else's is asked
    only if the run is trusted (``tiermem store trust``). ``sides`` are the sentences between which
    agents are divided, by subject: ``{"mill": ["the mill burned", "the mill is fine"]}``; without
    them, those of the world's facts are.
    """
    for subject, own in (sides or {}).items():
        if isinstance(own, str) or len(set(own)) < 2 or not all(own):
            raise InvalidInput(
                f"{subject!r:.60} has the sides {own!r:.80}", hint="give two sentences or more"
            )
    place = Path(folder)
    if not (place / "run.json").exists():
        return _study(place, place, None, tick, sides)
    settings, about = read_folder(place)
    asked = _asked(place, settings, places_of_code(place, about))
    with as_run_error(f"{folder} can't be studied"):
        return _study(place, place / "bank", asked, tick, sides)


def society_after(folder: Path, tick: int) -> Society | None:
    """Who could hear whom after a tick of a run; None if neither scenario nor world says so."""
    settings, about = read_folder(folder)
    asked = _asked(folder, settings, places_of_code(folder, about))
    with (
        as_run_error(f"{folder} can't be studied"),
        _opened(journal_of(folder / "bank")) as journal,
    ):
        return asked.society(journal, tick)


def study_run(folder: Path, settings: Settings, world: World) -> Study:
    """A study of a run whose world is at hand."""
    asked = _Asked(settings, [folder / "code"], world, facts_of(world), is_at_the_end=True)
    return _study(folder, folder / "bank", asked, None)


def _asked(folder: Path, settings: Settings, places: Sequence[Path]) -> "_Asked":
    """A run, with its world if that is ours or trusted."""
    is_ours = settings.simulation.world in WORLDS
    if is_outside(settings) or not (is_ours or is_trusted_run(folder)):
        return _Asked(settings, places)
    world = make_world(settings, *places)
    set_up(world, settings, *places)
    return _Asked(settings, places, world, facts_of(world))


class _Asked(NamedTuple):
    """A run, and what is asked of its world."""

    settings: Settings
    places: Sequence[Path]
    world: World | None = None
    """Set up; None if it is somebody else's, or a program's."""
    facts: Facts = NO_ARGUMENTS
    """What the world says is true."""
    is_at_the_end: bool = False
    """Whether the world is as the last tick left it."""

    def society(self, journal: Journal, tick: int) -> Society | None:
        """Who can hear whom after a tick."""
        world = self.world
        if world is None:
            return None if is_outside(self.settings) else self._named(tick)
        if hasattr(world, "society") and not self.is_at_the_end:
            kept = KeptTicks(journal).tick(tick)
            if kept is None or not kept.has_state:
                return self._named(tick)
            call(world, "set_state", tick, kept.state()["world"])
        return society_at(world, tick)

    def _named(self, tick: int) -> Society | None:
        society = society_of(self.settings, *self.places)
        return None if society is None else society.at(tick)

    def attributes(self) -> dict[str, dict[str, Scalar]]:
        """What personas have of each agent, by name."""
        found: dict[str, dict[str, Scalar]] = {}
        if not is_outside(self.settings):
            for agent, persona in personas_of(self.settings, *self.places).items():
                for name, value in persona.attributes.items():
                    found.setdefault(name, {})[agent] = value
        return found


def facts_of(world: World) -> Facts:
    """What a world says is true; nothing, if it says nothing."""
    said = getattr(world, "facts", None)
    if said is None:
        return {}
    try:
        facts = said()
        return {
            str(subject): {str(sentence): bool(is_true) for sentence, is_true in each.items()}
            for subject, each in facts.items()
        }
    except Exception as error:  # a user's own world may raise anything
        raise SimulationError(
            f"{type(world).__name__}.facts() did not give sentences by subject: {error!r:.200}",
            hint='it gives {"bridge": {"the bridge is open": True, "the bridge is closed": False}}',
        ) from error


def _study(
    name: Path, bank: Path, asked: _Asked | None, tick: int | None, sides: Sides | None = None
) -> Study:
    path = journal_of(bank)
    before = looks_of(path)
    try:
        return _study_once(name, bank, asked, tick, sides)
    except BankDamaged:
        if looks_of(path) == before:
            raise
    return _study_once(name, bank, asked, tick, sides)  # another process opened it meanwhile


def _study_once(
    name: Path, bank: Path, asked: _Asked | None, tick: int | None, sides: Sides | None
) -> Study:
    opened = partial(_opened, journal_of(bank))
    with opened() as journal:
        identity: Mapping[str, Any] | None = journal.get("bank")
        if identity is None:
            raise BankError(f"the journal in {bank} is empty: no bank was made there")
        last = _checked_tick(name, journal, tick)
        agents = [] if asked is None else agents_of(journal, asked.settings)
        earlier = list(earlier_memories(bank, journal)) if journal.base else []
        columns = read_columns(journal, identity["seed"], agents, last, earlier)
        if asked is None:
            return Study(str(name), columns, {}, 0, opened, sides=sides)
        society = asked.society(journal, last)
    return Study(str(name), columns, asked.facts, len(agents), opened, society, asked.attributes())


def _checked_tick(name: Path, journal: Journal, tick: int | None) -> int:
    if tick is None:
        return journal.tick
    if not isinstance(tick, int) or isinstance(tick, bool):
        raise RunError(f"tick {tick!r:.40} is not a whole number")
    if not journal.base_tick <= tick <= journal.tick:
        raise RunError(
            f"{name} has ticks {journal.base_tick} to {journal.tick}, and no tick {tick}",
            hint=f"name a tick from {journal.base_tick} to {journal.tick}",
        )
    return tick


@contextmanager
def _opened(path: Path) -> Iterator[Journal]:
    journal = Journal(None, seen=path)
    try:
        with journal.reading():
            yield journal
    finally:
        journal.leave()


def earlier_memories(bank: Path, journal: Journal) -> Iterator[Earlier]:
    """The memories of a bank that was restored, as they were when its journal began."""
    new: set[tuple[str, int]] = set()
    for commit in takewhile(
        lambda commit: commit.tick <= journal.base_tick, journal.commits(journal.base)
    ):
        new |= {(event[1], event[2]) for event in orjson.loads(commit.events) if event[0] == "add"}
    with MemoryBank.at(bank, journal.base_tick) as past:
        for agent in past.agents():
            for memory in past.agent(agent).all():
                if (agent, memory.sequence) in new:
                    continue
                yield Earlier(
                    agent,
                    memory.sequence,
                    memory.created_tick,
                    int(memory.tier),
                    memory.content,
                    memory.metadata,
                    memory.kind,
                    memory.expires_tick,
                )
