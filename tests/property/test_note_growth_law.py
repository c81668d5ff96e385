"""The chunks of a note that grew are those of its whole text."""

from hypothesis import event, given
from hypothesis import strategies as st

from agents.errors import TierMemError
from agents.memory.context import approximate_tokens
from agents.notes.chunks import cut
from agents.notes.growth import growth

# fmt: off
LINES = st.sampled_from([
    "", "", " ", "\u200b", "a", "word " * 3, "x" * 30, "long " * 30, "- item", "# A", "### C",
    "## B <!-- tier: low -->", "#no", "   # D", "C <!-- tier: pinned -->", "```", "---",
])
# fmt: on


def texts(least: int, most: int) -> st.SearchStrategy[str]:
    lines = st.lists(LINES, min_size=least, max_size=most)
    return lines.map(lambda each: "".join(f"{line}\n" for line in each))


@given(
    texts(20, 100), texts(1, 12), st.sampled_from(["", "a last line"]), st.integers(3, 20),
    st.integers(0, 9),
)  # fmt: skip
def test_a_note_that_grew_is_cut_as_one_that_was_written(before, more, end, tokens, overlap):
    text = f"{before}{more}{end}"
    try:
        old, new = (cut(each, tokens, overlap, approximate_tokens) for each in (before, text))
    except TierMemError:
        return
    places = [(number, each.first, each.last) for number, each in enumerate(old)]
    grown = growth(before, places, text, tokens, overlap, approximate_tokens)
    event("cut whole" if grown is None else "cut at the end")
    if grown is not None:
        assert [*old[: grown.kept], *grown.old] == old
        assert [*old[: grown.kept], *grown.new] == new
