"""Studies of populations with groups: a board is not an agent, and all tables are as without it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agents import MemoryBank, analysis
from agents.config.load import load_settings
from agents.simulation.analysis.study import Study
from agents.simulation.protocols import Action
from agents.simulation.runs.study import study_run
from agents.simulation.tick.loop import Loop
from worlds import Diary, Mind

LIE, TRUTH = "the bridge is closed", "the bridge is open"
FACTS = {"bridge": {LIE: False, TRUTH: True}}


def with_board(folder: Path, *, has_board: bool) -> MemoryBank:
    """Alice and Bob tell, forget and say what they believe; between it all, they post."""
    opened = MemoryBank.open(folder, storage={"sync": "manual"})
    alice, bob = opened.agent("alice"), opened.agent("bob")
    guild = opened.group("guild", ["alice", "bob"]) if has_board else None

    def post(who: str, text: str) -> None:
        if guild is not None:
            guild.post(who, text)

    post("bob", f"{LIE}, says the baker")
    first = alice.add(f"{LIE}, says the miller")
    for tick in range(1, 5):
        with opened.transaction():
            post("alice", f"{TRUTH}, {tick}")
            kept = bob.add(f"I saw {tick} boats")
            post("bob", f"{TRUTH}, {tick}")
            opened.advance(tick)
            post("bob", f"{LIE}, {tick}")
            alice.add(f"I heard {tick} bells")
            post("alice", f"I heard {tick} bells")
    alice.social.tell("bob", first.id)
    bob.delete(kept.id)
    if guild is not None:
        guild.leave("bob")
    opened.advance(6)
    return opened


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_board_is_no_agent_in_any_table(tmp_path: Path, is_restored: bool) -> None:
    found = []
    for has_board in (False, True):
        with with_board(tmp_path / f"bank-{has_board}", has_board=has_board) as made:
            if is_restored:
                made.checkpoint(tmp_path / f"{has_board}.tmck")
        folder = made.folder
        if is_restored:
            folder = tmp_path / f"restored-{has_board}"
            with MemoryBank.restore(tmp_path / f"{has_board}.tmck", into=folder) as again:
                for number in range(3):
                    if has_board:
                        again.group("guild").post("alice", f"{TRUTH}, again {number}")
                    again.agent("bob").add(f"I saw {number} swans")
        assert folder is not None
        read = analysis.study(folder)
        found.append(Study("bank", read.columns, FACTS, 0, read._journal))
    plain, social = found
    assert social.agents == ["alice", "bob"]
    assert social.memories().to_pylist() == plain.memories().to_pylist()
    assert social.columns.vectors().tolist() == plain.columns.vectors().tolist()
    assert {"truth", "centrality"} <= set(plain.tables())
    for name, table in plain.tables().items():
        assert social.tables()[name].to_pylist() == table.to_pylist(), name


class Guild(Diary):
    """Alice and bob are members."""

    def groups(self) -> Mapping[str, list[str]]:
        return {"guild": ["alice", "bob"]}


def test_a_run_with_a_group_has_the_agents_of_the_run(tmp_path: Path) -> None:
    agents, world = ["alice", "bob", "carol"], Guild()
    world.says = lambda agent: f"{agent} sees {world.count} boats"
    post = Action("post_to_group", {"group": "guild", "content": TRUTH})
    with MemoryBank.open(tmp_path / "bank", storage={"sync": "manual"}) as bank:
        loop = Loop(bank, world, Mind(lambda seen: [post]), agents)
        loop.begin()
        for _ in range(3):
            loop.tick()
        assert len(bank.group("guild").all()) == 6
        held = {memory.id for name in agents for memory in bank.agent(name).all()}
    found = study_run(tmp_path, load_settings(overrides={"simulation": {"agents": agents}}), world)
    assert found.agents == agents
    assert set(found.columns.ids()) == held
    assert len(found.columns.vectors()) == len(held)
    assert found.tells().num_rows == 0
