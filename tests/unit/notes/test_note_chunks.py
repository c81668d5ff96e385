"""How a note is cut: at headings first, fences whole, one tier a chunk."""

import unicodedata

import pytest

from agents import InvalidInput, InvalidTier, Tier
from agents.notes.markdown import Chunk, cut, split_lines


def words(text: str, /) -> int:
    """A counter that makes examples easy to read."""
    return len(text.split())


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def ranges(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.first, chunk.last) for chunk in chunks]


def tiers(chunks: list[Chunk]) -> list[tuple[str, Tier | None]]:
    return [(chunk.text.split()[-1], chunk.tier) for chunk in chunks]


# Lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("a\r\nb\rc\nd", ["a\r\n", "b\r", "c\n", "d"]),
        ("\n\r\n\r\r\n", ["\n", "\r\n", "\r", "\r\n"]),
        ("a\u2028b\x0bc\x0cd\x85e\x1cf\n", ["a\u2028b\x0bc\x0cd\x85e\x1cf\n"]),
    ],
    ids=["empty", "no end", "one", "mixed ends", "only ends", "what only Python ends lines at"],
)
def test_a_line_ends_where_an_editor_ends_it(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


# Structure


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n\u3000\u2028\n", "\ufeff", "\u200b\n\x00\n"])
def test_a_note_that_shows_nothing_has_no_chunks(text: str) -> None:
    assert cut(text) == []


def test_a_short_note_is_one_chunk_without_the_blank_lines_around_it() -> None:
    assert cut("\n\n# Plan\n\nbuy\n\n") == [Chunk("# Plan\n\nbuy\n", 3, 5, None)]


def test_small_sections_share_a_chunk() -> None:
    note = "".join(f"## Day {day}\n\nsold {day} apples today\n\n" for day in range(10))
    assert len(cut(note)) == 1


def test_a_new_chunk_starts_at_a_heading() -> None:
    note = "# A\na a a\n\na a\n# B\nb b b\n\nb b\n"
    assert texts(cut(note, 10, 0, words)) == ["# A\na a a\n\na a\n", "# B\nb b b\n\nb b\n"]


def test_a_heading_stays_with_its_text() -> None:
    note = "a a\na a\n\n## B\n\nb b b\nb b\n"
    assert texts(cut(note, 7, 0, words)) == ["a a\na a\n", "## B\n\nb b b\nb b\n"]


def test_headings_stay_with_the_text_of_the_last_of_them() -> None:
    note = "a a\na a\n# B\n## C\n\n### D\nd\n"
    assert texts(cut(note, 9, 0, words)) == ["a a\na a\n", "# B\n## C\n\n### D\nd\n"]


def test_more_headings_than_fit_are_cut() -> None:
    chunks = cut("# H\n" * 10, 8, 0, words)
    assert "".join(texts(chunks)) == "# H\n" * 10
    assert all(words(chunk.text) <= 8 for chunk in chunks)


def test_a_blank_line_is_a_better_cut_than_a_paragraph() -> None:
    note = "a a a\n\nb b b\nb b b\nb b b\n"
    assert texts(cut(note, 10, 0, words)) == ["a a a\n", "b b b\nb b b\nb b b\n"]


def test_a_paragraph_that_fits_nowhere_is_cut_between_lines() -> None:
    assert texts(cut("a a a\n" * 4, 7, 0, words)) == ["a a a\na a a\n"] * 2


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "   ```"])
def test_a_fence_that_fits_is_not_cut(fence: str) -> None:
    code = f"{fence} python\n# not a heading\n\nx = 1\n\ny = 2\n{fence}\n"
    note = f"a a a a\na a a a\n{code}b b b b\n"
    chunks = cut(note, 14, 6, words)
    assert sum(code in chunk.text for chunk in chunks) == 1
    assert all(code in chunk.text or "=" not in chunk.text for chunk in chunks)


def test_a_fence_that_is_too_long_is_cut_at_its_blank_lines() -> None:
    note = "```\na a\na a\n\nb b\nb b\n```\n"
    assert texts(cut(note, 6, 0, words)) == ["```\na a\na a\n", "b b\nb b\n```\n"]


def test_a_hash_inside_a_fence_is_no_heading() -> None:
    note = "```\n# <!-- tier: nonsense -->\n```\n"
    assert cut(note) == [Chunk(note, 1, 3, None)]


@pytest.mark.parametrize("inner", ["``", "~~~", "``` python", "    ```"])
def test_only_its_own_mark_closes_a_fence(inner: str) -> None:
    note = f"```\n{inner}\n# <!-- tier: nonsense -->\n```\n"
    assert cut(note) == [Chunk(note, 1, 4, None)]


def test_a_fence_without_an_end_goes_on_to_the_end_of_the_note() -> None:
    note = "~~~\n# <!-- tier: nonsense -->\n\nx\n"
    assert cut(note) == [Chunk(note, 1, 4, None)]


@pytest.mark.parametrize("line", ["#tag", "####### seven", "    # code", "\\# no"])
def test_what_only_looks_like_a_heading_is_text(line: str) -> None:
    assert cut(f"{line} <!-- tier: pinned -->\n")[0].tier is None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_structure_is_seen_with_every_line_end(end: str) -> None:
    note = end.join(["---", "tier: low", "---", "a a", "# B <!-- tier: pinned -->", "", "b", ""])
    assert cut(note, 8, 0, words) == [
        Chunk(f"a a{end}", 4, 4, Tier.LOW),
        Chunk(f"# B <!-- tier: pinned -->{end}{end}b{end}", 5, 7, Tier.PINNED),
    ]


# Overlap


def test_chunks_of_a_section_overlap_by_whole_lines() -> None:
    note = "".join(f"{letter} {letter}\n" for letter in "abcdefgh")
    assert ranges(cut(note, 8, 3, words)) == [(1, 4), (4, 7), (7, 8)]


def test_an_overlap_has_as_many_lines_as_fit() -> None:
    note = "".join(f"{letter} {letter}\n" for letter in "abcdefgh")
    assert ranges(cut(note, 8, 4, words)) == [(1, 4), (3, 6), (5, 8)]


def test_chunks_of_different_sections_do_not_overlap() -> None:
    note = "# A\na a\na a\n# B\nb b\nb b\n"
    assert ranges(cut(note, 8, 4, words)) == [(1, 3), (4, 6)]


def test_a_fence_is_repeated_whole_or_not_at_all() -> None:
    note = "a a a\n```\nx\nx\n```\nb b b\nb b b\n"
    for overlap in range(12):
        for chunk in cut(note, 12, overlap, words):
            assert chunk.text.count("```") in (0, 2)


def test_an_overlap_never_has_more_than_half_a_chunk() -> None:
    note = "a\n" * 100
    assert len(cut(note, 10, 1_000, words)) <= 20


# Long lines


def test_a_line_that_is_too_long_is_cut_at_blanks() -> None:
    chunks = cut("before\n" + "word " * 1_000 + "\nafter\n", 100)
    parts = [chunk for chunk in chunks if chunk.first == 2]
    assert "".join(texts(parts)) == "word " * 1_000 + "\n"
    assert all(chunk.last == 2 and len(chunk.text) <= 400 for chunk in parts)
    assert all(chunk.text.startswith("word ") for chunk in parts)
    assert (chunks[0].text, chunks[-1].text) == ("before\n", "after\n")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", " \t\r\n"])
@pytest.mark.parametrize("length", [399, 400, 401, 799, 800, 801])
def test_the_end_of_a_long_line_is_no_part_of_its_own(end: str, length: int) -> None:
    line = "x" * length + end
    assert "".join(texts(cut(line, 100))) == line


@pytest.mark.parametrize(
    "character",
    ["e\u0301", "👩\u200d🚀", "👍\U0001f3fd", "❤\ufe0f", "क्षि"],
    ids=["accent", "joined emoji", "emoji with a colour", "variation", "vowel sign"],
)
def test_a_long_line_is_not_cut_inside_a_character(character: str) -> None:
    chunks = cut(character * 100, 5)
    assert "".join(texts(chunks)) == character * 100
    for chunk in chunks[1:]:
        assert unicodedata.category(chunk.text[0])[0] != "M"
        assert chunk.text[0] not in "\u200d\U0001f3fd🚀"


def test_a_line_of_nothing_but_accents_is_still_cut() -> None:
    line = "e" + "\u0301" * 5_000
    chunks = cut(line, 10)
    assert "".join(texts(chunks)) == line
    assert all(len(chunk.text) <= 40 for chunk in chunks)


def test_the_parts_of_a_long_line_fit_whatever_counts_them() -> None:
    def uneven(text: str, /) -> int:
        return sum(5 if character > "\x7f" else 1 for character in text)

    line = "plain " * 200 + "ä" * 200
    chunks = cut(line, 50, 0, uneven)
    assert "".join(texts(chunks)) == line
    assert all(uneven(chunk.text) <= 50 for chunk in chunks)


def test_a_character_that_is_over_the_limit_is_a_part() -> None:
    assert texts(cut("äöü", 2, 0, lambda text: 9 * len(text))) == ["ä", "ö", "ü"]


# Tiers


def test_front_matter_sets_the_tier_of_the_note_and_is_not_part_of_it() -> None:
    note = "---\ntitle: Rules\ntier: critical\n---\n\nNever lend.\n"
    assert cut(note) == [Chunk("Never lend.\n", 6, 6, Tier.CRITICAL)]


@pytest.mark.parametrize(
    "line",
    ["tier: Critical", "tier:critical", "tier : 'critical'  # why", 'tier: "1"', "tier: 1 "],
)
def test_a_tier_has_several_spellings(line: str) -> None:
    assert cut(f"---\n{line}\n---\nx")[0].tier is Tier.CRITICAL


def test_a_byte_order_mark_does_not_hide_front_matter() -> None:
    assert cut("\ufeff---\ntier: low\n---\nx\n") == [Chunk("x\n", 4, 4, Tier.LOW)]


def test_a_byte_order_mark_does_not_hide_a_heading() -> None:
    assert cut("\ufeff# A <!-- tier: low -->\n")[0].tier is Tier.LOW


def test_a_comment_may_come_first_in_front_matter() -> None:
    assert cut("---\n# how much it matters\ntier: low\n---\nx\n")[0] == Chunk("x\n", 5, 5, Tier.LOW)


def test_a_tier_further_in_is_not_the_notes() -> None:
    assert cut("---\nauthor:\n  tier: nonsense\n---\nx\n")[0].tier is None


def test_front_matter_alone_has_no_chunks() -> None:
    assert cut("---\ntier: low\n---\n") == []


@pytest.mark.parametrize(
    "note",
    ["---\n", "---\n---\n", "---\n\ntext\n\n---\n", "---\n# A\n\ntext\n---\n", "---\nkey: x\n"],
    ids=["alone", "twice", "around text", "around a section", "open"],
)
def test_a_ruler_on_top_is_no_front_matter(note: str) -> None:
    assert "".join(texts(cut(note))) == note


def test_a_marker_holds_for_a_section_and_its_subsections() -> None:
    note = (
        "zero\n# A\none\n## B <!-- tier: pinned -->\ntwo\n### C\nthree\n"
        "#### D <!-- tier: low -->\nfour\n### E\nfive\n## F\nsix\n"
    )
    assert tiers(cut(note)) == [
        ("one", None),
        ("three", Tier.PINNED),
        ("four", Tier.LOW),
        ("five", Tier.PINNED),
        ("six", None),
    ]


def test_a_marker_wins_over_front_matter() -> None:
    note = "---\ntier: low\n---\n# A <!-- tier: pinned -->\na\n# B\nb\n"
    assert tiers(cut(note)) == [("a", Tier.PINNED), ("b", Tier.LOW)]


def test_neighbours_of_the_same_tier_share_a_chunk() -> None:
    note = "# A <!--tier:low-->\na\n# B <!-- tier: LOW --> ##\nb\n"
    assert ranges(cut(note)) == [(1, 4)]


def test_a_marker_shown_as_code_is_no_marker() -> None:
    assert cut("# Write `<!-- tier: NAME -->` here\n")[0].tier is None


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ("---\na: b\ntier: urgent\n---\n", r"line 3: 'urgent' is not a tier; use one of 0 pinned"),
        ("---\ntier:\n---\n", r"line 2: '' is not a tier"),
        ("---\ntier: 5\n---\n", r"line 2: '5' is not a tier"),
        ("a\n\n# B <!-- tier: top -->\n", r"line 3: 'top' is not a tier; use one of 0 pinned"),
        ("---\ntier: low\ntier: low\n---\n", r"line 3: the front matter names a second tier"),
    ],
    ids=["front matter", "nothing", "number", "marker", "twice"],
)
def test_what_is_no_tier_is_refused_with_its_line(note: str, message: str) -> None:
    with pytest.raises(InvalidTier, match=message):
        cut(note)


def test_front_matter_with_a_tier_and_no_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="line 1: the front matter has no end"):
        cut("---\ntier: pinned\n\n# A\na\n")


# Arguments and cost


@pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (-1, 0), (10, -1)])
def test_sizes_that_make_no_sense_are_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match=f"got {tokens} and {overlap}"):
        cut("x", tokens, overlap)


def test_a_counter_that_gives_less_than_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="gave -1"):
        cut("x", count=lambda text: -1)


def test_each_line_is_counted_once() -> None:
    counted: list[str] = []

    def count(text: str, /) -> int:
        counted.append(text)
        return 1

    lines = [f"line {number}\n" for number in range(1_000)]
    cut("".join(lines), 50, 10, count)
    assert counted == lines


MIXED = (
    "# Day\n\nsold apples\n\n- a\n- b\n```\nx\n\ny\n```\n\n" + "long words in a line " * 20 + "\n"
)


@pytest.mark.parametrize(
    "note",
    [
        MIXED * 250,
        "x" * 125_000,
        "x " * 62_000,
        " " * 125_000 + "x",
        "\n" * 50_000,
        "#\n" * 25_000,
        "```\n" * 25_000,
        "# " + "<!-- tier:" * 12_000,
        "# " + "`" * 125_001,
        "---\n" + "a: b\n" * 25_000,
        "e" + "\u0301" * 125_000,
        "x\n\n" + "y\n" * 25_000,
    ],
    ids=[
        "mixed", "no blanks", "words", "blanks", "line ends", "headings", "fences", "markers",
        "code marks", "open front matter", "accents", "one paragraph",
    ],
)  # fmt: skip
def test_a_large_note_of_anything_is_cut_to_its_end(note: str) -> None:
    """Each takes a moment; a cost that grew with the square would be many minutes."""
    chunks = cut(note)
    written = [number for number, line in enumerate(split_lines(note), 1) if line.strip()]
    assert [chunk.last for chunk in chunks][-1:] == written[-1:]
