"""How well memories in German, Spanish, Japanese and Chinese are found, beside BM25.

Every language has a file in ``languages/``: twelve talks of everyday life, and 50 questions about
them, of which half are worded otherwise than what answers them. BM25 (bm25s) has the words of the
language: stems of Snowball and its stop words for German and Spanish, the words of Janome for
Japanese and of jieba for Chinese. TierMem has no dictionary: Japanese and Chinese count by
characters and pairs of characters.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import locomo
import numpy as np
import yaml
from locomo import DEPTH, Conversation, Question, Scores, Turn
from quality import LeftOut, Search, tiermem
from report import console, table

LANGUAGES = {"de": "german", "es": "spanish", "ja": "japanese", "zh": "chinese"}
_FOLDER = Path(__file__).parent / "languages"
Words = Callable[[str], list[str]]


def read(language: str) -> Conversation:
    """The talks and questions of a language; the place of a line is that among all lines."""
    turns: list[Turn] = []
    questions: list[Question] = []
    data = yaml.safe_load((_FOLDER / f"{language}.yaml").read_text(encoding="utf-8"))
    for number, talk in enumerate(data["talks"], start=1):
        for text, lines in talk["questions"]:
            numbers = lines if isinstance(lines, list) else [lines]
            evidence = frozenset(len(turns) + each - 1 for each in numbers)
            questions.append(Question(text, evidence, "single-hop"))
        for line in talk["lines"]:
            turns.append(Turn(line, f"talk {number}", line.partition(":")[0]))
    return Conversation(language, turns, questions)


# BM25 with the words of a language


def _stems(language: str) -> Words:
    import bm25s
    import Stemmer

    cut = partial(
        bm25s.tokenize,
        stopwords=language,
        stemmer=Stemmer.Stemmer(LANGUAGES[language]),
        show_progress=False,
        return_ids=False,
    )
    return lambda text: list(cut([text])[0])


def _of_janome() -> Words:
    from janome.tokenizer import Tokenizer

    reader = Tokenizer()
    # Particles and auxiliaries say nothing of what is meant, as stop words do elsewhere.
    left_out = ("助詞", "助動詞")
    return lambda text: [
        each.base_form
        for each in reader.tokenize(text)
        if each.surface.isalnum() and not each.part_of_speech.startswith(left_out)
    ]


def _of_jieba() -> Words:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    return lambda text: [word for word in jieba.cut_for_search(text) if word.isalnum()]


def _words_of(language: str) -> Words:
    try:
        if language == "ja":
            return _of_janome()
        return _of_jieba() if language == "zh" else _stems(language)
    except ImportError as error:
        raise LeftOut(f"needs: pip install {error.name}") from error


@contextmanager
def bm25s(conversations: Sequence[Conversation]) -> Iterator[Search]:
    """The library bm25s with its defaults, and the words of the conversation's language."""
    try:
        import bm25s
    except ImportError as error:
        raise LeftOut("needs: pip install bm25s") from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    (conversation,) = conversations
    words, index = _words_of(conversation.name), bm25s.BM25()
    index.index([words(turn.text) for turn in conversation.turns], show_progress=False)

    def search(_: int, question: str) -> list[int]:
        known = [word for word in words(question) if word in index.vocab_dict]
        found = index.get_scores(known) if known else np.zeros(len(conversation.turns))
        best: list[int] = np.argsort(-found, kind="stable")[:DEPTH].tolist()
        return best

    yield search


def methods(language: str) -> dict[str, Callable[..., AbstractContextManager[Search]]]:
    """What is compared, by title."""
    stemmer = LANGUAGES[language] if language in ("de", "es") else "none"
    own = {"stemmer": stemmer}
    return {
        "tiermem": partial(tiermem, retrieval=own),
        "tiermem, no metadata": partial(tiermem, metadata=False, retrieval=own),
        "keyword alone (ours)": partial(
            tiermem, metadata=False, retrieval={**own, "mode": "keyword"}
        ),
        "vector alone": partial(tiermem, metadata=False, preset="vector"),
        "keyword alone (bm25s)": bm25s,
    }


def measure(language: str) -> dict[str, Scores | str]:
    """What each method reaches in a language, or why it is left out."""
    conversation = read(language)
    found: dict[str, Scores | str] = {}
    for title, method in methods(language).items():
        try:
            with method([conversation]) as search:
                reached = [
                    locomo.scores(search(0, question.text), question.evidence)
                    for question in conversation.questions
                ]
        except LeftOut as reason:
            found[title] = str(reason)
        else:
            found[title] = locomo.mean(reached)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=LANGUAGES, default=list(LANGUAGES))
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    results = {language: measure(language) for language in given.only}
    if given.json:
        json.dump({name: _plain(found) for name, found in results.items()}, sys.stdout, indent=1)
        return
    for language, found in results.items():
        conversation = read(language)
        sizes = f"{len(conversation.turns)} memories, {len(conversation.questions)} questions"
        rows: list[tuple[Any, ...]] = []
        for title, scores in found.items():
            if isinstance(scores, str):
                console.print(f"{title}: left out, {scores}")
                continue
            values = (scores.recall_5, scores.recall_10, scores.mrr, scores.ndcg_10)
            rows.append((title, *(f"{value * 100:.1f}" for value in values)))
        table(f"{LANGUAGES[language]} ({sizes})", ("", "R@5", "R@10", "MRR", "nDCG@10"), rows)


def _plain(found: dict[str, Scores | str]) -> dict[str, Any]:
    return {
        title: scores if isinstance(scores, str) else scores._asdict()
        for title, scores in found.items()
    }


if __name__ == "__main__":
    main()
