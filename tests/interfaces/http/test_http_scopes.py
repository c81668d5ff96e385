"""Tokens of projects and environments: what is in one is not found from another one."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from http_service import Served, is_problem, served

from agents import MemoryBank
from agents.interfaces import tokens
from agents.interfaces.http.endpoints import ENDPOINTS
from agents.memory.scopes import NOWHERE, Scope
from agents.memory.tiers import Retention
from agents.tools.operations import SOCIAL_OPERATIONS

ALPHA, BETA = Scope("alpha", "production"), Scope("beta", "production")
END_USER = "X-End-User-ID"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("http") / "bank") as running:
        yield running


def bearer(service: Served, scope: Scope, agent: str | None, permission: str = "tell") -> str:
    return tokens.create(service.folder, agent, permission, scope=scope).token


def test_a_token_of_an_agent_in_a_project_speaks_for_it(service: Served) -> None:
    with service.client(bearer(service, ALPHA, "zoe")) as zoe:
        assert zoe.post("/memory", json={"content": "Tea at five"}).status_code == 201
        assert zoe.get("/status").json()["agent_id"] == "@@alpha@production@zoe"
        with service.client(bearer(service, BETA, "zoe")) as other:
            asked = {"query": "Tea at five"}
            assert other.post("/memory/query", json=asked).json()["results"] == []
        found = zoe.post("/memory/query", json={"query": "Tea at five"}).json()["results"]
        assert [each["content"] for each in found] == ["Tea at five"]


def test_a_token_of_a_whole_project_speaks_for_the_agent_that_a_request_names(
    service: Served,
) -> None:
    with service.client(bearer(service, ALPHA, None)) as client:
        for name, agent in (
            ("yan", "@@alpha@production@yan"),
            ("user 42", "@@alpha@production@user@2042"),
            ("jürgen".encode(), "@@alpha@production@j@C3@BCrgen"),
            ("@@beta@production@yan", "@@alpha@production@@40@beta@production@yan"),
            ("../yan", "@@alpha@production@@2E./yan".replace("/", "@2F")),
        ):
            answer = client.get("/status", headers=[(END_USER, name)])
            assert answer.json()["agent_id"] == agent, name
        for wrong in ([], [(END_USER, "")], [(END_USER, "a"), (END_USER, "b")]):
            answer = client.get("/status", headers=wrong)
            assert is_problem(answer, 400, "NoAgent")
            assert "name one of its agents in the header X-End-User-ID" in answer.json()["detail"]
        for wrong in ([(END_USER, b"\xff")], [(END_USER, "x" * 120)]):
            too = tokens.create(service.folder, None, scope=Scope("p" * 64, "e" * 20))
            with service.client(too.token) as far:
                assert is_problem(far.get("/status", headers=wrong), 400, "InvalidAgentId")


def test_an_agents_own_token_heeds_no_header(service: Served) -> None:
    with service.client(bearer(service, ALPHA, "xaver")) as client:
        for header in (END_USER, "X-Project-ID", "X-Environment"):
            answer = client.get("/status", headers={header: "beta"})
            assert answer.json()["agent_id"] == "@@alpha@production@xaver"


def test_a_token_of_a_project_counts_no_others_memories(service: Served) -> None:
    with service.client(bearer(service, ALPHA, "ann")) as client:
        assert is_problem(client.get("/metrics"), 403, "MayNotCount")
    with service.client(bearer(service, NOWHERE, "operator", "read")) as client:
        assert client.get("/metrics").status_code == 200


# From one project to another


SECRET = "plugh-4711"


class Victim(NamedTuple):
    """The agents and the group of a project, and all that they have."""

    bank: MemoryBank
    ids: list[str]

    @classmethod
    def of(cls, bank: MemoryBank) -> "Victim":
        ids = []
        for name in ("ann", "bob"):
            memory = bank.agent(ALPHA.agent_id(name))
            for tier in ("pinned", "critical", "normal"):
                ids.append(memory.add(f"{SECRET}, said {name}, {tier}", tier, key=tier).id)
            ids.append(memory.add(f"{SECRET} of {name}, long ago", temperature="cold").id)
            archived = memory.add(f"{SECRET} of {name}, archived")
            ids.append(memory.update(archived.id, retention="archived").id)
            deleted = memory.add(f"{SECRET} of {name}, deleted")
            memory.delete(deleted.id)
            ids.append(deleted.id)
            memory.notes.append(f"{SECRET}, in a note of {name}", "MEMORY.md")
            memory.notes.sync()
        group = bank.group("guild", ["ann", "bob"], project="alpha", environment="production")
        posted = group.post(ALPHA.agent_id("ann"), f"{SECRET}, on a board")
        bank.agent(ALPHA.agent_id("ann")).social.tell(ALPHA.agent_id("bob"), ids[2])
        return cls(bank, [*ids, posted.id])

    def state(self) -> list[Any]:
        agents = [self.bank.agent(ALPHA.agent_id(name)) for name in ("ann", "bob")]
        group = self.bank.group(ALPHA.agent_id("guild"))
        return [
            [[memory.all(retention=each) for each in Retention] for memory in agents],
            [memory.notes.read("MEMORY.md") for memory in agents],
            [memory.status().to_dict() for memory in agents],
            [memory.social.trust_of(BETA.agent_id("ann")) for memory in agents],
            [group.all(), group.members()],
        ]


def names() -> list[str]:
    """Ways to name an agent or a group of the victim's project."""
    own = [ALPHA.agent_id(name) for name in ("ann", "bob", "guild")]
    return [
        "ann", "bob", "guild", *own, *(each.replace("@", "@40") for each in own),
        "alpha/production/ann", "../@@alpha@production@ann", "@@alpha@@ann", "@@@production@ann",
        "@@@@ann", "*", "@@*@*@ann", "@@alpha@production@*", ".@@alpha@production@guild", "",
        "ann\n", "@@alpha@production@",
        "%40%40alpha%40production%40ann", "alpha@2Fproduction@2Fann",
    ]  # fmt: skip


WHERE = {
    "project_id": "alpha", "environment": "production", "project": "alpha", "scope": "alpha",
    "agent": "ann", "agent_id": ALPHA.agent_id("ann"), "user_id": "ann", "end_user_id": "ann",
    "tenant_id": "alpha", "owner": ALPHA.agent_id("bob"), "group": ALPHA.agent_id("guild"),
}  # fmt: skip
REACHING = [each for each in ENDPOINTS if each.operation in SOCIAL_OPERATIONS]
HEADERS = (END_USER, "X-Project-ID", "X-Environment", "X-Agent-Id", "X-Allow-Cross-Project")


def hostile(victim: Victim, own: list[str], rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    """A request of somebody else that would reach what is the victim's, or changes it."""
    endpoint = rng.choice(rng.choice([ENDPOINTS, REACHING]))
    given = dict(endpoint.operation.example)
    identifier = rng.choice(rng.choice([victim.ids, own]))

    def name() -> str:
        return rng.choice(rng.choice([names(), names()[3:6]]))

    if "memory_id" in given:
        given["memory_id"] = identifier
    if endpoint.name == "memory_history":  # what stores a key would show it later
        given["key"] = identifier
    if rng.random() < 0.5 and "query" in endpoint.operation.arguments["properties"]:
        given["query"] = rng.choice([SECRET, f"what is {SECRET}?", "said ann", "long ago", "*"])
    more: dict[str, Any] = {
        "to": [name()], "teller": name(), "group": name(),
        "key": rng.choice(["pinned", "normal"]), "ids": [identifier],
        "path": rng.choice(["MEMORY.md", f"../{name()}/MEMORY.md"]),
        "include_groups": True, "include_superseded": True, "include_cold": True,
        "temperature": ["hot", "warm", "cold"], "limit": 1000, "supersedes": identifier,
        "retention": rng.choice(["archived", "deleted"]), "evidence": [identifier],
        "filters": {"metadata.speaker": {"$in": names()}, "metadata.x": {"$exists": False}},
        "memory_id": identifier, "contradicts": identifier,
    }  # fmt: skip
    taken = sorted(more.keys() & endpoint.operation.arguments["properties"].keys())
    for key in rng.sample(taken, rng.randint(0, len(taken))):
        given[key] = more[key]
    if rng.random() < 0.3:
        key = rng.choice(sorted(WHERE))
        given[key] = rng.choice([WHERE[key], [WHERE[key]], {"$ne": ""}, "*"])
    place = {key: quote(str(given.pop(key, "x")), safe="") for key in endpoint.in_path}
    path = endpoint.path.format(**place)
    if rng.random() < 0.1:
        path += rng.choice(
            ["?project_id=alpha", "?agent=ann", f"?agent_id={ALPHA.agent_id('ann')}"]
        )
    headers = [(END_USER, rng.choice(["ann", "bob"]))]
    if rng.random() < 0.5:
        named = rng.choice([name(), "alpha", "true"]).strip()
        headers = [(rng.choice(HEADERS), named), *rng.choice([headers, []])]
    body = {"json": given} if endpoint.has_body else {"params": given}
    return endpoint.method, path, {**body, "headers": headers}


def leaked(answer: httpx.Response, asked: str, victim: Victim) -> bool:
    """Whether an answer has something of the victim's that its request did not bring along."""
    said = answer.text
    if SECRET in said and SECRET not in asked:
        return True
    texts = (f"{SECRET}, said", f"{SECRET} of", f"{SECRET}, in a note", f"{SECRET}, on a board")
    return any(each in said for each in texts) or any(
        each in said and each not in asked for each in victim.ids
    )


@pytest.mark.parametrize(
    "number", [700, pytest.param(10_000, marks=pytest.mark.long)], ids=["some", "10,000"]
)
def test_nothing_of_one_project_is_found_from_another(tmp_path: Path, number: int) -> None:
    rng = random.Random(number)
    with served(tmp_path / "bank") as service:
        bank = service.bank
        victim = Victim.of(bank)
        intruders: list[tuple[str, list[str]]] = []
        for scope in (
            BETA, Scope("alpha", "staging"), Scope("alpha"), Scope("", "production"), NOWHERE,
        ):  # fmt: skip
            own = {
                name: [bank.agent(scope.agent_id(name)).add(f"{name} sells salt").id]
                for name in ("ann", "bob")
            }
            bank.group(scope.agent_id("guild"), map(scope.agent_id, own))
            intruders.append((bearer(service, scope, "ann"), own["ann"]))
            intruders.append((bearer(service, scope, "bob", "write"), own["bob"]))
            if scope != NOWHERE:
                intruders.append((bearer(service, scope, None), own["ann"]))
        before = victim.state()
        done = 0
        with service.client() as client:
            for _ in range(number):
                token, own_ids = rng.choice(intruders)
                method, path, rest = hostile(victim, own_ids, rng)
                rest["headers"].append(("Authorization", f"Bearer {token}"))
                answer = client.request(method, path, **rest)
                assert answer.status_code < 500, (method, path, rest, answer.text)
                assert not leaked(answer, f"{path} {rest}", victim), (method, path, rest)
                done += answer.status_code < 300
        assert victim.state() == before
        assert done > number / 10  # not all were refused for their form
        # the secret is there for its own project
        with service.client(bearer(service, ALPHA, None)) as client:
            asked = {"query": SECRET, "limit": 100, "include_groups": True}
            found = client.post("/memory/query", json=asked, headers={END_USER: "bob"})
            assert leaked(found, "", victim)
