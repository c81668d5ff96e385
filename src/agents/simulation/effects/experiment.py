"""The experiment: a run as it was and changed, over seeds or futures, and what is different."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from ...storage.files import make_folder
from ..runs.folder import as_run_error, read_folder
from ..runs.found_effects import AS_IT_WAS, CHANGED
from ..runs.record import RunRecord, last_tick
from ..runs.trust import check_run
from ..statistics import differences
from ..sweeps.worker import KILLED, in_processes
from ..worlds.outside import check_inside
from .arms import Arm, Pair, check_null, future_pair, run_arm, seed_pair
from .cost import Cost, cost_of
from .interventions import Change, Intervention, read_intervention
from .notes import notes_of_births, notes_of_blocks, notes_of_pairs
from .place import arms_folder
from .spread import Parted, Reached, Step, compare, story_of

Progress = Callable[[int, int], None]
"""Takes the number of finished pairs, and of all."""
Texts = str | Iterable[str]


@dataclass(frozen=True)
class Effect:
    """What a change did."""

    run: str
    at: int
    """The last tick that both arms share."""
    until: int
    """The tick in which they are compared."""
    words: Sequence[str]
    """What was changed."""
    over: str
    """What the pairs differ in: ``seed`` or ``future``."""
    pairs: Sequence[Mapping[str, Any]]
    """A row for each pair and metric: as it was, changed, and the difference."""
    statistics: Sequence[Mapping[str, Any]]
    """For each metric the mean difference of the pairs, its interval, p and p_holm."""
    parted: Parted | None
    """The first decision that is another in the run itself; None if none is."""
    reached: Sequence[Reached]
    """How the change went from agent to agent in the run itself."""
    steps: Sequence[Step]
    """Who perceived, was given, did or remembers something else, tick by tick."""
    ticks: Sequence[int] = ()
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    """Each metric over the ticks, as it was and changed, in the run itself."""
    by_agent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By how much the world's numbers of each agent differ; equal ones are left out."""
    missing: Sequence[str] = ()
    """Seeds or futures that say nothing, and why."""
    notes: Sequence[str] = ()
    """What a reader should know of the figures."""

    def difference(self, metric: str) -> Mapping[str, Any]:
        """The statistics of one metric."""
        for row in self.statistics:
            if row["metric"] == metric:
                return row
        known = ", ".join(str(row["metric"]) for row in self.statistics)
        raise InvalidInput(f"there is no metric {metric!r:.60}", hint=f"there is {known}")

    def to_dict(self) -> dict[str, Any]:
        """The effect as JSON values, without the ticks."""
        return {
            "run": self.run,
            "at": self.at,
            "until": self.until,
            "changed": list(self.words),
            "over": self.over,
            "statistics": [dict(row) for row in self.statistics],
            "pairs": [dict(row) for row in self.pairs],
            "first_decision": self.parted and self.parted._asdict(),
            "reached": [each._asdict() for each in self.reached],
            "by_agent": {name: dict(each) for name, each in self.by_agent.items()},
            "missing": list(self.missing),
            "notes": list(self.notes),
        }


def effect(
    run: str | Path,
    *,
    at: int | None = None,
    forget: Texts = (),
    never_heard: Texts = (),
    block: Texts = (),
    pin: Texts = (),
    set: Texts = (),  # noqa: A002 - the name of the option on the command line
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
    given = read_intervention(
        folder, at, forget=one_or_more(forget), never_heard=one_or_more(never_heard),
        block=one_or_more(block), pin=one_or_more(pin), assignments=one_or_more(set),
    )  # fmt: skip
    _check_numbers(folder, seeds, futures, out, offline)
    check_metrics(folder, metrics)
    change, until, keep = given.in_run(folder), last_tick(folder), out is not None
    with arms_folder(folder, out, force) as place:
        arm = _own_pair(folder, place, change, until, offline, keep)
        again = notes_of_births(place / CHANGED, change)  # before other pairs are paid for
        if progress is not None:
            progress(1, max(seeds, futures))
        more = _more_pairs(folder, place, given, change, (seeds, futures), offline, keep, workers)
        pairs = [arm]
        for pair in more:
            pairs.append(pair)
            if progress is not None:
                progress(len(pairs), max(seeds, futures))
        pairs[1:] = sorted(pairs[1:], key=lambda each: each.number)
        found = _effect(folder, place, change, pairs, futures > 1, metrics, again)
        if out is not None:
            from .results import write

            write(found, place)
    return found


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
    given = read_intervention(folder, at, assignments=assignments, **texts)
    return cost_of(folder, given.in_run(folder).at, last_tick(folder), seeds, futures)


def one_or_more(texts: Texts) -> tuple[str, ...]:
    """One text, or many."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _check_numbers(folder: Path, seeds: int, futures: int, out: object, offline: bool) -> None:
    for name, number in (("seeds", seeds), ("futures", futures)):
        if not isinstance(number, int) or not 1 <= number <= 10_000:
            raise InvalidInput(f"{name} is {number!r:.40}", hint="a number from 1 to 10000")
    if seeds > 1 and futures > 1:
        raise InvalidInput(
            "an experiment goes over seeds or over futures, not over both",
            hint="leave --seeds or --futures out",
        )
    settings, _ = read_folder(folder)
    check_run(folder, settings, is_parent=True)
    asks = settings.simulation.policy == "llm"
    if asks and offline and seeds > 1:
        raise InvalidInput(
            "a fresh run of other seeds has no recorded answers of a language model",
            hint="leave --offline or --seeds out; --dry-run says what --seeds asks",
        )
    check_answers_are_kept(folder, out)


def check_answers_are_kept(run: Path, out: object) -> None:
    """Refuse to ask a language model without a folder that keeps what it answers."""
    if out is None and read_folder(run)[0].simulation.policy == "llm":
        raise InvalidInput(
            "the answers of a language model cost money, and a folder keeps them",
            hint="name one with --out",
        )


def _own_pair(
    folder: Path, place: Path, change: Change, until: int, offline: bool, keep: bool
) -> Pair:
    """The run itself: a branch without a change, which must be equal, and one with the change."""
    null = run_arm(folder, place / AS_IT_WAS, Change(change.at), until, offline=True, keep=keep)
    check_null(folder, place / AS_IT_WAS, change.at)
    changed = run_arm(folder, place / CHANGED, change, until, offline=offline, keep=keep)
    seed = read_folder(folder)[0].seed
    return Pair("the run itself", seed, null, changed)


def _more_pairs(
    run: Path,
    place: Path,
    given: Intervention,
    change: Change,
    numbers: tuple[int, int],
    offline: bool,
    keep: bool,
    workers: int | None,
) -> Iterator[Pair]:
    """The other pairs, as they end."""
    seeds, futures = numbers
    until, own = last_tick(run), read_folder(run)[0].seed
    over: str = "seed" if seeds > 1 else "future"
    job: Callable[..., Pair] = seed_pair if seeds > 1 else future_pair
    what = given if seeds > 1 else change
    first = own + 1 if seeds > 1 else 1
    others = range(first, first + max(seeds, futures) - 1)
    calls: list[tuple[object, ...]] = []
    for each in others:
        make_folder(place / f"{over}-{each}")
        calls.append((run, place / f"{over}-{each}", what, each, until, offline, keep))
    for at, pair in results_of(job, calls, workers):
        yield pair or Pair(f"{over} {others[at]}", others[at], None, None, KILLED)


def results_of(
    job: Callable[..., Pair], calls: Sequence[tuple[object, ...]], workers: int | None
) -> Iterator[tuple[int, Pair | None]]:
    """The pair of each call with its place, as they end; with one worker, in this process."""
    if workers == 1 or not calls:
        return ((place, job(*call)) for place, call in enumerate(calls))
    return in_processes(job, calls, workers)


def _effect(
    run: Path, place: Path, change: Change, pairs: Sequence[Pair], futures: bool,
    wanted: Sequence[str], again: Sequence[str],
) -> Effect:  # fmt: skip
    changed = pairs[0].changed
    assert changed is not None  # noqa: S101 - the run itself has both arms
    with RunRecord.read(place / AS_IT_WAS) as one, RunRecord.read(place / CHANGED) as other:
        records = [_metrics(run, change.at) for run in (one, other)]
        stories = [story_of(run, change.at) for run in (one, other)]
    ended, ticks = changed.ended, sorted(records[1])
    names = list(wanted or records[0][ended])
    rows = list(_rows(pairs, records[0][ended], len(pairs) > 1, names))
    steps, parted, reached = compare(*stories)
    return Effect(
        run=str(run),
        at=change.at,
        until=ended,
        words=change.words,
        over="future" if futures else "seed",
        pairs=rows,
        statistics=_statistics(rows, names),
        parted=parted,
        reached=reached,
        steps=steps,
        ticks=ticks,
        series={
            name: ([records[0][t][name] for t in ticks], [records[1][t][name] for t in ticks])
            for name in names
        },
        by_agent=_apart(pairs[0].was, changed) if not changed.stopped else {},
        missing=[f"{pair.where}: {pair.missing}" for pair in pairs if pair.missing],
        notes=[
            *notes_of_pairs(pairs, compared=len({row["pair"] for row in rows})),
            *notes_of_blocks(change, has_changed=bool(steps)),
            *again,
        ],
    )  # fmt: skip


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
    pairs: Sequence[Pair], was_then: Mapping[str, float], many: bool, names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """A row for each pair and metric. An arm that stopped is compared in its last tick."""
    for pair in pairs:
        if pair.was is None or pair.changed is None:
            continue
        stopped = pair.changed.stopped
        if stopped and many:
            continue
        before = was_then if stopped else pair.was.metrics
        for name in names:
            was, now = before.get(name), pair.changed.metrics.get(name)
            if was is not None and now is not None:
                yield {
                    "pair": pair.where,
                    "number": pair.number,
                    "metric": name,
                    AS_IT_WAS: was,
                    CHANGED: now,
                    "difference": now - was,
                }


def figures(pairs: Sequence[Pair], names: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric the mean difference of pairs that ran to their end, its interval and p."""
    return _statistics(list(_rows(pairs, {}, True, names)), names)


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
    found = differences(_arms(rows), [], names, baseline=AS_IT_WAS, variant="arm", pair="pair")
    for row in found:
        del row["arm"]
    return found


def _apart(was: Arm | None, changed: Arm) -> dict[str, dict[str, float]]:
    found = {}
    for name, numbers in changed.by_agent.items():
        before = {} if was is None else was.by_agent.get(name, {})
        own = {
            agent: value - before[agent]
            for agent, value in numbers.items()
            if agent in before and value != before[agent]
        }
        if own:
            found[name] = own
    return found
