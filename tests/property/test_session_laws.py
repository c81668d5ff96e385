"""Sessions of one agent, each with limits of its own, have nothing to do with each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents import AgentMemory, MemoryBank

WORDS = ("alpha", "beta", "gamma", "delta")
ONE, OTHER = "one", "other"
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
picks = st.integers(0, 12)
steps = st.lists(
    st.tuples(
        st.sampled_from([ONE, OTHER]),
        st.one_of(
            st.tuples(st.just("add"), texts, st.sampled_from(["normal", "low", "important"])),
            st.tuples(st.just("add"), texts, st.just("normal")),
            st.tuples(st.just("spill"), st.none() | st.integers(0, 3)),
            st.tuples(st.just("recall"), texts),
            st.tuples(st.just("search"), texts),
            st.tuples(st.just("context"), st.none() | texts),
            st.tuples(st.sampled_from(["cold", "archived", "active", "deleted"]), picks),
            st.tuples(st.sampled_from(["end", "clear"]), st.none()),
        ),
    ),
    max_size=40,
)


def do(alice: AgentMemory, name: str, what: str, given_: Any, *more: Any) -> Any:
    """One step in a session, by the calls of the session alone; what it gave."""
    session = alice.session(name)
    if what == "add":
        tags = ["blocker"] if "delta" in given_ else []
        return session.add(given_, *more, tags=tags).content
    if what == "spill":
        return len(session.spill(given_).moved)
    if what == "recall":
        found = session.recall(given_, 3)
        return [m.content for m in found.items], found.scores, len(found.promoted)
    if what == "search":
        return [(hit.memory.content, hit.score) for hit in session.search(given_, 3)]
    if what == "context":
        return session.get_relevant_memories(given_)
    if what == "end":
        return session.end()
    if what == "clear":
        return len(session.clear().moved)
    own = session.all(retention="active" if what != "active" else "archived")
    if own:
        change = {"temperature": what} if what == "cold" else {"retention": what}
        alice.update(own[given_ % len(own)].id, **change)
    return None


def look(alice: AgentMemory, name: str) -> Any:
    """All that a session is, but for the numbers of its memories."""
    session = alice.session(name)
    kept = [
        (m.content, m.tier, m.temperature, m.access_count, m.relevance, m.retention)
        for retention in ("active", "archived", "deleted")
        for m in session.all(retention=retention)
    ]
    status = session.status()
    return kept, status.temperatures, status.tiers, status.retention, status.utilization


def play(steps: list[Any], only: str | None) -> tuple[list[Any], Any]:
    """What the steps of the session ONE gave, and what became of it."""
    limits = {"initial": "hot", "session_max_facts": 3, "session_max_tokens": 30}
    with MemoryBank.ephemeral(
        preset="vector", temperature={**limits, "hot_max_tokens": 10**6, "hot_max_facts": None}
    ) as bank:
        alice = bank.agent("alice")
        gave = [(do(alice, name, *step), name) for name, step in steps if only in (None, name)]
        hot = {name: alice.session(name).status().temperatures["hot"] for name in (ONE, OTHER)}
        assert all(amount.items <= 3 and amount.tokens <= 30 for amount in hot.values())
        together = alice.status().temperatures["hot"]
        assert together == tuple(map(sum, zip(*hot.values(), strict=True)))
        return [each for each, name in gave if name == ONE], look(alice, ONE)


@given(steps)
def test_what_happens_in_a_session_is_the_same_whatever_happens_in_another(
    steps: list[Any],
) -> None:
    assert play(steps, None) == play(steps, ONE)


@given(steps)
def test_a_session_whose_limits_are_its_agents_is_the_agent(steps: list[Any]) -> None:
    """With one session, limits of sessions and limits of agents leave the same bank."""

    def played(limits: dict[str, Any]) -> str:
        options: dict[str, Any] = {"preset": "vector", "temperature": {"initial": "hot", **limits}}
        with MemoryBank.ephemeral(**options) as bank:
            alice = bank.agent("alice")
            for _, step in steps:
                do(alice, ONE, *step)
            return bank.state_hash()

    of_session = {"session_max_facts": 3, "session_max_tokens": 30}
    of_agent = {"hot_max_facts": 3, "hot_max_tokens": 30}
    assert played(of_session) == played(of_agent)
