"""The chunks of a note that grew are those of its whole text."""

from functools import partial

from hypothesis import event, given
from hypothesis import strategies as st

from agents.errors import TierMemError
from agents.memory.context import approximate_tokens
from agents.notes.chunks import cut
from agents.notes.growth import growth
from agents.notes.marks import beginning

# fmt: off
LINES = st.sampled_from([
    "", "", " ", "\u200b", "a", "word " * 3, "x" * 30, "long " * 30, "- item", "# A", "### C",
    "## B <!-- tier: low -->", "#no", "   # D", "C <!-- tier: pinned -->", "```", "~~~~", "````",
    "---", "key: 1", "\ufeff# E", " " * 200, "\n" * 12, "# F\n" * 8, "a\r", "b\r\n```",
])
TOPS = st.sampled_from([
    "", "", "---\n", "---\nkey: 1\n", "---\ntier: low\n---\n", "\ufeff---\nkey: 1\n---\n",
    "\ufeff# G <!-- tier: critical -->\n", "\ufeff```\n", "---\n#a\n#b\n", "```\n",
    "\n" * 50, "word " * 300 + "\n",
])
ENDS = st.sampled_from(["", "", "a last line", "\r"])
# fmt: on


def texts(least: int, most: int, end: str = "\n") -> st.SearchStrategy[str]:
    lines = st.lists(LINES, min_size=least, max_size=most)
    return lines.map(lambda each: "".join(f"{line}{end}" for line in each))


@given(
    TOPS,
    st.sampled_from(["\n", "\n", "\r\n", "\r"]).flatmap(lambda end: texts(10, 100, end)),
    st.lists(st.tuples(texts(0, 12), ENDS), min_size=1, max_size=5),
    st.integers(3, 20),
    st.integers(0, 9),
)  # fmt: skip
def test_a_note_that_grew_is_cut_as_one_that_was_written(top, body, added, tokens, overlap):
    cut_of = partial(cut, tokens=tokens, overlap=overlap)
    before, mark = top + body, None
    for more, end in added:
        text = f"{before}{more}{end}"
        try:
            old, new, refused = cut_of(before), [], ""
        except TierMemError:
            return
        try:
            new = cut_of(text)
        except TierMemError as error:
            refused = str(error)
        places = [(number, each.first, each.last) for number, each in enumerate(old)]
        try:
            grown = growth(before, places, mark, text, tokens, overlap, approximate_tokens)
        except TierMemError as error:
            found = str(error)
            assert found == refused  # whichever of the two refuses
            return
        event("cut whole" if grown is None else "cut at the end")
        if refused:
            assert grown is None
            return
        if grown is not None:
            event("at an edge" if grown.mark.is_edge else "some chunks back")
            event(f"in a fence: {bool(grown.mark.fence)}")
            assert [*old[: grown.kept], *grown.old] == old
            assert [*old[: grown.kept], *grown.new] == new
        before, mark = text, beginning(text) if grown is None else grown.mark
