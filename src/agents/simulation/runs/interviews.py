"""Interviews: agents of a run are asked as they were after a tick, and the run does not learn it.

An agent answers with the memories that a search for the question finds in a copy of its bank. The
answers are kept in the run's folder ``interviews``, so that the same interview asks nobody again:
a folder for each model with its settings, and in it a cassette for each repetition.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ...config.load import load_settings
from ...config.settings import LlmSettings, Settings
from ...errors import ConfigError, Diverged, InvalidInput, RunError, RunPaused
from ...memory.words import number
from ...packages import need
from ...storage.files import lock_folder, make_folders, replace_file
from ..policies.asking import Asker, Turn
from ..policies.cassette import Cassette, Exchange, read_from
from ..policies.clients import model_of
from ..policies.costs import Call, calls_of, spent, spent_in_words
from ..policies.interview import Answer, Asked
from ..policies.model import Question
from ..policies.prompts import persona_text
from ..reports import html as page
from ..reports import plots
from ..statistics import in_words, interval_of, summarise
from .budget import InterviewBudget, check_prices
from .folder import Say, places_of_code, quiet, read_folder
from .outputs import table
from .personas import personas_of
from .record import RunRecord
from .trust import check_asking
from .views import survey_view

FOLDER = "interviews"
_OPTIONS = ("retries", "pause")
_NOT_THE_MODEL = (
    "patience", "on_failure", "prices", "budget", "timeout", "concurrency", "threads",
    "requests_per_minute", "tokens_per_minute",
)  # fmt: skip
"""Settings that say nothing of who answers."""
_MOST_TIMES = 1_000
_FILES = ("answers.csv", "answers.parquet", "curve.csv", "curve.parquet", "survey.html")


@dataclass(frozen=True)
class Survey:
    """What agents answered, in the order of ticks, questions, agents and repetitions."""

    run: str
    questions: Sequence[Asked]
    agents: Sequence[str]
    ticks: Sequence[int]
    times: int
    rows: Sequence[Mapping[str, Any]]
    """``tick``, ``question``, ``agent``, ``repetition``, ``answer`` as text, ``value`` of a scale
    or a number, and ``problem``: why there is no answer."""
    calls: Sequence[Call] = field(default=(), compare=False)
    """The calls of the language model that were made for it; none if all answers were recorded."""

    @property
    def cost(self) -> str:
        """What it cost, in a line for people."""
        if not self.calls:
            return "nobody was asked: all answers were recorded"
        return spent_in_words(self.calls)

    @property
    def answers(self) -> list[Answer]:
        """The answers that there are."""
        told = [row for row in self.rows if row["problem"] is None]
        return [row["answer"] if row["value"] is None else row["value"] for row in told]

    def curve(self) -> list[dict[str, Any]]:
        """For each tick and question the mean, or the share of each option, with its interval.

        It is that of the agents, or of the repetitions if one agent alone was asked. Texts have no
        mean. ``low`` and ``high`` are None where the answers give no interval.
        """
        units = "agent" if len(self.agents) > 1 else "repetition"
        values: dict[tuple[int, str, str, Any], list[float]] = {}
        kinds = {each.name: each for each in self.questions}
        for row in self.rows:
            asked, place = kinds[row["question"]], (row["tick"], row["question"])
            if row["problem"] is not None:
                continue
            if row["value"] is not None:
                values.setdefault((*place, "mean", row[units]), []).append(row["value"])
            for option in asked.options:
                is_it = float(row["answer"] == option)
                values.setdefault((*place, option, row[units]), []).append(is_it)
        rows = [
            {"tick": tick, "question": name, "answer": answer, "value": sum(own) / len(own)}
            for (tick, name, answer, _), own in values.items()
        ]
        return [
            _within(kinds[row["question"]], row)
            for row in summarise(rows, ["tick", "question", "answer"], ["value"])
        ]

    def __repr__(self) -> str:
        return survey_view(self.questions, self.rows, self.curve(), self.cost).text()

    def _repr_html_(self) -> str:
        return survey_view(self.questions, self.rows, self.curve(), self.cost).html()

    def to_dict(self) -> dict[str, Any]:
        """The survey as JSON values."""
        return {
            "run": self.run,
            "questions": [each._asdict() for each in self.questions],
            "answers": [dict(row) for row in self.rows],
            "curve": self.curve(),
            "calls": spent(self.calls)._asdict(),
        }

    def write(self, folder: Path, *, force: bool = False) -> None:
        """Write answers and curve as CSV and Parquet, and a page with charts, into a folder."""
        check_free(folder, force=force)
        files: dict[str, str | bytes] = {
            "answers.csv": _csv(self.rows), "answers.parquet": table(self.rows),
            "curve.csv": _csv(self.curve()), "curve.parquet": table(self.curve()),
            "survey.html": survey_page(self),
        }  # fmt: skip
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in files.items():
                replace_file(folder / name, data)
        except OSError as error:
            raise RunError(
                f"the survey can't be written to {folder}: {error}",
                hint="make room and let your user write there, or name another folder",
            ) from error


def check_free(folder: Path, *, force: bool) -> None:
    """Refuse a folder that has a survey, unless it is to be replaced."""
    there = [name for name in _FILES if (folder / name).exists()]
    if there and not force:
        raise RunError(
            f"{folder} has a file {there[0]} already",
            hint="name another folder with --out, or replace it: --force",
        )


def survey(
    run: str | Path,
    questions: Sequence[Asked],
    *,
    ticks: Sequence[int] | None = None,
    agents: Iterable[str] | None = None,
    times: int = 1,
    settings: Settings | None = None,
    assignments: Iterable[str] = (),
    offline: bool = False,
    say: Say = quiet,
    progress: Callable[[int, int], None] | None = None,
) -> Survey:
    """Ask agents of a run, each question by itself, as they were after each of the ticks.

    The default is all agents, after the last tick. The model is that of the run's ``settings``, by
    default those in its folder, with ``assignments`` such as ``llm.base_url=…`` on top. With
    ``times``, each question is asked so often. With ``offline``, an answer that is not recorded is
    an error. ``llm.budget`` bounds what the interviews of the run cost together, apart from the run
    itself: RunError when it is spent, and the answers that came are kept.
    """
    folder = Path(run)
    if type(times) is not int or not 1 <= times <= _MOST_TIMES:
        raise InvalidInput(f"times is {times!r:.40}", hint=f"a number from 1 to {_MOST_TIMES}")
    own, about = read_folder(folder)
    places = places_of_code(folder, about)
    settings = _with(settings or own, assignments)
    if not offline:
        check_asking(folder, own, settings.llm)
    with RunRecord.read(folder) as record:
        everybody = record.agents
        names = _chosen(folder, record, agents)
        after = [record.last] if ticks is None else list(dict.fromkeys(ticks))
        if not after or not questions:
            raise InvalidInput("a survey has a question and a tick", hint="give one of each")
        put = [list(_put(record, settings, questions, names, tick, places)) for tick in after]
    rows: list[dict[str, Any]] = []
    with _recorded(folder, settings, offline) as tapes:
        for tick, asked in zip(after, put, strict=True):
            turns = [
                _answered(settings, everybody, tapes, time, tick, asked, say, places)
                for time in range(1, times + 1)
            ]
            for at, each in enumerate(asked):
                rows += [_row(tick, each, time, own[at]) for time, own in enumerate(turns, start=1)]
            if progress is not None:
                progress(len(rows), len(after) * len(put[0]) * times)
    return Survey(str(folder), tuple(questions), names, after, times, rows, tuple(tapes.calls))


class _Put(NamedTuple):
    """A question as an agent is asked it."""

    asked: Asked
    agent: str
    question: Question


def _with(own: Settings, assignments: Iterable[str]) -> Settings:
    """The run's settings with others for its language model; nothing else may be set."""
    texts = tuple(assignments)
    for text in texts:
        if not text.startswith("llm."):
            raise ConfigError(
                f"--set {text.partition('=')[0]}: an interview changes nothing of a run but who is "
                "asked",
                hint="give settings of the language model, such as llm.base_url=…",
            )
    return load_settings(own, assignments=texts)


def _chosen(folder: Path, record: RunRecord, agents: Iterable[str] | None) -> list[str]:
    """The agents that are asked, in the order given."""
    chosen = record.agents if agents is None else list(dict.fromkeys(agents))
    unknown = next((name for name in chosen if name not in record.agents), None)
    if unknown is not None or not chosen:
        raise InvalidInput(
            f"{folder} has no agent {unknown!r:.60}",
            hint=f"list its agents with: tiermem show {quote(str(folder))}",
        )
    return chosen


def _put(
    record: RunRecord, settings: Settings, questions: Sequence[Asked], agents: Sequence[str],
    tick: int, places: Sequence[Path],
) -> Iterator[_Put]:  # fmt: skip
    """The questions as the agents are asked them after a tick."""
    if type(tick) is not int or tick < 0:
        raise InvalidInput(f"tick {tick!r:.40} is no tick", hint="a whole number from 0 on")
    scenario = str(settings.simulation.policy_options.get("system", "")).strip()
    personas = personas_of(settings, *places)
    with record.bank(tick) as bank:
        for asked in questions:
            found = bank.context_many([(agent, asked.text) for agent in agents])
            for agent, hits in zip(agents, found, strict=True):
                who = persona_text(personas[agent]) if agent in personas else ""
                told = "\n\n".join(filter(None, (scenario, who)))
                yield _Put(asked, agent, asked.put(agent, tick, told, hits))


class _Tapes:
    """The cassettes of the repetitions with one model, and what was asked since they were opened.

    With ``replay`` nobody is asked, and nothing is written.
    """

    def __init__(self, place: Path, settings: LlmSettings, *, replay: bool) -> None:
        self.calls: list[Call] = []
        self.budget = InterviewBudget(settings)
        self._place = place
        self._settings = settings
        self._replay = replay
        self._ends: dict[Path, int] = {}
        """How much of each cassette is counted."""
        if replay:
            return
        if self.budget.is_set:
            self.budget.add(calls_of(interviewed(place.parent.parent), settings))
        self._ends = {path: read_from(path, 0)[1] for path in _cassettes(place)}

    def cassette(self, time: int) -> Cassette:
        """That of a repetition, counted from 1."""
        return Cassette(self._place / f"repetition-{time:04}.jsonl", replay=self._replay)

    def count(self, cassette: Cassette) -> list[Call]:
        """Count the calls that were recorded since the last time, and give them."""
        path = cassette.path
        exchanges, self._ends[path] = read_from(path, self._ends.get(path, 0))
        new = calls_of(exchanges, self._settings)
        self.calls += new
        self.budget.add(new)
        return new

    def write_calls(self) -> None:
        """Write what all calls of this model cost, if there were any."""
        if self.calls:
            rows = [
                {"repetition": int(path.stem[-4:]), **call._asdict()}
                for path in _cassettes(self._place)
                for call in calls_of(read_from(path, 0)[0], self._settings)
            ]
            replace_file(self._place / "calls.parquet", table(rows))


def _cassettes(place: Path) -> list[Path]:
    """The cassettes with a model, in the order of the repetitions."""
    return sorted(place.glob("repetition-[0-9][0-9][0-9][0-9].jsonl"))


def interviewed(folder: Path) -> Iterator[Exchange]:
    """All that was asked in interviews of a run, by all models."""
    for path in interview_cassettes(folder):
        yield from read_from(path, 0)[0]


def interview_cassettes(folder: Path) -> Iterator[Path]:
    """The cassettes of a run's interviews, with all models."""
    for place in sorted((folder / FOLDER).glob("*/")):
        yield from _cassettes(place)


@contextmanager
def _recorded(folder: Path, settings: Settings, offline: bool) -> Iterator[_Tapes]:
    """The cassettes of the repetitions with this model; one process has them.

    Without a model in the settings they are those of the one model that was asked before.
    """
    home, llm = folder / FOLDER, settings.llm
    if not llm.is_set:
        known = sorted(each.parent for each in home.glob("*/model.json"))
        if len(known) != 1:
            asked = "this run was asked with several" if known else "nothing is recorded"
            raise ConfigError(
                f"no language model is configured, and {asked}",
                hint="give one: --set llm.base_url=… --set llm.model=…, or llm.provider=local",
            )
        yield _Tapes(known[0], llm, replay=True)
        return
    known_by: Any = settings.to_dict(redact=True)["llm"]
    for name in _NOT_THE_MODEL:
        del known_by[name]
    told = json.dumps(known_by, sort_keys=True, indent=2) + "\n"
    place = home / hashlib.sha256(told.encode()).hexdigest()[:12]
    if offline:
        yield _Tapes(place, llm, replay=True)
        return
    check_prices(settings)
    need("pyarrow")
    with _keeping(home):
        make_folders(folder, home)
        lock = lock_folder(place, "interview.lock")
    try:
        with _keeping(home):
            replace_file(place / "model.json", told)
        tapes = _Tapes(place, llm, replay=False)
        try:
            yield tapes
        finally:
            with _keeping(home):
                tapes.write_calls()
    finally:
        lock.release()


@contextmanager
def _keeping(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the answers can't be kept in {home}: {error}",
            hint="let your user write there, or read what is recorded: --offline",
        ) from error


def _answered(
    settings: Settings, everybody: Sequence[str], tapes: _Tapes, time: int, tick: int,
    put: Sequence[_Put], say: Say, places: Sequence[Path],
) -> list[Turn]:  # fmt: skip
    """Ask all agents their questions once, and wait for the answers."""
    options = settings.simulation.policy_options
    own: dict[str, Any] = {name: options[name] for name in _OPTIONS if name in options}
    llm = replace(settings.llm, on_failure="stop")
    if llm.seed is not None:  # with the same seed, a repetition would be answered the same
        llm = replace(llm, seed=llm.seed + time - 1)
    cassette = tapes.cassette(time)
    asker = Asker(model_of(llm, everybody, places), cassette, llm, **own)
    asker.say = say
    turns = [Turn(tick, each.agent, each.question, each.asked.read) for each in put]
    try:
        waiting = asker.undecided(turns)
        while waiting:
            most = tapes.budget.room(asker.concurrency)
            part, waiting = waiting[:most], waiting[most:]
            try:
                asker.ask(part)
            finally:
                new = tapes.count(cassette)
            tapes.budget.check_price(new)
    except RunPaused as error:
        raise RunError(
            error.why, hint="the answers that came are kept; the same interview asks for the rest"
        ) from None
    except Diverged as error:
        raise RunError(
            f"an answer is not recorded: {error.why}",
            hint="let a model be asked: without --offline, and with llm.base_url or llm.provider",
        ) from None
    return turns


def _row(tick: int, put: _Put, time: int, turn: Turn) -> dict[str, Any]:
    answer = None if turn.failure is not None else turn.found[0]
    return {
        "tick": tick,
        "question": put.asked.name,
        "agent": put.agent,
        "repetition": time,
        "answer": number(answer) if isinstance(answer, int | float) else answer,
        "value": float(answer) if isinstance(answer, int | float) else None,
        "problem": turn.failure,
    }


def _within(asked: Asked, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a curve, whose interval leaves neither the scale nor what a share can be."""
    ends = {"choice": (0.0, 1.0), "scale": (float(asked.low), float(asked.high))}.get(asked.kind)
    kept = {key: value for key, value in row.items() if key != "metric"}
    if ends is not None and row["low"] is not None:
        kept |= {"low": max(ends[0], row["low"]), "high": min(ends[1], row["high"])}
    return kept


# What people read


def interval_told(row: Mapping[str, Any]) -> str:
    """The interval of a row of a curve, in words."""
    return in_words(interval_of(row)) or "–"


def survey_page(survey: Survey) -> str:
    """The survey as one page: for each question its figures, its curve over ticks, and answers."""
    body = [page.headline("TierMem survey", Path(survey.run).name)]
    curve = survey.curve()
    for question in survey.questions:
        rows = [row for row in curve if row["question"] == question.name]
        body.append(f"<h2>{page.escape(question.name)}</h2><p>{page.escape(question.text)}</p>")
        if rows:
            cells = [
                [page.escape(row["answer"]), number(row["tick"]), number(row["n"]),
                 number(row["mean"]), interval_told(row)]
                for row in rows
            ]  # fmt: skip
            heads = ["Answer", "After tick", "Of", "Mean or share", "95 % interval"]
            body.append(page.table(heads, cells, 4))
        if rows and len(survey.ticks) > 1:
            at = {(row["answer"], row["tick"]): row["mean"] for row in rows}
            names = dict.fromkeys(row["answer"] for row in rows)
            ticks = sorted(survey.ticks)
            lines = {name: [at.get((name, tick)) for tick in ticks] for name in names}
            body.append(page.figure(question.name, plots.curves(lines, ticks), question.text))
        said = [
            [page.escape(row["agent"]), page.clipped(row["answer"] or f"({row['problem']})"),
             number(row["tick"]), number(row["repetition"])]
            for row in survey.rows if row["question"] == question.name
        ]  # fmt: skip
        heads = ["Agent", "Answer", "After tick", "Repetition"]
        body.append(page.details(f"{len(said)} answers", page.table(heads, said, 2)))
    return page.document(f"Survey of {Path(survey.run).name}", body)


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
