"""Writes docs/results-llm.md, what a small real model does with tiers: ``make results-llm``.

Every seed has fresh processes, and the model has one thread in each of them: what llama.cpp kept of
earlier prompts is the same each time, and the number of cores changes no reply.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from make_results import SIMULATIONS, run, table

from tiermem import MemoryBank
from tiermem.config.load import load_settings
from tiermem.memory.records import Hits
from tiermem.simulation import Action, Observation
from tiermem.simulation.policies.cassette import Cassette
from tiermem.simulation.policies.clients import model_of
from tiermem.simulation.policies.llm import Llm
from tiermem.simulation.policies.model import Model, Question, Reply
from tiermem.simulation.reports.sweep_report import SweepResults
from tiermem.simulation.runs.record import RunRecord
from tiermem.simulation.runs.scenario import make_policy, make_world
from tiermem.simulation.statistics import in_words, interval_of, summarise
from tiermem.simulation.sweeps.run_sweep import write_results
from tiermem.simulation.sweeps.sweep import read_sweep
from tiermem.simulation.tick.actions import NO_OP
from tiermem.simulation.tick.decision_log import DONE
from tiermem.simulation.tick.loop import Loop
from tiermem.simulation.workers.carriers import in_processes

PAGE = Path(__file__).with_name("results-llm.md")
MODEL = {"llm.threads": 1, "llm.max_tokens": 256, "llm.timeout": 3600}
"""The timeout is for machines that do other work: it changes no reply."""
GREEDY, DRAWN, PLAIN = "likeliest words", "drawn words", "likeliest words, no schema"
WAYS = {GREEDY: 0.0, DRAWN: 1.0}
"""By name, the temperature."""
NEWS, QUIET = "news", "no news"


class Scale(NamedTuple):
    """How much is run and asked."""

    seeds: Sequence[int] = range(1, 5)
    model: Mapping[str, Any] = MODEL
    market: Mapping[str, Any] = {}
    """The market in which rules decide, and the model is asked what it would do."""
    asked: Sequence[int] = (2,)
    """The ticks in which it is asked."""
    no_schema: int = 3
    """How many prompts of a tick are also asked without a schema."""
    alone: Mapping[str, Any] = {
        "simulation.agents": 3,
        "simulation.world_options": {"scammers": 1},
        "simulation.ticks": 3,
    }
    """The runs in which the model decides for itself."""
    alone_seeds: Sequence[int] = range(1, 4)
    rules: Mapping[str, Any] = {}
    """The runs in which rules make the model's errors."""
    rules_seeds: Sequence[int] = range(1, 7)


class Case(NamedTuple):
    """One answer of the model, and whether it is what ``what`` says."""

    way: str
    day: str
    what: str
    is_so: bool


class Found(NamedTuple):
    """All that the page tells."""

    cases: Mapping[int, Sequence[Case]]
    """By seed."""
    alone: SweepResults
    deeds: Mapping[str, int]
    """What came of the decisions of a model that decides for itself."""
    with_its_pins: SweepResults


# What the model would do in the place of the rules


class WithoutSchema:
    """A model that is told the form of a reply by the words of the prompt alone."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def prepare(self) -> None:
        self._model.prepare()

    def reply(self, question: Question) -> Reply:
        return self._model.reply(question._replace(schema=None))


class Watched:
    """The rules decide, and are the oracle of what is to be pinned; models are asked the same."""

    def __init__(self, rules: Any, models: Mapping[str, Llm], scale: Scale) -> None:
        self._rules, self._models, self._scale = rules, models, scale
        self.cases: list[Case] = []

    def decide(self, seen: Observation, memories: Hits, rng: Random) -> Sequence[Action]:
        return self.decide_all([seen], [memories], [rng])[0]

    def decide_all(
        self, seen: Sequence[Observation], memories: Sequence[Hits], rngs: Sequence[Random]
    ) -> Sequence[Sequence[Action]]:
        ruled: list[Sequence[Action]] = list(map(self._rules.decide, seen, memories, rngs))
        if seen[0].tick in self._scale.asked:
            days = [NEWS if pins(own) else QUIET for own in ruled]
            for way, model in self._models.items():
                few = self._scale.no_schema if way == PLAIN else len(seen)
                decided = model.decide_all(seen[:few], memories[:few], rngs[:few])
                for actions, day in zip(decided, days, strict=False):
                    self.cases += [
                        Case(way, day, "usable", is_usable(actions)),
                        Case(way, day, "pins", pins(actions)),
                        Case(way, day, "keeps", keeps(actions)),
                    ]
            self._rate(seen, days)
        return ruled

    def _rate(self, seen: Sequence[Observation], days: Sequence[str]) -> None:
        """Whether the model rates what an agent sees above what it hears, as a run asks it."""
        texts = [[each.text, *(remark.text for remark in each.heard)] for each in seen]
        for day, ratings in zip(days, self._models[GREEDY].rate_all(seen, texts), strict=True):
            own, *others = ratings
            is_above = own is not None and all(other is None or own > other for other in others)
            self.cases.append(Case(GREEDY, day, "rates", is_above))


def is_usable(actions: Sequence[object]) -> bool:
    """Whether the reply had the form: in the place of another, there is the reason in words."""
    first = actions[0] if actions else None
    return not (isinstance(first, Action) and first.name == NO_OP and first.arguments)


def pins(actions: Sequence[object]) -> bool:
    """Whether an agent's actions pin something."""
    named = ("store_memory", "set_memory_tier")
    own = [each for each in actions if isinstance(each, Action) and each.name in named]
    return any(each.arguments.get("tier") == "pinned" for each in own)


def keeps(actions: Sequence[object]) -> bool:
    """Whether an agent's actions store a memory."""
    return any(isinstance(each, Action) and each.name == "store_memory" for each in actions)


def watched(seed: int, scale: Scale) -> list[Case]:
    """What the model answers in a market whose traders follow rules."""
    scenario = load_settings(
        SIMULATIONS / "market_llm.yaml", overrides={**scale.model, **scale.market, "seed": seed}
    )
    names = scenario.simulation.agent_ids()
    world = make_world(scenario)
    with tempfile.TemporaryDirectory() as folder, MemoryBank.ephemeral(seed=seed) as bank:

        def policy(way: str, temperature: float, wrap: Callable[[Model], Model]) -> Any:
            options = {**scenario.simulation.policy_options, "retries": 0}
            changes = {"llm.temperature": temperature, "simulation.policy_options": options}
            own = load_settings(scenario, overrides=changes)
            model = wrap(model_of(own.llm, names))
            return make_policy(own, world, Cassette(Path(folder) / way), model=model)

        models = {
            way: policy(way, temperature, lambda each: each) for way, temperature in WAYS.items()
        }
        models[PLAIN] = policy(PLAIN, 0.0, WithoutSchema)
        market: Any = world
        policy_of_all = Watched(market.rules(), models, scale)
        loop = Loop(bank, world, policy_of_all, names)
        loop.begin()
        for _ in range(max(scale.asked)):
            loop.tick()
    return policy_of_all.cases


# What the model does when it decides for itself


def alone(seed: int, scale: Scale, folder: Path) -> tuple[dict[str, Any], Counter[str]]:
    """The runs of a seed of ``market_llm_sweep.yaml``, by name; and what came of the decisions."""
    plan = alone_plan(scale, [seed])
    done = run(plan, folder, workers=1)
    deeds = Counter[str]()
    for planned in plan.runs():
        with RunRecord.read(folder / "cells" / planned.name) as record:
            for _, decisions in record.decisions():
                for own in decisions:
                    names = {name for name, _, result, _ in own.did if result == DONE}
                    deeds["decisions"] += 1
                    deeds.update(names)
                    deeds["nothing"] += not names
        deeds["unusable"] += done[planned.name]["no_ops"]
    return done, deeds


def alone_plan(scale: Scale, seeds: Sequence[int]) -> Any:
    plan = read_sweep(SIMULATIONS / "market_llm_sweep.yaml")
    common = {**plan.common, **scale.model, "llm.temperature": WAYS[DRAWN], **scale.alone}
    return replace(plan, common=common, seeds=seeds)


def all_alone(scale: Scale, folder: Path) -> tuple[SweepResults, Counter[str]]:
    done: dict[str, Any] = {}
    deeds = Counter[str]()
    for own, what in on_all_cores(
        lambda seed: alone(seed, scale, folder / str(seed)), scale.alone_seeds
    ):
        done |= own
        deeds += what
    return write_results(alone_plan(scale, scale.alone_seeds), folder, done), deeds


def one_watched(seed: int, scale: Scale) -> Sequence[Case]:
    ((_, cases),) = in_processes(watched, [(seed, scale)], workers=1)
    if cases is None:
        raise SystemExit(f"seed {seed}: the process with the model was killed, twice")
    print(f"seed {seed}: asked", flush=True)  # noqa: T201 - a command
    return cases


def on_all_cores(job: Callable[[int], Any], seeds: Sequence[int]) -> Iterable[Any]:
    """Each job starts a fresh process for its seed."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(job, seeds))


# What tiers gain with the pins of such a model


def with_its_pins(cases: Iterable[Case], scale: Scale, folder: Path) -> SweepResults:
    """Traders that follow rules, and err as often as the model: flat memory against tiers."""
    known = list(cases)
    variants: dict[str, Mapping[str, Any]] = {
        "flat": {"simulation.policy_options": {"tiers": False}}
    }
    for way in WAYS:
        right, wrong = (share_of(known, way, day, "pins") for day in (NEWS, QUIET))
        errors = {"missed": 1 - right, "false_pins": wrong}
        variants[f"tiers, pins by {way}"] = {"simulation.policy_options": errors}
    variants["tiers, pins by rule"] = {}
    plan = read_sweep(SIMULATIONS / "market_classics.yaml")
    plan = replace(plan, common=dict(scale.rules), variants=variants, seeds=scale.rules_seeds)
    plan = replace(plan, baseline={"variant": "flat"})
    return write_results(plan, folder, run(plan, folder))


def share_of(cases: Iterable[Case], way: str, day: str | None, what: str) -> float:
    """The share of a way's answers, on such days or on all, that are so; 0 if there are none."""
    found = [
        case.is_so
        for case in cases
        if (case.way, case.what) == (way, what) and day in (None, case.day)
    ]
    return sum(found) / len(found) if found else 0.0


# The page


def page(found: Found) -> str:
    """The page for what was found."""
    every = [case for cases in found.cases.values() for case in cases]
    days = Counter(case.day for case in every if (case.way, case.what) == (GREEDY, "pins"))
    return TEXT.format(
        seeds=len(found.cases),
        replies=len([case for case in every if case.what == "usable"]),
        usable=_usable(found.cases, every),
        days=sum(days.values()),
        news=days[NEWS],
        pinned=_pinned(found.cases, every),
        **_deeds(found.deeds),
        alone_runs=len(found.alone.rows),
        loss=table(found.alone, "loss"),
        welfare=table(found.alone, "welfare"),
        rules_seeds=len(found.with_its_pins.seeds),
        with_its_pins=table(found.with_its_pins, "loss"),
    )


def _usable(by_seed: Mapping[int, Sequence[Case]], every: Sequence[Case]) -> str:
    rows = ["| asked for | replies | usable | 95 % |", "|---|---:|---:|---|"]
    for way, told in {
        GREEDY: "a reply of a schema, likeliest words",
        DRAWN: "a reply of a schema, drawn words",
        PLAIN: "the form in words alone, likeliest words",
    }.items():
        count = len([case for case in every if (case.way, case.what) == (way, "usable")])
        rows.append(f"| {told} | {count} | {_over_seeds(by_seed, way, None, 'usable')} |")
    return "\n".join(rows)


def _pinned(by_seed: Mapping[int, Sequence[Case]], every: Sequence[Case]) -> str:
    rows = [
        "| what the model does | on days with news: recall | 95 % | on other days | 95 % "
        "| precision |",
        "|---|---:|---|---:|---|---|",
    ]
    for way, what, told in [
        *((way, "pins", f"pins something, {way}") for way in WAYS),
        *((way, "keeps", f"stores anything, {way}") for way in WAYS),
        (GREEDY, "rates", f"rates the day above the talk, {GREEDY}"),
    ]:
        so = [case.day for case in every if (case.way, case.what) == (way, what) and case.is_so]
        both = " | ".join(_over_seeds(by_seed, way, day, what) for day in (NEWS, QUIET))
        precision = f"{so.count(NEWS)} of {len(so)}" if so else "none to judge"
        rows.append(f"| {told} | {both} | {precision} |")
    return "\n".join(rows)


def _over_seeds(by_seed: Mapping[int, Sequence[Case]], way: str, day: str | None, what: str) -> str:
    """The mean of the seeds' shares, and its interval; seeds without such days are left out."""
    own = {
        seed: [case for case in cases if day in (None, case.day)] for seed, cases in by_seed.items()
    }
    rows = [
        {"way": way, "share": 100 * share_of(cases, way, day, what)}
        for cases in own.values()
        if any((case.way, case.what) == (way, what) for case in cases)
    ]
    (row,) = summarise(rows, ["way"], ["share"]) or [None]
    if row is None:
        return "– | "
    found = interval_of(row)
    if isfinite(found.high):
        found = found._replace(low=max(0.0, found.low), high=min(100.0, found.high))
    return f"{row['mean']:.3g} % | {in_words(found, lambda each: f'{each:.3g}')}"


def _deeds(deeds: Mapping[str, int]) -> dict[str, Any]:
    ours = ("decisions", "unusable", "nothing")
    named = sorted(
        (name for name in deeds if name not in ours), key=lambda each: (-deeds[each], each)
    )
    told = ", ".join(f"`{name}` in {deeds[name]}" for name in named) or "none"
    return {**{name: deeds.get(name, 0) for name in ours}, "done": told}


TEXT = """\
# What a small real model does with tiers

`make results-llm` made this page. It asks SmolLM2-135M-Instruct (4 bits), the model of `make llm`,
with one thread, in the market of `simulations/market_llm.yaml`. This is a very small model: the
page says what to expect of one, and gives the measure for a better one. *Likeliest words* is
temperature 0, the default; *drawn words* is temperature 1. A reply has at most 256 tokens. An
interval is Student's, at 95 %, over the shares of {seeds} seeds, cut at 0 and 100 %.

## Usable replies

Traders follow rules; in the second tick the model gets the prompts that it would get in their
place, and is asked once. A reply is usable if it is the JSON that was asked for.

{usable}

## What it pins

The rules are the oracle: they pin a warning when a trader learns that its goods never came, which
was so on {news} of the {days} days that the model was asked about. Precision is how many of the
days on which the model did this were days with such news. The last row asks for the importance of
what a trader saw and of what it heard, from 1 to 10, as `reflection.ratings: policy` does.

{pinned}

## What tiers then gain: the model decides by itself

`simulations/market_llm_sweep.yaml` with three traders, one of them a scammer, three ticks and drawn
words: {alone_runs} runs, {decisions} decisions. Without a usable reply after three attempts:
{unusable}. Without anything that could be done: {nothing}. Done: {done}.

Coins lost to scammers (less is better):

{loss}

Earnings less losses (more is better):

{welfare}

## What tiers then gain: rules with the model's pins

Traders of `simulations/market.yaml` follow rules for 80 ticks, but pin as the model did above: of
the warnings, they pin the share that it pinned; of the other days, the share on which it pinned
brings a pin of something else. Coins lost to scammers (less is better), {rules_seeds} seeds:

{with_its_pins}

## What this does not say

- It is one model with 135 million parameters, and one prompt, which was not tuned for it. Larger
  models follow a prompt far better: set `llm.path` or `llm.base_url`, and run the sweep with yours.
- The seeds are few, so that the page is made in minutes; so are the days with news. A share of 0 %
  may be one of some per cent.
- That a reply is usable says nothing of its sense. A schema makes a reply that can be read; the
  model chooses what is in it.
- With three ticks, a trader that decides by itself has hardly anything to remember. The tables show
  whether it trades at all.
- Another processor adds up in another order, and may choose other words; so does llama.cpp with
  what it kept of earlier prompts. Each seed begins in a fresh process, which makes the page
  repeatable, but in the second arm of a seed equal prompts may draw other words: a part of that
  difference is chance.
- *Open*, and *same* in every seed, are no proof of equality ([the words](results.md)): the
  intervals say how large a difference may be. Where all seeds are equal, there is none.
"""


def find(scale: Scale, folder: Path) -> Found:
    """Run and ask all that the page tells."""
    cases = dict(
        zip(scale.seeds, on_all_cores(partial(one_watched, scale=scale), scale.seeds), strict=True)
    )
    every = [case for own in cases.values() for case in own]
    its_pins = with_its_pins(every, scale, folder / "rules")
    by_itself, deeds = all_alone(scale, folder / "alone")
    return Found(cases, by_itself, deeds, its_pins)


def write() -> None:
    """Ask the model, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(find(Scale(), Path(folder))))
    print(f"wrote {PAGE}")  # noqa: T201 - a command


if __name__ == "__main__":
    write()
