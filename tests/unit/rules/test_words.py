"""What a keyword index takes for a word."""

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.words import words_of

english = Stemmer.Stemmer("english").stemWord


def terms(text: str) -> set[str]:
    return set(words_of(text, english).terms)


@pytest.mark.parametrize(
    ("written", "whole", "parts"),
    [
        ("agent_X", "agent_x", {"agent", "x"}),
        ("Agent_X,", "agent_x", {"agent", "x"}),
        ("$50K", "$50k", {"50k"}),
        ("(ERR-42)", "err-42", {"err", "42"}),
        ("v1.2.3", "v1.2.3", {"v1", "2", "3"}),
        ("ann@example.org", "ann@example.org", {"ann", "exampl", "org"}),
        ("#fish", "#fish", {"fish"}),
        ("50%", "50%", {"50"}),
        ("__init__", "__init__", {"init"}),
        ("src/agents/bank.py", "src/agents/bank.py", {"src", "agent", "bank", "py"}),
    ],
)
def test_an_identifier_is_found_whole_and_by_part(
    written: str, whole: str, parts: set[str]
) -> None:
    assert terms(written) == {whole, *parts}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("trading", "trades"),
        ("Caroline's", "Caroline"),
        ("Caroline’s", "caroline"),
        ("don't", "don’t"),
        ("café", "cafe\u0301"),
        ("café", "CAFE"),
        ("Straße", "STRASSE"),
        ("Ångström", "A\u030angstro\u0308m"),
        ("ﬁne", "fine"),
        ("ＡＢＣ", "abc"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("ガ", "カ\u3099"),
    ],
)
def test_two_ways_to_write_a_word_are_one(one: str, other: str) -> None:
    assert terms(one) == terms(other)
    assert terms(one)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京都に住んでいます", "東京"),
        ("黒猫が好き", "猫"),
        ("我们昨天在市场交易", "市场"),
        ("친구가 왔다", "친구"),
        ("ฉันไปตลาดเมื่อวาน", "ตลาด"),
        ("ខ្ញុំទៅផ្សារ", "ផ្សារ"),
        ("မင်္ဂလာပါ", "မင်္ဂလာ"),
        ("मैं हिन्दी बोलता हूँ", "हिन्दी"),
        ("ذهبتُ إلى السوق", "السوق"),
        ("אני גר בירושלים", "בירושלים"),
        ("Я живу в Москве", "москве"),
    ],
)
def test_a_word_of_any_script_is_found(text: str, query: str) -> None:
    assert terms(query)
    assert terms(query) <= terms(text)


def test_thai_vowels_and_tone_marks_belong_to_their_letter() -> None:
    assert terms("ที่") != terms("ท")


def test_a_hindi_word_is_not_cut_at_its_vowel_signs() -> None:
    assert words_of("हिन्दी").terms == ("हिन्दी",)


@pytest.mark.parametrize("text", ["", "?!", "...", "—", "🎉", "' ' '", "_", "$"])
def test_what_has_no_letter_or_digit_has_no_words(text: str) -> None:
    assert terms(text) <= {"_"}


def test_words_are_kept_as_they_are_written_for_their_vectors() -> None:
    assert words_of("Agent_X likes Fish?", english).spoken == (
        ("Agent", "agent"),
        ("X", "x"),
        ("likes", "like"),
        ("Fish", "fish"),
    )


def test_without_a_stemmer_words_stay_as_they_are() -> None:
    assert words_of("trading trades").terms == ("trading", "trades")


def test_a_very_long_piece_is_found_by_its_beginning() -> None:
    assert terms("a" * 1000) == terms("a" * 2000)


@given(st.text(st.one_of(st.sampled_from("aZ7 _-./:@&+$#%'"), st.characters(max_codepoint=127))))
def test_a_text_in_ascii_has_the_words_that_it_has_beside_other_scripts(text: str) -> None:
    assert words_of(text) == words_of(f"{text} €")
