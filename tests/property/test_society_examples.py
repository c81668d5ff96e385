"""Agents that tell, retract and share boards beside the model, in drawn but fixed orders."""

import random
from typing import Any

import pytest
from bank_under_test import BankUnderTest, Stop
from hypothesis.stateful import rule
from machine_strategies import AGENTS, Switches
from model.memories import Rules

from agents import Tier
from examples import number_by_profile

_SMALL = Rules(hot_tokens=30, hot_facts=4, most_cold=3, grace=3, decays=True, initial="hot")
_TIERS = [(tier, tier) for tier in Tier]
_TEXTS = ["hello", "Hello", "the bridge is closed", 0, 0, 1]
_OF_ONE = ("archive", "delete", "restore", "pin", "forget", "promote")


class Society(BankUnderTest):
    @rule()
    def what_the_test_says(self) -> None:
        """Hypothesis wants a rule."""


def an_operation(rng: random.Random) -> tuple[Any, ...]:
    """What agents do with each other, and now and then something else."""
    agent, other, pick = rng.choice(AGENTS), rng.choice(AGENTS), rng.randrange(9)
    group, text, tier = rng.choice(["guild", "alice"]), rng.choice(_TEXTS), rng.choice(_TIERS)
    options = rng.choice([{}, {}, {"ttl": 2}, {"key": "place"}, {"temperature": "cold"}])
    own = (
        tier
        if tier[0] is not Tier.PINNED or not options.keys() & {"ttl", "temperature"}
        else _TIERS[3]
    )
    return rng.choice(
        [
            ("add", (agent, text, own, None, options)),
            ("add", (agent, text, own, None, options)),
            ("tell", agent, pick, other),
            ("tell", agent, pick, other),
            ("tell", agent, pick, other),
            ("tell_and_retract", agent, pick, other, rng.choice([None, None, text])),
            ("tell_and_retract", agent, pick, other, rng.choice([None, None, text])),
            ("join", agent, group),
            ("join", agent, group),
            ("post", agent, group, text, rng.choice(_TIERS[1:])),
            ("post", agent, group, text, rng.choice(_TIERS[2:])),
            ("post", agent, group, text, rng.choice(_TIERS[2:])),
            ("leave", agent, "alice" if rng.random() < 0.7 else group),
            ("search_groups", agent, rng.choice(["hello", "bridge", " "]), rng.choice([None, 2, 9]),
             rng.choice([None, None, 12])),
            ("search_groups", agent, rng.choice(["hello", "bridge"]), 9, None),
            ("update", agent, pick, text, None),
            ("of_memory", rng.choice(_OF_ONE), agent, pick),
            ("pass_time", rng.randrange(1, 3)),
            ("compact", None),
        ]
    )  # fmt: skip


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(number_by_profile(3, 6, 30)))
def test_what_agents_do_with_each_other_is_what_the_model_says(seed: int) -> None:
    rng, machine = random.Random(seed), Society()
    rules = [Rules(), _SMALL, Rules(merges=True, decays=True, grace=1)][seed % 3]
    switches = Switches(rules, (4, 6), 65536, True, seed, "manual", searches=False, wall=False)
    try:
        machine.begin(switches)
        machine.perform_all([("join", agent, "guild") for agent in AGENTS])
        for _ in range(25):
            done = [an_operation(rng) for _ in range(rng.randrange(1, 5))]
            if rng.random() < 0.2:
                with machine.undone(), machine.transaction():
                    machine.perform_all(done)
                    raise Stop
            else:
                machine.perform_all(done)
            machine.check_views()
            machine.check_counts()
            machine.commit_to_twin()
            assert machine.bank.state_hash() == machine.twin.state_hash()
        before = machine.bank.state_hash()
        machine.continue_with(machine.copy_as_if_killed())
        machine.check_state()
        assert machine.bank.state_hash() == before
    finally:
        machine.teardown()
