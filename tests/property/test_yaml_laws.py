"""Settings that a run writes are the settings that it reads: any text, number and nesting."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agents.config.yaml_files import read_yaml, to_yaml

# Line breaks of Unicode, marks of YAML, and what ends or begins a line.
STRANGE = "\x07\t\n\r\x1b \x7f\x85\x9f\xa0\xad\u2028\u2029\ufeff\U0001f600'\"\\:#-?&*!|>%@`{}[],=~é"
texts = st.text(
    st.sampled_from(STRANGE) | st.characters(codec="utf-8", exclude_characters="\0"), max_size=120
)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(written=st.dictionaries(texts, values, max_size=4), is_sorted=st.booleans())
@example({"sights": ["x\x85n"]}, False)
@example({"x\x85": "é"}, True)
def test_what_is_written_as_yaml_is_read_as_it_was(
    written: dict[str, Any], is_sorted: bool
) -> None:
    assert read_yaml(to_yaml(written, sort_keys=is_sorted), "it").value == written
