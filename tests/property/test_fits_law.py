"""What fits a schema is what jsonschema takes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.config import load
from agents.config.fits import fits

WHOLE = load._schema()
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([2**64, "", "hot", "cold", "fact", "3d", "12h", "x" * 2000, "on", "close"]),
    st.text(max_size=5),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["kind", "tag", "idle", "low", "a"]), inner, max_size=2),
    ),
    max_leaves=6,
)


def _places(value: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, own in value.items():
        found.append((*path, key))
        if isinstance(own, dict):
            found += _places(own, (*path, key))
    return found


PLACES = _places(load._defaults())


@given(st.lists(st.tuples(st.sampled_from(PLACES), values), min_size=1, max_size=3))
def test_settings_that_fit_are_those_that_jsonschema_takes(
    changes: list[tuple[tuple[str, ...], object]],
) -> None:
    settings: dict[str, Any] = {}
    for path, value in changes:
        settings = load._merge(settings, load._nest(path, value))  # type: ignore[arg-type]
    assert fits(settings, WHOLE) == load._validator().is_valid(settings)


@pytest.mark.parametrize("keyword", ["oneOf", "not", "format"])
def test_a_keyword_that_is_not_known_lets_jsonschema_decide(keyword: str) -> None:
    assert not fits({}, {keyword: []})


def test_every_keyword_of_the_schema_is_known() -> None:
    """Else each command would import jsonschema."""
    for section, own in load._defaults().items():
        assert fits({section: own}, WHOLE), section
