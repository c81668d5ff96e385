"""The clients of language models: a server on loopback, groups of agents, limits, and refusals."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents.config.load import load_settings
from agents.config.settings import LlmSettings
from agents.errors import ChatFailed, ConfigError, SimulationError
from agents.memory.records import Hits
from agents.simulation.policies import clients
from agents.simulation.policies.cassette import Cassette
from agents.simulation.policies.clients import ChatServer, OverHttp, Pace, model_of
from agents.simulation.policies.llm import Llm
from agents.simulation.policies.model import Question, Reply
from agents.simulation.protocols import Action, Observation
from agents.simulation.runs.scenario import check_scenario
from openai_server import Fault, OpenAIServer

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # clients are left open

MESSAGES = [{"role": "user", "content": "What do you do?"}]
SCHEMA = {"type": "object", "properties": {"actions": {"type": "array"}}}
QUESTION = Question(MESSAGES, SCHEMA, "decision", "alice")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
NOTHING = '{"actions": []}'


def client(server: OpenAIServer, **options: Any) -> ChatServer:
    settings = LlmSettings(base_url=server.url, model="small", **options)
    return ChatServer(settings, OverHttp(settings))


def test_a_server_gets_all_settings_of_sampling_and_the_form_of_the_reply() -> None:
    with OpenAIServer(lambda _: NOTHING) as server:
        own = client(
            server, temperature=0.5, top_p=0.9, seed=7, max_tokens=99, config={"user": "u"}
        )
        assert own.reply(QUESTION) == Reply(NOTHING, model="small")
        client(server, temperature=None, seed=None).reply(QUESTION._replace(schema=None))
    (path, sent), (_, bare) = server.requests
    wanted = {"name": "decision", "schema": SCHEMA}
    assert path == "/v1/chat/completions"
    assert sent == {
        "messages": MESSAGES, "model": "small", "temperature": 0.5, "top_p": 0.9, "seed": 7,
        "max_tokens": 99, "user": "u",
        "response_format": {"type": "json_schema", "json_schema": wanted},
    }  # fmt: skip
    assert bare.keys() == {"messages", "model", "top_p", "max_tokens"}
    assert server.keys == [None, None]


def test_a_key_comes_from_the_environment_and_reaches_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hush-hush")

    def refuse(_: object) -> str:
        raise RuntimeError("the key hush-hush is wrong")

    with OpenAIServer(refuse) as server:
        own = client(server, api_key_env="MY_API_KEY")
        with pytest.raises(ChatFailed, match=r"HTTP 400: the key \*\*\* is wrong"):
            own.reply(QUESTION)
        assert server.keys[0] == "Bearer hush-hush"
        monkeypatch.delenv("MY_API_KEY")
        with pytest.raises(SimulationError, match="no 'MY_API_KEY'"):
            client(server, api_key_env="MY_API_KEY").prepare()


@pytest.mark.parametrize(("knows", "tries"), [("tools", 2), ("nothing", 3)])
def test_a_server_that_refuses_a_form_is_asked_in_another_one_from_then_on(
    knows: str, tries: int
) -> None:
    def answer(body: Mapping[str, Any]) -> str:
        if "response_format" in body or ("tools" in body and knows == "nothing"):
            raise RuntimeError("what is that?")
        return NOTHING

    with OpenAIServer(answer) as server:
        own = client(server)
        assert own.reply(QUESTION).text == NOTHING
        assert len(server.requests) == tries
        assert own.reply(QUESTION).text == NOTHING
        assert len(server.requests) == tries + 1
        assert ("tools" in server.requests[-1][1]) is (knows == "tools")


@pytest.mark.parametrize(
    ("fault", "kind", "is_final", "after"),
    [
        (Fault(429, {"Retry-After": "7"}), "RateLimitError", False, 7.0),
        (Fault(503), "InternalServerError", False, None),
        (Fault(401), "AuthenticationError", True, None),
        (Fault(raw=OK % 9 + b"{"), "APIConnectionError", False, None),
        (Fault(raw=OK % 2 + b"{}"), "NoAnswer", False, None),
        (Fault(raw=b"what?"), "APIConnectionError", False, None),
    ],
)  # fmt: skip
def test_what_is_no_answer_says_what_it_was(
    fault: Fault, kind: str, is_final: bool, after: float | None
) -> None:
    def fail(_: object) -> str:
        raise fault

    with OpenAIServer(fail) as server, pytest.raises(ChatFailed) as caught:
        client(server).reply(QUESTION._replace(schema=None))
    error = caught.value
    assert (error.kind, error.is_final, error.retry_after) == (kind, is_final, after)


def test_an_answer_that_comes_in_drops_ends_with_the_time_of_its_call() -> None:
    def drops() -> Iterator[bytes]:
        yield OK % 500
        for _ in range(500):
            time.sleep(0.02)  # each of them in time
            yield b" "

    def drip(_: object) -> str:
        raise Fault(raw=drops())

    with OpenAIServer(drip) as server, pytest.raises(ChatFailed, match=r"within 0.5 s") as caught:
        client(server, timeout=0.5).reply(QUESTION._replace(schema=None))
    assert caught.value.kind == "APITimeoutError"


def test_agents_of_a_group_have_a_model_of_their_own(tmp_path: Path) -> None:
    def named(body: Mapping[str, Any]) -> str:
        return json.dumps({"actions": [{"name": f"{body['model']} {body['temperature']}"}]})

    agents = ["alice", "bob_1", "bob_2"]
    with OpenAIServer(named) as server:
        groups = ({"agents": ("bob_*",), "model": "large", "temperature": 1.0},)
        settings = LlmSettings(base_url=server.url, model="small", groups=groups)
        made = Llm(model_of(settings, agents), Cassette(tmp_path / "c"), {}, {}, llm=settings)
        seen = [Observation("", agent_id=agent, tick=1) for agent in agents]
        found = made.decide_all(seen, [Hits()] * 3, [Random(0)] * 3)
    assert found == [[Action("small 0.0")], [Action("large 1.0")], [Action("large 1.0")]]


def test_a_file_of_weights_lies_beside_the_scenario_wherever_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(clients, "_loaded", lambda path, *_: loaded.append(path))
    (tmp_path / "models").mkdir()
    weights = tmp_path / "models" / "small.gguf"
    weights.touch()
    groups = ({"agents": ("bob",), "path": str(weights)},)
    given = LlmSettings(provider="local", path="models/small.gguf", groups=groups)
    model_of(given, ["alice", "bob"], [tmp_path / "code", tmp_path]).prepare()
    assert loaded == [str(weights)] * 2
    with pytest.raises(ConfigError, match=r"no file 'models/small\.gguf' in code or elsewhere"):
        model_of(given, ["alice", "bob"], [Path("code"), Path("elsewhere")]).prepare()


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"base_url": "localhost:11434"}, r"llm\.base_url is 'localhost:11434', not an address"),
        ({"base_url": "http://x/v1", "provider": "gemini"}, r"llm\.provider is 'gemini'"),
        ({"groups": ({"agents": ("carol",), "model": "m"},)}, r"llm\.groups\[0\]: there is no"),
        ({"provider": "local", "path": "no.gguf"}, r"llm\.path: there is no file 'no\.gguf'"),
    ],
)
def test_settings_with_which_nobody_can_be_asked_are_refused(
    wrong: dict[str, Any], what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        model_of(LlmSettings(**wrong), ["alice"]).prepare()


def test_no_minute_has_more_requests_or_tokens_than_its_limit() -> None:
    few = Pace(2, None)
    assert [round(few.wait(1)) for _ in range(5)] == [0, 0, 60, 60, 120]
    short = Pace(None, 100)
    assert [round(short.wait(60)), round(short.wait(60))] == [0, 60]
    cheap = Pace(None, 100)
    cheap.wait(60)
    cheap.spent(60, 10)
    assert round(cheap.wait(90)) == 0


@pytest.mark.parametrize("name", ["timeout", "concurrency"])
def test_timeout_and_concurrency_are_set_in_one_place(name: str) -> None:
    values = {"llm": {"base_url": "http://127.0.0.1:9/v1"}, "simulation": {
        "world": "market", "policy": "llm", "policy_options": {name: 3}}}  # fmt: skip
    with pytest.raises(ConfigError, match=f"{name} is a setting of the language model") as caught:
        check_scenario(load_settings(values), [])
    assert caught.value.hint == f"set llm.{name}"
