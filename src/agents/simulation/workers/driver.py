"""The driver of a run over workers: it has the world, draws the order, and writes the log."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ... import errors
from ...config.settings import Settings
from ...errors import RunError, SimulationError
from ...memory.sources import Telling
from ...storage.files import lock_folder, make_folder, replace_file
from ...telling.groups import GroupChange
from ..protocols import World
from ..tick.act import act, changes_in, told_in
from ..tick.branch_rules import Standing
from ..tick.record import combined, state_hash, tick_record
from ..tick.social import Boards, BoardUse
from ..tick.streams import Streams
from ..tick.user_code import call, changed_metrics, check_state, metrics_of, not_kept, observe
from . import wire
from .carriers import Link, WorkerLost, wait_for
from .cells import LOG, SHARDS, base_of, members, placed
from .log import Entry, Frames, TickLog

MANIFEST = "manifest.json"


class _Acted(NamedTuple):
    """What came of the agents' actions."""

    deeds: dict[str, Any]
    """The deeds of each agent, as JSON values."""
    told: list[Telling]
    """In the order of receivers, senders and numbers."""
    changes: list[GroupChange]
    """What was done with groups, in the order of acting."""


class Driver:
    """Runs the ticks of a run whose agents live in cells, which the workers have.

    ``start`` starts a worker, and ``at_end`` is called when all have ended. After an error, the
    driver can't go on; a new one can, from the last tick in the log. ``rules`` are the standing
    rules of the run. With ``offline``, no language model is asked.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        world: World,
        workers: int,
        start: Callable[[], Link],
        at_end: Callable[[], None] = lambda: None,
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        offline: bool = False,
    ) -> None:
        self._folder, self._settings, self._world = folder, settings, world
        self._rules_given, self._rules = list(rules), Standing(rules)
        self._offline = offline
        self._agents = settings.simulation.agent_ids()
        self._streams = Streams(settings.seed, self._agents, self._rules)
        self._names: list[str] | None = None
        self._states: dict[str, tuple[int, bytes]] = {}
        self._spent = False
        self._at_end = at_end
        self._links: list[Link] = []
        self.bytes_carried = 0
        """How many bytes were sent and received since the driver began."""
        shards = folder / SHARDS
        self._lock = wait_for(lambda: lock_folder(shards), errors.BankLocked, seconds=5)
        self._log: TickLog | None = None
        try:
            self._base = base_of(shards)
            self._members = members(self._agents, self._base.cells)
            self._cells = placed(list(map(len, self._members)), min(workers, self._base.cells))
            self._log = TickLog(shards / LOG)
            last = self._log.last
            self.tick, metrics, state = last[:3] if last else self._base[1:2] + self._base[3:]
            self._links = [start() for _ in self._cells]
            self._open()
            self.differences = self._begin(state, metrics)
            """The metrics that are not what they were."""
        except BaseException:
            self.end()
            raise

    def _begin(self, state: str, metrics: Mapping[str, float]) -> list[str]:
        self._streams.begin(0)
        self._call("setup", self._streams.world, tuple(self._agents))
        self._call("set_state", json.loads(state))
        found = changed_metrics(metrics, self._metrics(), self._metrics())
        self._call("set_state", json.loads(state))  # metrics() may have changed the world
        return found

    # Ticks

    def next_tick(self) -> dict[str, Any]:
        """Run one tick, and give its record."""
        if self._spent:
            raise SimulationError(
                "a tick of this simulation failed, and its world is not what it was",
                hint="open it again",
            )
        self._spent = True
        record = self._tick(self.tick + 1)
        self._spent = False
        return record

    def _tick(self, number: int) -> dict[str, Any]:
        world, log = self._world, self._log
        if log is None:
            raise SimulationError("the driver of this simulation has ended", hint="open it again")
        self._streams.begin(number)
        self.tick = number  # errors name it
        try:
            seen = dict(zip(self._agents, observe(world, self._agents, number), strict=True))
            if self._rules:
                seen = self._rules.heard(seen, number)
            frames = [
                self._encoded(wire.plain_seen([seen[agent] for agent in own]), "observe")
                for own in self._members
            ]
            decided = self._all("decide", number, parts=frames)[1]
            read = list(map(wire.decode, decided))
            deeds, told, changes = self._acted(read)
            done = self._done(deeds, told)
            boards = Boards(self._uses(read), changes).plain()
            # What can't become a memory is refused here: a tick in the log can be done again.
            counted = self._all("record", boards, parts=done)[0]
            self._call("end_tick")
            metrics, state = self._metrics(), self._state()
            cells = list(map(Frames, frames, decided, done))
            log.append(Entry(number, metrics, state, cells, boards))
        except BaseException:
            self.tick = number - 1
            raise
        for states in self._committed():
            self._changed(states)
        counts = combined(counted, list(map(len, self._members)))
        return tick_record(number, self.state_hash(), counts, metrics)

    def _committed(self) -> list[Any]:
        """Let the cells commit the tick, which is in the log; the states that changed."""
        try:
            return self._all("commit")[0]
        except errors.BankError as error:
            raise RunError(
                f"a cell can't record tick {self.tick}, which the log has: {error.why}",
                hint="make room on the disk, or let your user write there; then " + self._way_on(),
            ) from error

    def _acted(self, decided: Sequence[Any]) -> _Acted:
        """Apply what the agents of each cell decided."""
        order, wanted = self._streams.order(), self._wanted(decided)
        actions = {agent: wire.actions_of(wanted[agent]) for agent in self._agents}
        deeds = act(self._world, order, actions, self.tick)
        plain = dict(zip(deeds, wire.plain_deeds(deeds.values()), strict=True))
        return _Acted(plain, told_in(deeds), changes_in(deeds))

    def _uses(self, decided: Sequence[Any]) -> list[BoardUse]:
        """What the agents found on boards, in the order in which one process has it."""
        place = {agent: at for at, agent in enumerate(self._agents)}
        found = [BoardUse(*use) for each in decided for uses in each[2:] for use in uses]
        return sorted(found, key=lambda use: (use.round, place[use.agent]))

    def _done(self, deeds: Mapping[str, Any], told: Sequence[Telling]) -> list[bytes]:
        """For each cell, what came of its agents' actions, and what they are told."""
        heard: dict[str, list[Telling]] = {}
        for telling in told:
            heard.setdefault(telling.receiver, []).append(telling)
        return [
            self._encoded(
                [
                    [deeds[agent] for agent in own],
                    [each for agent in own for each in heard.get(agent, ())],
                ],
                "apply",
            )
            for own in self._members
        ]

    def _wanted(self, decided: Sequence[Any]) -> dict[str, list[Any]]:
        """The actions of each agent, as JSON values."""
        result: dict[str, list[Any]] = {}
        for own, each in zip(self._members, decided, strict=True):
            result.update(zip(own, each[0], strict=True))
        return result

    def _encoded(self, value: object, method: str) -> bytes:
        return wire.encode(value, f"{type(self._world).__name__}.{method}()")

    def _state(self) -> str:
        state = self._call("get_state")
        try:
            check_state(state)
            text = json.dumps(state, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            text.encode()  # a lone surrogate has no UTF-8
            return text
        except (TypeError, ValueError, RecursionError) as error:
            raise not_kept(self._world, self.tick, error) from error

    def _metrics(self) -> dict[str, float]:
        metrics = metrics_of(self._world, self.tick, self._names)
        self._names = [*metrics]
        return metrics

    def _call(self, method: str, *arguments: object) -> Any:
        return call(self._world, method, self.tick, *arguments)

    def state_hash(self) -> str:
        """The hash over all memories of all agents, as a bank with all of them has it."""
        return state_hash(self._settings.seed, self._base.dims, self.tick, self._states)

    def _changed(self, states: Mapping[str, Sequence[Any]]) -> None:
        for agent, (number, mark) in states.items():
            self._states[agent] = number, bytes.fromhex(mark)

    # Workers

    def _open(self) -> None:
        """Let the workers open their cells, and bring up those that are behind the log."""
        settings = self._settings.to_dict()
        run = str(self._folder.absolute())
        for link, cells in zip(self._links, self._cells, strict=True):
            self._send(link, ["open", run, settings, self._rules_given, self._offline, cells], [])
        opened = [self._answer(link)[0] for link in self._links]
        behind: dict[int, int] = {}
        for cells, told in zip(self._cells, opened, strict=True):
            for cell, (tick, states) in zip(cells, told, strict=True):
                behind[cell] = tick
                self._changed(states)
        first = min(behind.values(), default=self.tick)
        if first == self.tick or self._log is None:
            return
        for entry in self._log.entries(after=first):
            for cell in [each for each, tick in behind.items() if tick < entry.tick]:
                link = next(
                    link for link, own in zip(self._links, self._cells, strict=True) if cell in own
                )
                self._send(link, ["again", cell, entry.tick, entry.boards], entry.cells[cell])
                self._changed(self._answer(link)[0])

    def checkpoint(self, folder: Path) -> None:
        """Let every cell write a checkpoint into ``folder``, all workers at once.

        The manifest comes last: a folder without one is not whole.
        """
        if (folder / MANIFEST).exists():
            return
        make_folder(folder.parent)
        make_folder(folder)
        self._all("checkpoint", str(folder.absolute()))
        manifest = {
            "tick": self.tick,
            "state_hash": self.state_hash(),
            "cells": [f"cell-{cell:02}.tmck" for cell in range(self._base.cells)],
            "world": json.loads(self._state()),
        }
        replace_file(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def _all(
        self,
        what: str,
        *arguments: object,
        parts: Sequence[bytes] = (),
    ) -> tuple[list[Any], list[bytes]]:
        """Ask all workers at once; what they say of each cell, in the order of the cells."""
        for link, cells in zip(self._links, self._cells, strict=True):
            self._send(link, [what, *arguments], [parts[cell] for cell in cells] if parts else [])
        values: dict[int, Any] = {}
        frames: dict[int, bytes] = {}
        for link, cells in zip(self._links, self._cells, strict=True):
            value, back = self._answer(link)
            values.update(zip(cells, value or (), strict=False))
            frames.update(zip(cells, back, strict=False))
        return [values[cell] for cell in sorted(values)], [frames[cell] for cell in sorted(frames)]

    def _send(self, link: Link, head: object, parts: Sequence[bytes]) -> None:
        message = wire.packed(head, parts)
        self.bytes_carried += len(message)
        try:
            link.send(message)
        except WorkerLost as error:
            raise self._lost(link, error) from error

    def _answer(self, link: Link) -> tuple[Any, list[bytes]]:
        try:
            answer = link.receive()
        except WorkerLost as error:
            raise self._lost(link, error) from error
        self.bytes_carried += len(answer)
        head, parts = wire.unpacked(answer)
        if "error" in head:
            kind: type[errors.TierMemError] = getattr(errors, head["error"])
            raise kind(head["why"], hint=head["hint"])
        return head["value"], parts

    def _lost(self, link: Link, error: WorkerLost) -> RunError:
        number = self._links.index(link) + 1
        return RunError(
            f"worker {number} of {len(self._links)} {error}; the run is whole up to its last tick",
            hint=self._way_on(),
        )

    def _way_on(self) -> str:
        return f"go on with: tiermem resume {quote(str(self._folder))}"

    def close(self) -> None:
        """Close the cells, if no tick is half done, and end the workers."""
        with contextlib.suppress(errors.TierMemError):
            if not self._spent:
                self._all("close")
        self.end()

    def end(self) -> None:
        """End the workers at once. Each cell is at the last tick of the log, or behind it."""
        self._spent = True
        for link in self._links:
            link.end()
        self._links = []
        if self._log is not None:
            self._log.close()
            self._log = None
        self._lock.release()
        at_end, self._at_end = self._at_end, lambda: None
        at_end()
