"""How well memories are found: retrieval quality on LoCoMo or LongMemEval.

DATA is one of two files; its content tells which. LoCoMo (Maharana et al., 2024) is published at
github.com/snap-research/locomo as data/locomo10.json under the licence CC BY-NC 4.0. LongMemEval
(Wu et al., 2025) is published at github.com/xiaowu0162/LongMemEval as longmemeval_s.json and
longmemeval_oracle.json. Neither the data nor anything made from it is part of this project: get the
file there, and see whether the licence allows your use.

Every turn of a dialogue is one memory, every question with evidence is one query, and what should
be found are the turns that the evidence names. LongMemEval also names sessions: of the first five
that the 50 best turns are in, R@5 is the share that should be found. No language model takes part.
"""

import argparse
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import locomo
import longmemeval
import misspelt
import numpy as np
from locomo import CATEGORIES, DEPTH, BadData, Conversation, Question, Scores
from peers import PlainMem0
from report import console, machine, number, table

Search = Callable[[int, str], list[int]]
"""The places of the best turns of a conversation, given its number and a question."""


class LeftOut(Exception):
    """A method can't run here; the text says what it needs."""


@contextmanager
def tiermem(
    conversations: Sequence[Conversation], *, metadata: bool = True, **options: Any
) -> Iterator[Search]:
    """A bank in memory, one agent per conversation."""
    from tiermem import MemoryBank
    from tiermem.errors import NotInstalled

    try:
        opened = MemoryBank.ephemeral(**options)
    except NotInstalled as error:
        raise LeftOut(f"needs: {error.hint}") from error
    with opened as bank:
        agents, places = [], {}
        for n, conversation in enumerate(conversations):
            agents.append(bank.agent(f"conversation_{n}"))
            stored = agents[n].add_many(
                (
                    turn.text,
                    "normal",
                    {"session": turn.session, "speaker": turn.speaker} if metadata else None,
                )
                for turn in conversation.turns
            )
            places.update((memory.id, place) for place, memory in enumerate(stored))
        yield lambda n, question: [
            places[hit.memory.id] for hit in agents[n].search(question, limit=DEPTH)
        ]


@contextmanager
def bm25s(conversations: Sequence[Conversation]) -> Iterator[Search]:
    """The library bm25s with its defaults and a stemmer: BM25 as others write it."""
    try:
        import bm25s
        import Stemmer
    except ImportError as error:
        raise LeftOut("needs: pip install bm25s PyStemmer") from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    words = partial(bm25s.tokenize, stemmer=Stemmer.Stemmer("english"), show_progress=False)
    indexes = []
    for conversation in conversations:
        indexes.append(bm25s.BM25())
        indexes[-1].index(words([turn.text for turn in conversation.turns]), show_progress=False)

    def search(n: int, question: str) -> list[int]:
        (tokens,) = words([question], return_ids=False)
        found = indexes[n].get_scores(tokens) if tokens else np.zeros(0)
        best: list[int] = np.argsort(-found, kind="stable")[:DEPTH].tolist()
        return best

    yield search


@contextmanager
def mem0(conversations: Sequence[Conversation]) -> Iterator[Search]:
    """mem0's own ``add`` and ``search`` on Chroma with the offline embedder's vectors."""
    with tempfile.TemporaryDirectory(prefix="tiermem-bench-") as folder:
        plain = _Mem0(Path(folder))
        try:
            for n, conversation in enumerate(conversations):
                plain.add(n, [turn.text for turn in conversation.turns])
            yield plain.search
        finally:
            plain.close()


class _Mem0(PlainMem0):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _Offline())
        self._places: dict[str, int] = {}

    def add(self, n: int, texts: Sequence[str]) -> None:
        for place, text in enumerate(texts):
            added = self._memory.add(text, user_id=f"conversation_{n}", infer=False)
            self._places[added["results"][0]["id"]] = place

    def search(self, n: int, question: str) -> list[int]:
        found = self._memory.search(
            question, filters={"user_id": f"conversation_{n}"}, top_k=DEPTH, threshold=0
        )
        return [self._places[row["id"]] for row in found["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


class _Offline:
    """The offline embedder's vectors as mem0 wants them: lists of numbers, of length 1."""

    def __init__(self) -> None:
        from tiermem.storage.embedding import OfflineEmbedder

        self._embedder = OfflineEmbedder()

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        vectors = self._embedder.embed(texts).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units: list[list[float]] = (vectors / np.maximum(lengths, 1)).tolist()
        return units


class Method(NamedTuple):
    """A way to find memories."""

    title: str
    open: Callable[[Sequence[Conversation]], AbstractContextManager[Search]]
    ours: bool = True


METHODS = {
    "tiermem": Method("tiermem", tiermem),
    "as-written": Method(
        "tiermem, words as they are", partial(tiermem, retrieval={"spelling": False})
    ),
    "no-metadata": Method("tiermem, no metadata", partial(tiermem, metadata=False)),
    "weighted-sum": Method("tiermem, weighted sum", partial(tiermem, preset="weighted-sum")),
    "vector": Method("vector alone", partial(tiermem, metadata=False, preset="vector")),
    "keyword": Method(
        "keyword alone (ours)", partial(tiermem, metadata=False, retrieval={"mode": "keyword"})
    ),
    "minilm": Method("tiermem, minilm", partial(tiermem, embedder={"provider": "minilm"})),
    "quality": Method("tiermem, preset quality", partial(tiermem, preset="quality")),
    "bm25s": Method("keyword alone (bm25s)", bm25s, ours=False),
    "mem0": Method("plain mem0", mem0, ours=False),
}


class Result(NamedTuple):
    """What a method reached."""

    overall: Scores
    by_category: dict[str, Scores]
    sessions: float | None
    """R@5 of sessions, where the data names them."""
    sessions_by_category: dict[str, float]
    query_us: float | None
    """From the question to the ranking, embedding included; measured for our own methods."""


def measure(method: Method, conversations: Sequence[Conversation]) -> Result:
    """Store everything, then ask every question once."""
    begun = perf_counter()
    with method.open(conversations) as search:
        stored = perf_counter()
        rankings = [
            search(n, question.text)
            for n, conversation in enumerate(conversations)
            for question in conversation.questions
        ]
        asked = perf_counter()
    _tell(f"{method.title}: stored in {stored - begun:.1f} s, asked in {asked - stored:.1f} s")
    reached: dict[str, list[Scores]] = {}
    sessions: dict[str, list[float]] = {}
    every = iter(rankings)
    for conversation in conversations:
        for question in conversation.questions:
            ranking = next(every)
            if question.evidence:
                scored = locomo.scores(ranking, question.evidence)
                reached.setdefault(question.category, []).append(scored)
            if question.sessions:
                found = locomo.session_recall(ranking, conversation.turns, question.sessions)
                sessions.setdefault(question.category, []).append(found)
    return Result(
        locomo.mean([one for many in reached.values() for one in many]),
        {category: locomo.mean(many) for category, many in reached.items()},
        _mean([one for many in sessions.values() for one in many]) if sessions else None,
        {category: _mean(many) for category, many in sessions.items()},
        (asked - stored) / len(rankings) * 1e6 if method.ours else None,
    )


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares)


def read(path: Path) -> list[Conversation]:
    """The conversations of a file in either format, or :class:`BadData`."""
    data = locomo.load(path)
    if longmemeval.is_format(data):
        return longmemeval.conversations(data, path)
    return locomo.read(data, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the result is the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data", metavar="DATA", type=Path, help="a file like locomo10.json or longmemeval_s.json"
    )
    parser.add_argument(
        "--merged", action="store_true", help="one agent has the memories of all conversations"
    )
    parser.add_argument(
        "--misspelt",
        metavar="SHARE",
        type=float,
        default=0.0,
        help="this share of the questions' words has a slip, by a seed",
    )
    parser.add_argument(
        "--nicknames", action="store_true", help="the questions name speakers by nicknames"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--json", metavar="OUT", type=Path, help="also write a JSON file")
    options = parser.parse_args(arguments)
    try:
        conversations = read(options.data)
    except BadData as error:
        _tell(f"quality: {error}")
        return 2
    if options.merged:
        conversations = [locomo.merged(conversations)]
    if options.misspelt or options.nicknames:
        conversations = misspelt.questions_of(conversations, options.misspelt, options.nicknames)
    results: dict[str, Result] = {}
    for name in options.methods:
        method = METHODS[name]
        _tell(f"{method.title} …")
        try:
            results[name] = measure(method, conversations)
        except LeftOut as reason:
            _tell(f"{method.title}: left out, {reason}")
    show(results, conversations)
    if options.json:
        try:
            options.json.write_text(json.dumps(_plain(results, conversations), indent=2) + "\n")
        except OSError as error:
            _tell(f"quality: can't write {options.json}: {error.strerror}")
            return 2
    return 0


def show(results: dict[str, Result], conversations: Sequence[Conversation]) -> None:
    """Print the tables."""
    asked = [question for each in conversations for question in each.questions]
    has_sessions = any(question.sessions for question in asked)
    kind = "turn " if has_sessions else ""
    rows = [
        (
            METHODS[name].title,
            *([_percent(result.sessions)] if has_sessions else []),
            *map(_percent, result.overall),
            "" if result.query_us is None else number(result.query_us),
        )
        for name, result in results.items()
    ]
    sizes = ", ".join(f"{what}: {count:,}" for what, count in _counts(conversations).items())
    columns = [*(f"{kind}R@{depth}" for depth in (5, 10, 20)), "MRR", "nDCG@10", "µs/query"]
    table(
        f"Found, per cent ({sizes})",
        ("", *(["session R@5"] if has_sessions else []), *columns),
        rows,
    )
    if has_sessions:
        by_category = {name: result.sessions_by_category for name, result in results.items()}
        _show_categories("Session R@5", by_category, [each for each in asked if each.sessions])
    by_category = {
        name: {category: scores.recall_10 for category, scores in result.by_category.items()}
        for name, result in results.items()
    }
    title = "Turn R@10" if has_sessions else "R@10"
    _show_categories(title, by_category, [each for each in asked if each.evidence])
    console.print(machine())


def _show_categories(
    title: str, shares: dict[str, dict[str, float]], asked: Sequence[Question]
) -> None:
    counts = Counter(question.category for question in asked)
    categories = [each for each in CATEGORIES.values() if each in counts]
    categories += [each for each in counts if each not in categories]
    rows = [
        (METHODS[name].title, *(_percent(of_category[each]) for each in categories))
        for name, of_category in shares.items()
    ]
    columns = [f"{category} ({counts[category]:,})" for category in categories]
    table(f"{title} by category (questions)", ("", *columns), rows)


def _plain(results: dict[str, Result], conversations: Sequence[Conversation]) -> dict[str, Any]:
    return {
        "machine": machine(),
        **_counts(conversations),
        "results": {
            name: {
                **result.overall._asdict(),
                "session_recall_5": result.sessions,
                "query_us": result.query_us,
                "by_category": {
                    category: scores._asdict() for category, scores in result.by_category.items()
                },
                "session_recall_5_by_category": result.sessions_by_category,
            }
            for name, result in results.items()
        },
    }


def _counts(conversations: Sequence[Conversation]) -> dict[str, int]:
    return {
        "agents": len(conversations),
        "memories": sum(len(each.turns) for each in conversations),
        "questions": sum(len(each.questions) for each in conversations),
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f}"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
