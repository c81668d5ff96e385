"""``tiermem why``: what decided an agent's actions, and the life of a memory."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from inspected_sites import ask, looked_at
from terminals import on_a_terminal

from agents import MemoryBank
from agents.simulation.runs.run import Run
from openai_server import OpenAIServer
from repeating_worlds import AGENTS, ran

Command = Callable[..., Any]
Write = Callable[..., Path]


def why(tiermem: Command, run: Path, agent: str, tick: int) -> Any:
    return tiermem("why", run, "--agent", agent, "--tick", tick, "--json").json


@pytest.mark.parametrize("tick", [1, 2, 6, 12])
def test_it_tells_what_the_agent_was_given(tiermem: Command, whole: Path, tick: int) -> None:
    told = why(tiermem, whole, "bob", tick)
    with MemoryBank.at(whole / "bank", tick - 1) as bank:
        bank.advance(tick)
        (hits,) = bank.context_many([("bob", told["query"])])
    assert [(row["id"], row["score"], row["boost"]) for row in told["given"]] == [
        (hit.memory.id, hit.score, hit.boost) for hit in hits
    ]
    assert told["note"] == ""
    assert len(told["given"]) + len(told["not_given"]) == 3 * (tick - 1)


def test_it_is_what_show_explains_after_the_tick_before(tiermem: Command, whole: Path) -> None:
    told = why(tiermem, whole, "bob", 7)
    shown = tiermem(
        "show", whole, "-a", "bob", "-t", 6, "--query", told["query"], "--all", "--json"
    ).json
    given = [(row["id"], row["part"]) for row in told["given"]]
    assert [(row["id"], row["why"]) for row in shown if row["rank"]] == given
    rest = [(row["id"], row["reason"]) for row in told["not_given"]]
    assert [(row["id"], row["why"]) for row in shown if not row["rank"]] == rest


def test_it_tells_what_the_agent_saw_and_did_and_what_came_of_it(
    tiermem: Command, whole: Path
) -> None:
    told = why(tiermem, whole, "bob", 5)
    assert told["observed"].startswith("bob sees ")
    assert told["query"] == told["observed"]  # the world names no query
    step, note = told["did"]
    assert (step["name"], step["result"], step["text"]) == ("step", "done", "bob took step 5")
    assert note["name"] == "store_memory"
    assert note["arguments"] == {"tier": "pinned"}  # its text is the memory
    assert note["text"].startswith("note ")
    with MemoryBank.at(whole / "bank", 5) as bank:
        assert bank.agent("bob").get(note["memory_id"]).content == note["text"]


def test_a_refusal_is_told_in_its_tick_and_in_the_next(tiermem: Command, scenario: Write) -> None:
    script = [{"tick": 1, "agent": "bob", "actions": [{"name": "fly"}, {"name": "step"}]}]
    given = scenario(policy="scripted", policy_options={"script": script})
    tiermem("run", given, "--ticks", 2, "--out", "r", "-q")
    fly, step = why(tiermem, Path("r"), "bob", 1)["did"]
    assert (fly["name"], fly["result"]) == ("fly", "refused")
    assert "there is no fly here" in fly["text"]
    assert (step["result"], step["text"]) == ("done", "bob took step 1")
    assert why(tiermem, Path("r"), "bob", 2)["errors"] == [fly["text"]]
    assert why(tiermem, Path("r"), "alice", 1)["did"] == []
    assert "did nothing" in tiermem("why", "r", "-a", "alice", "-t", 1).out


def test_a_person_reads_it_in_lines(tiermem: Command, whole: Path) -> None:
    out = tiermem("why", whole, "-a", "bob", "-t", 6).out
    assert out.startswith("bob in tick 6\n  observed  bob sees ")
    assert "given: 5 memories, in this order" in out
    assert "not given: " in out
    assert "did step (done): bob took step 6" in out
    everything = tiermem("why", whole, "-a", "bob", "-t", 6, "--all").out
    assert len(everything.splitlines()) > len(out.splitlines())


def test_two_runs_are_put_side_by_side(tiermem: Command, whole: Path) -> None:
    tiermem(
        "branch", whole, "--at", 4, "--out", "other", "-q", "--set", "memory.default_limit=20",
    )  # fmt: skip
    found = tiermem("why", whole, "-a", "bob", "-t", 6, "--diff", "other", "--json").json
    assert any(name.startswith("given: ") for name in found["differs"])
    assert "observed" not in found["differs"]
    first, second = found["decisions"]
    assert len(second["given"]) > len(first["given"])
    out = tiermem("why", whole, "-a", "bob", "-t", 6, "--diff", "other").out
    assert "≠\tgiven: " in out
    same = tiermem("why", whole, "-a", "bob", "-t", 3, "--diff", "other", "--json").json
    assert same["differs"] == []


def test_a_memory_has_a_life(tiermem: Command, whole: Path) -> None:
    note = why(tiermem, whole, "bob", 1)["did"][1]["memory_id"]
    told = tiermem("why", whole, "--memory", note, "--json").json
    assert told["agent"] == "bob"
    assert told["text"].startswith("note ")
    words = [(each["tick"], each["what"]) for each in told["moments"]]
    assert words[0] == (1, "born")
    assert (6, "tier") in words  # the sixth pin made it critical
    given = [each for each in told["moments"] if each["what"] == "given"]
    for each in given:
        ids = {row["id"]: row["score"] for row in why(tiermem, whole, "bob", each["tick"])["given"]}
        assert ids[note] == each["score"]
        assert "bob did: step, store_memory" in each["detail"]
    assert [each["tick"] for each in given][:5] == [2, 3, 4, 5, 6]
    assert "its life" in tiermem("why", whole, "--memory", note).out


def test_a_memorys_life_names_the_rule_that_moved_it(tiermem: Command, scenario: Write) -> None:
    rules = [
        {"name": "old sights", "when": {"kind": "observation", "age": 2}, "to": "cold"},
        {"name": "new things", "when": {"age": 0}, "to": "hot"},
    ]
    given = scenario()
    with given.open("a") as file:
        file.write(f"\ntemperature: {json.dumps({'rules': rules, 'compact_every': 1})}\n")
    tiermem("run", given, "--ticks", 4, "--out", "r", "-q")
    with MemoryBank.at(Path("r") / "bank", 4) as bank:
        first, *_ = bank.agent("bob").all()
    told = tiermem("why", "r", "--memory", first.id, "--json").json
    moves = [
        (each["tick"], each["detail"]) for each in told["moments"] if each["what"] == "temperature"
    ]
    assert moves == [
        (1, "hot now, by the rule 'new things'"),
        (3, "cold now, by the rule 'old sights'"),
    ]


def test_a_forgotten_memory_leaves_no_text(tiermem: Command, whole: Path) -> None:
    note = why(tiermem, whole, "bob", 1)["did"][1]
    with Run.open(whole) as run:
        run.bank.agent("bob").forget(note["memory_id"])
    told = why(tiermem, whole, "bob", 2)
    assert {row["text"] for row in told["given"] if row["id"] == note["memory_id"]} == {
        "(forgotten)"
    }
    assert told["note"].startswith("memories were forgotten")
    life = tiermem("why", whole, "--memory", note["memory_id"], "--json").json
    assert life["text"] == "(forgotten)"
    assert life["moments"][-1]["what"] == "gone"


def test_the_same_in_python(tiermem: Command, whole: Path) -> None:
    with Run.open(whole) as run:
        found = run.decision("bob", 6)
        told = why(tiermem, whole, "bob", 6)
        assert [each.id for each in found.given] == [row["id"] for row in told["given"]]
        life = run.life(found.given[0].id)
        assert life.agent == "bob"
        assert any(each.what == "given" and each.tick == 6 for each in life.moments)


def test_the_table_has_a_row_for_each_agent_and_tick(tiermem: Command, whole: Path) -> None:
    rows = pq.read_table(whole / "decisions.parquet").to_pylist()
    assert [(row["tick"], row["agent"]) for row in rows] == [
        (tick, agent) for tick in range(1, 13) for agent in ("alice", "bob")
    ]
    for tick in (1, 7):
        row = next(row for row in rows if (row["tick"], row["agent"]) == (tick, "bob"))
        told = why(tiermem, whole, "bob", tick)
        assert row["memory_ids"] == [each["id"] for each in told["given"]]
        assert row["scores"] == [each["score"] for each in told["given"]]
        assert row["parts"] == [each["part"] for each in told["given"]]
        assert row["actions"] == ["step", "store_memory"]
        assert row["results"] == ["done", "done"]


def test_why_there_was_no_answer_is_told_once(tiermem: Command, scenario: Write) -> None:
    waits = {"name": "no_op", "arguments": {"reason": "Timeout", "after": 20}}
    script = [{"actions": [waits], "tick": 1}]
    given = scenario(policy="scripted", policy_options={"script": script})
    assert tiermem("run", given, "--ticks", 1, "--out", "r", "-q") == (0, "", "")
    lines = tiermem("why", "r", "-a", "bob", "-t", 1).out.splitlines()
    assert lines[-1] == 'did no_op {"after": 20} (no answer): Timeout'


def test_reasons_are_counted_in_the_last_lines_the_summary_and_the_table(
    tiermem: Command, scenario: Write
) -> None:
    script = [
        {"actions": [{"name": "fly"}, {"name": "step"}], "tick": 1},
        {"actions": [{"name": "fly"}], "tick": 2, "agent": "bob"},
        {"actions": [{"name": "pin_memory", "arguments": {"memory_id": "none"}}], "tick": 2},
        {"actions": [{"name": "no_op", "arguments": {"reason": "Timeout"}}], "tick": 3},
    ]
    given = scenario(policy="scripted", policy_options={"script": script})
    lines = tiermem("run", given, "--ticks", 4, "--out", "r").err.splitlines()
    assert "  2 of 8 decisions had no answer: did nothing" in lines
    assert "       2 × Timeout" in lines
    assert "  5 actions were refused; agents were told why:" in lines
    assert "       3 × fly was refused: there is no fly here" in lines
    summary = json.loads(Path("r/summary.json").read_text())
    assert summary["no_answers"] == {"Timeout": 2}
    flying, pinning = summary["refusals"].items()
    assert flying == ("fly was refused: there is no fly here", 3)
    assert pinning[0].startswith("pin_memory was refused: AGENT has no memory 'none'")
    assert pinning[1] == 2
    rows = pq.read_table("r/decisions.parquet").to_pylist()
    reasons = [row["reasons"] for row in rows if row["agent"] == "bob"]
    fly, pin = reasons[1]
    assert reasons == [[fly, ""], [fly, pin], ["Timeout"], []]
    assert pin.startswith("pin_memory was refused: bob has no memory 'none'")


def test_a_reason_is_told_and_kept_in_the_table_and_changes_no_hash(
    tiermem: Command, scenario: Write
) -> None:
    why_so = "the road is clear"
    told: dict[str, Any] = {"name": "step", "reason": why_so}
    for name, first in (("r", told), ("plain", {"name": "step"})):
        script = [{"actions": [first, {"name": "step"}], "tick": 1, "agent": "bob"}]
        given = scenario(policy="scripted", policy_options={"script": script})
        tiermem("run", given, "--ticks", 1, "--out", name, "-q")
    did = why(tiermem, Path("r"), "bob", 1)["did"]
    assert [each["reason"] for each in did] == [why_so, None]
    assert f"  because: {why_so}" in tiermem("why", "r", "-a", "bob", "-t", 1).out.splitlines()
    rows = pq.read_table("r/decisions.parquet").to_pylist()
    reasons = {row["agent"]: row["given_reasons"] for row in rows}
    assert reasons == {"alice": [], "bob": [why_so, None]}
    hashes = [MemoryBank.at(Path(name) / "bank").engine.journal.hash for name in ("r", "plain")]
    assert hashes[0] == hashes[1]
    assert tiermem("replay", "r").code == 0


def test_a_decision_for_nothing_keeps_its_reason_and_changes_no_hash(
    tiermem: Command, scenario: Write
) -> None:
    why_so = "the road is steep"
    for name, actions in (("r", [{"name": "no_op", "reason": why_so}]), ("plain", [])):
        script = [{"actions": actions, "tick": 1, "agent": "bob"}]
        given = scenario(policy="scripted", policy_options={"script": script})
        tiermem("run", given, "--ticks", 2, "--out", name, "-q")
    told = why(tiermem, Path("r"), "bob", 1)
    assert (told["did"], told["idle"]) == ([], why_so)
    assert why(tiermem, Path("plain"), "bob", 1)["idle"] is None
    lines = tiermem("why", "r", "-a", "bob", "-t", 1).out.splitlines()
    assert lines[-2:] == ["did nothing", f"  because: {why_so}"]
    rows = pq.read_table("r/decisions.parquet").to_pylist()
    own = [(row["actions"], row["given_reasons"]) for row in rows if row["agent"] == "bob"]
    assert own == [([], [why_so]), ([], [])]
    assert json.loads(Path("r/summary.json").read_text())["no_ops"] == 0
    with looked_at(Path("r")) as site:
        assert ask(site, "agent", agent="bob", tick=1)["idle"] == why_so
        (found,) = ask(site, "search", q="steep")["rows"]
        assert (found["agent"], found["tick"], found["what"]) == ("bob", 1, "did")
        assert found["text"] == f"nothing, because: {why_so}"
    hashes = [MemoryBank.at(Path(name) / "bank").engine.journal.hash for name in ("r", "plain")]
    assert hashes[0] == hashes[1]
    assert tiermem("replay", "r").code == 0


def test_show_and_the_inspector_say_who_an_agent_is(tiermem: Command, scenario: Write) -> None:
    people = [{"text": "I bake"}, {"age": 40, "job": "smith"}]
    tiermem("run", scenario(personas=people), "--ticks", 1, "--out", "r", "-q")
    rows = tiermem("show", "r", "--json").json
    assert [row["persona"] for row in rows] == ["I bake", "age: 40, job: smith"]
    assert "bob: age: 40, job: smith" in tiermem("show", "r", "--agent", "bob").out.splitlines()
    with looked_at(Path("r")) as site:
        assert ask(site, "agent", agent="alice", tick=1)["persona"] == "I bake"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_prompt_and_answer_of_a_model_are_told(tiermem: Command, scenario: Write) -> None:
    step = json.dumps({"actions": [{"name": "step"}]})
    with OpenAIServer(lambda _: step) as server:
        config = f"llm.config={{openai_base_url: '{server.url}', api_key: hush, model: m}}"
        given = scenario(policy="llm", policy_options={"pause": 0})
        tiermem("run", given, "--ticks", 2, "--set", "llm.provider=openai", "--set", config,
                "--out", "r", "-q")  # fmt: skip
    (exchange,) = why(tiermem, Path("r"), "bob", 2)["exchanges"]
    assert exchange["reply"] == step
    assert "You are bob" in exchange["messages"][1]["content"]
    out = tiermem("why", "r", "-a", "bob", "-t", 2).out
    assert "  user: You are bob." in out
    assert f"answer 1:\n  {step}" in out


def without_decisions(run: Path) -> None:
    database = sqlite3.connect(run / "bank" / "journal.db")
    database.execute("DELETE FROM decisions")
    database.commit()
    database.close()


@pytest.mark.slow
def test_a_run_without_its_decisions_says_so(tiermem: Command, whole: Path) -> None:
    without_decisions(whole)
    done = tiermem("why", whole, "-a", "bob", "-t", 6)
    assert done.is_one_error(1, "were not kept", "its journal has none of that tick")
    with MemoryBank.at(whole / "bank") as bank:
        first = bank.agent("bob").all()[0].id
    assert "kept no decisions" in tiermem("why", whole, "--memory", first).out
    assert tiermem("replay", whole, "--json").json["equal"] is True
    tiermem("resume", whole, "--ticks", 14, "-q")  # and from now on they are kept
    assert why(tiermem, whole, "bob", 13)["given"]
    assert tiermem("replay", whole, "--verify", "--json").json["equal"] is True


def test_a_restored_run_says_what_its_checkpoint_lacks(tiermem: Command, whole: Path) -> None:
    (whole / "checkpoints" / "tick-000012.tmck").unlink()
    for path in (whole / "bank").glob("journal.db*"):
        path.unlink()
    tiermem("resume", whole, "-q")
    done = tiermem("why", whole, "-a", "bob", "-t", 6)
    assert done.is_one_error(1, "were not kept", "checkpoint after tick 8")
    assert why(tiermem, whole, "bob", 11)["given"]


def test_a_replay_notices_other_decisions(tiermem: Command, whole: Path) -> None:
    def swapped(first: Path, second: Path) -> None:
        shutil.copytree(first, second)
        with Run.open(second) as run:
            journal = run.bank.engine.journal
            (_, log), *_ = journal.attachments.logs(4)
            digest = sha256((journal.hash_of(journal.commit_of(6)) or b"") + log).digest()
            update = "UPDATE decisions SET data = ?, digest = ? WHERE tick = 6"
            journal.file.db.execute(update, (log, digest))

    swapped(whole, Path("changed"))
    done = tiermem("replay", "changed")
    assert done.code == 1
    assert "tick 6: other decisions were recorded" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("-a", "nobody", "-t", 3), 1, "has no agent 'nobody'"),
        (("-a", "bob", "-t", 99), 1, "name a tick from 1 to 12"),
        (("-a", "bob", "-t", 0), 2, "--tick"),
        (("-a", "bob"), 2, "an agent and a tick"),
        (("--memory", "zzz"), 1, "has no memory 'zzz'"),
        (("--memory", "zzz", "-t", 1), 2, "--memory tells the life"),
        (("-a", "bob", "-t", 1, "--diff", "nowhere"), 1, "there is no run nowhere"),
    ],
)
def test_what_can_not_be_told_is_three_lines(
    tiermem: Command, whole: Path, arguments: tuple[object, ...], code: int, part: str
) -> None:
    assert tiermem("why", whole, *arguments).is_one_error(code, part)


def test_another_runs_memory_is_not_found(tiermem: Command, whole: Path) -> None:
    with MemoryBank.ephemeral(seed=99) as bank:
        stranger = bank.agent("bob").add("a memory of another run").id
    assert tiermem("why", whole, "--memory", stranger).is_one_error(1, "has no memory")


def test_a_damaged_log_is_told_and_the_rest_is_not_harmed(tiermem: Command, whole: Path) -> None:
    database = sqlite3.connect(whole / "bank" / "journal.db")
    database.execute("UPDATE decisions SET data = substr(data, 1, 20) WHERE tick = 6")
    database.commit()
    database.close()
    done = tiermem("why", whole, "-a", "bob", "-t", 6)
    assert done.is_one_error(1, "the decisions of tick 6 are not what was written")
    assert why(tiermem, whole, "bob", 5)["given"]
    assert len(tiermem("show", whole, "-a", "bob", "--json").json) == 36


def test_it_tells_what_others_told_and_what_was_concluded(tiermem: Command, tmp_path: Path) -> None:
    run = ran(tmp_path / "run", "Teller", reflection={"enabled": True, "threshold": 6})
    told = why(tiermem, run, AGENTS[1], 2)
    assert (told["told"], told["saved"]) == (["went place 1"], [])
    said = tiermem("why", run, "--agent", AGENTS[1], "--tick", 2).out
    assert "others told it: went place 1" in said
    assert f"concluded: {told['insights'][0]}" in said
    assert "saved before" not in said


def test_on_a_terminal_an_id_is_its_last_digits_unless_all_of_it_is_wanted(
    tiermem: Command, whole: Path
) -> None:
    ids = [row["id"] for row in why(tiermem, whole, "bob", 3)["given"]]
    arguments = ("why", whole, "-a", "bob", "-t", 3)
    short = on_a_terminal(*arguments)
    assert all(f"│ {each[-4:]} │" in short for each in ids)
    assert not any(each in short for each in ids)
    whole_ids = on_a_terminal(*arguments, "--ids", columns=160)
    assert all(f"│ {each} │" in whole_ids for each in ids)


@pytest.mark.parametrize("command", ["why", "analyse"])
def test_the_last_digits_name_a_memory_with_its_agent(
    tiermem: Command, whole: Path, command: str
) -> None:
    note = why(tiermem, whole, "bob", 1)["did"][1]["memory_id"]
    told = tiermem(command, whole, "--memory", note, "--json").json
    for given in (f"bob:{note[-4:]}", f"bob:{note}"):
        assert tiermem(command, whole, "--memory", given, "--json").json == told


@pytest.mark.parametrize("command", ["why", "analyse"])
def test_digits_that_several_agents_have_are_an_error_that_lists_the_memories(
    tiermem: Command, whole: Path, command: str
) -> None:
    refused = tiermem(command, whole, "--memory", "0003")
    assert refused.is_one_error(2, "'0003' may be a memory of 2 agents", "alice:0003, bob:0003")
    for missing in ("0999", "zed:0003", "bob:0999", "bob:", ":0999"):
        assert tiermem(command, whole, "--memory", missing).is_one_error(1, "has no memory")


def test_digits_that_one_agent_has_need_no_agent(tiermem: Command, whole: Path) -> None:
    more = Path("more.yaml")
    more.write_text("- {agent: bob, do: add, content: the last}")
    tiermem("branch", whole, "--at", 5, "--ticks", 5, "--out", "b", "--edit", more, "-q")
    told = tiermem("why", "b", "--memory", "0010", "--json").json
    assert (told["agent"], told["text"]) == ("bob", "the last")
