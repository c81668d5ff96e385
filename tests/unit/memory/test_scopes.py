"""Projects and environments are parts of agents' ids: no two have an id in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.adapting import agent_id_of, text_of
from agents.errors import InvalidAgentId, InvalidInput
from agents.memory.scopes import NOWHERE, Scope, check_same_scope, check_scope, scope_of

PARTS = st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,5}", fullmatch=True))
AGENTS = st.from_regex(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,7}", fullmatch=True)
SCOPES = st.builds(Scope, PARTS, PARTS)


@given(SCOPES, AGENTS)
def test_an_id_says_scope_and_name(scope: Scope, name: str) -> None:
    agent_id = scope.agent_id(name)
    if scope_of(name) == NOWHERE != scope:
        assert scope_of(agent_id) == scope
        assert scope.name(agent_id) == name
    assert scope.agent_id(agent_id) == agent_id


@given(SCOPES, AGENTS, SCOPES, AGENTS)
def test_two_scopes_have_no_id_in_common(a: Scope, x: str, b: Scope, y: str) -> None:
    if a != b and NOWHERE not in (a, b):
        assert a.agent_id(x) != b.agent_id(y)


@given(st.one_of(st.text(), AGENTS, st.builds(lambda s, n: s.prefix + n, SCOPES, st.text())))
def test_no_text_stands_for_an_agent_in_a_scope(text: str) -> None:
    try:
        agent_id = agent_id_of(text)
    except InvalidInput:
        return
    assert scope_of(agent_id) == NOWHERE


def test_an_id_in_a_scope_stands_for_itself() -> None:
    assert text_of("@@AB@41@ann") == "@@AB@41@ann"


@pytest.mark.parametrize("wrong", ["", "*", "a@b", ".a", "a b", "a/b", "é", "a\n", "x" * 65, 7])
def test_what_is_no_name_of_a_project_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a project"):
        check_scope(wrong)
    with pytest.raises(InvalidInput, match="is not the name of an environment"):
        check_scope("acme", wrong)


def test_an_id_that_is_too_long_is_refused() -> None:
    scope = check_scope("p" * 64, "e" * 50)
    assert len(scope.agent_id("a" * 10)) == 128
    with pytest.raises(InvalidAgentId, match="would have an id of 129 characters"):
        scope.agent_id("a" * 11)


def test_what_would_cross_a_scope_is_refused() -> None:
    check_same_scope("ann", "bob")
    check_same_scope("@@acme@@ann", "@@acme@@bob")
    for one, other in (
        ("@@acme@@ann", "bob"),
        ("bob", "@@acme@@ann"),
        ("@@acme@@ann", "@@acme@test@bob"),
    ):
        with pytest.raises(InvalidInput, match="is not in the scope of"):
            check_same_scope(one, other)
