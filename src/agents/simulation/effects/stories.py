"""How a change spread: what each agent perceived, was given, did and remembered, in two runs."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...memory.events import Added
from ...memory.records import id_prefix, memory_id
from ...memory.sources import source_of
from ...telling.groups import is_board
from ..runs.folder import as_run_error
from ..runs.record import FORGOTTEN, RunRecord, births, new_memories, text_of
from ..runs.why import RESULTS
from ..tick.decision_log import LoggedDecision


class Turn(NamedTuple):
    """One agent in one tick. Memories are named by their texts: ids may be others in a branch."""

    perceived: tuple[str, ...]
    facts: Any
    given: tuple[str, ...]
    """What it was given, then what its questions found beyond that, also on boards of groups."""
    did: tuple[tuple[str, Any, str], ...]
    """Name, arguments and result of each action."""
    born: tuple[str, ...]
    """The texts of the memories that it has since."""
    told_by: Mapping[str, str]
    """Who said it, by text; where the world or the teller says so."""
    reasons: tuple[str | None, ...]
    """Why the agent did each action, where its policy says so. Two reasons for the same actions
    are no other decision."""
    idle: str | None
    """Why the agent did nothing, where its policy says so."""


Story = Mapping[int, Mapping[str, Turn]]
"""The turns by tick and agent."""


class Step(NamedTuple):
    """What differs with an agent in a tick."""

    tick: int
    agent: str
    perceived: bool
    given: bool
    did: bool
    remembers: bool


class Parted(NamedTuple):
    """The first decision that differs: what was done as it was, and what was done then."""

    tick: int
    agent: str
    was: tuple[str, ...]
    changed: tuple[str, ...]
    missed: tuple[str, ...]
    """What the agent was given before, and is not given now."""
    more: tuple[str, ...]
    """What it is given now alone."""


class Reached(NamedTuple):
    """The tick in which the change reached an agent, and through whom."""

    agent: str
    tick: int
    through: tuple[str, ...]
    """Agents that it had reached before, and that said or did what this one perceived, or that it
    reached in this tick, and that told this one something then; empty for the first ones, or if
    only the world can tell."""
    decided: int | None
    """The first tick in which the agent decided otherwise."""


def story_of(run: RunRecord, after: int) -> Story:
    """What the record of a run tells of the ticks after ``after``."""
    story: dict[int, dict[str, Turn]] = {}
    with as_run_error("the decisions of a run can't be read"):
        names = run.agents
        prefixes = {name: id_prefix(run.settings.seed, name) for name in names}
        texts: dict[tuple[str, int], str] = {}
        writers: dict[tuple[str, int], str] = {}
        new: dict[int, dict[str, dict[int, Added]]] = {}
        for tick, events in run.events():
            # The first commit of a tick is its own; a later one is somebody's edit.
            if tick > after and tick not in new:
                new[tick] = new_memories(events)
            for event in events:
                if isinstance(event, Added):
                    texts[event.agent_id, event.sequence] = text_of(event)
                    if is_board(event.agent_id) and (writer := _speaker(event)):
                        writers[event.agent_id, event.sequence] = writer
        by_id = {memory_id(prefixes[name], number): text
                 for (name, number), text in texts.items() if name in prefixes}  # fmt: skip
        for tick, kept in run.decisions(after):
            story[tick] = {}
            for name, decision in zip(names, kept, strict=False):
                born, memories = new.get(tick, {}).get(name, {}), _given(name, decision)
                read = {texts[each]: writers[each] for each in memories if each in writers}
                story[tick][name] = Turn(
                    tuple(
                        texts.get((name, each), FORGOTTEN)
                        for each in births(decision, born).perceived
                    ),
                    decision.facts,
                    tuple(texts.get(each, FORGOTTEN) for each in memories),
                    tuple(
                        (str(action), _by_text(arguments, by_id), RESULTS[result])
                        for action, arguments, result, _ in decision.did
                    ),
                    tuple(map(text_of, born.values())),
                    read
                    | {text_of(each): who for each in born.values() if (who := _speaker(each))},
                    tuple(map(decision.reason, range(len(decision.did)))),
                    decision.idle,
                )
    return story


def _given(agent: str, decision: LoggedDecision) -> list[tuple[str, int]]:
    """Whose memories an agent was given or found by a question, by number; each of them once."""
    memories = [(agent, number) for number in decision.sequences]
    for (*_, sequences, _, _), boards in zip(decision.asked, decision.boards, strict=True):
        answer = [(agent, number) for number in sequences]
        for place, board, number, _ in boards or ():
            answer.insert(place, (board, number))
        memories += answer
    return list(dict.fromkeys(memories))


def compare(was: Story, changed: Story) -> tuple[list[Step], Parted | None, list[Reached]]:
    """Where two stories differ, the first decision that does, and how the change went around."""
    steps = list(_steps(was, changed))
    first = next((step for step in steps if step.did), None)
    parted = first and _parted(first, was[first.tick][first.agent],
                               changed[first.tick][first.agent])  # fmt: skip
    return steps, parted, _reached(steps, was, changed)


def _steps(was: Story, changed: Story) -> Iterator[Step]:
    for tick in sorted(was.keys() & changed.keys()):
        for agent, one in was[tick].items():
            other = changed[tick].get(agent)
            if other is not None and one[:5] != other[:5]:
                perceived = (one.perceived, one.facts) != (other.perceived, other.facts)
                given = one.given != other.given
                yield Step(
                    tick, agent, perceived, given, one.did != other.did, one.born != other.born
                )


def _parted(step: Step, one: Turn, other: Turn) -> Parted:
    before, now = Counter(one.given), Counter(other.given)
    return Parted(
        step.tick,
        step.agent,
        _deeds(one),
        _deeds(other),
        tuple((before - now).elements()),
        tuple((now - before).elements()),
    )


def _deeds(turn: Turn) -> tuple[str, ...]:
    """The actions in words, without those that both a reader and the memory have elsewhere."""
    if not turn.did and turn.idle:
        return (f"nothing, because: {turn.idle}",)
    return tuple(
        (
            f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())}): {result}"
            if isinstance(arguments, Mapping)
            else f"{name}: {result}"
        )
        + (f", because: {reason}" if reason else "")
        for (name, arguments, result), reason in zip(turn.did, turn.reasons, strict=True)
    )


def _reached(steps: list[Step], was: Story, changed: Story) -> list[Reached]:
    """Who was reached when: by another perception, another memory or another decision."""
    first: dict[str, Step] = {}
    decided: dict[str, int] = {}
    for step in steps:
        first.setdefault(step.agent, step)
        if step.did:
            decided.setdefault(step.agent, step.tick)
    result = []
    for agent, step in first.items():
        # Who perceived, was given or did something else was reached before this tick's deeds. Who
        # only remembers something else was told it by a deed of this tick.
        last = step.tick - (step.perceived or step.given or step.did)
        sooner = {name for name, each in first.items() if each.tick <= last and name != agent}
        one, other = was[step.tick][agent], changed[step.tick][agent]
        through = _through(one, other, sooner, was[step.tick])
        result.append(Reached(agent, step.tick, through, decided.get(agent)))
    return result


def _through(
    one: Turn, other: Turn, sooner: Collection[str], agents: Collection[str]
) -> tuple[str, ...]:
    """The agents whose words, or names, are in what was perceived in one of the runs alone."""
    told = {**one.told_by, **other.told_by}
    apart = [*_in_one(one.born, other.born), *_in_one(one.given, other.given)]
    said = {told[text] for text in apart if text in told}
    named = _named(_in_one(one.perceived, other.perceived), agents)
    return tuple(sorted(said.intersection(sooner) or named.intersection(sooner)))


def _named(texts: Sequence[str], agents: Collection[str]) -> set[str]:
    """The agents whose whole names are in the texts: the longest name, where several fit."""
    names = "|".join(map(re.escape, sorted(agents, key=len, reverse=True)))
    return {name for text in texts for name in re.findall(rf"(?<!\w)(?:{names})(?!\w)", text)}


def _in_one(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """The texts that one of the two has alone."""
    before, now = Counter(one), Counter(other)
    return [*(before - now), *(now - before)]


def _speaker(event: Added) -> str | None:
    metadata: Mapping[str, Any] = dict(event.metadata or {})
    source = source_of(metadata)
    speaker = metadata.get("speaker") if source is None else source.teller
    return speaker if isinstance(speaker, str) else None


def _by_text(value: Any, texts: Mapping[str, str]) -> Any:
    """Arguments with the text of a memory in the place of its id."""
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {key: _by_text(each, texts) for key, each in value.items()}
    return [_by_text(each, texts) for each in value] if isinstance(value, list) else value
