"""Which memories mattered most: candidates by their part in decisions, tested by removal."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...config.settings import is_secret
from ...errors import InvalidInput
from ...memory.records import id_prefix, memory_id
from ...storage.files import make_folder
from ..runs.folder import as_run_error, read_folder
from ..runs.found_effects import AS_IT_WAS, CHANGED
from ..runs.record import RunRecord, agents_of_run, last_tick
from ..runs.trust import check_run
from ..statistics import differences
from ..workers.carriers import KILLED
from .experiment import (
    Cost,
    Pair,
    Trial,
    asks_a_model,
    check_answers_are_kept,
    check_metrics,
    check_numbers,
    check_offline,
    cost_of_removals,
    future_pair,
    null_arm,
    placebo_arm,
    results_of,
)
from .folder import arms_folder
from .interventions import Change, check_at
from .results import Candidate, Ranked, Tested, write_ranking


def which(
    run: str | Path,
    metric: str,
    *,
    at: int | None = None,
    agent: str | None = None,
    budget: int = 10,
    futures: int = 1,
    out: str | Path | None = None,
    workers: int | None = None,
    offline: bool = False,
    secrets: Sequence[str] = (),
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Ranked:
    """Which memories changed ``metric`` most: the ``budget`` most used ones are removed in turn.

    Each is forgotten right after its birth, or after ``at``. With ``futures``, the same past goes
    on so many times, and each effect has an interval. A language model is asked for prompts that
    are new, unless ``offline``; ``secrets`` are settings such as ``llm.config.api_key=…``, and
    :func:`which_cost` says first how much that is at most.
    """
    folder = Path(run)
    _check(folder, metric, at, agent, budget, futures)
    check_answers_are_kept(folder, out)
    check_offline(folder, offline, futures=futures)
    _check_secrets(secrets)
    in_order = candidates(folder, at, agent)
    chosen, until = in_order[:budget], last_tick(folder)
    with arms_folder(folder, out, force) as place:
        asks = asks_a_model(folder)
        trial = Trial(folder, until, offline, keep=True, asks=asks)
        removals = _Removals(trial, place, metric, futures, tuple(secrets))
        tested, failed, placebo = _tested(removals, chosen, at, workers, progress)
        ranked = Ranked(metric, tested, len(in_order), in_order[budget:], failed, asks, placebo)
        if out is not None:
            write_ranking(ranked, place, str(folder), until)
    return ranked


def which_cost(
    run: str | Path,
    metric: str,
    *,
    at: int | None = None,
    agent: str | None = None,
    budget: int = 10,
    futures: int = 1,
) -> Cost:
    """What :func:`which` with the same arguments would run and ask; it runs nothing."""
    folder = Path(run)
    _check(folder, metric, at, agent, budget, futures)
    chosen = candidates(folder, at, agent)[:budget]
    begins = [each.born if at is None else at for each in chosen]
    return cost_of_removals(folder, begins, last_tick(folder), futures)


def candidates(run: Path, at: int | None, agent: str | None) -> list[Candidate]:
    """The memories that took part in decisions, those with most weight first.

    What fills up a context stands behind what matters: a place in it counts by its reciprocal.
    Parts of notes are not candidates.
    """
    parts: Counter[tuple[str, int]] = Counter()
    weights: defaultdict[tuple[str, int], float] = defaultdict(float)
    births: dict[tuple[str, int], tuple[int, str]] = {}
    with as_run_error(f"the decisions of {run} can't be read"), RunRecord.read(run) as record:
        names, seed = record.agents, record.settings.seed
        for tick, event in record.births():
            births[event.agent_id, event.sequence] = (tick, str(event.content))
        for _, kept in record.decisions(-1 if at is None else at):
            for name, decision in zip(names, kept, strict=False):
                if agent not in (None, name):
                    continue
                places: dict[int, int] = {}
                for given in (decision.sequences, *(question[3] for question in decision.asked)):
                    for place, number in enumerate(given, start=1):
                        places[number] = min(place, places.get(number, place))
                for number, place in places.items():
                    parts[name, number] += 1
                    weights[name, number] += 1 / place
    prefixes = {name: id_prefix(seed, name) for name in names}
    result = [
        Candidate(name, memory_id(prefixes[name], number), births[name, number][1],
                  births[name, number][0], count, weights[name, number])
        for (name, number), count in parts.items()
        if (name, number) in births and (at is None or births[name, number][0] <= at)
    ]  # fmt: skip
    return sorted(result, key=lambda each: (-each.weight, each.born, each.agent, each.memory_id))


class _Removals(NamedTuple):
    """What holds for all removals of a ranking."""

    trial: Trial
    place: Path
    metric: str
    futures: int
    secrets: tuple[str, ...]


def _tested(
    removals: _Removals,
    chosen: Sequence[Candidate],
    at: int | None,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Tested], list[str], float | None]:
    """What the removals did, which could not be tried, and what the placebo of all of them did."""
    trial, place, metric, futures, secrets = removals
    begins = [each.born if at is None else at for each in chosen]
    if not chosen:
        return [], [], None
    null = null_arm(trial, place, min(begins))
    once = trial._replace(with_placebo=trial.asks and not trial.offline)
    again = placebo_arm(once, place, Change(min(begins), secrets=secrets))
    placebo = again and again.metrics[metric] - null.metrics[metric]
    calls = []
    for rank, (each, begin) in enumerate(zip(chosen, begins, strict=True)):
        edit = {"agent": each.agent, "do": "forget", "memory": each.memory_id}
        for number in range(futures):
            folder = place / f"memory-{rank + 1}" / f"future-{number}"
            change = Change(begin, (edit,), secrets=secrets)
            calls.append((trial, folder, change, number))
            make_folder(folder.parent)
            make_folder(folder)
    pairs: dict[int, Pair] = {}
    for index, pair in results_of(future_pair, calls, workers):
        pairs[index] = pair or Pair("", 0, None, None, KILLED)
        if progress is not None:
            progress(len(pairs), len(calls))
    rows, failed = list[dict[str, Any]](), list[str]()
    for index, pair in sorted(pairs.items()):
        rank, number = divmod(index, futures)
        was = null if number == 0 else pair.was
        if was is None or pair.changed is None:
            failed.append(f"{chosen[rank].agent}, {chosen[rank].memory_id}: {pair.missing}")
            continue
        for name, arm in ((AS_IT_WAS, was), (CHANGED, pair.changed)):
            rows.append({"rank": rank, "arm": name, "pair": number, metric: arm.metrics[metric]})
    return _ranked(rows, chosen, begins, metric), failed, placebo


def _ranked(
    rows: Sequence[dict[str, Any]],
    chosen: Sequence[Candidate],
    begins: Sequence[int],
    metric: str,
) -> list[Tested]:
    tested = [
        Tested(
            chosen[row["rank"]], begins[row["rank"]], row["mean"], row["low"], row["high"],
            row["p_holm"], row["n"],
        )
        for row in differences(rows, ["rank"], [metric], baseline=AS_IT_WAS, variant="arm",
                               pair="pair")
    ]  # fmt: skip
    return sorted(tested, key=lambda each: (-abs(each.difference), -each.candidate.decisions,
                                           each.candidate.memory_id))  # fmt: skip


def _check(
    run: Path, metric: str, at: int | None, agent: str | None, budget: int, futures: int
) -> None:
    settings, _ = read_folder(run)
    check_run(run, settings, is_parent=True)
    check_metrics(run, [metric])
    check_at(run, at, last_tick(run))
    if agent is not None and agent not in agents_of_run(run):
        raise InvalidInput(f"{run} has no agent {agent!r:.60}", hint="tiermem show lists them")
    check_numbers(budget=budget, futures=futures)


def _check_secrets(given: Sequence[str]) -> None:
    for text in given:
        if not is_secret(text.partition("=")[0]):
            raise InvalidInput(
                f"a memory is removed, and nothing else is changed: not {text!r:.60}",
                hint="a key may be set, such as llm.config.api_key=…",
            )
