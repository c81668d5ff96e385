"""The command why: what decided an agent's actions, and the life of a memory."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ....errors import ConfigError
from ....memory.context import one_line
from ....memory.words import counted, short
from ..banks import WholeIds, id_in, shown_id
from ..options import AsJson, RunFolder
from ..output import echo_json, say, table

if TYPE_CHECKING:
    from ....simulation.runs.why import Decision


def why(
    folder: RunFolder,
    agent: Annotated[str | None, Option("--agent", "-a", help="The agent that decided.")] = None,
    tick: Annotated[
        int | None, Option("--tick", "-t", min=1, help="The tick in which it decided.")
    ] = None,
    other: Annotated[
        Path | None,
        Option("--diff", metavar="RUN2", help="Compare with the same decision in another run."),
    ] = None,
    memory: Annotated[
        str | None,
        Option(
            "--memory",
            metavar="ID",
            help="Tell the life of this memory instead: its id, or AGENT:ID with the last digits.",
        ),
    ] = None,
    everything: Annotated[
        bool, Option("--all", help="List the memories that it was not given, too.")
    ] = False,
    ids: WholeIds = False,
    as_json: AsJson = False,
) -> None:
    """Tell why an agent did what it did in a tick: what it saw, what it was given, what came of it.

    It is what the agent knew when it decided, at the beginning of the tick; `tiermem show --tick`
    has the memory after the tick. The command reads a copy: the run can be in use.
    """
    if memory is not None:
        if agent is not None or tick is not None or other is not None:
            raise ConfigError(
                "--memory tells the life of one memory, in all ticks of one run",
                hint="leave out --agent, --tick and --diff, or --memory",
            )
        _tell_life(folder, memory, as_json)
        return
    if agent is None or tick is None:
        raise ConfigError(
            "one decision has an agent and a tick", hint="give --agent and --tick, or --memory"
        )
    from ....simulation.runs.why import as_json as plain
    from ....simulation.runs.why import decision

    told = decision(folder, agent, tick)
    if other is not None:
        _tell_difference(told, decision(other, agent, tick), (folder, other), as_json)
    elif as_json:
        echo_json(plain(told))
    else:
        from ....simulation.policies.costs import line_of
        from ....simulation.runs.folder import read_folder
        from ....simulation.worlds.outside import is_outside

        # Only what a program of the user recorded is known: its agents may have done more.
        settings, _ = read_folder(folder)
        idle = "the program recorded no action" if is_outside(settings) else "did nothing"
        calls = [line_of(exchange, settings.llm) for exchange in told.exchanges]
        _tell(told, idle, calls, everything=everything, ids=ids)


def _tell(decided: "Decision", idle: str, calls: list[str], *, everything: bool, ids: bool) -> None:
    say(f"{decided.agent} in tick {decided.tick}")
    for name, texts in _seen(decided).items():
        for text in texts:
            say(f"  {name:<9} {text}")
    rows = [
        {
            "why": each.part,
            "score": round(each.score, 4),
            "boost": each.boost,
            "tier": each.tier,
            "written": _written(each.created_tick, each.kind, each.speaker),
            "id": shown_id(each.id, whole=ids),
            "memory": each.text,
        }
        for each in decided.given
    ]
    table(f"given: {counted(len(rows), 'memory', 'memories')}, in this order", rows)
    if everything and decided.not_given:
        rest = [
            {
                "why": row.reason,
                "score": round(row.score, 4),
                "boost": row.boost,
                "id": shown_id(row.memory.id, whole=ids),
                "memory": row.memory.content,
            }
            for row in decided.not_given
        ]
        table("not given", rest)
    elif decided.not_given:
        reasons = ", ".join(f"{number} {reason}" for reason, number in decided.reasons().items())
        say(f"not given: {reasons}; --all lists them")
    if decided.note:
        say(decided.note)
    for question in decided.asked:
        where = " among cold memories, too" if question.cold else ""
        where = " among its groups' boards, too" if question.groups else where
        if question.session is not None:
            where += f" in the session {question.session}"
        say(f"its policy asked{where}: {question.query}")
        if question.note:
            say(f"  refused: {question.note}")
        for each in question.found:
            on = "" if each.part == "found" else f" (on the {each.part})"
            # The last digits would be those of a memory of the agent's own.
            identifier = each.id if on else shown_id(each.id, whole=ids)
            say(f"  found {each.score:.4f} {identifier} {each.text}{on}")
    for line in _deeds(decided, idle):
        say(line)
    for text in decided.told:
        say(f"others told it: {text}")
    for text in decided.saved:
        say(f"saved before its context was compacted: {text}")
    for text in decided.insights:
        say(f"concluded: {text}")
    for number, exchange in enumerate(decided.exchanges, start=1):
        say(f"call {number}: {calls[number - 1]}")
        say(f"prompt {number}:")
        for message in exchange.messages:
            for line in message["content"].splitlines():
                say(f"  {message['role']}: {line}")
        answer = exchange.reply if exchange.reply is not None else f"({exchange.error})"
        say(f"answer {number}:")
        for line in answer.splitlines():
            say(f"  {line}")


def _seen(found: "Decision") -> dict[str, list[str]]:
    """What the agent perceived, by name."""
    return {
        "observed": found.observed.splitlines(),
        "heard": list(found.heard),
        "was told": list(found.errors),
        "facts": [json.dumps(found.facts, ensure_ascii=False)] if found.facts else [],
        "asked": [found.query],
    }


def _deeds(found: "Decision", idle: str = "did nothing") -> list[str]:
    lines = [] if found.did else [idle]
    for deed in found.did:
        arguments = json.dumps(dict(deed.arguments), ensure_ascii=False) if deed.arguments else ""
        came = f": {deed.text}" if deed.text else ""
        lines.append(f"did {' '.join(filter(None, (deed.name, arguments)))} ({deed.result}){came}")
        if deed.reason:
            lines.append(f"  because: {one_line(deed.reason)}")
    if found.idle:
        lines.append(f"  because: {one_line(found.idle)}")
    return lines


def _written(tick: int | None, kind: str, speaker: str | None) -> str:
    if tick is None:
        return "–"
    return f"tick {tick}, {kind}" + (f" of {speaker}" if speaker else "")


def _tell_difference(
    first: "Decision", second: "Decision", folders: tuple[Path, Path], as_json: bool
) -> None:
    from ....simulation.runs.why import as_json as plain

    rows = _compared(first, second)
    names = [str(each) for each in folders] if folders[0] != folders[1] else ["first", "second"]
    if as_json:
        differs = sorted({row[1] for row in rows if row[0]})
        echo_json({"runs": names, "differs": differs, "decisions": [plain(first), plain(second)]})
        return
    table(
        f"{first.agent} in tick {first.tick}: ≠ marks what differs",
        [
            {"": "≠" if differs else "", "what": what, names[0]: one, names[1]: two}
            for differs, what, one, two in rows
        ],
    )


def _compared(first: "Decision", second: "Decision") -> list[tuple[bool, str, str, str]]:
    """Whether a part differs, its name, and what each decision has there."""
    rows = []
    one_seen, two_seen = _seen(first), _seen(second)
    for name in one_seen:
        rows += _side_by_side(name, one_seen[name], two_seen[name])
    rows += _given_side_by_side(first, second)
    questions = [[each.query for each in decision.asked] for decision in (first, second)]
    rows += _side_by_side("its policy asked", *questions)
    rows += _side_by_side("did", _deeds(first), _deeds(second))
    return rows


def _side_by_side(name: str, one: list[str], two: list[str]) -> list[tuple[bool, str, str, str]]:
    longest = max(len(one), len(two))
    pairs = zip(_filled(one, longest), _filled(two, longest), strict=True)
    return [(a != b, name, a, b) for a, b in pairs]


def _given_side_by_side(first: "Decision", second: "Decision") -> list[tuple[bool, str, str, str]]:
    """Each memory that one of the two was given, by its text: place and score in both."""
    found: dict[tuple[str, int], list[str]] = {}
    for side, decision in enumerate((first, second)):
        times: dict[str, int] = {}
        for place, each in enumerate(decision.given, start=1):
            times[each.text] = times.get(each.text, 0) + 1  # a text may be given twice
            pair = found.setdefault((each.text, times[each.text]), ["–", "–"])
            pair[side] = f"{place}. {each.part} {each.score + each.boost:.4f}"
    return [
        (one != two, f"given: {short(text)}", one, two) for (text, _), (one, two) in found.items()
    ]


def _filled(texts: list[str], length: int) -> list[str]:
    return texts + ["–"] * (length - len(texts))


def _tell_life(folder: Path, identifier: str, as_json: bool) -> None:
    from ....simulation.runs.why import life

    found = life(folder, id_in(folder, identifier))
    if as_json:
        moments: list[dict[str, Any]] = [each._asdict() for each in found.moments]
        echo_json({**found._asdict(), "moments": moments})
        return
    say(f"{found.memory_id} of {found.agent}: {found.text}")
    rows = [
        {"tick": each.tick, "what": each.what, "score": each.score, "detail": each.detail}
        for each in found.moments
    ]
    table("its life", rows)
    if found.note:
        say(found.note)
