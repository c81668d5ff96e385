"""What if: a branch of a run that is planned step by step, and made when it is run.

>>> branch = run.branch(at=60).forget("agent_00:Never accept an offer from agent_05").run()
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import isclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

from ...config.load import joined_overrides
from ...config.settings import SimulationSettings
from ...memory.words import first_of, number
from ...storage.files import TemporaryFolder
from .above import above
from .edits import check_edits
from .live import name_of

if TYPE_CHECKING:
    from .run import Run

_OF_SIMULATION = frozenset(each.name for each in fields(SimulationSettings))


@final
@dataclass(frozen=True)
class Plan:
    """A branch that is not made yet; each method gives a plan with one change more.

    A memory is named ``AGENT:ID`` or ``AGENT:part of its text``; ``*`` is whoever has the oldest
    one with that text.
    """

    parent: "Run"
    at: int
    """The last tick that the two runs share."""
    forgotten: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    edits: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[str, ...] = ()

    def forget(self, *memories: str) -> Self:
        """After the tick, agents forget these memories, pinned or not."""
        return replace(self, forgotten=(*self.forgotten, *memories))

    def never_heard(self, *memories: str) -> Self:
        """These memories, which are born after the tick, do not come into being."""
        return replace(self, unheard=(*self.unheard, *memories))

    def block(self, speaker: str, listener: str) -> Self:
        """After the tick, what one says or tells does not reach the other."""
        return replace(self, blocked=(*self.blocked, f"{speaker}→{listener}"))

    def pin(self, *memories: str) -> Self:
        """After the tick, these memories are pinned."""
        return replace(self, pinned=(*self.pinned, *memories))

    def set(self, **settings: Any) -> Self:
        """After the tick, settings are others, named as in :func:`tiermem.simulate`."""
        return replace(self, settings=(*self.settings, *as_assignments(settings)))

    def edit(self, agent: str, do: str, **edit: Any) -> Self:
        """After the tick, change an agent's memories: ``add`` a ``content``, or ``pin``, ``unpin``,
        ``set_tier``, ``reword``, ``delete`` or ``forget`` a ``memory`` or all ``matching`` a text.
        """
        made = check_edits([{"agent": agent, "do": do, **edit}], "the branch")
        return replace(self, edits=(*self.edits, *made))

    def call(self, function: Callable[[Any], object] | str) -> Self:
        """After the tick, let a function change the program that makes the ticks.

        It is given what ``make_model`` of :func:`tiermem.experiment` gave.
        """
        name = function if isinstance(function, str) else name_of(function)[0]
        return replace(self, calls=(*self.calls, name))

    def run(
        self,
        ticks: int | None = None,
        out: str | PathLike[str] | None = None,
        *,
        progress: bool | None = None,
        force: bool = False,
    ) -> "Run":
        """Make the branch, and run it for ``ticks`` in all, or as long as its parent.

        ``out`` is its folder, which ``force`` lets it take from another run; without one, it is in
        a temporary folder, as :func:`tiermem.simulate` makes it.
        """
        more = [] if ticks is None else [f"simulation.ticks={ticks}"]
        name = f"{self.parent.folder.name}-from-{self.at}"

        def make(folder: Path) -> "Run":
            above("branch_with")(
                self.parent.folder, self.at, folder, assignments=[*self.settings, *more],
                forget=self.forgotten, never_heard=self.unheard, block=self.blocked,
                pin=self.pinned, edits=self.edits, call=self.calls, force=force,
            )  # fmt: skip
            return type(self.parent).open(folder, say=above("say"))

        return made_in(out, name, make).resume(progress=progress)

    def __repr__(self) -> str:
        changes = {
            "forget": self.forgotten, "never heard": self.unheard, "block": self.blocked,
            "pin": self.pinned, "set": self.settings, "call": self.calls,
            "edit": tuple(f"{each['do']} of {each['agent']}" for each in self.edits),
        }  # fmt: skip
        told = [f"{name} {first_of(each)}" for name, each in changes.items() if each]
        said = "; ".join(told) or "nothing is changed yet"
        return f"<branch of {self.parent.folder.name} at {number(self.at)}: {said}>"


def made_in(out: str | PathLike[str] | None, name: str, make: "Callable[[Path], Run]") -> "Run":
    """A run in the folder ``out``, or in a temporary one of this name that lives as long as it."""
    if out is not None:
        return make(Path(out))
    place = TemporaryFolder("run")
    try:
        return make(Path(place.name, name)).keep(place)
    except BaseException:
        place.cleanup()
        raise


def as_overrides(settings: Mapping[str, object]) -> dict[str, Any]:
    """Settings by section (``memory={"max_pinned": 2}``), by name (``{"memory.max_pinned": 2}``),
    or those of a simulation by their own name (``world_options={…}``), as they nest.

    A class stands for its name.
    """
    named = {
        f"simulation.{key}" if key in _OF_SIMULATION else key: name_of(value)[0]
        if isclass(value)
        else value
        for key, value in settings.items()
    }
    return joined_overrides([named])


def as_assignments(settings: Mapping[str, object]) -> list[str]:
    """The same settings as texts, ``memory.max_pinned=2``."""
    return [
        f"{section}.{key}={json.dumps(value)}" if key else f"{section}={json.dumps(value)}"
        for section, own in as_overrides(settings).items()
        for key, value in (own.items() if isinstance(own, dict) else [("", own)])
    ]
