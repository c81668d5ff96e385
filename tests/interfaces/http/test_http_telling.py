"""Telling, trust and groups over HTTP: only a token that may tell reaches other agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from http_service import Served, is_problem, served


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "bank") as running:
        running.bank.agent("bob").add("bob's own secret")
        yield running


def test_a_token_that_may_tell_tells(service: Served) -> None:
    with service.agent("alice", "tell") as alice, service.agent("bob") as bob:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        told = alice.post(f"/memory/{own}/tell", json={"to": ["bob"], "note": "I saw it"})
        assert told.json() == {"told": [{"agent": "bob", "is_new": True}]}
        found = bob.post("/memory/query", json={"query": "agent_X"}).json()["results"]
        assert found[0]["content"] == "agent_X cheats"
        assert found[0]["metadata"]["told_note"] == "I saw it"
        done = alice.post(f"/memory/{own}/retract", json={"correction": "agent_X is honest"})
        assert done.json() == {"corrected": 1}
        now = bob.post("/memory/query", json={"query": "agent_X", "limit": 1}).json()["results"]
        assert now[0]["content"] == "agent_X is honest"


def test_what_was_superseded_is_not_told(service: Served) -> None:
    with service.agent("alice", "tell") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        new = alice.patch(f"/memory/{own}", json={"content": "agent_X is honest"}).json()["id"]
        refused = alice.post(f"/memory/{own}/tell", json={"to": ["bob"]})
        assert is_problem(refused, 422, "InvalidInput")
        assert f"tell {new}" in refused.json()["detail"]
    assert service.bank.agent("bob").count() == 1


def test_a_token_that_writes_reaches_nobody_else(service: Served) -> None:
    service.bank.group("guild", ["alice"])
    with service.agent("alice") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        for path, given in (
            (f"/memory/{own}/tell", {"to": ["bob"]}),
            (f"/memory/{own}/retract", {}),
            ("/group/guild/post", {"content": "hello"}),
        ):
            refused = alice.post(path, json=given)
            assert is_problem(refused, 403, "MayNotTell")
            why = "this request reaches the memories of other agents, which this token may not do"
            assert refused.json()["detail"] == why
        assert alice.post("/trust", json={"teller": "bob", "trust": 0.5}).json()["trust"] == 0.5
    assert service.bank.agent("bob").count() == 1


def test_a_client_makes_no_new_agents_and_reads_nobody(service: Served) -> None:
    secret = service.bank.agent("bob").all()[0].id
    with service.agent("alice", "tell") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        for to in ("carol", "*", ".guild", "alice"):
            assert is_problem(alice.post(f"/memory/{own}/tell", json={"to": [to]}), 422)
        assert is_problem(alice.post(f"/memory/{secret}/tell", json={"to": ["bob"]}), 404)
        pinned = {"to": ["bob"], "as_tier": "pinned"}
        assert is_problem(alice.post(f"/memory/{own}/tell", json=pinned), 422)
    assert service.bank.agents() == ["alice", "bob"]


def test_members_write_to_a_board_and_find_it(service: Served) -> None:
    service.bank.group("guild", ["alice", "bob"])
    with service.agent("alice", "tell") as alice, service.agent("bob") as bob:
        posted = alice.post("/group/guild/post", json={"content": "meet at noon"})
        assert posted.status_code == 201
        asked = {"query": "noon", "include_groups": True, "limit": 1}
        (found,) = bob.post("/memory/query", json=asked).json()["results"]
        assert (found["content"], found["metadata"]["speaker"]) == ("meet at noon", "alice")
        assert bob.post("/group/guild/leave", json={}).json() == {"groups": []}
        (found,) = bob.post("/memory/query", json=asked).json()["results"]
        assert found["content"] == "bob's own secret"
        assert is_problem(bob.post("/group/guild/leave", json={}), 422)


def claims(own: str) -> Iterator[tuple[str, dict[str, object]]]:
    """What alice may send to speak as bob, or to bring a source that nobody told."""
    forged = '["bob", 0, "x", "bob", "x", 1]'
    for name in ("agent", "agent_id", "sender", "teller", "from", "source", "speaker"):
        yield f"/memory/{own}/tell", {"to": ["carol"], name: "bob"}
        yield f"/memory/{own}/retract", {"correction": "no", name: "bob"}
        yield "/group/guild/post", {"content": "I am bob", name: "bob"}
        yield "/group/guild/leave", {name: "bob"}
        if name != "teller":
            yield "/trust", {"teller": "carol", "trust": 0, name: "bob"}
    yield "/memory", {"content": "bob said so", "metadata": {"memory_source": forged}}


def test_nobody_speaks_as_another(service: Served) -> None:
    bank = service.bank
    bank.agent("carol").add("carol's own")
    bank.group("guild", ["bob", "carol"])
    with service.agent("alice", "tell") as alice:
        own = alice.post("/memory", json={"content": "agent_X cheats"}).json()["id"]
        before = bank.state_hash()
        for path, given in claims(own):
            answer = alice.post(path, json=given)
            assert is_problem(answer, answer.status_code), (path, given)
            assert answer.status_code in (400, 404, 422), (path, given)
        for header in ("X-Agent", "X-Agent-Id", "X-Sender"):
            told = alice.post(
                f"/memory/{own}/tell", json={"to": ["bob"]}, headers={header: "carol"}
            )
            assert told.status_code == 200
    assert bank.state_hash() != before
    (copy,) = [each for each in bank.agent("bob").all() if each.source is not None]
    assert (copy.source.teller, copy.speaker) == ("alice", "alice")
    assert bank.group("guild").members() == {"bob": 0, "carol": 0}
    assert bank.group("guild").all() == []
    assert bank.agent("carol").count() == 1


def test_a_listener_reads_nothing_of_the_chain(service: Served) -> None:
    """It knows the ids of the teller's memory and of the origin, and they open nothing."""
    bank = service.bank
    carol = bank.agent("carol")
    origin = carol.add("the bridge is out, and this is carol's word")
    passed = bank.agent("bob").get(carol.social.tell("bob", origin.id).memory_id)
    bank.agent("alice").add("alice's own")
    told = bank.agent("bob").social.tell("alice", passed.id).memory_id
    carol.update(origin.id, "carol's second thought")
    with service.agent("alice", "tell") as alice:
        for other in (origin.id, passed.id):
            for method, path, given in (
                ("GET", f"/memory/{other}", None),
                ("POST", f"/memory/{other}/tell", {"to": ["bob"]}),
                ("POST", f"/memory/{other}/retract", {"correction": "no"}),
            ):
                answer = alice.request(method, path, json=given)
                assert is_problem(answer, 404), (method, path)
                assert "second thought" not in answer.text
        found = alice.get(f"/memory/{told}").json()
        assert found["content"] == "the bridge is out, and this is carol's word"
        assert alice.post(f"/memory/{told}/retract", json={}).json() == {"corrected": 0}
    assert bank.agent("bob").get(passed.id) == passed
    assert carol.all()[0].content == "carol's second thought"


def test_who_left_neither_finds_nor_explains_the_board(service: Served) -> None:
    service.bank.group("guild", ["alice", "bob"]).post("bob", "the treasure is below the oak")
    asked = {"query": "treasure", "include_groups": True}
    with service.agent("alice", "tell") as alice:
        assert "oak" in alice.post("/memory/query", json=asked).text
        (board,) = service.bank.group("guild").all()
        for method, path in (("GET", ""), ("POST", "/tell"), ("POST", "/retract")):
            given = {"": None, "/tell": {"to": ["bob"]}}.get(path, {})
            answer = alice.request(method, f"/memory/{board.id}{path}", json=given)
            assert is_problem(answer, 404)
        assert alice.post("/group/guild/leave", json={}).status_code == 200
        assert "oak" not in alice.post("/memory/query", json=asked).text
        assert is_problem(alice.post("/group/guild/post", json={"content": "x"}), 422)
        for name in (".guild", "..guild", "guild%00", "%2Eguild", "*"):
            answer = alice.post(f"/group/{name}/post", json={"content": "x"})
            assert answer.status_code in (400, 404, 422), name
    assert len(service.bank.group("guild").all()) == 1
