"""The inspector tells what agents saw and did again, what others told them, and insights."""

from pathlib import Path

from inspected_sites import ask, looked_at

from agents.simulation.runs.why import decision
from repeating_worlds import AGENTS, ran


def test_what_was_seen_and_done_again_is_told_as_it_was(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Walker", memory={"merge_duplicates": True})
    here = {"agent": AGENTS[0], "tick": 3}
    with looked_at(folder) as site:
        found = ask(site, "agent", **here)
        assert found["observed"] == found["query"] == "the well is clean"
        assert found["heard"] == ("a drum", "bell 3")
        assert found["outcome"] == ["went north", "own 3", "a rule", "went place 3"]
        assert ask(site, "explain", **here, when="deciding")["query"] == "the well is clean"
        *_, went = decision(folder, AGENTS[0], 3).did
        life = ask(site, "memory", id=went.memory_id)
        seen = "by its action go, when it had observed: the well is clean"
        assert life["events"][0]["text"].endswith(seen)
        assert life["memory"]["text"] == "went place 3"
        ids = {row["text"]: row["id"] for row in ask(site, "memories", **here)["rows"]}
        born = ask(site, "memory", id=ids["bell 3"])["events"][0]["text"]
        assert born.endswith("it is a remark that the agent heard")
        well = ask(site, "memory", id=ids["the well is clean"])
        assert well["events"][0]["text"].endswith("it is what the agent observed")
        outcomes = [row["outcome"] for row in well["decisions"]]
        assert outcomes == [
            ["went north", f"own {tick}", "a rule", f"went place {tick}"] for tick in (2, 3, 4)
        ]


def test_what_others_told_and_insights_have_parts_of_their_own(tmp_path: Path) -> None:
    folder = ran(tmp_path / "run", "Teller", reflection={"enabled": True, "threshold": 6})
    with looked_at(folder) as site:
        found = ask(site, "agent", agent=AGENTS[1], tick=2)
    assert found["told"] == ("went place 1",)
    assert found["saved"] == ()
    assert found["insights"] == decision(folder, AGENTS[1], 2).insights
    assert found["insights"]
