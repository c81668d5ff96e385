"""What a person sees of results: escaped, cut, and in one manner."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from agents import Hits, MemoryBank
from agents.memory.views import Table, View, hits_view

HOSTILE = '<script>alert(1)</script> & "quoted" \x1b[31m\nnext\u202eline'


class Tags(HTMLParser):
    """The tags of a page, in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.said = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


KNOWN = {"div", "b", "table", "tr", "th", "td", "span"}


def is_sound(page: str) -> bool:
    """Whether a page has tags of ours alone, and each is closed."""
    tags = Tags(page)
    return not tags.open and set(tags.tags) <= KNOWN


@pytest.fixture
def hits() -> Iterator[Hits]:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        alice.add(HOSTILE, tier="pinned", metadata={"speaker": HOSTILE, "<b>": 3}, tags=["a"])
        for number in range(29):
            alice.add(f"number {number} {'long ' * number * 4}", tier="low")
        yield alice.search("number", limit=30)


def test_a_text_of_a_memory_is_data(hits: Hits) -> None:
    for page in (hits._repr_html_(), hits[0]._repr_html_(), hits[0].memory._repr_html_()):
        assert is_sound(page)
        said = Tags(page).said
        assert '<script>alert(1)</script> & "quoted" \\u001b[31m\\nnext\\u202eline' in said
    for text in (repr(hits), str(hits[0]), str(hits[0].memory)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<script>alert(1)</script>" in text


def test_metadata_is_data_and_shown(hits: Hits) -> None:
    said = Tags(hits[0].memory._repr_html_()).said
    assert said.count("<script>") == 2
    assert "metadata: <b>3" in said


def test_metadata_can_not_pass_for_a_trait() -> None:
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent("alice").add("hello", "low", {"born": "tick 99"})
    rows = re.findall(r"<td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td>", memory._repr_html_())
    assert ("born", "tick 0") in rows
    assert ("metadata: born", "tick 99") in rows
    assert rows[-1] == ("id", memory.id)


def test_many_rows_are_cut_with_their_number(hits: Hits) -> None:
    assert len(hits) == 30
    page = hits._repr_html_()
    assert page.count("<tr>") == 1 + 20
    assert "… and 10 more rows" in page
    lines = repr(hits).splitlines()
    assert lines[0] == "30 hits"
    assert (len(lines), lines[-1]) == (1 + 1 + 20 + 1, "… and 10 more rows")


def test_long_texts_are_cut_with_their_number() -> None:
    page = Table(["text"], [["x" * 1_250]]).html()
    assert "x" * 200 + "… " in page
    assert "x" * 201 not in page
    assert "(1,050 more characters)" in page
    assert Table(["text"], [["x" * 1_250]]).text() == "text\n" + "x" * 63 + "…"


def test_numbers_stand_at_the_right_and_nothing_is_told_as_such() -> None:
    table = Table(["name", "value"], [["a", 1234.5], ["bb", None]])
    assert table.text() == "name  value\na     1,234\nbb        –"
    assert (
        re.findall(r"<td[^>]*>", table.html())
        == [
            '<td style="text-align: left">',
            '<td style="text-align: right">',
        ]
        * 2
    )


def test_no_colour_is_set_so_that_a_page_may_be_light_or_dark(hits: Hits) -> None:
    page = hits._repr_html_()
    assert "color" not in page
    assert "background" not in page


def test_what_a_search_could_not_do_is_told() -> None:
    assert View("", ["a line"]).text() == "a line"
    told = hits_view([], 2, "words alone")
    assert told.text() == "0 hits\n2 pinned memories had no room\nwords alone"
    assert repr(Hits()) == "0 hits"


def test_a_memory_is_told_in_a_line_and_in_full(hits: Hits) -> None:
    low = hits[-1].memory
    assert str(low).startswith("[low] number")
    assert str(low).endswith("(alice, tick 0)")
    assert "content=" in repr(low)  # complete: what compares memories by their text relies on it
    assert str(hits[-1]) == f"{hits[-1].boosted_score:.4f} {low}"


def test_a_list_of_memories_is_a_line_each_in_ipython(hits: Hits) -> None:
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    memory = hits[-1].memory
    assert pretty([memory, memory]) == f"[{memory},\n {memory}]"
    assert pretty([hits[-1]]) == f"[{hits[-1]}]"


def test_what_is_not_active_says_so() -> None:
    with MemoryBank.ephemeral() as bank:
        alice = bank.agent("alice")
        one = alice.add("old news", ttl=5)
        alice.update(one.id, retention="archived")
        gone = alice.get(one.id)
    assert str(gone) == "[normal] old news (alice, tick 0, archived)"
    said = Tags(gone._repr_html_()).said
    assert "retentionarchived" in said
    assert "expirestick 5" in said
