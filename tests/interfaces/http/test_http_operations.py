"""Every operation over HTTP, and the pages about the service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from http_service import Served, is_problem, served

from agents import tools
from agents.engine import write
from agents.interfaces.http.endpoints import ENDPOINTS, Endpoint, description


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


@pytest.fixture
def alice(service: Served) -> Iterator[httpx.Client]:
    with service.agent("alice", "advance") as client:
        yield client


def add(client: httpx.Client, content: str = "The well is in the north", **more: Any) -> str:
    done = client.post("/memory", json={"content": content, **more})
    assert done.status_code == 201, done.text
    identifier: str = done.json()["id"]
    return identifier


def ask(
    client: httpx.Client, endpoint: Endpoint, arguments: dict[str, Any], **options: Any
) -> httpx.Response:
    """An operation with these arguments, wherever they belong in the request."""
    path = endpoint.path.format(**arguments)
    rest = {key: value for key, value in arguments.items() if key not in endpoint.in_path}
    if endpoint.has_body:
        options["json"] = rest
    else:
        options["params"] = rest
    return client.request(endpoint.method, path, **options)


def test_the_table_and_the_memory_by_its_id_are_all_there_is() -> None:
    names = [endpoint.name for endpoint in ENDPOINTS]
    assert names == [*tools.OPERATIONS, "memory_get_by_id"]
    assert len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_the_example_of_each_operation_works(
    endpoint: Endpoint, alice: httpx.Client, service: Served
) -> None:
    arguments = dict(endpoint.operation.example)
    service.bank.agent("bob").add("bob's own")
    service.bank.group("guild", ["alice"])
    if "memory_id" in arguments:
        arguments["memory_id"] = add(alice)
    if "old" in arguments:
        note = {"path": arguments["path"], "text": arguments["old"]}
        assert alice.post("/notes/write", json=note).status_code == 200
    done = ask(alice, endpoint, arguments)
    assert done.status_code == endpoint.status, done.text
    assert done.headers["content-type"] == "application/json"
    assert done.headers["x-content-type-options"] == "nosniff"
    assert done.headers["cache-control"] == "no-store"
    jsonschema.validate(done.json(), endpoint.result)


def test_what_is_stored_comes_back_byte_for_byte(alice: httpx.Client) -> None:
    text = 'Æther "quotes" \\ <b>&amp;</b> 🐉\u2028\r\n\tend '
    identifier = add(alice, text, tags=["β"], metadata={"ключ": "знач", "n": 1.5, "b": True})
    memory = alice.get(f"/memory/{identifier}").json()
    assert memory["content"] == text
    assert memory["tags"] == ["β"]
    assert memory["metadata"] == {"ключ": "знач", "n": 1.5, "b": True}


def test_what_is_no_tier_is_a_problem_that_names_tiers_and_temperatures(
    alice: httpx.Client,
) -> None:
    for path in ("/memory", "/memory/store"):
        answer = alice.post(path, json={"content": "x", "tier": "lukewarm"})
        is_problem(answer, 422, "InvalidInput")
        assert "'pinned', 'critical'" in answer.json()["detail"]
        assert "hot, warm and cold are temperatures" in answer.json()["detail"]


def test_pinned_and_cold_at_once_is_a_problem_of_the_request(alice: httpx.Client) -> None:
    place = f"/memory/{add(alice, 'Bob paid late')}"
    answer = alice.patch(place, json={"tier": "pinned", "temperature": "cold"})
    is_problem(answer, 422, "InvalidInput")
    assert "a pinned memory is active and hot; got temperature cold" in answer.json()["detail"]
    assert alice.get(place).json()["tier"] == "normal"


def test_a_memory_goes_through_its_life(alice: httpx.Client) -> None:
    identifier = add(alice, "Bob paid late", tier="critical")
    place = f"/memory/{identifier}"
    assert alice.post(f"{place}/tier", json={"tier": "low"}).json()["tier"] == "low"
    assert alice.post(f"{place}/pin").json()["temperature"] == "hot"
    is_problem(alice.patch(place, json={"temperature": "cold"}), 409, "MemoryPinned")
    assert alice.post(f"{place}/unpin").json()["tier"] == "normal"
    assert alice.patch(place, json={"retention": "archived"}).json()["retention"] == "archived"
    assert alice.patch(place, json={"retention": "active"}).json()["retention"] == "active"
    assert alice.delete(place).json() == {"memory_id": identifier, "purged": False}
    is_problem(alice.get(place), 404, "MemoryNotFound")
    deleted = alice.post("/memory/query", json={"retention": "deleted"}).json()["results"]
    assert identifier in [each["id"] for each in deleted]
    assert alice.delete(place, params={"purge": "true"}).json()["purged"] is True
    is_problem(alice.patch(place, json={"retention": "active"}), 404, "MemoryNotFound")


def test_what_is_stored_is_found(alice: httpx.Client) -> None:
    identifier = add(alice, "The dragon sleeps at noon")
    for path in ("/memory/search", "/memory/query", "/memory/recall"):
        results = alice.post(path, json={"query": "when does the dragon sleep?"}).json()["results"]
        assert identifier in [each.get("memory_id", each.get("id")) for each in results]


def test_a_key_supersedes_and_filters_choose(service: Served) -> None:
    with service.agent("vera") as vera:
        add(vera, "I eat meat", tier="pinned", key="diet", metadata={"place": "bay"})
        second = add(vera, "I am vegan", key="diet", metadata={"place": "sea"})
        third = vera.patch(f"/memory/{second}", json={"content": "I eat fish"}).json()
        assert (third["tier"], third["metadata"]["place"]) == ("pinned", "sea")
        told = vera.post("/memory/history", json={"key": "diet"}).json()["results"]
        assert [each["content"] for each in told] == ["I eat meat", "I am vegan", "I eat fish"]
        is_problem(vera.patch(f"/memory/{second}", json={"content": "x"}), 422, "InvalidInput")
        for place, count in (("sea", 1), ("bay", 0)):
            body = {"query": "eat", "filters": {"metadata.place": {"$in": [place]}}}
            assert len(vera.post("/memory/query", json=body).json()["results"]) == count
        wrong = {"query": "eat", "filters": {"metadata.place": {"$near": 1}}}
        is_problem(vera.post("/memory/query", json=wrong), 422, "InvalidInput")


def test_a_note_is_written_read_and_cited(service: Served) -> None:
    with service.agent("noah") as noah:
        noah.post("/notes", json={"text": "# Trade\nNever trade fish", "path": "MEMORY.md"})
        part = noah.post("/memory/get", json={"path": "MEMORY.md", "from": 2, "lines": 1})
        found = noah.post("/memory/search", json={"query": "trade fish"}).json()["results"]
    assert part.json()["text"] == "Never trade fish\n"
    assert any((each["citation"] or "").startswith("MEMORY.md#L") for each in found)


def test_the_names_of_other_clients_are_understood(alice: httpx.Client) -> None:
    identifier = add(alice, "Once there was snow", temperature="cold", sessionId="s1")
    asked = {"query": "snow", "tier": "cold", "limit": 10}
    found = alice.post("/memory/query", json=asked).json()["results"]
    assert [each["id"] for each in found] == [identifier]
    assert found[0]["metadata"] == {"session": "s1"}
    refused = alice.post("/memory/search", json=asked)
    assert is_problem(refused, 422)
    assert "temperature is an argument of" in refused.json()["detail"]
    twice = alice.post(f"/memory/{identifier}/pin", json={"memoryId": identifier})
    assert is_problem(twice, 422)
    assert "mean the same" in twice.json()["detail"]


def test_null_stands_for_what_is_not_given(alice: httpx.Client) -> None:
    done = alice.post("/memory", json={"content": "Tea is at five", "tier": None, "ttl": None})
    assert done.json()["tier"] == "normal"
    is_problem(alice.post("/memory", json={"content": None}), 422)


def test_an_operation_without_arguments_needs_no_body(alice: httpx.Client) -> None:
    assert alice.post("/memory/compact").status_code == 200
    assert alice.post("/memory/compact", json={}).status_code == 200
    assert alice.get("/status").status_code == 200


def test_the_path_says_which_memory_and_the_body_does_not(alice: httpx.Client) -> None:
    one, other = add(alice), add(alice)
    refused = alice.post(f"/memory/{one}/tier", json={"memory_id": other, "tier": "low"})
    is_problem(refused, 422, "InvalidInput")
    assert "stands in the path" in refused.json()["detail"]
    assert alice.get(f"/memory/{other}").json()["tier"] == "normal"


@pytest.mark.parametrize("purge", ["yes", "1", "True", "", "null"])
def test_a_query_string_that_does_not_fit_purges_nothing(alice: httpx.Client, purge: str) -> None:
    place = f"/memory/{add(alice)}"
    is_problem(alice.delete(place, params={"purge": purge}), 422, "InvalidInput")
    is_problem(alice.delete(f"{place}?purge=false&purge=true"), 422, "InvalidInput")
    is_problem(alice.delete(f"{place}?prune=true"), 422, "InvalidInput")
    assert alice.get(place).status_code == 200


def test_a_body_is_not_overlooked_where_none_belongs(alice: httpx.Client) -> None:
    place = f"/memory/{add(alice)}"
    is_problem(alice.request("DELETE", place, json={"purge": True}), 400, "UnexpectedBody")
    is_problem(alice.request("GET", place, json={}), 400, "UnexpectedBody")
    assert alice.get(place).status_code == 200


def test_a_full_tier_is_a_conflict(tmp_path: Path) -> None:
    memory = {"max_pinned": 1, "on_tier_full": "reject"}
    with served(tmp_path / "bank", memory=memory) as service, service.agent("alice") as alice:
        add(alice, tier="pinned")
        refused = alice.post("/memory/store", json={"content": "another", "tier": "pinned"})
        is_problem(refused, 409, "TierFull")


def test_a_fault_inside_is_told_without_its_details(
    service: Served, alice: httpx.Client, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def broken(*_: object) -> None:
        raise RuntimeError(f"secret of {service.folder}")

    monkeypatch.setattr(write, "add_many", broken)
    failed = alice.post("/memory", json={"content": "something"})
    is_problem(failed, 500, "InternalError")
    assert "secret" not in failed.text
    assert str(service.folder) not in failed.text
    assert "secret of" in caplog.text


def test_an_error_names_no_folder_of_the_machine(
    service: Served, alice: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.errors import CommitFailed, NoteRefused

    for error, status in ((CommitFailed, 503), (NoteRefused, 422)):

        def broken(*_: object, error: type[Exception] = error) -> None:
            raise error(f"{service.folder}/journal.db is on fire")

        monkeypatch.setattr(write, "add_many", broken)
        failed = alice.post("/memory", json={"content": "something"})
        is_problem(failed, status)
        assert str(service.folder.parent) not in failed.text


# Pages


def test_health_index_and_description_need_no_token(service: Served) -> None:
    most = service.bank.settings.memory.max_content_bytes
    with service.client() as anybody:
        assert anybody.get("/health").json() == {"status": "ok"}
        assert anybody.get("/").json()["see"] == "/openapi.json"
        assert anybody.get("/openapi.json").json() == description(most)
        assert anybody.head("/health").content == b""


def test_metrics_are_numbers_and_no_text(service: Served, alice: httpx.Client) -> None:
    add(alice, "Only alice knows the word xyzzy")
    alice.post("/memory/recall", json={"query": "xyzzy"})
    shown = alice.get("/metrics")
    assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in shown.text.splitlines() if not line.startswith("#")]
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert values["memory_recall_total"] >= 1
    assert values['tiermem_http_requests_total{operation="memory_recall",status="200"}'] >= 1
    assert "xyzzy" not in shown.text
    assert "alice" not in shown.text


def test_every_metric_says_what_it_is_and_counters_are_totals(alice: httpx.Client) -> None:
    alice.get("/status")
    lines = alice.get("/metrics").text.splitlines()
    names = {line.partition(" ")[0].partition("{")[0] for line in lines if line[0] != "#"}
    assert {line.split()[2] for line in lines if line.startswith("# HELP ")} == names
    kinds = dict(line.split()[2:] for line in lines if line.startswith("# TYPE "))
    assert kinds.keys() == names
    assert {name for name in names if kinds[name] == "counter"} == {
        name for name in names if name.endswith("_total")
    }


def test_the_metrics_are_those_of_the_bank(service: Served, alice: httpx.Client) -> None:
    shown = alice.get("/metrics").text
    for name in service.bank.metrics():
        assert f"\n{name.replace('_count', '_total')} " in f"\n{shown}"


def test_the_description_says_how_long_a_text_this_bank_keeps(service: Served) -> None:
    with service.client() as anybody:
        paths = anybody.get("/openapi.json").json()["paths"]
    schema = paths["/memory"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    content = schema["properties"]["content"]
    assert content["maxLength"] == service.bank.settings.memory.max_content_bytes == 16_384
    assert "16,384 bytes" in content["description"]


def test_a_query_string_beside_a_body_is_refused(service: Served) -> None:
    agent = service.bank.agent("hurried")
    agent.add("The parser is done", tags=["done"], temperature="hot")
    before = service.bank.state_hash()
    with service.agent("hurried") as client:
        for path in ("/memory/compact?dry_run=true", "/memory/compact?x", "/memory?content=x"):
            is_problem(client.post(path), 422, "InvalidInput")
        identifier = agent.all()[0].id
        is_problem(client.patch(f"/memory/{identifier}?tier=pinned"), 422, "InvalidInput")
        assert service.bank.state_hash() == before
        assert client.post("/memory/compact?", json={"dry_run": True}).status_code == 200


def test_a_query_that_takes_too_long_to_read_is_refused(alice: httpx.Client) -> None:
    from agents.tools.shapes import QUERY

    words = "a " * (QUERY["maxLength"] // 2 + 1)
    for path in ("/memory/query", "/memory/search", "/memory/recall"):
        is_problem(alice.post(path, json={"query": words}), 422, "InvalidInput")


def test_a_path_or_a_method_that_is_not_there(alice: httpx.Client) -> None:
    for path in (
        "/nothing",
        "/memory/",
        "/memory/a/b/c",
        "/health/",
        "/memory/a%2Fb",
        "/health%0A",
    ):
        is_problem(alice.get(path), 404, "NoSuchPath")
    wrong = alice.put("/status")
    is_problem(wrong, 405, "NoSuchMethod")
    assert wrong.headers["allow"] == "GET, HEAD"
    assert alice.put("/memory/search").headers["allow"] == "POST"
    is_problem(alice.get("/memory/store"), 405, "NoSuchMethod")  # no memory with the id "store"


def test_the_description_has_every_operation_with_its_answers() -> None:
    paths = description(16_384)["paths"]
    for endpoint in ENDPOINTS:
        said = paths[endpoint.path][endpoint.method.lower()]
        assert said["operationId"] == endpoint.name
        assert {str(endpoint.status), "401", "403", "422", "429", "500", "503"} <= set(
            said["responses"]
        )
        may_conflict = endpoint.operation.permission in ("write", "tell")
        assert ("409" in said["responses"]) == may_conflict
        assert ("requestBody" in said) == endpoint.has_body
        if endpoint.has_body:
            content = said["requestBody"]["content"]["application/json"]
            jsonschema.Draft202012Validator.check_schema(content["schema"])
            jsonschema.validate(content["example"], content["schema"])


def test_a_session_has_a_status_of_its_own(alice: httpx.Client) -> None:
    for session in ("walk", "talk", "talk"):
        add(alice, session=session, temperature="hot")
    status = alice.get("/status", params={"session": "talk"}).json()
    assert (status["session"], status["temperatures"]["hot"]["items"]) == ("talk", 2)
    left = alice.post("/memory/spill", json={"session": "talk", "count": 9}).json()
    assert len(left["moved"]) == 2
    is_problem(alice.get("/status", params={"session": ""}), 422, "InvalidInput")
