"""The experiment: pairs of a run as it was and changed, over seeds or futures, and what differs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...config.load import load_settings
from ...errors import Diverged, InvalidInput, RunError, SimulationError, TierMemError
from ...memory.context import approximate_tokens
from ...storage.files import make_folder
from ..kept_ticks import ticks_of
from ..policies.cassette import Cassette
from ..runs.branch import branch
from ..runs.folder import as_run_error, read_folder
from ..runs.found_effects import AS_IT_WAS, CHANGED, PLACEBO
from ..runs.live import is_live, name_of, only_here
from ..runs.record import RunRecord, last_tick
from ..runs.replay import Replay
from ..runs.run import Run
from ..runs.trust import check_run
from ..statistics import FEWEST_SEEDS, differences
from ..tick.decision_log import plain
from ..workers.carriers import KILLED, in_processes
from ..worlds.outside import check_inside
from .chance import placebo_of, with_chance
from .folder import arms_folder
from .interventions import Change, Intervention, later_births, read_intervention
from .results import Effect, write_effect
from .stories import compare, story_of

# Pairs: each run to its end in a folder, and what pairs ask a language model for


class Arm(NamedTuple):
    """What came of a branch."""

    metrics: dict[str, float]
    """In its last tick."""
    by_agent: dict[str, dict[str, float]]
    ended: int
    """Its last tick."""
    stopped: str = ""
    """Why it ended before its parent did: a prompt to which no answer is recorded."""
    no_ops: int = 0
    """The decisions after the branching tick to which a language model gave no answer."""


class Pair(NamedTuple):
    """One run as it was and changed."""

    where: str
    """The seed, or the future, such as ``seed 8``."""
    number: int
    was: Arm | None
    changed: Arm | None
    missing: str = ""
    """Why this run has no such change."""
    placebo: Arm | None = None
    """Without the change, and a language model is asked anew; None if no model decides."""


class Trial(NamedTuple):
    """What holds for all branches of an experiment."""

    run: Path
    until: int
    """The last tick."""
    offline: bool
    """Whether the first prompt without a recorded answer ends a branch; what came before is kept.
    """
    keep: bool
    """Whether somebody will look at the branches: others get no tables."""
    asks: bool = False
    """Whether a language model decides: then another future has answers of its own."""
    with_placebo: bool = False
    """Whether each pair has a branch in which the model is asked anew without the change."""


def run_arm(
    trial: Trial, folder: Path, change: Change, parent: Path | None = None, anew: int = 0
) -> Arm:
    """Make a branch, by default of the run itself, and run it.

    It begins with its parent's answers of a language model. With a number ``anew``, the model is
    asked again for what comes after the branching tick, by another seed if the settings have one.
    """
    until, offline, keep = trial.until, trial.offline, trial.keep
    parent = parent or trial.run
    settings = ["storage.sync=manual", *change.assignments, *_other_seed(parent, anew)]
    branch(
        parent, change.at, folder, assignments=settings, edits=change.edits, rules=change.rules,
        asks_anew=anew > 0,
    )  # fmt: skip
    with Run.open(folder, change.secrets, offline=offline) as run:
        try:
            for _ in run.advance(until):
                pass
            return _arm(run, change.at, "", keep)
        except SimulationError as error:
            if not isinstance(error.__cause__, Diverged):
                raise
            stopped = error.__cause__.why
    # As it was after its last whole tick.
    with Run.open(folder, change.secrets, offline=offline) as run:
        return _arm(run, change.at, stopped, keep)


def _arm(run: Run, at: int, stopped: str, keep: bool) -> Arm:
    summary = run.finish(report=False) if keep else run.summary()
    no_ops = sum(record["no_ops"] for record, _ in ticks_of(run.bank).records(after=at))
    return Arm(summary["metrics"], summary["by_agent"], run.tick, stopped, no_ops)


def _other_seed(parent: Path, anew: int) -> list[str]:
    """Another seed for a model that has one: with the same, it would answer the same."""
    seed = read_folder(parent)[0].llm.seed
    return [f"llm.seed={seed + anew}"] if anew and seed is not None else []


def check_null(original: Path, null: Path, at: int) -> None:
    """Refuse a run whose branch without a change is not the run itself, hash for hash."""
    one, other = _recorded(original, at), _recorded(null, at)
    if one == other:
        return
    tick = next(tick for tick in sorted({*one, *other}) if one.get(tick) != other.get(tick))
    why = f"tick {tick} differs"
    replay = Replay(original, at)
    try:
        why = next((str(found) for found in replay.ticks() if found), why)
    finally:
        replay.close()
    raise RunError(
        f"a branch of {original} in which nothing was changed is a different run ({why}), so "
        "a difference would say nothing",
        hint="its world or policy keeps state outside get_state(), or reads a clock: tiermem "
        "world check finds where",
    )


def _recorded(folder: Path, after: int) -> dict[int, Any]:
    """What is recorded of each tick: state hash, counts, metrics, what was given, decisions."""
    with RunRecord.read(folder) as run:
        decided = {tick: plain(data) for tick, data in run.logs(after)}
        return {
            record["tick"]: (record, given, decided.get(record["tick"]))
            for record, given in run.records(after)
        }


def seed_pair(trial: Trial, folder: Path, intervention: Intervention, seed: int) -> Pair:
    """A fresh run of the scenario with another seed, and its branch with the same change."""
    pair, fresh = Pair(f"seed {seed}", seed, None, None), folder / AS_IT_WAS
    settings, about = read_folder(trial.run)
    overrides = {"seed": seed, "storage.sync": "manual", "simulation.ticks": trial.until}
    code = trial.run / "code"
    scenario = code if code.is_dir() else about["scenario"] and Path(about["scenario"])
    try:
        other = load_settings(settings, assignments=intervention.secrets, overrides=overrides)
        with Run.create(fresh, other, scenario=scenario) as new:
            for _ in new.advance(trial.until):
                pass
            pair = pair._replace(was=_arm(new, 0, "", trial.keep))
        change = intervention.in_run(fresh)
    except TierMemError as error:
        return pair._replace(missing=error.why)
    return changed_pair(pair, trial, folder, change, fresh)


def future_pair(trial: Trial, folder: Path, change: Change, number: int) -> Pair:
    """The same past with another future, as it was and changed; number 0 is the run's own future.

    Of the run's own future there is only the changed branch.
    """
    if number == 0:
        return changed_pair(Pair("the run itself", 0, None, None), trial, folder, change)
    rule = {"do": "future", "number": number, "after": change.at}
    null = Change(change.at, rules=(rule,), secrets=change.secrets)
    pair = Pair(f"future {number}", number, None, None)
    try:
        was = run_arm(trial, folder / AS_IT_WAS, null, anew=2 * number if trial.asks else 0)
    except TierMemError as error:
        return pair._replace(missing=error.why)
    return changed_pair(pair._replace(was=was), trial, folder, change, folder / AS_IT_WAS)


def changed_pair(
    pair: Pair, trial: Trial, folder: Path, change: Change, parent: Path | None = None
) -> Pair:
    """The pair with its changed branch, or with the reason why there is none.

    The changed branch begins with the answers of the branch as it was, ``parent``: so what is the
    same in both is answered alike, and the difference has less of the model's chance.
    """
    try:
        arm = run_arm(trial, folder / CHANGED, change, parent)
        if arm.stopped:
            return pair._replace(missing=arm.stopped)
        placebo = placebo_arm(trial, folder, change, parent, pair.number)
    except TierMemError as error:
        return pair._replace(missing=error.why)
    return pair._replace(changed=arm, placebo=placebo)


def placebo_arm(
    trial: Trial, folder: Path, change: Change, parent: Path | None = None, number: int = 0
) -> Arm | None:
    """The branch as it was, with a language model asked anew; None if there is to be none."""
    if not trial.with_placebo:
        return None
    nothing = Change(change.at, secrets=change.secrets)
    return run_arm(trial, folder / PLACEBO, nothing, parent, anew=2 * number + 1)


# What pairs cost, before anybody pays for it


class Cost(NamedTuple):
    """What an experiment asks a language model, if each branch asks as often as the run did.

    It is less where prompts are the same, and more where a branch asks, reflects or retries more
    often. Numbers of tokens are rough: four characters are a token.
    """

    branches: int
    """How many branches and fresh runs there are, those without a change included."""
    ticks: int
    """How many ticks they have in all."""
    calls: int
    """If no prompt after the branching tick was asked before; a retry counts once more."""
    prompt_tokens: int
    reply_tokens: int


def cost_of(run: Path, at: int, until: int, seeds: int, futures: int) -> Cost:
    """The cost of a change after ``at``, by the calls that the run itself made."""
    after, whole = until - at, until
    asks = asks_a_model(run)
    # Of each pair: as it was, changed and, where a language model decides, a placebo.
    of_pair = 3 if asks else 2
    branches = of_pair * max(seeds, futures)
    ticks = of_pair * futures * after + (seeds - 1) * (whole + (of_pair - 1) * after)
    asked = _asked(run) if asks else []
    late, every = _sums(asked, at), _sums(asked, -1)
    # The run as it was asks nothing again; a changed branch at most what the run asked.
    sums = [
        2 * one + (seeds - 1) * (both + 2 * one) + (futures - 1) * 3 * one
        for one, both in zip(late, every, strict=True)
    ]
    return Cost(branches, ticks, *sums)


def cost_of_removals(run: Path, begins: Sequence[int], until: int, futures: int) -> Cost:
    """The cost of removing memories in turn, each after its tick, in so many futures."""
    if not begins:
        return Cost(0, 0, 0, 0, 0)
    # A removal is a branch, and two in each other future; one branch has no change at all. Where a
    # language model decides, there is one more without a change, the placebo of all removals.
    asks = asks_a_model(run)
    arms, without = 2 * futures - 1, 2 if asks else 1
    first = min(begins)
    ticks = without * (until - first) + arms * sum(until - begin for begin in begins)
    asked = _asked(run) if asks else []
    late = [_sums(asked, begin) for begin in begins]
    placebo = _sums(asked, first)
    sums = [arms * sum(each) + one for one, *each in zip(placebo, *late, strict=True)]
    return Cost(without + arms * len(begins), ticks, *sums)


def asks_a_model(run: Path) -> bool:
    """Whether a language model decides in a run."""
    return read_folder(run)[0].simulation.policy == "llm"


def _asked(run: Path) -> list[tuple[int, int, int]]:
    """The tick, and the tokens of prompt and reply, of each call that the run made."""
    return [
        (
            exchange.tick,
            approximate_tokens(json.dumps([dict(each) for each in exchange.messages])),
            approximate_tokens(exchange.reply or ""),
        )
        for exchange in Cassette(run / "cassette.jsonl", replay=True)
    ]


def _sums(asked: Sequence[tuple[int, int, int]], after: int) -> tuple[int, int, int]:
    """How many calls there were after a tick, and the tokens of their prompts and replies."""
    late = [each for each in asked if each[0] > after]
    return len(late), sum(each[1] for each in late), sum(each[2] for each in late)


# The experiment


Progress = Callable[[int, int], None]
"""Takes the number of finished pairs, and of all."""
Texts = str | Iterable[str]
Function = str | Callable[[Any], object]
Functions = Function | Iterable[Function]


def effect(
    run: str | Path,
    *,
    at: int | None = None,
    forget: Texts = (),
    never_heard: Texts = (),
    block: Texts = (),
    pin: Texts = (),
    set: Texts = (),  # noqa: A002 - the name of the option on the command line
    call: Functions = (),
    seeds: int = 1,
    futures: int = 1,
    metrics: Sequence[str] = (),
    out: str | Path | None = None,
    workers: int | None = None,
    offline: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Effect:
    """What a change after tick ``at`` of a run does; the arguments are those of the command line.

    A memory is named ``AGENT:ID`` or ``AGENT:part of its text``. With ``seeds``, so many runs are
    compared: this one and fresh ones of other seeds. With ``futures``, the same past goes on so
    many times with another chance. ``out`` is a folder for the branches and the results. More than
    one seed or future runs in processes of its own, unless ``workers`` is 1: a script calls this
    below ``if __name__ == "__main__":``.
    """
    folder = Path(run)
    check_inside(read_folder(folder)[0])
    functions = _names_of(call)
    if any(map(is_live, functions)):
        workers = 1  # no other process has them
    intervention = read_intervention(
        folder, at, forget=one_or_more(forget), never_heard=one_or_more(never_heard),
        block=one_or_more(block), pin=one_or_more(pin), assignments=one_or_more(set),
        call=functions,
    )  # fmt: skip
    _check_numbers(folder, seeds, futures, out, offline)
    check_metrics(folder, metrics)
    change = intervention.in_run(folder)
    asks = asks_a_model(folder)
    trial = Trial(
        folder, last_tick(folder), offline, keep=out is not None, asks=asks,
        with_placebo=asks and not offline,
    )  # fmt: skip
    with arms_folder(folder, out, force) as place:
        arm = _own_pair(trial, place, change)
        again = notes_of_births(place / CHANGED, change)  # before other pairs are paid for
        if progress is not None:
            progress(1, max(seeds, futures))
        more = _more_pairs(trial, place, intervention, change, (seeds, futures), workers)
        pairs = [arm]
        for pair in more:
            pairs.append(pair)
            if progress is not None:
                progress(len(pairs), max(seeds, futures))
        pairs[1:] = sorted(pairs[1:], key=lambda each: each.number)
        result = _effect(folder, place, change, pairs, futures > 1, metrics, again)
        if out is not None:
            write_effect(result, place)
    return result


def expected_cost(
    run: str | Path,
    *,
    at: int | None = None,
    seeds: int = 1,
    futures: int = 1,
    metrics: Sequence[str] = (),
    **changes: Texts,
) -> Cost:
    """What :func:`effect` with the same arguments would run and ask; it runs nothing."""
    folder = Path(run)
    check_inside(read_folder(folder)[0])
    check_metrics(folder, metrics)
    texts = {name: one_or_more(each) for name, each in changes.items()}
    assignments = texts.pop("set", ())
    intervention = read_intervention(folder, at, assignments=assignments, **texts)
    return cost_of(folder, intervention.in_run(folder).at, last_tick(folder), seeds, futures)


def one_or_more(texts: Texts) -> tuple[str, ...]:
    """One text, or many."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _names_of(functions: Functions) -> tuple[str, ...]:
    """The names of functions that change a program."""
    many = (functions,) if isinstance(functions, str) or callable(functions) else functions
    return tuple(each if isinstance(each, str) else name_of(each)[0] for each in many)


def _check_numbers(folder: Path, seeds: int, futures: int, out: object, offline: bool) -> None:
    check_numbers(seeds=seeds, futures=futures)
    if seeds > 1 and futures > 1:
        raise InvalidInput(
            "an experiment goes over seeds or over futures, not over both",
            hint="leave --seeds or --futures out",
        )
    check_run(folder, read_folder(folder)[0], is_parent=True)
    check_answers_are_kept(folder, out)
    check_offline(folder, offline, seeds=seeds, futures=futures)


def check_numbers(**numbers: int) -> None:
    """Refuse how many of something there should be, if it is not a number that can be."""
    for name, number in numbers.items():
        if not isinstance(number, int) or not 1 <= number <= 10_000:
            raise InvalidInput(f"{name} is {number!r:.40}", hint="a number from 1 to 10000")


def check_answers_are_kept(run: Path, out: object) -> None:
    """Refuse to ask a language model without a folder that keeps what it answers."""
    if out is None and asks_a_model(run):
        raise InvalidInput(
            "the answers of a language model cost money, and a folder keeps them",
            hint="name one with --out",
        )


def check_offline(run: Path, offline: bool, *, seeds: int = 1, futures: int = 1) -> None:
    """Refuse to compare what has no recorded answers, if no language model may be asked."""
    if offline and max(seeds, futures) > 1 and asks_a_model(run):
        option, what = ("--seeds", "a fresh run of other seeds") if seeds > 1 else (
            "--futures", "another future"
        )  # fmt: skip
        raise InvalidInput(
            f"{what} has no recorded answers of a language model",
            hint=f"leave --offline or {option} out; --dry-run says what {option} asks",
        )


def _own_pair(trial: Trial, place: Path, change: Change) -> Pair:
    """The run itself: a branch without a change, which must be equal, and one with the change."""
    null = null_arm(trial, place, change.at)
    changed = run_arm(trial, place / CHANGED, change)
    placebo = placebo_arm(trial, place, change)
    seed = read_folder(trial.run)[0].seed
    return Pair("the run itself", seed, null, changed, placebo=placebo)


def null_arm(trial: Trial, place: Path, at: int) -> Arm:
    """A branch without a change; an error if it is not the run itself, hash for hash."""
    arm = run_arm(trial._replace(offline=True), place / AS_IT_WAS, Change(at))
    check_null(trial.run, place / AS_IT_WAS, at)
    return arm


def _more_pairs(
    trial: Trial,
    place: Path,
    intervention: Intervention,
    change: Change,
    numbers: tuple[int, int],
    workers: int | None,
) -> Iterator[Pair]:
    """The other pairs, as they end."""
    seeds, futures = numbers
    over: str = "seed" if seeds > 1 else "future"
    job: Callable[..., Pair] = seed_pair if seeds > 1 else future_pair
    what = intervention if seeds > 1 else change
    first = read_folder(trial.run)[0].seed + 1 if seeds > 1 else 1
    others = range(first, first + max(seeds, futures) - 1)
    calls: list[tuple[Any, ...]] = []
    for number in others:
        make_folder(place / f"{over}-{number}")
        calls.append((trial, place / f"{over}-{number}", what, number))
    for at, pair in results_of(job, calls, workers):
        yield pair or Pair(f"{over} {others[at]}", others[at], None, None, KILLED)


def results_of(
    job: Callable[..., Pair], calls: Sequence[tuple[Any, ...]], workers: int | None
) -> Iterator[tuple[int, Pair | None]]:
    """The pair of each call, whose first argument is the trial, with its place, as they end.

    With one worker, they are made in this process, as are those of a world that only it has.
    """
    here = workers == 1 or any(only_here(read_folder(trial.run)[0]) for trial, *_ in calls[:1])
    return in_processes(job, calls, workers, here=here)


def _effect(
    run: Path, place: Path, change: Change, pairs: Sequence[Pair], futures: bool,
    wanted: Sequence[str], again: Sequence[str],
) -> Effect:  # fmt: skip
    changed = pairs[0].changed
    assert changed is not None  # noqa: S101 - the run itself has both arms
    with RunRecord.read(place / AS_IT_WAS) as one, RunRecord.read(place / CHANGED) as other:
        records = [_metrics(run, change.at) for run in (one, other)]
        stories = [story_of(run, change.at) for run in (one, other)]
    placebo = pairs[0].placebo and placebo_of(place / PLACEBO, stories[0], change.at)
    ended, ticks = changed.ended, sorted(records[1])
    names = list(wanted or records[0][ended])
    rows = list(_rows(pairs, records[0][ended], names))
    statistics, asks = _statistics(rows, names), asks_a_model(run)
    steps, parted, reached = compare(*stories)
    return Effect(
        run=str(run),
        at=change.at,
        until=ended,
        words=change.words,
        over="future" if futures else "seed",
        pairs=rows,
        statistics=with_chance(statistics, rows, placebo) if asks else statistics,
        parted=parted,
        reached=reached,
        steps=steps,
        ticks=ticks,
        series={
            name: ([records[0][t][name] for t in ticks], [records[1][t][name] for t in ticks])
            for name in names
        },
        by_agent=_apart(pairs[0].was, changed) if not changed.stopped else {},
        placebo=placebo,
        missing=[f"{pair.where}: {pair.missing}" for pair in pairs if pair.missing],
        notes=[
            *notes_of_pairs(pairs, len(list(_compared(pairs))), asks=asks),
            *notes_of_blocks(change, has_changed=bool(steps)),
            *again,
        ],
    )  # fmt: skip


def _compared(pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Arm, Arm]]:
    """The pairs with both arms; of several pairs, those that ran to their end."""
    for pair in pairs:
        was, changed = pair.was, pair.changed
        if was is not None and changed is not None and not (changed.stopped and len(pairs) > 1):
            yield pair, was, changed


def _metrics(run: RunRecord, after: int) -> dict[int, dict[str, float]]:
    return {record["tick"]: record["metrics"] for record, _ in run.records(after - 1)}


def check_metrics(run: Path, wanted: Sequence[str]) -> None:
    """Refuse a metric that the run's world does not have."""
    if not wanted:
        return
    with as_run_error(f"{run} can't be read"), RunRecord.read(run) as record:
        known = [name for row, _ in record.records(record.last - 1) for name in row["metrics"]]
    for name in wanted:
        if name not in known:
            raise InvalidInput(
                f"the world has no metric {name!r:.60}", hint=f"it has {', '.join(known)}"
            )


def _rows(
    pairs: Sequence[Pair], was_then: Mapping[str, float], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """A row for each pair and metric. An arm that stopped is compared in its last tick."""
    for pair, arm, changed in _compared(pairs):
        before = was_then if changed.stopped else arm.metrics
        for name in names:
            was, now = before.get(name), changed.metrics.get(name)
            if was is not None and now is not None:
                row = {
                    "pair": pair.where,
                    "number": pair.number,
                    "metric": name,
                    AS_IT_WAS: was,
                    CHANGED: now,
                    "difference": now - was,
                }
                if pair.placebo is not None and name in pair.placebo.metrics:
                    again = pair.placebo.metrics[name]
                    row |= {PLACEBO: again, "placebo_difference": again - was}
                yield row


def figures(pairs: Sequence[Pair], names: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric the mean difference of pairs that ran to their end, its interval and p."""
    return _statistics(list(_rows(pairs, {}, names)), names)


def _arms(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each pair and arm, with all metrics, as the statistics of sweeps take them."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        for arm in (AS_IT_WAS, CHANGED):
            own = made.setdefault((row["pair"], arm), {"pair": row["pair"], "arm": arm})
            own[row["metric"]] = row[arm]
    return list(made.values())


def _statistics(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The mean difference of each metric, and the evidence for it."""
    compared = differences(_arms(rows), [], names, baseline=AS_IT_WAS, variant="arm", pair="pair")
    for row in compared:
        del row["arm"]
    return compared


def _apart(was: Arm | None, changed: Arm) -> dict[str, dict[str, float]]:
    apart = {}
    for name, numbers in changed.by_agent.items():
        before = {} if was is None else was.by_agent.get(name, {})
        differing = {
            agent: value - before[agent]
            for agent, value in numbers.items()
            if agent in before and value != before[agent]
        }
        if differing:
            apart[name] = differing
    return apart


# What a reader should know of the figures


def notes_of_pairs(pairs: Sequence[Pair], compared: int, *, asks: bool) -> Iterator[str]:
    """How much the figures of these pairs say, of which so many were compared."""
    changed = pairs[0].changed
    if changed is not None and changed.stopped:
        yield (
            f"the changed branch ended after tick {changed.ended}, and is compared there: "
            f"{changed.stopped}"
        )
    if compared < len(pairs):
        yield f"{compared} of {len(pairs)} pairs have the change; the figures are of these alone"
    if compared == 1 and not asks:
        yield "one run: the difference is exact in it, and says nothing of others"
    elif asks and compared < FEWEST_SEEDS:
        yield (
            "a language model decides: fewer than three pairs tell no difference apart from its "
            "own chance; --futures 6 asks for more"
        )
    no_ops = sum(pair.changed.no_ops for pair in pairs if pair.changed is not None)
    before = sum(pair.was.no_ops for pair in pairs if pair.was is not None)
    if no_ops > before:
        yield f"{no_ops - before} more decisions had no answer of the language model: did nothing"


def notes_of_blocks(change: Change, *, has_changed: bool) -> Iterator[str]:
    """What a block keeps away, and whether it kept anything away."""
    blocked = [f"{rule['from']}→{rule['to']}" for rule in change.rules if rule["do"] == "block"]
    if blocked and has_changed:
        yield "a blocked remark is one whose speaker the world names"
    elif blocked:
        yield (
            f"nothing was blocked ({', '.join(blocked)}): after tick {change.at} no words reached "
            "that agent whose speaker the world names so"
        )


def notes_of_births(changed: Path, change: Change) -> list[str]:
    """What is never heard in its tick and comes later; an error if it comes in its tick."""
    notes = []
    for rule in change.rules:
        ticks = later_births(changed, rule) if rule["do"] == "never" else []
        if rule.get("tick") in ticks:
            raise RunError(
                f"{rule['agent']} got {rule['content']!r:.60} in tick {rule['tick']} all the same: "
                "it did not come by a way that can be blocked",
                hint="let the agent forget it instead: --forget",
            )
        notes += [
            f"{rule['agent']} gets the same text later, in tick {tick}: that is not kept away"
            for tick in ticks[:1]
        ]
    return notes
