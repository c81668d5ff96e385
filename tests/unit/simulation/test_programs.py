"""Programs of the user as runs: made again, they are resumed, replayed, branched and changed."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import programs
from agents.config.load import load_settings
from agents.errors import ConfigError, RunError, SimulationError, TierMemError
from agents.simulation.effects import effect
from agents.simulation.effects.interventions import branch_with
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.branch import branch
from agents.simulation.runs.found_effects import AS_IT_WAS
from agents.simulation.runs.record import RunRecord
from agents.simulation.runs.replay import Replay
from agents.simulation.runs.run import Run
from agents.simulation.runs.simulate import experiment
from agents.simulation.runs.why import decision
from agents.testing.scenario_laws import check_world
from programs import Kept, Street

PLACE = Path(programs.__file__).parent
NAMES = ("market", "Street", "Kept")
TICKS = 8


def scenario(name: str, ticks: int = TICKS, **more: Any) -> Any:
    simulation = {"model": f"programs:{name}", "ticks": ticks, **more.pop("simulation", {})}
    return load_settings(
        {"seed": 7, "storage": {"sync": "manual"}, "simulation": simulation, **more}
    )


def ran(folder: Path, name: str, until: int = TICKS, **more: Any) -> Path:
    with Run.create(folder, scenario(name, **more), scenario=PLACE) as run:
        for _ in run.advance(until):
            pass
    return folder


def went_on(folder: Path, until: int = TICKS) -> Path:
    with Run.open(folder) as run:
        for _ in run.advance(until):
            pass
    return folder


def records(folder: Path, after: int = -1) -> list[Any]:
    with RunRecord.read(folder) as run:
        return list(run.records(after))


def journal_hash(folder: Path) -> str | None:
    with RunRecord.read(folder) as run:
        return run.hash()


def replayed(folder: Path, start: int | None = None) -> list[str]:
    """What differs in a replay."""
    replay = Replay(folder, start)
    try:
        return [str(each) for each in replay.ticks() if each]
    finally:
        replay.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Whole runs, which no test changes; each is made once."""
    place, made = tmp_path_factory.mktemp("programs"), dict[str, Path]()

    def get(name: str) -> Path:
        if name not in made:
            made[name] = ran(place / name, name)
        return made[name]

    return get


Runs = Callable[[str], Path]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_stopped_goes_on_as_if_it_had_not(name: str, runs: Runs, tmp_path: Path) -> None:
    stopped = ran(tmp_path / "run", name, until=3)
    for until in (4, TICKS):
        went_on(stopped, until)
    assert journal_hash(stopped) == journal_hash(runs(name))
    assert replayed(stopped) == []
    assert replayed(stopped, 5) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_branch_without_a_change_is_the_run_itself(name: str, runs: Runs, tmp_path: Path) -> None:
    branch(runs(name), 3, tmp_path / "same")
    assert records(went_on(tmp_path / "same")) == records(runs(name))


@pytest.mark.parametrize("name", NAMES)
def test_branches_of_branches_are_repeated_with_their_settings_and_edits(
    name: str, runs: Runs, tmp_path: Path
) -> None:
    edit = [{"agent": "ann", "do": "forget", "matching": "."}]
    new = [
        {"agent": "bob", "do": "add", "content": "I was robbed, I am cheated.", "tier": "pinned"}
    ]
    branch(runs(name), 2, tmp_path / "1", assignments=["memory.max_critical=1"], edits=new)
    branch(went_on(tmp_path / "1"), 4, tmp_path / "2", assignments=["memory.default_limit=1"])
    branch(went_on(tmp_path / "2"), 5, tmp_path / "3", edits=edit)
    branch(went_on(tmp_path / "3"), 7, tmp_path / "4")
    last = went_on(tmp_path / "4")
    assert records(last) == records(tmp_path / "3") != records(runs(name))
    for folder in ("1", "2", "3", "4"):
        assert replayed(tmp_path / folder) == [], folder


def test_a_program_that_has_states_is_not_stepped_from_its_beginning(
    runs: Runs, tmp_path: Path
) -> None:
    branch(runs("Kept"), 6, tmp_path / "branch")
    with Run.open(tmp_path / "branch") as run:
        kept: Any = run._loop
        program = kept._program
        before = type(program).steps
        list(run.advance(TICKS))
        assert type(program).steps == before + 2
        assert before == 0  # of its own copy of the module
    # the same bytes as of a program without states, but for the states themselves
    assert records(tmp_path / "branch") == records(runs("Street"))
    assert not hasattr(Street, "get_state")
    assert hasattr(Kept, "get_state")


def test_who_comes_late_or_was_written_of_before_can_be_named_later(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Late")
    branch(folder, 5, tmp_path / "branch")
    assert records(went_on(tmp_path / "branch")) == records(folder)
    with RunRecord.read(folder) as run:
        assert run.agents == ["ann", "bob", "cat", "dan"]


def test_a_branch_of_a_branch_before_it_is_one_of_its_parent(runs: Runs, tmp_path: Path) -> None:
    branch(runs("Street"), 4, tmp_path / "branch")
    with pytest.raises(RunError, match=r"branched from .*Street at tick 4; .*branch that one"):
        branch(went_on(tmp_path / "branch"), 3, tmp_path / "other")


def test_two_things_of_one_name_are_two(tmp_path: Path) -> None:
    def made(by: int) -> Callable[..., Any]:
        def adding(seed: int) -> Any:
            total = 0
            while True:
                yield {"total": total}
                total += by

        return adding

    def totals(run: Any) -> list[int]:
        return [record["metrics"]["total"] for record, _ in records(run.folder)]

    first, second = experiment(made(1), steps=3), experiment(made(5), steps=3)
    assert totals(first.branch(at=0).run()) == totals(first) == [0, 1, 2, 3]
    assert totals(second) == [0, 5, 10, 15]
    changes = [first.branch(at=1).call(lambda _, to=to: tried.append(to)) for to in "ab"]
    tried: list[str] = []
    for change in changes:
        change.run()
    assert tried == ["a", "b"]
    with pytest.raises(ConfigError, match="it is no class and no function"):
        experiment(42, steps=1)  # type: ignore[arg-type]


def test_a_generator_of_numpys_older_kind_is_drawn_from_anew(tmp_path: Path) -> None:
    found = effect(
        ran(tmp_path / "run", "Lucky"), at=1, pin="ann:Nothing", futures=3, workers=1
    )  # fmt: skip
    assert len({row[AS_IT_WAS] for row in found.pairs}) == 3
    assert [row["difference"] for row in found.pairs] == [0, 0, 0]


def test_pairs_of_a_program_without_metrics_are_counted(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Unmeasured", until=3, ticks=3)
    found = effect(folder, at=1, pin="ann:Nothing", futures=2, workers=1)
    assert found.pairs == []
    assert not any("pairs have the change" in note for note in found.notes)


def test_a_state_that_leaves_something_out_is_found(runs: Runs, tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Forgetful")
    with pytest.raises(RunError, match=r"nothing was changed is a different run .*metric lost"):
        effect(folder, at=4, pin="ann:robbed")


@pytest.mark.parametrize(
    ("name", "change", "is_zero"),
    [
        ("market", {"never_heard": "cat:The cheat cheats."}, False),
        ("market", {"at": 2, "block": "bob→cat"}, False),
        ("market", {"at": 5, "forget": "cat:The cheat cheats."}, False),
        ("market", {"at": 5, "forget": "cat:Trade with"}, True),
        ("Street", {"never_heard": "cat:Ann was robbed."}, False),
        ("Street", {"at": 1, "block": "ann→cat"}, False),
        ("Street", {"at": 5, "forget": "cat:Ann was robbed."}, False),
        ("Street", {"at": 5, "pin": "cat:Ann was robbed."}, True),
        ("Street", {"at": 0, "call": "programs:rob_all"}, False),
        ("Street", {"at": 2, "set": "memory.max_critical=1"}, True),
    ],
)
def test_the_effect_of_a_change_is_found_and_of_none_is_zero(
    name: str, change: Mapping[str, Any], is_zero: bool, runs: Runs
) -> None:
    found = effect(runs(name), **change)
    metric = "coins" if name == "market" else "lost"
    (row,) = [row for row in found.pairs if row["metric"] == metric]
    assert (row["difference"] == 0) is is_zero


@pytest.mark.parametrize("name", ["market", "Street"])
def test_futures_are_other_chances_and_the_same_in_both_arms(name: str, runs: Runs) -> None:
    nothing = {"market": "cat:Trade with", "Street": "cat:I live"}[name]
    found = effect(runs(name), at=0, forget=nothing, futures=5, workers=1)
    differences = [row["difference"] for row in found.pairs]
    assert differences == [0] * 5
    assert len({row[AS_IT_WAS] for row in found.pairs}) > 1


def test_other_seeds_are_other_runs_with_the_same_change(runs: Runs) -> None:
    found = effect(runs("market"), never_heard="cat:The cheat cheats.", seeds=4, workers=1)
    assert [row["pair"] for row in found.pairs] == [
        "the run itself", "seed 8", "seed 9", "seed 10",
    ]  # fmt: skip
    assert all(row["difference"] < 0 for row in found.pairs)


def test_a_function_that_changed_the_program_changes_it_again_in_a_replay(
    runs: Runs, tmp_path: Path
) -> None:
    branch_with(runs("Street"), 1, tmp_path / "1", call=["programs:rob_all"])
    went_on(tmp_path / "1", 4)
    assert replayed(tmp_path / "1") == []
    went_on(tmp_path / "1")
    branch(tmp_path / "1", 6, tmp_path / "2")
    assert records(went_on(tmp_path / "2")) == records(tmp_path / "1") != records(runs("Street"))


def test_a_memory_can_be_reworded(runs: Runs, tmp_path: Path) -> None:
    edit = {"agent": "cat", "do": "reword", "matching": "Ann was robbed.", "content": "Ann sang."}
    branch(runs("Street"), 4, tmp_path / "run", edits=[edit])
    went_on(tmp_path / "run")
    assert replayed(tmp_path / "run") == []
    with Run.open(tmp_path / "run") as run:
        texts = {memory.content for memory in run.bank.agent("cat").all()}
    assert "Ann sang." in texts
    assert "Ann was robbed." not in texts


def test_what_is_not_repeatable_is_named_by_step_agent_and_memory(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "ByTheClock")
    (found,) = replayed(folder)
    assert found.startswith("tick 3, ann, ")
    assert "It is " in found
    branch(folder, 5, tmp_path / "branch")
    with pytest.raises(RunError, match=r"ByTheClock made again is not what it was: tick 3, ann, "):
        Run.open(tmp_path / "branch")
    assert journal_hash(folder) == journal_hash(folder)
    with pytest.raises(RunError, match="tick 3, ann"):
        effect(folder, at=4, forget="ann:I live")


def test_why_tells_what_an_agent_of_a_program_asked_was_given_and_did(runs: Runs) -> None:
    found = decision(runs("market"), "cat", 5)
    assert found.query == "who cheated me?"
    assert [each.text for each in found.given][:2] == [
        "Trade with whoever did not cheat you.", "The cheat cheats.",
    ]  # fmt: skip
    assert [(deed.name, deed.result) for deed in found.did] == [("refuse", "done")]


def test_a_step_that_fails_keeps_the_steps_before(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", scenario("broken"), scenario=PLACE) as run:
        with pytest.raises(SimulationError, match=r"broken failed in step 2: ValueError: the bri"):
            list(run.advance(TICKS))
        assert run.tick == 1
        assert run.bank.agents() == []
        assert "ValueError" in (run.folder / "error.txt").read_text()
    assert replayed(tmp_path / "run") == []


def made(place: Path, settings: Any, until: int = 3) -> None:
    with Run.create(place, settings, scenario=PLACE) as run:
        list(run.advance(until))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (partial(scenario, "nothing"), "programs has no function or class 'nothing'"),
        (partial(scenario, "without_seed"), "without_seed takes no seed"),
        (partial(scenario, "without_steps"), r"which has no step\(\)"),
        (partial(scenario, "short"), "short ended before its step 2"),
        (partial(scenario, "chatty"), "chatty yielded 'done' after step 1"),
        (partial(scenario, "hasty"), "step 1 of hasty made 2 ticks"),
        (partial(scenario, "unsaid"), "the metric x can't be kept"),
        (partial(scenario, "Measured"), r"Measured.metrics\(\) gave None"),
        (partial(scenario, "Unsaid"), r"Unsaid.get_state\(\) gave what is not JSON"),
        (partial(scenario, "market", simulation={"world_options": {"seed": 1}}), "gets its seed"),
        (partial(scenario, "market", simulation={"world": "market"}), "a world or a program"),
        (partial(scenario, "market", simulation={"agents": 3}), "simulation.agents: a program"),
        (partial(scenario, "market", simulation={"policy": "llm"}), "simulation.policy: a program"),
        (
            partial(scenario, "market", simulation={"world_options": {"x": 1}}),
            "world_options: .*'x'",
        ),
        (partial(scenario, "market", simulation={"engine": "processes"}), "runs in one process"),
    ],
)
def test_what_is_no_program_is_refused(
    settings: Callable[[], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TierMemError, match=message):
        made(tmp_path / "run", settings())


def test_a_step_that_moves_the_clock_is_undone(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run", scenario("hasty"), scenario=PLACE) as run:
        with pytest.raises(SimulationError, match="step 1 of hasty made 2 ticks"):
            list(run.advance(3))
        assert run.tick == 0
    assert [record["tick"] for record, _ in records(tmp_path / "run")] == [0]


def test_what_can_not_be_changed_is_refused(runs: Runs, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="world_options can't be changed in a branch"):
        branch(runs("market"), 3, tmp_path / "b", assignments=["simulation.world_options.luck=1"])
    with pytest.raises(ConfigError, match=r"simulation.model can't be changed in a branch"):
        branch(runs("market"), 3, tmp_path / "b", assignments=["simulation.model=programs:Street"])
    with pytest.raises(TierMemError, match="programs has no function or class 'none'"):
        branch_with(runs("Street"), 3, tmp_path / "b", call=["programs:none"])
    assert not (tmp_path / "b").exists()
    branch_with(runs("Street"), 3, tmp_path / "c", call=["programs:fail"])
    with Run.open(tmp_path / "c") as run, pytest.raises(SimulationError, match="changed by fail"):
        list(run.advance(TICKS))
    still = ran(tmp_path / "still", "Still", until=3, ticks=3)
    found = effect(still, at=1, pin="ann:Nothing", futures=3, workers=1)
    assert [each.partition(";")[0] for each in found.missing] == [
        f"future {number}: Still has no chance that could fall out otherwise: no generator "
        "(random.Random or NumPy's) is an attribute of it"
        for number in (1, 2)
    ]


def test_a_world_takes_no_call(tmp_path: Path) -> None:
    settings = load_settings({"simulation": {"world": "market", "ticks": 2}})
    with Run.create(tmp_path / "run", settings) as run:
        list(run.advance(2))
    with pytest.raises(RunError, match="changes a program, and a world makes the ticks"):
        branch_with(tmp_path / "run", 1, tmp_path / "b", call=["programs:rob_all"])


def test_a_program_is_checked_as_a_world_is(tmp_path: Path) -> None:
    found = check_world(scenario("ByTheClock", ticks=4), PLACE)
    assert any("time.time_ns() reads the clock" in each for each in found.problems)
    assert any("tick 3: memory of ann" in each for each in found.problems)
    assert check_world(scenario("Street", ticks=4), PLACE).problems == []


def test_a_branch_by_somebody_else_needs_trust_for_its_function(runs: Runs, tmp_path: Path) -> None:
    branch_with(runs("Street"), 1, tmp_path / "1", call=["programs:rob_all"])
    (tmp_path / "1" / "run.seal").unlink()
    with pytest.raises(TierMemError, match=r"run the code of 'programs:Street'.*programs:rob_all"):
        Run.open(tmp_path / "1")


def test_metrics_and_summary_are_those_of_the_program(runs: Runs) -> None:
    with Run.open(runs("Street")) as run:
        assert [*run.summary()["metrics"]] == ["lost"]
        assert run.summary()["world"] == "programs:Street"
        last = ticks_of(run.bank).last_tick()
        assert last is not None
        assert last.state()["world"]["agents"] == ["ann", "bob", "cat"]
