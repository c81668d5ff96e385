"""The command effect: what did this memory do?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from ....errors import InvalidInput
from ....memory.words import counted, short
from ....packages import need
from ..banks import shown_id
from ..options import AsJson, Assignments, Force, Quiet, RunFolder
from ..output import echo_json, say, table
from ..progress import Screen

if TYPE_CHECKING:
    from ....simulation.effects import Effect, Ranked
    from ....simulation.effects.experiment import Cost

_MOST_REACHED = 12
_MEMORY = "AGENT:ID, or AGENT:part of its text"
Forget = Annotated[
    list[str] | None,
    Option(metavar="AGENT:ID", help=f"A memory that is forgotten, pinned or not: {_MEMORY}."),
]
NeverHeard = Annotated[
    list[str] | None,
    Option(metavar="AGENT:ID", help=f"A memory that never comes into being: {_MEMORY}."),
]
Block = Annotated[
    list[str] | None,
    Option(metavar="FROM→TO", help="What FROM says no longer reaches TO; FROM->TO is the same."),
]
Pin = Annotated[
    list[str] | None, Option(metavar="AGENT:ID", help=f"A memory that is pinned: {_MEMORY}.")
]
Call = Annotated[
    list[str] | None,
    Option(metavar="MODULE:FUNCTION", help="A function that changes the run's own program."),
]


def effect(
    folder: RunFolder,
    at: Annotated[
        int | None, Option(min=0, metavar="TICK", help="The last tick before the change.")
    ] = None,
    forget: Forget = None,
    never_heard: NeverHeard = None,
    block: Block = None,
    pin: Pin = None,
    call: Call = None,
    assignments: Assignments = None,
    seeds: Annotated[
        int, Option(min=1, max=10_000, help="Compare this run and fresh ones of other seeds.")
    ] = 1,
    futures: Annotated[
        int, Option(min=1, max=10_000, help="Let the same past go on so often, by another chance.")
    ] = 1,
    metrics: Annotated[
        str | None, Option(metavar="NAMES", help="The metrics to show, with commas between them.")
    ] = None,
    which: Annotated[
        bool, Option("--which", help="Find the memories that mattered most to --metric.")
    ] = False,
    metric: Annotated[str | None, Option(metavar="NAME", help="The metric of --which.")] = None,
    agent: Annotated[
        str | None, Option("--agent", "-a", help="With --which: memories of this agent alone.")
    ] = None,
    budget: Annotated[
        int | None,
        Option(
            min=1, max=10_000, help="With --which: how many memories are tested; without it, 10."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="FOLDER", help="Keep the branches, tables and a report."),
    ] = None,
    workers: Annotated[
        int | None,
        Option("--workers", "-w", min=1, help="Processes at once; without it, one for each core."),
    ] = None,
    offline: Annotated[
        bool, Option("--offline", help="Ask no language model; a new prompt ends the branch.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", "-n", help="Only say what would be run, and asked of a model.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell what a memory did: the same run with one thing changed.

    A branch in which nothing changes must be the run itself, or the command refuses. Then a branch
    with the change is compared with it: metrics, the first decision that is another, and how the
    change went from agent to agent.
    """
    need("pyarrow", "scipy")
    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    changes: dict[str, Any] = {
        "forget": forget or (), "never_heard": never_heard or (), "block": block or (),
        "pin": pin or (), "call": call or (), "set": assignments or (),
    }  # fmt: skip
    if which:
        tried: dict[str, Any] = {
            "at": at,
            "agent": agent,
            "budget": budget or 10,
            "futures": futures,
        }
        keys = changes.pop("set")
        if any(changes.values()) or names or seeds > 1:
            raise InvalidInput(
                "--which tries memories by itself",
                hint="it takes --metric, --at, --agent, --budget, --futures and --out",
            )
        if metric is None:
            raise InvalidInput("--which needs a metric", hint="name it with --metric")
        if dry_run:
            from ....simulation.effects import which_cost

            _say_cost(which_cost(folder, metric, **tried), as_json)
            return
        more = {"out": out, "workers": workers, "offline": offline, "secrets": keys, "force": force}
        _which(folder, metric, {**tried, **more}, quiet, as_json)
        return
    if metric is not None or agent is not None or budget is not None:
        raise InvalidInput("--metric, --agent and --budget belong to --which", hint="add --which")
    if dry_run:
        from ....simulation.effects import expected_cost

        cost = expected_cost(folder, at=at, seeds=seeds, futures=futures, metrics=names, **changes)
        _say_cost(cost, as_json)
        return
    from ....simulation.effects import effect as measure

    with Screen(quiet=quiet or as_json) as screen:
        measured = measure(
            folder, at=at, **changes, seeds=seeds, futures=futures, metrics=names, out=out,
            workers=workers, offline=offline, force=force, progress=screen.meter("pairs", "pairs"),
        )  # fmt: skip
    if as_json:
        echo_json(measured.to_dict())
    elif not quiet:
        _tell(measured, out)


def _say_cost(cost: "Cost", as_json: bool) -> None:
    if as_json:
        echo_json(cost._asdict())
        return
    say(f"{counted(cost.branches, 'branch or run', 'branches and runs')}, {cost.ticks:,} ticks")
    if cost.calls:
        say(
            f"up to {cost.calls:,} calls to the language model, about {cost.prompt_tokens:,} "
            f"tokens of prompts and {cost.reply_tokens:,} of replies, if a branch asks as often as "
            "the run did; a prompt that is the same is not asked again"
        )
    else:
        say("no language model is asked")


def _tell(result: "Effect", out: Path | None) -> None:
    from ....simulation.effects.chance import placebo_told, verdicts

    for words in result.words:
        say(f"changed: {words}")
    many = any(row["n"] > 1 for row in result.statistics)
    table(
        f"the difference after tick {result.until}",
        [_line(row, result, many) for row in result.statistics],
    )
    for verdict in verdicts(result.statistics):
        say(verdict)
    if result.placebo is not None:
        say(placebo_told(result.placebo))
    for note in result.notes:
        say(f"note: {note}")
    first = result.parted
    if first is None:
        say("no decision differs")
    else:
        say(f"first decision that differs: {first.agent} in tick {first.tick}")
        say(f"  as it was: {'; '.join(first.was) or 'nothing'}")
        say(f"  changed:   {'; '.join(first.changed) or 'nothing'}")
        for text in first.missed:
            say(f"  it was given then, and not now: {short(text)}")
    say(f"it reached {counted(len(result.reached), 'agent')}")
    for each in result.reached[:_MOST_REACHED]:
        through = f" through {', '.join(each.through)}" if each.through else ""
        did = "" if each.decided is None else f", decided otherwise in tick {each.decided}"
        say(f"  tick {each.tick}: {each.agent}{through}{did}")
    for line in result.missing:
        say(f"left out: {line}")
    if out is not None:
        say(f"report in {out / 'report.html'}")


def _line(row: Any, found: "Effect", many: bool) -> dict[str, Any]:
    from ....simulation.effects.results import interval
    from ....simulation.runs.found_effects import placebos_in_words

    told = placebos_in_words(row)
    placebo = {"placebo": told} if told else {}
    if not many:
        (pair,) = [each for each in found.pairs if each["metric"] == row["metric"]]
        return {
            "metric": row["metric"],
            "as it was": pair["as-it-was"],
            "changed": pair["changed"],
            "difference": row["mean"],
            **placebo,
        }
    return {
        "metric": row["metric"],
        "pairs": row["n"],
        "mean difference": row["mean"],
        "95 % interval": interval(row),
        "p, by Holm": row["p_holm"],
        **placebo,
    }


def _which(folder: Path, metric: str, given: dict[str, Any], quiet: bool, as_json: bool) -> None:
    from ....simulation.effects import which

    with Screen(quiet=quiet or as_json) as screen:
        meter = screen.meter("branches", "branches")
        ranked = which(folder, metric, **given, progress=meter)
    if as_json:
        echo_json(ranked.to_dict())
    elif not quiet:
        _tell_ranking(ranked, given["futures"])


def _tell_ranking(ranked: "Ranked", futures: int) -> None:
    from ....simulation.effects.results import chance_told, interval

    table(
        f"{ranked.metric}, if the memory is forgotten",
        [
            {
                "difference": each.difference,
                **(
                    {"95 % interval": interval(each._asdict()), "p, by Holm": each.p_holm}
                    if futures > 1
                    else {}
                ),
                "agent": each.candidate.agent,
                "after tick": each.at,
                "decisions": each.candidate.decisions,
                "memory": short(each.candidate.text),
                "id": shown_id(each.candidate.memory_id),
            }
            for each in ranked.tested
        ],
    )
    for line in ranked.failed:
        say(f"not tried: {line}")
    say(
        f"tested {len(ranked.tested)} of {counted(ranked.candidates, 'memory', 'memories')} that "
        "took part in decisions, those that stood in front first; the others were not tested"
    )
    if ranked.asks:
        say(chance_told(ranked))
    elif futures == 1:
        say("one future: each difference is exact in this run; --futures gives intervals")
