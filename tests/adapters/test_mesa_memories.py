"""Agents of a Mesa model remember, recall, come and go."""

import copy
import gc
import pickle
import sys
import threading
import weakref
from pathlib import Path

import pytest

pytest.importorskip("mesa")

import mesa
from mesa_models import QUICK, Town, Walker, walked

from tiermem import (
    BankClosed,
    BankError,
    InvalidContent,
    InvalidInput,
    MemoryBank,
    MemoryNotFound,
    RunError,
    SimulationError,
)
from tiermem.mesa import Memories


def first(town: Town) -> Walker:
    return next(iter(town.agents))


def texts(agent: Walker) -> list[str]:
    return [memory.content for memory in agent.memory.kept.all()]


def test_what_is_remembered_in_a_step_is_found_from_the_next_step_on() -> None:
    town = Town(n=1)
    memory = first(town).memory
    with town.memories.step():
        memory.add("The bridge is closed.")
        assert not [hit for hit in memory.search("bridge") if "bridge" in hit.memory.content]
    with town.memories.step():
        assert memory.search("bridge closed")[1].memory.content == "The bridge is closed."


def test_first_memories_are_those_of_the_beginning() -> None:
    town = walked(1, n=2)
    kept = first(town).memory.kept.all()
    assert (kept[0].content, kept[0].created_tick) == ("I live here.", 0)
    assert {each.created_tick for each in kept} == {0, 1}


def test_a_step_is_one_commit_and_one_search_for_all_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town = walked(1, n=5)
    parts = town.memories.bank.engine
    before, find, searches = parts.journal.head, parts.found, []
    monkeypatch.setattr(parts, "found", lambda asked: searches.append(asked) or find(asked))
    town.step()
    assert parts.journal.head == before + 1
    assert [len(search.agents) for search in searches] == [5]
    assert town.memories.tick == 2


def test_agents_are_given_pinned_memories_and_what_matches() -> None:
    town = walked(4, n=3)
    memory = first(town).memory
    assert memory.recalled[0].memory.content == "I live here."
    assert "I met" in memory.text
    assert memory.text.startswith("- [pinned] I live here.\n")


def test_a_function_asks_for_each_agent_and_none_asks_nothing() -> None:
    town = walked(2, n=3)
    one, two, three = town.agents
    with town.memories.step():
        town.memories.recall(lambda agent: "Where do I live?" if agent is one else None)
        assert one.memory.recalled
        assert not two.memory.recalled
        town.memories.recall("Whom did I meet?", [two])
        assert two.memory.recalled
        assert not three.memory.recalled
        with pytest.raises(InvalidInput, match="recalls twice"):
            town.memories.recall("Again?", [two])


def test_an_error_undoes_the_step_and_ends_the_run() -> None:
    town = walked(2, n=3)
    before = town.memories.bank.state_hash()

    def fails() -> None:
        with town.memories.step():
            town.memories.recall("Whom did I meet?")
            first(town).memory.add("The sky falls.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert town.memories.bank.state_hash() == before
    assert town.memories.tick == 2
    with pytest.raises(SimulationError, match="make the model again"):
        town.step()


def test_a_wrong_memory_is_refused_where_it_is_added() -> None:
    town = walked(1)
    with town.memories.step():
        with pytest.raises(InvalidContent):
            first(town).memory.add(" ")
        with pytest.raises(InvalidInput):
            first(town).memory.add("fine", colour="red")
        first(town).memory.add("The well is dry.", kind="decision", value={"depth": [3, 4]})
    kept = first(town).memory.kept.all()[-1]
    assert (kept.content, kept.kind, kept.value) == (
        "The well is dry.", "decision", {"depth": [3, 4]},
    )  # fmt: skip


def test_a_step_that_is_no_block_is_refused() -> None:
    town = Town()
    town.memories.step()
    with pytest.raises(SimulationError, match="a step is a block"):
        town.memories.step()


def test_a_step_inside_a_step_is_refused() -> None:
    town = Town()
    with (
        pytest.raises(SimulationError, match="under way"),
        town.memories.step(),
        town.memories.step(),
    ):
        pass


def test_recalls_and_changes_belong_into_a_step() -> None:
    town = walked(1)
    memory = first(town).memory
    with pytest.raises(SimulationError, match="inside a step"):
        town.memories.recall("Whom did I meet?")
    with pytest.raises(SimulationError, match="inside a step"):
        memory.pin(memory.kept.all()[-1].id)


def test_memories_are_pinned_moved_and_deleted_inside_a_step() -> None:
    town = walked(2, n=2)
    memory = first(town).memory
    home, *_, seen, met = memory.kept.all()
    with town.memories.step():
        memory.pin(met.id)
        memory.unpin(home.id, to="low")
        memory.delete(seen.id)
        with pytest.raises(MemoryNotFound):
            memory.pin(town.agents[1].memory.kept.all()[0].id)
    assert memory.kept.get(met.id).tier == 0
    assert memory.kept.get(home.id).tier == 4
    with pytest.raises(MemoryNotFound):
        memory.kept.get(seen.id)


def test_the_same_seed_gives_the_same_hash() -> None:
    hashes = [walked(seed=seed).memories.record["state_hash"] for seed in (5, 5, 6)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_seed_is_the_models() -> None:
    one, same, other = (Town(seed=seed).memories.seed for seed in (5, 5, 6))
    assert one == same != other
    assert Memories(mesa.Model(rng=8), seed=99, **QUICK).seed == 99


def test_agents_come_and_go() -> None:
    town = walked(2, n=2, births=1)
    assert [agent.memory.agent_id for agent in town.agents] == [
        "Walker_1", "Walker_2", "Walker_3", "Walker_4",
    ]  # fmt: skip
    leaver = first(town)
    leaver.remove()
    town.step()
    assert len(town.agents) == 4
    assert town.memories.record["agents"] == 5  # with the one that left
    assert leaver.memory.kept.count() == len(texts(leaver))  # what it knew stays in the run
    assert town.memories.bank.agents()[0] == "Walker_1"
    assert town.memories.close()["agents"] == 5


def test_an_agent_that_left_before_the_first_step_is_no_agent_of_the_run() -> None:
    town = Town(n=3)
    Walker(town).remove()
    town.step()
    assert town.memories.record["agents"] == 3


def test_agents_have_names_of_their_own() -> None:
    town = mesa.Model(rng=1)
    memories = Memories(town, name=lambda agent: agent.called, **QUICK)
    anna, bob = Walker(town), Walker(town)
    anna.called, bob.called = "Anna Ö", "Anna Ö"
    assert anna.memory.agent_id == "Anna@20@C3@96"
    with pytest.raises(InvalidInput, match="already"):
        _ = bob.memory.agent_id
    bob.called = "bob"
    with memories.step():
        bob.memory.add("I am Bob.")
    assert memories.bank.agents() == ["bob"]


def test_agents_that_are_there_already_get_a_memory() -> None:
    town = mesa.Model(rng=1)
    early = Walker(town)
    memories = Memories(town, **QUICK)
    assert memories.of(early) is early.memory


def test_an_agent_that_is_registered_again_keeps_its_memory() -> None:
    town = mesa.Model(rng=1)
    Memories(town, **QUICK)
    walker = Walker(town)
    own = walker.memory
    town.register_agent(walker)
    walker.remove()
    town.register_agent(walker)
    assert walker.memory is own
    other = mesa.Model(rng=1)
    Memories(other, **QUICK)
    with pytest.raises(InvalidInput, match="attribute memory"):
        other.register_agent(walker)


@pytest.mark.parametrize("has_acted", [True, False])
def test_an_agent_that_is_removed_is_gone_at_once(has_acted: bool) -> None:
    town = mesa.Model(rng=1)
    memories = Memories(town, **QUICK)
    walker = Walker(town)
    seen, own = weakref.ref(walker), walker.memory
    if has_acted:
        with memories.step():
            own.add("I am here.")
    gc.disable()  # as Mesa's shuffle_do, which steps all agents that are still alive
    try:
        walker.remove()
        del walker
        assert seen() is None
    finally:
        gc.enable()
    if has_acted:
        assert own.agent_id == "Walker_1"
    else:
        with pytest.raises(InvalidInput, match="agent of this memory is gone"):
            _ = own.agent_id
    with memories.step():
        pass


def test_an_attribute_of_the_name_is_not_overwritten() -> None:
    class Own(mesa.Agent):
        memory = ()

    town = mesa.Model(rng=1)
    memories = Memories(town, **QUICK)
    with pytest.raises(InvalidInput, match="attribute memory"):
        Own(town)
    with pytest.raises(InvalidInput, match="no memory here"):
        memories.of(next(iter(mesa.Model(rng=2).agents), object()))


def test_a_model_has_one_memories() -> None:
    town = Town()
    with pytest.raises(InvalidInput, match="one Memories"):
        Memories(town)


def test_what_is_no_model_is_refused() -> None:
    class Early(mesa.Model):
        def __init__(self) -> None:
            self.memories = Memories(self)
            super().__init__()

    with pytest.raises(InvalidInput, match="super"):
        Early()
    with pytest.raises(InvalidInput, match="Mesa model"):
        Memories(object())


def test_without_mesa_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    town = mesa.Model(rng=1)
    monkeypatch.setitem(sys.modules, "mesa", None)
    with pytest.raises(ImportError, match=r"pip install 'tiermem\[mesa\]'"):
        Memories(town)


@pytest.mark.parametrize("how", [copy.deepcopy, copy.copy, pickle.dumps])
def test_copies_of_a_model_get_a_clear_answer(how, tmp_path: Path) -> None:
    town = walked(1, folder=tmp_path / "run")
    with pytest.raises(BankError, match="make the model again with the same seed"):
        how(town.memories)
    for own in (town, first(town).memory):
        with pytest.raises(BankError, match="can't be copied or pickled"):
            how(own)
    town.step()
    assert town.memories.tick == 2


def test_a_data_collector_reports_memories() -> None:
    town = walked(3, n=4)
    table = town.datacollector.get_model_vars_dataframe()
    assert list(table["memories"]) == [4 + 8, 4 + 16, 4 + 24]
    assert list(table["pinned"]) == [4, 4, 4]
    assert list(table["state_hash"])[-1] == town.memories.record["state_hash"]
    kept = town.datacollector.get_agent_vars_dataframe()["kept"]
    assert list(kept)[-4:] == [7, 7, 7, 7]


def test_reporters_work_before_the_first_step() -> None:
    town = Town()
    assert {name: own(town) for name, own in town.memories.reporters().items()} == {
        "memories": 0, "pinned": 0, "recalled": 0, "hit_rate": 0, "state_hash": "",
    }  # fmt: skip


def test_metrics_are_functions_or_attributes_and_must_be_numbers() -> None:
    town = Town(metrics={"agents": lambda model: len(model.agents), "met": "greetings"})
    town.step()
    assert town.memories.record["metrics"] == {"agents": 4, "met": town.greetings}
    with pytest.raises(SimulationError, match="metric mood"):
        Town(metrics={"mood": lambda model: "good"}).step()
    with pytest.raises(InvalidInput, match="'z' is the attribute 'nosuch', which the model does"):
        Town(metrics={"z": "nosuch"}).step()


def test_settings_are_those_of_a_bank(tmp_path: Path) -> None:
    config = {"memory": {"max_pinned": 1}}
    town = Town(n=1, config=config, preset="vector", memory={"default_limit": 2})
    memory = first(town).memory
    memory.add("Never go to the harbour.", tier="pinned")
    town.step()
    assert [each.content for each in memory.kept.get_pinned_memories()] == [
        "Never go to the harbour."
    ]
    assert town.memories.bank.settings.retrieval.mode == "vector"


def test_a_folder_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    town = walked(2, folder=tmp_path / "run")
    with pytest.raises(RunError, match="replace=True"):
        Town(folder=tmp_path / "run")
    town.step()
    again = Town(folder=tmp_path / "run", replace=True)  # as SolaraViz does with reset
    again.step()
    assert again.memories.tick == 1
    for _ in range(2):
        with pytest.raises(BankClosed), town.memories.step():
            pass
    again.memories.close(report=False)


def test_a_model_that_is_gone_leaves_its_bank(tmp_path: Path) -> None:
    town = walked(2, folder=tmp_path / "runs/town")
    gone, end = weakref.ref(town), town.memories.record["state_hash"]
    getattr(mesa.Agent, "_ids", {}).pop(town, None)  # where Mesa before 3.5 keeps every model
    del town
    gc.collect()
    assert gone() is None
    with MemoryBank.open(tmp_path / "runs/town/bank") as bank:
        assert bank.state_hash() == end


def test_steps_may_come_from_another_thread() -> None:
    town = walked(1)
    thread = threading.Thread(target=town.step)
    thread.start()
    thread.join()
    assert town.memories.tick == 2
    assert first(town).memory.search("Whom did I meet?")


@pytest.mark.parametrize("name", ["run", None])
def test_a_run_is_not_closed_inside_a_step(tmp_path: Path, name: str | None) -> None:
    town = walked(1, folder=name and tmp_path / name)
    with town.memories.step(), pytest.raises(BankError, match="inside a transaction"):
        town.memories.close()
    summary = town.memories.close(report=False)
    assert summary["ticks"] == 2
    assert town.memories.close() == summary


def test_a_folder_that_is_no_run_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("42")
    for place in (tmp_path, tmp_path / "thesis.txt", Path("/")):
        with pytest.raises(RunError, match=r"run.*; name another folder$"):
            Town(folder=place, replace=True)
    assert (tmp_path / "thesis.txt").read_text() == "42"


def test_a_search_gives_what_is_nearest_and_not_what_is_oldest() -> None:
    class Asker(mesa.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(rng=7)
            self.memories = Memories(self)
            self.agent = mesa.Agent(self)

    model = Asker()
    for text in ("small talk", "the weather", "The harbour opens at six"):
        model.agent.memory.add(text)
    with model.memories.step():
        found = model.agent.memory.search("When does the harbour open?", 1)
    assert [hit.memory.content for hit in found] == ["The harbour opens at six"]
    model.memories.close(report=False)
