"""What an experiment changes, and where the same thing is in a run of another seed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ...bank.memory_bank import MemoryBank
from ...config.load import load_settings
from ...config.settings import Settings, is_secret
from ...errors import InvalidInput, RunError
from ...memory.context import one_line
from ...memory.records import id_prefix, memory_id, sequence_of, short_id, whole_id
from ...memory.tiers import Tier
from ...memory.words import short
from ..runs.branch import branch
from ..runs.folder import as_run_error, read_folder
from ..runs.record import RunRecord

ANYBODY = "*"
_ARROWS = ("→", "->")


class Target(NamedTuple):
    """A memory: by its id, whole text and the tick of its birth, or by a part of its text."""

    agent: str
    """``*`` for whoever has the oldest such memory."""
    text: str
    is_whole: bool
    """Whether ``text`` is all of the memory's text."""
    born: int | None = None
    id: str = ""
    """Its id in the run in which it was named. Runs of another seed have other ids."""

    def in_run(self, settings: Settings) -> Callable[[str, str], bool]:
        """Whether an id and a text are those of the memory, in a run with these settings."""
        if self.id and sequence_of(id_prefix(settings.seed, self.agent), self.id) is not None:
            return lambda identifier, _: identifier == self.id
        if self.is_whole:
            return lambda _, text: text == self.text
        return lambda _, text: self.text in text

    def __str__(self) -> str:
        whose = "anybody" if self.agent == ANYBODY else self.agent
        return f"{whose}: {one_line(self.text)[:80]!r}"


class Change(NamedTuple):
    """What a branch of one run is given."""

    at: int
    """The last tick that both share."""
    edits: tuple[dict[str, Any], ...] = ()
    rules: tuple[dict[str, Any], ...] = ()
    assignments: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """What is changed, for people."""
    secrets: tuple[str, ...] = ()
    """Settings such as an API key, which a run's folder does not keep."""


class Intervention(NamedTuple):
    """What is changed, in the words that hold for every run of the scenario."""

    at: int | None
    """None: before the birth of what is never heard."""
    forget: tuple[Target, ...] = ()
    never_heard: tuple[Target, ...] = ()
    pin: tuple[Target, ...] = ()
    block: tuple[tuple[str, str], ...] = ()
    assignments: tuple[str, ...] = ()
    call: tuple[str, ...] = ()
    """Functions that change the program, as ``module:function``."""
    secrets: tuple[str, ...] = ()

    def in_run(self, folder: Path) -> Change:
        """The change of this run; :class:`RunError` says what the run does not have."""
        with RunRecord.read(folder) as run:
            return self._in_run(run)

    def _in_run(self, run: RunRecord) -> Change:
        born = [_birth(run, target) for target in self.never_heard]
        at = self.at if self.at is not None else min((max(b.tick - 1, 0) for b in born), default=0)
        edits, rules, words = [], [], []
        for birth in born:
            words.append(f"{birth.agent} never hears {short(birth.text)!r} of tick {birth.tick}")
            if birth.tick == 0:
                edits.append({"agent": birth.agent, "do": "forget", "memory": birth.id})
                continue
            if birth.tick <= at:
                raise RunError(
                    f"{birth.agent} had {short(birth.text)!r} in tick {birth.tick} already, before "
                    f"a branch at {at}",
                    hint=f"branch at tick {birth.tick - 1} or before, or leave --at out",
                )
            rules.append(
                {"do": "never", "agent": birth.agent, "tick": birth.tick, "content": birth.text}
            )
        if self.forget or self.pin:
            with run.bank(at) as bank:
                for do, targets in (("forget", self.forget), ("pin", self.pin)):
                    for target in targets:
                        agent, identifier, text = _held(bank, run, target)
                        if do == "pin" and bank.agent(agent).get(identifier).tier is Tier.PINNED:
                            raise RunError(
                                f"{agent} has {short(text)!r} pinned already after tick {at}",
                                hint="pin another memory, or branch before it was pinned",
                            )
                        edits.append({"agent": agent, "do": do, "memory": identifier})
                        words.append(f"{agent} {do}s {short(text)!r} after tick {at}")
        for speaker, listener in self.block:
            rules.append({"do": "block", "from": speaker, "to": listener, "after": at})
            words.append(f"what {speaker} says does not reach {listener} after tick {at}")
        for function in self.call:
            rules.append({"do": "call", "function": function, "after": at})
            words.append(f"{function} changes the program after tick {at}")
        words += [f"{each} after tick {at}" for each in self.assignments]
        return Change(at, tuple(edits), tuple(rules), self.assignments, tuple(words), self.secrets)


def read_intervention(
    folder: Path,
    at: int | None,
    *,
    forget: Iterable[str] = (),
    never_heard: Iterable[str] = (),
    pin: Iterable[str] = (),
    block: Iterable[str] = (),
    assignments: Iterable[str] = (),
    call: Iterable[str] = (),
) -> Intervention:
    """What a user asks for: a memory as ``AGENT:ID`` or ``AGENT:part of its text``.

    The last digits of an id are enough, as commands show them: at least four.
    An id is looked up, because a run of another seed has other ids.
    """
    settings, _ = read_folder(folder)
    given = tuple(assignments)
    secrets = tuple(text for text in given if is_secret(text.partition("=")[0]))
    changes = tuple(text for text in given if text not in secrets)
    if any(text.partition("=")[0].strip() == "simulation.ticks" for text in changes):
        raise InvalidInput(
            "an experiment compares a run with what it would have been, tick for tick",
            hint="leave simulation.ticks out; tiermem resume makes a run longer",
        )
    if changes and load_settings(settings, assignments=changes) == settings:
        raise InvalidInput(
            f"{', '.join(changes)} changes nothing: the run has these settings",
            hint="name other values, or leave --set out",
        )
    with RunRecord.read(folder) as run:
        last = run.last
        never = tuple(_target(folder, run, text) for text in never_heard)
        made = Intervention(
            at,
            tuple(_target(folder, run, text) for text in forget),
            never,
            tuple(_target(folder, run, text) for text in pin),
            tuple(_pair(run.agents, text) for text in block),
            changes,
            tuple(call),
            secrets,
        )
    if not any(made[1:7]):
        raise InvalidInput(
            "an experiment changes something",
            hint="name it with --forget, --never-heard, --block, --pin, --set or --call",
        )
    if at is None and not never:
        raise InvalidInput(
            "an experiment begins after a tick", hint="name the last tick that is shared: --at"
        )
    check_at(folder, at, last)
    return made


def check_at(run: Path, at: int | None, last: int) -> None:
    """Refuse a tick after which nothing can change in a run."""
    if at is not None and not 0 <= at < last:
        raise RunError(
            f"{run} has ticks 0 to {last}; nothing can change after tick {at}",
            hint=f"give --at a tick from 0 to {last - 1}" if last else "let it run first",
        )


def branch_with(
    folder: Path,
    at: int,
    out: Path,
    *,
    assignments: Iterable[str] = (),
    edits: Sequence[Mapping[str, Any]] = (),
    forget: Sequence[str] = (),
    never_heard: Sequence[str] = (),
    block: Sequence[str] = (),
    pin: Sequence[str] = (),
    call: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Make a branch of a run with settings, edits, and what :func:`read_intervention` reads."""
    rules: Sequence[Mapping[str, Any]] = ()
    if forget or never_heard or block or pin or call:
        asked = read_intervention(
            folder, at, forget=forget, never_heard=never_heard, block=block, pin=pin, call=call
        ).in_run(folder)
        edits, rules = [*edits, *asked.edits], asked.rules
    branch(folder, at, out, assignments=assignments, edits=edits, rules=rules, force=force)


class _Birth(NamedTuple):
    agent: str
    tick: int
    text: str
    id: str


def _target(folder: Path, run: RunRecord, text: str) -> Target:
    known = run.agents
    agent = next((name for name in [*known, ANYBODY] if text.startswith(f"{name}:")), None)
    if agent is None or len(text) == len(agent) + 1:
        raise InvalidInput(
            f"{text!r:.80} names no memory of an agent of {folder}",
            hint="write AGENT:ID or AGENT:part of its text; the agents are listed by: tiermem "
            f"show {quote(str(folder))}; {_BOARDS}",
        )
    what = text[len(agent) + 1 :]
    prefix = id_prefix(run.settings.seed, agent)
    named = whole_id(prefix, what)
    is_id = sequence_of(prefix, named) is not None and what in (named, short_id(named))
    if agent == ANYBODY or not is_id:
        return Target(agent, what, is_whole=False)
    own = [birth for birth in _births(run) if birth.agent == agent]
    is_text = what != named and any(what in birth.text for birth in own)
    for birth in own:
        if birth.id != named:
            continue
        if is_text:
            raise InvalidInput(
                f"{what} is the end of an id of {agent}, and a part of a text of it",
                hint=f"write {agent}:{named}, or more of the text",
            )
        return Target(agent, birth.text, is_whole=True, born=birth.tick, id=named)
    if is_text:
        return Target(agent, what, is_whole=False)
    raise RunError(
        f"{folder} has no memory {what} of {agent}, or its text was forgotten",
        hint=f"tiermem show and tiermem why give ids; the ids of another run are others; {_BOARDS}",
    )


def _pair(known: Sequence[str], text: str) -> tuple[str, str]:
    for arrow in _ARROWS:
        speaker, found, listener = text.partition(arrow)
        if found and listener.strip() in known and speaker.strip() not in ("", listener.strip()):
            return speaker.strip(), listener.strip()
    raise InvalidInput(
        f"{text!r:.80} does not say who is kept from whom",
        hint="write FROM→TO or FROM->TO; TO is an agent of the run, and FROM is somebody else",
    )


def _births(run: RunRecord) -> Iterator[_Birth]:
    """Every memory of an agent with a text that was born in the run, oldest first."""
    prefixes = {name: id_prefix(run.settings.seed, name) for name in run.agents}
    with as_run_error("the memories of the run can't be read"):
        for tick, event in run.births():
            prefix = prefixes.get(event.agent_id)
            if prefix is not None:
                own = memory_id(prefix, event.sequence)
                yield _Birth(event.agent_id, tick, str(event.content), own)


def later_births(folder: Path, rule: Mapping[str, Any]) -> list[int]:
    """The ticks in which an agent got what by this rule it should not get in one tick."""
    with RunRecord.read(folder) as run:
        return [
            birth.tick
            for birth in _births(run)
            if (birth.agent, birth.text) == (rule["agent"], rule["content"])
            and birth.tick >= rule["tick"]
        ]


def _birth(run: RunRecord, target: Target) -> _Birth:
    """The birth of a memory in this run; the nearest in time, if there are several."""
    fits = target.in_run(run.settings)
    fitting = [
        birth
        for birth in _births(run)
        if target.agent in (birth.agent, ANYBODY) and fits(birth.id, birth.text)
    ]
    if not fitting:
        raise RunError(f"there never was a memory of {target}", hint=_OTHER_SEED)
    near = 0 if target.born is None else target.born
    return min(fitting, key=lambda birth: abs(birth.tick - near))


def _held(bank: MemoryBank, run: RunRecord, target: Target) -> tuple[str, str, str]:
    """Agent, id and text of a memory that somebody has after the bank's tick."""
    fits, names = target.in_run(run.settings), run.agents
    if target.agent != ANYBODY:
        names = [target.agent]
    fitting = [
        memory
        for name in names
        for memory in bank.agent(name).all()
        if fits(memory.id, memory.content) and memory.kind != "note"
    ]
    if not fitting:
        raise RunError(
            f"after tick {bank.tick} there is no memory of {target}",
            hint=_OTHER_SEED,
        )
    near = 0 if target.born is None else target.born
    found = min(fitting, key=lambda memory: abs(memory.created_tick - near))
    return found.agent_id, found.id, found.content


_BOARDS = "a post on a group's board is not an agent's memory: --block keeps it from who reads it"
_OTHER_SEED = (
    f"tiermem show lists what agents have; `AGENT:part of its text` fits in more runs; {_BOARDS}"
)
