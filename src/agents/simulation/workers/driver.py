"""The driver of workers: it lets their cells do the agents' part of each tick, and writes the log.

The loop of the run is beside it, with the world.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from ... import errors
from ...config.settings import Settings
from ...errors import InvalidInput, RunError, SimulationError
from ...memory.sources import Telling
from ...storage.files import lock_folder, make_folder, replace_file
from ...telling.groups import GroupChange
from ..protocols import Observation, Say, World
from ..tick.act import Boards, BoardUse, Deed
from ..tick.minds import tick_record
from ..tick.talk import Asked
from . import wire
from .carriers import Link, WorkerLost, wait_for
from .cells import LOG, SHARDS, base_of, members, placed
from .log import Entry, Frames, TickLog

MANIFEST = "manifest.json"


class Driver:
    """The agents of a run, who live in cells, which the workers have.

    ``start`` starts a worker, and ``at_end`` is called when all have ended. After an error, the
    driver can't go on; a new one can, from the last tick in the log. ``rules`` are the standing
    rules of the run. With ``offline``, no language model is asked. Errors name the ``world``.
    ``say`` takes what workers in processes say while a tick is under way.
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
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._say = say
        self._folder, self._settings = folder, settings
        self._world_name = type(world).__name__
        self._rules = list(rules)
        self._offline = offline
        self._agents = settings.simulation.agent_ids()
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
            self.tick: int
            self._metrics: Mapping[str, float]
            self._world_state: str
            self.tick, self._metrics, self._world_state = (
                last[:3] if last else self._base[1:2] + self._base[3:]
            )
            self._frames: list[Frames] = []
            """What the cells were told and said in the tick that is under way."""
            self._boards: list[Any] = []
            self._links = [start() for _ in self._cells]
            self._open()
        except BaseException:
            self.end()
            raise

    # The agents' part of a tick

    def go_on(self) -> tuple[Mapping[str, float], Any]:
        """The metrics after the last tick, and the world's state."""
        return self._metrics, json.loads(self._world_state)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """A tick, as a block; it has happened when it is in the log."""
        log = self._log
        if log is None:
            raise SimulationError("the driver of this simulation has ended", hint="open it again")
        self._spent, before = True, self.tick
        try:
            yield
        except BaseException:
            if log.last is None or log.last.tick < self.tick:
                self.tick = before
            raise
        self._spent = False

    def begin(self, tick: int) -> None:
        """Begin this tick, in its block."""
        self.tick = tick

    def say(self, asked: Asked) -> dict[str, Say]:
        """What agents say whose turn it is; the cells begin the tick, if they have not yet."""
        parts = [
            self._encoded(
                [
                    [agent, wire.plain_talk(asked[agent][1]), *wire.plain_seen([asked[agent][0]])]
                    for agent in members
                    if agent in asked
                ],
                "observe",
            )
            for members in self._members
        ]
        said = map(wire.decode, self._all("talk", self.tick, parts=parts)[1])
        return {agent: Say(*own) for cell in said for agent, own in cell.items()}

    def decide(self, seen: Mapping[str, Observation]) -> dict[str, Sequence[object]]:
        """What each agent wants to do; the frames have what the cells saw and decided."""
        saw = [
            self._encoded(wire.plain_seen([seen[agent] for agent in members]), "observe")
            for members in self._members
        ]
        decided = self._all("decide", self.tick, parts=saw)[1]
        self._frames = [Frames(*frames, b"") for frames in zip(saw, decided, strict=True)]
        read = list(map(wire.decode, decided))
        self._uses = self._board_uses(read)
        wanted: dict[str, list[Any]] = {}
        for cell, (actions, *_) in zip(self._members, read, strict=True):
            wanted.update(zip(cell, actions, strict=True))
        return {agent: wire.actions_of(wanted[agent]) for agent in self._agents}

    def remember(
        self,
        deeds: Mapping[str, Sequence[Deed]],
        told: Sequence[Telling],
        changes: Sequence[GroupChange],
    ) -> dict[str, Any]:
        """Let the cells store what came of it; what they count together.

        What can't become a memory is refused here: a tick in the log can be done again.
        """
        done = self._done(dict(zip(deeds, wire.plain_deeds(deeds.values()), strict=True)), told)
        self._boards = Boards(self._uses, changes).plain()
        self._frames = [
            frames._replace(deeds=frame) for frames, frame in zip(self._frames, done, strict=True)
        ]
        counts = self._all("record", self._boards, parts=done)[0]
        return combined(counts, list(map(len, self._members)))

    def record(
        self, counts: Mapping[str, Any], metrics: Mapping[str, float], world: Any
    ) -> dict[str, Any]:
        """Write the tick to the log, and let the cells commit it."""
        try:
            state = json.dumps(world, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            state.encode()  # a lone surrogate has no UTF-8
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(str(error)) from error
        if self._log is not None:
            self._log.append(Entry(self.tick, dict(metrics), state, self._frames, self._boards))
        self._metrics, self._world_state = metrics, state
        for states in self._committed():
            self._changed(states)
        return tick_record(self.tick, self.state_hash(), counts, metrics)

    def _committed(self) -> list[Any]:
        """Let the cells commit the tick, which is in the log; the states that changed."""
        try:
            return self._all("commit")[0]
        except errors.BankError as error:
            raise RunError(
                f"a cell can't record tick {self.tick}, which the log has: {error.why}",
                hint="make room on the disk, or let your user write there; then " + self._way_on(),
            ) from error

    def _board_uses(self, decided: Sequence[Any]) -> list[BoardUse]:
        """What the agents found on boards, in the order in which one process has it."""
        place = {agent: at for at, agent in enumerate(self._agents)}
        uses = [BoardUse(*use) for _, _, *cell in decided for uses in cell for use in uses]
        return sorted(uses, key=lambda use: (use.round, place[use.agent]))

    def _done(self, deeds: Mapping[str, Any], told: Sequence[Telling]) -> list[bytes]:
        """For each cell, what came of its agents' actions, and what they are told."""
        heard: dict[str, list[Telling]] = {}
        for telling in told:
            heard.setdefault(telling.receiver, []).append(telling)
        return [
            self._encoded(
                [
                    [deeds[agent] for agent in cell],
                    [telling for agent in cell for telling in heard.get(agent, ())],
                ],
                "apply",
            )
            for cell in self._members
        ]

    def _encoded(self, value: object, method: str) -> bytes:
        return wire.encode(value, f"{self._world_name}.{method}()")

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
            self._send(link, ["open", run, settings, self._rules, self._offline, cells], [])
        opened = [self._answer(link)[0] for link in self._links]
        behind: dict[int, int] = {}
        for cells, states_of in zip(self._cells, opened, strict=True):
            for cell, (tick, states) in zip(cells, states_of, strict=True):
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
            "world": json.loads(self._world_state),
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
        while True:
            try:
                answer = link.receive()
            except WorkerLost as error:
                raise self._lost(link, error) from error
            self.bytes_carried += len(answer)
            head, parts = wire.unpacked(answer)
            if "said" not in head:
                break
            self._say(head["said"])
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


# What the cells count and hash, together

_LARGEST = ("retrieved_most", "hot_utilization")


def combined(counts: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> dict[str, Any]:
    """The counts of all cells, as one bank counts; ``sizes`` are the numbers of their agents."""
    result: dict[str, Any] = {}
    for name in counts[0]:
        values = [cell[name] for cell in counts]
        if name == "hit_rate":  # a cell's rate is rounded, and its searches are few
            hits = sum(round(rate * size) for rate, size in zip(values, sizes, strict=True))
            result[name] = round(hits / sum(sizes), 6) if sum(sizes) else 0.0
        else:
            result[name] = max(values) if name in _LARGEST else sum(values)
    return result


def state_hash(seed: int, dims: int, tick: int, states: Mapping[str, tuple[int, bytes]]) -> str:
    """:meth:`MemoryBank.state_hash`, from the state of each agent: next number, fingerprint."""
    result = hashlib.sha256(f"{seed} {dims} {tick}".encode())
    for agent, (number, mark) in sorted(states.items()):
        result.update(b"\0%s\0%d\0" % (agent.encode(), number))
        result.update(mark)
    return result.hexdigest()
