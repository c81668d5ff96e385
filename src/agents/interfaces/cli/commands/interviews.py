"""The commands ask and survey: what agents of a run answer, as they were after a tick."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ....errors import InvalidInput
from ....memory.words import counted
from ....packages import need
from ..options import AsJson, Assignments, Force, Quiet, RunFolder
from ..output import echo_json, say, table
from ..progress import Screen

if TYPE_CHECKING:
    from ....simulation.policies.interview import Asked
    from ....simulation.runs.interviews import Survey

_SCALE = re.compile(r"(-?\d{1,4})(?:\.\.|-)(-?\d{1,4})")
Times = Annotated[
    int, Option("--times", min=1, max=1_000, help="Ask each question so often, each time anew.")
]
Offline = Annotated[bool, Option("--offline", help="Ask no language model: read what is recorded.")]


def ask(
    folder: RunFolder,
    question: Annotated[str, Argument(metavar="QUESTION", help="What is asked.")],
    agents: Annotated[
        list[str] | None,
        Option("--agent", "-a", help="Who is asked; can be repeated. Without it, all agents."),
    ] = None,
    tick: Annotated[
        int | None,
        Option("--tick", "-t", min=0, help="The tick after which; without it, the last one."),
    ] = None,
    choice: Annotated[
        list[str] | None,
        Option("--choice", metavar="TEXT", help="An answer to choose; given twice or more often."),
    ] = None,
    scale: Annotated[
        str | None, Option(metavar="1..7", help="The answer is a place on this scale.")
    ] = None,
    number: Annotated[bool, Option("--number", help="The answer is a number.")] = False,
    times: Times = 1,
    assignments: Assignments = None,
    offline: Offline = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask agents of a run a question: each answers as it was after a tick, with its memory.

    The run does not change, and no agent remembers that it was asked. The answers are recorded in
    the run's folder: the same question is not asked a second time. A run whose agents follow rules
    needs a language model: --set llm.base_url=… --set llm.model=…
    """
    from ....simulation.policies.interview import asked

    asks = asked(question, choice=choice, scale=scale and _ends(scale), number=number)
    told = _told(folder, [asks], None if tick is None else [tick], agents, times,
                 assignments, offline, quiet or as_json)  # fmt: skip
    if as_json:
        echo_json(told.to_dict())
    elif not quiet:
        _tell_answers(told)
        _tell_curve(told)
        say(told.cost, err=True)


def survey(
    folder: RunFolder,
    questions: Annotated[
        Path, Argument(metavar="QUESTIONS", help="A YAML file with a list of questions.")
    ],
    ticks: Annotated[
        str | None,
        Option(
            "--tick",
            "-t",
            metavar="TICKS",
            help="After which ticks, with commas between them; without it, the last one.",
        ),
    ] = None,
    every: Annotated[
        int | None, Option(min=1, metavar="N", help="After every N-th tick, and the last one.")
    ] = None,
    agents: Annotated[
        str | None,
        Option(
            metavar="NAMES", help="Who is asked, with commas between them; without it, all agents."
        ),
    ] = None,
    times: Times = 1,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Write answers and curve as CSV and Parquet, and a page with charts.",
        ),
    ] = None,
    assignments: Assignments = None,
    offline: Offline = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Ask agents of a run a list of questions, after one tick or along many: a curve of opinion.

    In the file, a question is {ask: TEXT} and a name, with choice: [A, B], scale: [1, 7] or
    number: true; else the answer is a text. Questions are asked one by one, each by itself.
    Otherwise it is as with tiermem ask.
    """
    from ....simulation.policies.interview import read_questions
    from ....simulation.runs.interviews import check_free
    from ....simulation.runs.record import last_tick

    need("pyarrow", "scipy")
    if out is not None:
        check_free(out, force=force)  # before anybody is asked
    if ticks is not None and every is not None:
        raise InvalidInput("--tick names ticks, and --every counts them", hint="give one of both")
    chosen = None if ticks is None else [_tick(each) for each in ticks.split(",")]
    if every is not None:
        last = last_tick(folder)
        chosen = [*range(every, last, every), last]
    names = None if agents is None else [name.strip() for name in agents.split(",")]
    told = _told(folder, read_questions(questions), chosen, names, times,
                 assignments, offline, quiet or as_json)  # fmt: skip
    if out is not None:
        told.write(out, force=force)
    if as_json:
        echo_json(told.to_dict())
    elif not quiet:
        if len(told.ticks) == 1 and any(each.kind == "text" for each in told.questions):
            _tell_answers(told)
        _tell_curve(told)
        say(told.cost, err=True)
        if out is not None:
            say(f"answers and curve in {out}; charts in {out / 'survey.html'}")


def _told(
    folder: Path,
    questions: "list[Asked]",
    ticks: list[int] | None,
    agents: list[str] | None,
    times: int,
    assignments: list[str] | None,
    offline: bool,
    quiet: bool,
) -> "Survey":
    from ....simulation.runs.interviews import survey as interview

    with Screen(quiet=quiet) as screen:
        return interview(
            folder, questions, ticks=ticks, agents=agents, times=times,
            assignments=assignments or (), offline=offline, say=screen.say,
            progress=screen.meter("answers", "answers"),
        )  # fmt: skip


def _tick(text: str) -> int:
    if not re.fullmatch(r"\s*\d{1,12}\s*", text):
        raise InvalidInput(f"--tick: {text!r:.40} is no tick", hint="such as --tick 10,20,30")
    return int(text)


def _ends(text: str) -> tuple[int, int]:
    found = _SCALE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"--scale: {text!r:.40} is no scale", hint="such as --scale 1..7")
    return int(found[1]), int(found[2])


def _tell_answers(told: "Survey") -> None:
    several = len(told.questions) > 1
    rows = [
        {
            **({"question": row["question"]} if several else {}),
            "agent": row["agent"],
            **({"time": row["repetition"]} if told.times > 1 else {}),
            "answer": f"({row['problem']})" if row["problem"] else row["answer"],
        }
        for row in told.rows
    ]
    table(f"answers after tick {told.ticks[0]}", rows)


def _tell_curve(told: "Survey") -> None:
    if len(told.rows) > 1 and (rows := _curve(told)):
        of = "agents" if len(told.agents) > 1 else "repetitions"
        table(f"mean or share, and its 95 % interval over {of}", rows)
    missing = sum(row["problem"] is not None for row in told.rows)
    if missing:
        say(f"{counted(missing, 'question')} of {len(told.rows):,} got no usable answer")


def _curve(told: "Survey") -> list[dict[str, Any]]:
    need("scipy")
    from ....simulation.runs.interviews import interval_told

    return [
        {
            **({"question": row["question"]} if len(told.questions) > 1 else {}),
            "tick": row["tick"],
            "answer": row["answer"],
            "n": row["n"],
            "mean": row["mean"],
            "95 % interval": interval_told(row),
        }
        for row in told.curve()
    ]
