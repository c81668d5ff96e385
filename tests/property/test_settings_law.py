"""What the declarations of settings take is what jsonschema takes by the schema made of them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.config import load
from agents.config.settings import Settings

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.floats(allow_nan=False, allow_infinity=True),
    st.sampled_from([2**64, "", "hot", "cold", "fact", "3d", "0h", "12h\n", "x" * 2000, "on"]),
    st.sampled_from(["close", "x" * 64, "x" * 65, "a,b", " a", "inactive_preference"]),
    st.text(max_size=5),
)
KEYS = ["kind", "tag", "idle", "low", "any", "name", "when", "to", "content", "ttl", "a"]
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=2),
    ),
    max_leaves=6,
)
times = st.sampled_from(["3d", 0, 1, "inactive_preference", "x"])
one_or_more = st.sampled_from(["fact", "hot", "low", ["fact"], ["a", "b"], [], "nope", 3])
conditions = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("kind", "tag", "temperature", "tier"), one_or_more),
            **dict.fromkeys(("idle", "idle_below", "age", "accesses", "accesses_below"), times),
        },
    ),
    lambda inner: st.fixed_dictionaries({"any": st.lists(inner, max_size=2)}),
    max_leaves=3,
)
rules = st.fixed_dictionaries(
    {"name": st.sampled_from(["n", ""]), "when": conditions},
    optional={"to": st.sampled_from(["hot", "cold", "x"]), "unless": conditions, "more": values},
)


def _places(value: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, own in value.items():
        found.append((*path, key))
        if isinstance(own, dict):
            found += _places(own, (*path, key))
    return found


PLACES = _places(load._defaults())


def check_same(settings: dict[str, Any]) -> None:
    assert load.takes(Settings, settings) == load._validator().is_valid(settings)


@given(st.lists(st.tuples(st.sampled_from(PLACES), values), min_size=1, max_size=3))
def test_settings_that_are_taken_are_those_that_jsonschema_takes(
    changes: list[tuple[tuple[str, ...], object]],
) -> None:
    settings: dict[str, Any] = {}
    for path, value in changes:
        settings = load._merge(settings, load._nest(path, value))  # type: ignore[arg-type]
    check_same(settings)


@given(st.lists(rules, max_size=2))
def test_rules_that_are_taken_are_those_that_jsonschema_takes(rules: list[object]) -> None:
    check_same({"temperature": {"rules": rules}})


def test_the_defaults_are_taken_section_by_section() -> None:
    """Else each command would import jsonschema."""
    for section, own in load._defaults().items():
        assert load.takes(Settings, {section: own}), section
