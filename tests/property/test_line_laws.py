"""The model reads a text as the package does, whatever characters it has."""

from hypothesis import given
from hypothesis import strategies as st
from model.reading import line

from agents.memory.context import _line
from agents.memory.tiers import Tier

ODD = (
    "\U0001f3f4\U000e007f\U000e0030\U000e0039\U000e0041\U000e0061\U000e007a[ \t\x85\u061c\u115f"
    "\u200b\u2028\u2065\u2066\u206f\u2800\u0301\ufe0f\ufeff\ufff0\ufffb\ufffc\U000e00ff\U000e01ef"
    "\U000e01f0\U000e0fff\U000e1000"
)
"""What is escaped, what hides a bracket, and their neighbours."""
FLAG = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


def same(text: str) -> bool:
    return all(line(tier, text) == _line(text, tier, "fact") for tier in (Tier.PINNED, Tier.NORMAL))


@given(st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"]))))
def test_any_text_is_the_same_line(text: str) -> None:
    assert same(text)


def test_every_kind_of_character_is_the_same_line() -> None:
    codes = [*map(ord, ODD), *range(0x300), *range(0x2000, 0x2100), *range(0, 0x110000, 251)]
    texts = [f"{chr(code)}[x" for code in codes if not 0xD800 <= code < 0xE000]
    assert [text for text in texts if not same(text)] == []


def test_a_flag_stays_as_it_is() -> None:
    assert same(FLAG)
    assert same(FLAG[:-1])
    assert FLAG in line(Tier.NORMAL, f"from {FLAG} with tea")
