"""What agents of a simulation do reaches nobody of another project or environment."""

import pytest

from agents import InvalidAction, MemoryBank
from agents.simulation import Action
from agents.simulation.tick.act import heard_by, speech_of, wish

ANN, BOB, OTHER, NOBODYS = "@@acme@@ann", "@@acme@@bob", "@@globex@@bob", "bob"


def test_a_broadcast_is_heard_within_its_scope_and_a_tell_names_nobody_else() -> None:
    agents = [ANN, BOB, OTHER, NOBODYS]
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent(ANN).add("agent_X cheats")
        speech = speech_of(bank, ANN, Action("broadcast", {"memory_id": memory.id}))
        heard = heard_by(speech, ANN, agents, lambda teller, listener: True)
        assert [each.receiver for each in heard] == [BOB]
        for listener in (OTHER, NOBODYS):
            named = {"memory_id": memory.id, "to": listener}
            speech = speech_of(bank, ANN, Action("tell", named))
            with pytest.raises(InvalidAction, match="can't hear you now"):
                heard_by(speech, ANN, agents, lambda teller, listener: True)


def test_an_agent_joins_groups_of_its_scope() -> None:
    with MemoryBank.ephemeral() as bank:
        joined = wish(bank, ANN, Action("join_group", {"group": "@@acme@@guild"}))
        assert joined.change is not None
        for group in ("guild", "@@globex@@guild"):
            refused = wish(bank, ANN, Action("join_group", {"group": group}))
            assert refused.change is None
            assert "is not in the scope of" in refused.refusal
