"""Pairs: a run as it was and changed, each run to its end in a folder, and what they ask for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...config.load import load_settings
from ...errors import Diverged, RunError, SimulationError, TierMemError
from ...memory.context import approximate_tokens
from ..policies.cassette import Cassette
from ..runs.branch import branch
from ..runs.folder import read_folder
from ..runs.record import RunRecord
from ..runs.replay import Replay
from ..runs.run import Run
from ..tick.decision_log import plain
from .interventions import Change, Intervention


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


def run_arm(
    parent: Path,
    folder: Path,
    change: Change,
    until: int,
    *,
    offline: bool = False,
    keep: bool = True,
) -> Arm:
    """Branch ``parent``, and run the branch up to ``until``.

    With ``offline``, the first prompt without a recorded answer ends it, and what came before is
    kept. Without ``keep``, nobody will look at the branch, and it gets no tables.
    """
    settings = ["storage.sync=manual", *change.assignments]
    branch(parent, change.at, folder, assignments=settings, edits=change.edits, rules=change.rules)
    with Run.open(folder, change.secrets, offline=offline) as run:
        try:
            for _ in run.advance(until):
                pass
            return _arm(run, change.at, "", keep)
        except SimulationError as error:
            if not isinstance(error.__cause__, Diverged):
                raise
            stopped = error.__cause__.why
    with Run.open(
        folder, change.secrets, offline=offline
    ) as run:  # as it was after its last whole tick
        return _arm(run, change.at, stopped, keep)


def _arm(run: Run, at: int, stopped: str, keep: bool) -> Arm:
    summary = run.finish(report=False) if keep else run.summary()
    no_ops = sum(record["no_ops"] for record, _ in run.bank.ticks.records(after=at))
    return Arm(summary["metrics"], summary["by_agent"], run.tick, stopped, no_ops)


def check_null(original: Path, null: Path, at: int) -> None:
    """Refuse a run whose branch without a change is not the run itself, hash for hash."""
    one, other = _told(original, at), _told(null, at)
    if one == other:
        return
    tick = next(tick for tick in sorted({*one, *other}) if one.get(tick) != other.get(tick))
    why = f"tick {tick} is another"
    replay = Replay(original, at)
    try:
        why = next((str(found) for found in replay.ticks() if found), why)
    finally:
        replay.close()
    raise RunError(
        f"a branch of {original} in which nothing was changed is another run ({why}), so a "
        "difference would say nothing",
        hint="its world or policy keeps state outside get_state(), or reads a clock: tiermem "
        "check-world finds where",
    )


def _told(folder: Path, after: int) -> dict[int, Any]:
    """What is recorded of each tick: state hash, counts, metrics, what was given, decisions."""
    with RunRecord.read(folder) as run:
        decided = {tick: plain(data) for tick, data in run.logs(after)}
        return {
            record["tick"]: (record, given, decided.get(record["tick"]))
            for record, given in run.records(after)
        }


def seed_pair(
    run: Path,
    folder: Path,
    intervention: Intervention,
    seed: int,
    until: int,
    offline: bool,
    keep: bool = True,
) -> Pair:
    """A fresh run of the scenario with another seed, and its branch with the same change."""
    where, fresh = f"seed {seed}", folder / "as-it-was"
    settings, about = read_folder(run)
    own = {"seed": seed, "storage.sync": "manual", "simulation.ticks": until}
    code = run / "code"
    scenario = code if code.is_dir() else about["scenario"] and Path(about["scenario"])
    try:
        other = load_settings(settings, assignments=intervention.secrets, overrides=own)
        with Run.create(fresh, other, scenario=scenario) as new:
            for _ in new.advance(until):
                pass
            was = _arm(new, 0, "", keep)
    except TierMemError as error:
        return Pair(where, seed, None, None, error.why)
    try:
        change = intervention.in_run(fresh)
    except RunError as error:
        return Pair(where, seed, was, None, error.why)
    return _changed(Pair(where, seed, was, None), fresh, folder, change, until, offline, keep)


def future_pair(
    run: Path,
    folder: Path,
    change: Change,
    number: int,
    until: int,
    offline: bool,
    keep: bool = True,
) -> Pair:
    """The same past with another future, as it was and changed."""
    rule = {"do": "future", "number": number, "after": change.at}
    null = Change(change.at, rules=(rule,), secrets=change.secrets)
    pair = Pair(f"future {number}", number, None, None)
    try:
        was = run_arm(run, folder / "as-it-was", null, until, offline=offline, keep=keep)
    except TierMemError as error:
        return pair._replace(missing=error.why)
    if was.stopped:
        return pair._replace(missing=was.stopped)
    other = change._replace(rules=(*change.rules, rule))
    return _changed(pair._replace(was=was), run, folder, other, until, offline, keep)


def _changed(
    pair: Pair, parent: Path, folder: Path, change: Change, until: int, offline: bool, keep: bool
) -> Pair:
    try:
        arm = run_arm(parent, folder / "changed", change, until, offline=offline, keep=keep)
    except TierMemError as error:
        return pair._replace(missing=error.why)
    return pair._replace(missing=arm.stopped) if arm.stopped else pair._replace(changed=arm)


# What pairs cost, before anybody pays for it


class Cost(NamedTuple):
    """What an experiment asks a language model, if each branch asks as often as the run did.

    It is less where prompts are the same, and more where a branch asks, reflects or retries more
    often. Numbers of tokens are rough: four characters are a token.
    """

    branches: int
    """How many branches and fresh runs there are, the branch without a change included."""
    ticks: int
    """How many ticks they have in all."""
    calls: int
    """If each prompt after the branching tick is another; a retry counts once more."""
    prompt_tokens: int
    reply_tokens: int


def cost_of(run: Path, at: int, until: int, seeds: int, futures: int) -> Cost:
    """The cost of a change after ``at``, by the calls that the run itself made."""
    after, whole = until - at, until
    branches = 2 + 2 * (seeds - 1) + 2 * (futures - 1)
    ticks = 2 * after + (seeds - 1) * (whole + after) + (futures - 1) * 2 * after
    asked = _asked(run)
    late, every = _sums(asked, at), _sums(asked, -1)
    # The branch without a change asks nothing; that with one at most what the run asked.
    sums = [
        one + (seeds - 1) * (both + one) + (futures - 1) * 2 * one
        for one, both in zip(late, every, strict=True)
    ]
    return Cost(branches, ticks, *sums)


def cost_of_removals(run: Path, begins: Sequence[int], until: int, futures: int) -> Cost:
    """The cost of removing memories in turn, each after its tick, in so many futures."""
    if not begins:
        return Cost(0, 0, 0, 0, 0)
    # A removal is a branch, and two in each other future; one branch has no change at all.
    arms = 2 * futures - 1
    ticks = until - min(begins) + arms * sum(until - begin for begin in begins)
    asked = _asked(run)
    late = [_sums(asked, begin) for begin in begins]
    sums = [arms * sum(each) for each in zip(*late, strict=True)]
    return Cost(1 + arms * len(begins), ticks, *sums)


def _asked(run: Path) -> list[tuple[int, int, int]]:
    """The tick, and the tokens of prompt and reply, of each call that the run made."""
    settings, _ = read_folder(run)
    if settings.simulation.policy != "llm":
        return []
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
