"""Laws of storing many memories at once: it is what storing them one by one in this order is."""

from hypothesis import given
from hypothesis import strategies as st

from agents import MemoryBank, TierFull
from agents.simulation.kept_ticks import ticks_of

_items = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob", "carol"]),
        st.sampled_from(["pinned", "critical", "important", "normal"]),
        st.sampled_from([None, "hot", "warm", "cold"]),
        st.integers(1, 12),
    ),
    max_size=24,
)
_caps = st.fixed_dictionaries(
    {
        "max_pinned": st.integers(0, 3),
        "max_critical": st.integers(0, 3),
        "on_tier_full": st.sampled_from(["demote", "demote", "reject"]),
    }
)
_hot = st.fixed_dictionaries({"hot_max_facts": st.integers(0, 5), "hot_max_tokens": st.just(30)})


def _memory(number, item):
    agent, tier, temperature, words = item
    options = {} if temperature is None or tier == "pinned" else {"temperature": temperature}
    return agent, f"memory {number}" + " word" * words, tier, None, options


@given(_items, _items, _caps, _hot)
def test_many_at_once_are_the_same_events_as_one_by_one(before, items, caps, hot) -> None:
    outcomes = []
    for together in (True, False):
        settings = {"memory": caps, "temperature": hot}
        with MemoryBank.ephemeral(settings, preset="vector", seed=3) as bank:
            for number, item in enumerate(before):  # some tiers are full, and some are hot
                try:
                    bank.add_many([_memory(number, item)])
                except TierFull:
                    continue
            bank.advance(2)
            new = [_memory(100 + number, item) for number, item in enumerate(items)]
            refused = None
            try:
                with bank.transaction():
                    if together:
                        added = bank.add_many(new)
                    else:
                        added = [bank.add_many([each])[0] for each in new]
            except TierFull as error:
                added, refused = [], str(error)
            agents = {name: list(map(tuple, bank.agent(name).all())) for name in bank.agents()}
            outcomes.append(
                (refused, list(map(tuple, added)), agents, bank.state_hash(),
                 ticks_of(bank).hash())
            )  # fmt: skip
    assert outcomes[0] == outcomes[1]


@given(
    st.lists(st.sampled_from(["pinned", "critical", "normal"]), min_size=2, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_a_pin_past_its_end_goes_between_two_of_many(tiers, merges, is_later) -> None:
    hashes = []
    for together in (True, False):
        memory = {"max_pinned": 2, "max_critical": 2, "merge_duplicates": merges}
        with MemoryBank.ephemeral({"memory": memory}, preset="vector", seed=3) as bank:
            alice = bank.agent("alice")
            alice.add("the ford is deep", tier="critical")
            alice.pin(alice.add("the mill is shut", ttl=2).id)
            if is_later:
                alice.add("the well is dry", tier="pinned")
            bank.advance(5)
            new = [("alice", f"memory {number}", tier) for number, tier in enumerate(tiers)]
            for part in [new] if together else [[one] for one in new]:
                bank.add_many(part)
            hashes.append(bank.state_hash())
    assert hashes[0] == hashes[1]
