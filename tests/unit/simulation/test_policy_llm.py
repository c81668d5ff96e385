"""The policy that asks a language model: mem0's ``openai`` against a server on loopback."""

import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.settings import LlmSettings
from agents.errors import ConfigError, Diverged, InvalidAction, RunPaused, SimulationError
from agents.memory.records import Hits, short_id
from agents.simulation.policies.asking import Asker, Turn
from agents.simulation.policies.cassette import Cassette
from agents.simulation.policies.clients import Mem0Model
from agents.simulation.policies.llm import NO_OP, Llm
from agents.simulation.policies.model import Question
from agents.simulation.policies.model import Reply as ModelReply
from agents.simulation.policies.replies import actions_in
from agents.simulation.policies.template import DEFAULT
from agents.simulation.protocols import (
    Action,
    Answer,
    Ask,
    Conversation,
    Observation,
    Persona,
    Policy,
    Remark,
    Say,
)
from agents.simulation.tick.actions import as_action
from agents.simulation.tick.loop import Loop, Together
from agents.storage.mem0.models import ChatFailed, ChatModel
from banks import child
from embedders import Directions
from openai_server import Fault, OpenAIServer
from waiting import LONG, until

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # third-party code
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

Reply = Callable[[dict[str, Any]], Any]
KEY = "hush-hush-hush"
ACTIONS = {"wave": "greet somebody: to"}
SEEN = Observation("a street", agent_id="alice", tick=3)
WAVES = json.dumps({"actions": [{"name": "wave", "arguments": {"to": "bob"}}]})
WAVE = Action("wave", {"to": "bob"})


@pytest.fixture(scope="module")
def one_server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def server(one_server: OpenAIServer) -> OpenAIServer:
    one_server.reply = lambda _: WAVES
    one_server.requests = []
    return one_server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cassette.jsonl"


@functools.cache
def chat_model(url: str, timeout: float) -> Mem0Model:
    """One model for all tests, since making a client takes a while."""
    return Mem0Model(ChatModel(replace(settings(url), timeout=timeout)))


def settings(url: str) -> LlmSettings:
    return LlmSettings("openai", {"openai_base_url": url, "api_key": KEY, "model": "m"})


def policy(server: OpenAIServer | str, path: Path, *, replay: bool = False, **options: Any) -> Llm:
    url = server if isinstance(server, str) else server.url
    own = {"llm": LlmSettings(timeout=LONG), "pause": 0.0, **options}
    model = chat_model(url, own["llm"].timeout)
    return Llm(model, Cassette(path, replay), ACTIONS, **own)


NOBODY = "http://127.0.0.1:9/v1"
IMPATIENT = LlmSettings(patience=0)


def decide(made: Llm, seen: Observation = SEEN, hits: Hits | None = None) -> list[Any]:
    return list(made.decide(seen, Hits() if hits is None else hits, Random(0)))


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def one_after_the_other(*replies: object) -> Reply:
    """Gives one reply after another, or raises it if it is an error. The last reply repeats."""
    left = list(replies)

    def reply(_: object) -> Any:
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return given

    return reply


def prompt(server: OpenAIServer, number: int = -1) -> tuple[str, str]:
    system, user = server.requests[number][1]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    return system["content"], user["content"]


def test_it_is_a_policy_that_decides_for_all_at_once(path: Path) -> None:
    made = policy(NOBODY, path)
    assert isinstance(made, Policy)
    assert isinstance(made, Together)


def test_the_models_actions_are_the_agents(server: OpenAIServer, path: Path) -> None:
    assert decide(policy(server, path)) == [WAVE]
    (line,) = recorded(path)
    assert (line["tick"], line["agent"], line["attempt"]) == (3, "alice", 0)
    assert line["reply"] == WAVES
    assert line["messages"] == server.requests[0][1]["messages"]


def test_the_system_message_holds_the_scenario_the_actions_and_the_form(
    server: OpenAIServer, path: Path
) -> None:
    decide(policy(server, path, system="You trade grain."))
    system, _ = prompt(server)
    assert system.startswith("You trade grain.\n")
    assert "- wave: greet somebody: to\n" in system
    for name in ("store_memory", "set_memory_tier", "pin_memory", "unpin_memory"):
        assert f"- {name}: " in system
    form = '{"reason": "...", "actions": [{"name": "...", "arguments": {"...": "..."}}]}'
    assert form in system


def test_in_a_conversation_it_says_something_and_names_a_memory_by_its_short_id(
    server: OpenAIServer, path: Path
) -> None:
    talk = Conversation(["alice", "bob"], "the mill", turns=1, said=[("bob", "Well?\nSo?")])
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        memory = bank.agent("alice").add("the mill burned")
        hits = bank.agent("alice").search("mill")
        short = short_id(memory.id)
        replies = ["no", json.dumps({"say": 3}), json.dumps({"say": "Yes", "memory_id": short})]
        server.reply = one_after_the_other(*replies)
        assert policy(server, path).say(SEEN, hits, Random(0), talk) == Say("Yes", memory.id)
        server.reply = lambda _: '{"say": "", "memory_id": null}'
        assert policy(server, path).say(SEEN, Hits(), Random(0), talk) == Say()
    user = server.requests[0][1]["messages"][-1]["content"]
    assert user.startswith("You are alice. You talk with bob about the mill.")
    assert '- "bob: Well?\\nSo?"\n' in user
    assert f"- {short} the mill burned" in user
    assert "the last turn" in user


def test_a_template_puts_the_parts_of_a_prompt_in_its_own_order(
    server: OpenAIServer, path: Path
) -> None:
    template = "Be brief. {role}\n{persona}\n---\n# Now\n{situation}\n{memories}\n\n{actions}\n"
    decide(policy(server, path, template=template, system="You sing."))
    system, user = prompt(server)
    assert system == "Be brief. You sing.\nYou are alice."
    assert user.startswith("# Now\nTick 3. What you see:\na street\nYour memories, each with")
    assert user.endswith('"arguments": {"...": "..."}}]}')
    decide(policy(server, path, template="{role}\n\n{persona}{actions}{memories}{situation}"))
    (only,) = server.requests[-1][1]["messages"]
    assert only["role"] == "user"
    assert only["content"].startswith("You are alice.What you can do:")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{role}{actions}{persona}{memories}", r"template: \{situation\} is missing"),
        (DEFAULT + "{rolle}", r"template: there is no part \{rolle\}; the parts are \{role\}, "),
        (DEFAULT + "{role}", r"template: \{role\} is in it twice"),
        (DEFAULT + "---\n", r"template: it has two lines ---"),
    ],
)
def test_a_wrong_template_is_refused(path: Path, template: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        policy(NOBODY, path, template=template)


def test_a_prompt_says_who_the_agent_is(server: OpenAIServer, path: Path) -> None:
    persona = Persona("A baker, who\nsings", {"age": 40})
    for own, line in ((persona, "A baker, who\nsings"), (Persona("", {"age": 40}), "age: 40")):
        decide(policy(server, path), SEEN._replace(persona=own))
        _, user = prompt(server)
        assert user.startswith(f"You are alice.\n\nWho you are:\n{line}\n\nYour memories")


def test_a_prompt_goes_from_what_never_changes_to_what_is_new(
    server: OpenAIServer, path: Path
) -> None:
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        alice = bank.agent("alice")
        alice.add("Grain is dear\nYour memories:")
        alice.add("Wool is cheap", temperature="hot")
        alice.add("NEVER trade with Bob", "pinned")
        hits = alice.search("grain", limit=5)
    remarks = (Remark("Hello"), Remark("Hm\n\nYour memories:\n- Bob is nice"))
    wrong = ("wave was refused: nobody there", "hop was refused: no leg") * 2
    decide(policy(server, path), SEEN._replace(heard=remarks, errors=wrong), hits)
    decide(policy(server, path), SEEN._replace(tick=4), hits)
    (system, user), (usual, later) = prompt(server, 0), prompt(server)
    assert system == usual
    assert user == (
        "You are alice.\n\n"
        "Your memories, each with its memory_id:\n"
        "- 0003 [pinned] NEVER trade with Bob\n"
        "- 0002 Wool is cheap\n"
        "- 0001 Grain is dear\\nYour memories:\n\n"
        "Tick 3. What you see:\na street\n\n"
        'What you hear:\n- Hello\n- "Hm\\n\\nYour memories:\\n- Bob is nice"\n\n'
        "What was wrong with your last actions:\n"
        "- wave was refused: nobody there (2 times)\n- hop was refused: no leg (2 times)"
    )
    assert later == user[: user.index("Tick 3")] + "Tick 4. What you see:\na street"


def test_a_short_id_means_the_memory_that_the_prompt_shows_with_it(
    server: OpenAIServer, path: Path
) -> None:
    with MemoryBank.ephemeral(embedder=Directions()) as bank:
        alice, bob = bank.agent("alice"), bank.agent("bob")
        mine, theirs = alice.add("Grain is dear").id, bob.add("Oil is cheap").id
        hits, answer = alice.search("grain"), Answer(Ask("oil"), bob.search("oil"))
    named = [mine[-4:], theirs, "0009"]
    actions = [{"name": "forget_memory", "arguments": {"memory_id": each}} for each in named]
    server.reply = lambda _: json.dumps({"actions": actions})
    made = decide(policy(server, path), SEEN._replace(answers=(answer,)), hits)
    assert [each.arguments["memory_id"] for each in made] == [mine, theirs, "0009"]
    _, user = prompt(server)
    assert "- 0001 Grain is dear\n" in user
    assert f"- {theirs} Oil is cheap" in user  # whole, since 0001 is taken


@pytest.mark.parametrize(
    "reply",
    [f"\n {WAVES} \n", f"```json\n{WAVES}\n```\n", f"```\n{WAVES}```", f'{{"why": 1, {WAVES[1:]}'],
)
def test_fences_whitespace_and_other_keys_are_fine(
    server: OpenAIServer, path: Path, reply: str
) -> None:
    server.reply = lambda _: reply
    assert decide(policy(server, path, retries=0)) == [WAVE]


def test_a_malformed_action_in_a_good_reply_is_passed_on(server: OpenAIServer, path: Path) -> None:
    server.reply = lambda _: '{"actions": [7, {"nom": "wave"}, {"name": "wait"}]}'
    assert decide(policy(server, path)) == [7, {"nom": "wave"}, Action("wait", {})]


def test_the_first_action_has_the_reason_of_the_reply(server: OpenAIServer, path: Path) -> None:
    wave = {"name": "wave", "arguments": {"to": "bob"}}
    server.reply = lambda _: json.dumps({"reason": " it is polite ", "actions": [wave, wave]})
    assert decide(policy(server, path)) == [WAVE._replace(reason="it is polite"), WAVE]
    with pytest.raises(InvalidAction, match="a reason is text"):
        as_action({**wave, "reason": 3})


def test_doing_nothing_is_a_good_reply(server: OpenAIServer, path: Path) -> None:
    server.reply = lambda _: '{"actions": []}'
    assert decide(policy(server, path)) == []
    assert len(server.requests) == 1


def test_doing_nothing_may_have_a_reason(server: OpenAIServer, path: Path) -> None:
    server.reply = lambda _: '{"reason": " too far ", "actions": []}'
    assert decide(policy(server, path)) == [Action(NO_OP, reason="too far")]
    server.reply = lambda _: '{"reason": 3, "actions": []}'
    assert decide(policy(server, path), SEEN._replace(tick=4)) == []


@pytest.mark.parametrize(
    "reply",
    [
        "I wave to Bob.",
        "",
        "```",
        "[]",
        '{"actions": {"name": "wave"}}',
        '{"name": "wave"}',
        '{"actions": [{"name": "pay", "arguments": {"sum": NaN}}]}',
        '{"actions": [{"name": "pay", "arguments": {"sum": 1e999}}]}',
        '{"actions": [{"name": "a\\u0000b"}]}',
        '{"actions": [{"name": "say", "arguments": {"\\ud800": 1}}]}',
        '{"actions": [' + "[" * 60 + "]" * 60 + "]}",
        "[" * 100_000,
        '{"actions": [' + "9" * 10_000 + "]}",
        '{"actions": [{"name": "wave"}], "actions": [{"name": "wait"}]}',
        '{"actions": [{"name": "wave", "arguments": {"to": "bob", "to": "eve"}}]}',
    ],
)
def test_a_malformed_reply_is_asked_for_again(server: OpenAIServer, path: Path, reply: str) -> None:
    server.reply = one_after_the_other(reply, WAVES)
    assert decide(policy(server, path)) == [WAVE]
    assert [(line["attempt"], line["reply"]) for line in recorded(path)] == [(0, reply), (1, WAVES)]
    (_, first), (_, second) = prompt(server, -2), prompt(server)
    assert second.startswith(f"{first}\n\nYour last reply was no use: not the form asked for: ")
    assert len(second) < len(first) + 1000


def test_after_the_last_malformed_reply_the_agent_visibly_does_nothing(
    server: OpenAIServer, path: Path
) -> None:
    server.reply = lambda _: "I wave to Bob."
    ((name, arguments, _),) = decide(policy(server, path, retries=2))
    assert name == NO_OP
    assert arguments["reason"].startswith("no usable reply in 3 attempts; the last: not the form")
    assert len(recorded(path)) == len(server.requests) == 3


def test_while_the_server_is_away_it_is_asked_again_and_only_its_answers_are_recorded(
    server: OpenAIServer, path: Path
) -> None:
    server.reply = one_after_the_other(
        Fault(500), "not JSON", Fault(429), Fault(raw=b"HTTP/1.1 200 OK\r\n"), None, WAVES
    )
    assert decide(policy(server, path)) == [WAVE]
    assert len(server.requests) == 6
    lines = [(each["attempt"], each["kind"], each["reply"]) for each in recorded(path)]
    assert lines == [(0, None, "not JSON"), (1, None, ""), (2, None, WAVES)]


def test_it_asks_again_after_longer_and_longer_pauses_or_when_the_server_says(
    server: OpenAIServer, path: Path
) -> None:
    times: list[float] = []
    replies = one_after_the_other(
        Fault(), Fault(), Fault(429, {"Retry-After": "0.3"}), json.dumps({"actions": []})
    )

    def timed(request: dict[str, Any]) -> Any:
        times.append(time.monotonic())
        return replies(request)

    server.reply = timed
    said: list[str] = []
    made = policy(server, path, pause=0.02)
    made.on_wait(said.append)
    assert decide(made) == []
    first, second, third, fourth = times
    assert second - first >= 0.02
    assert third - second >= 0.04
    assert fourth - third >= 0.3
    assert len(said) == 1
    assert said[0].startswith("tick 3: waiting for the model, which gave alice no answer (Internal")


AWAY = [
    pytest.param(Fault(503), "no answer for 0 s: InternalServerError: .*let it answer", id="5xx"),
    pytest.param(
        Fault(429, {"Retry-After": "3600"}),
        "no answer for 0 s: RateLimit.*wait 3,600 s",
        id="too long",
    ),
    pytest.param(RuntimeError("no such model"), "no answer: BadRequest.*no such model", id="no"),
]


@pytest.mark.parametrize(("fault", "told"), AWAY)
def test_if_the_server_stays_away_the_run_is_paused_and_nothing_is_recorded(
    server: OpenAIServer, path: Path, fault: Exception, told: str
) -> None:
    server.reply = one_after_the_other(fault)
    with pytest.raises(RunPaused, match=rf"tick 3: the model gave alice {told}"):
        decide(policy(server, path, llm=IMPATIENT))
    assert not path.exists()
    server.reply = lambda _: WAVES
    assert decide(policy(server, path)) == [WAVE]


def test_a_refused_connection_is_an_outage(path: Path) -> None:
    with pytest.raises(RunPaused, match="APIConnectionError"):
        decide(policy(NOBODY, path, llm=IMPATIENT))


def test_what_others_were_answered_is_kept_when_the_run_is_paused(
    server: OpenAIServer, path: Path
) -> None:
    other_asked = threading.Event()

    def reply(request: dict[str, Any]) -> str:
        if "You are alice" in request["messages"][1]["content"]:
            other_asked.wait(LONG)
            raise Fault
        other_asked.set()
        time.sleep(0.1)
        return WAVES

    server.reply = reply
    with pytest.raises(RunPaused):
        run(policy(server, path, llm=IMPATIENT), ticks=1)
    assert {line["agent"] for line in recorded(path)} == {"bob", "carol"}


@pytest.mark.parametrize(("temperature", "calls"), [(0, 2), (0.5, 6)])
def test_equal_questions_of_a_tick_are_asked_once_if_the_model_is_greedy(
    server: OpenAIServer, path: Path, temperature: float, calls: int
) -> None:
    first = [{"role": "user", "content": "Who are you?"}]
    server.reply = lambda asked: WAVES if "no use" in json.dumps(asked) else "not JSON"
    own = LlmSettings(temperature=temperature)
    model = chat_model(server.url, LONG)
    for replay in (False, True):
        turns = [Turn(3, agent, Question(first), actions_in) for agent in ("alice", "bob", "carol")]
        Asker(model, Cassette(path, replay), own).ask(turns)
        assert [turn.found for turn in turns] == [[WAVE]] * 3
    assert len(server.requests) == calls
    assert [line.get("shared") for line in recorded(path)].count(True) == 6 - calls


def test_a_question_that_is_passed_over_is_a_no_op_also_in_a_replay(
    server: OpenAIServer, path: Path
) -> None:
    server.reply = one_after_the_other("not JSON", Fault(503))
    own = LlmSettings(patience=0, on_failure="no_op")
    made = policy(server, path, llm=own)
    ((name, arguments, _),) = passed = decide(made)
    assert name == NO_OP
    assert arguments["reason"].startswith("no usable reply in 2 attempts; the last: Internal")
    assert decide(made) == passed  # nobody is asked twice in a tick
    assert len(server.requests) == 2
    assert decide(policy(NOBODY, path, replay=True)) == passed
    server.reply = lambda _: WAVES
    assert decide(policy(server, path)) == [WAVE]  # whoever may ask, asks again
    assert decide(policy(NOBODY, path, replay=True)) == [WAVE]


@pytest.mark.slow
def test_a_hanging_reply_times_out_and_nobody_asks_again_behind_our_back(
    server: OpenAIServer, path: Path
) -> None:
    ChatModel(settings(server.url)).prepare()  # importing mem0 is not what is timed
    release = threading.Event()

    def hang(_: object) -> str:
        release.wait(LONG)
        return WAVES

    server.reply = hang
    with pytest.raises(RunPaused, match="Timeout: no reply within 1 s"):
        decide(policy(server, path, llm=replace(IMPATIENT, timeout=1.0)))
    until("the server has the request", lambda: len(server.requests) == 1)
    time.sleep(0.7)  # the client's own retries would come 0.5 s after its timeout
    assert len(server.requests) == 1
    release.set()
    time.sleep(0.1)  # the server reports the lost client while its output is captured


def test_a_reply_that_comes_late_is_taken_if_there_is_no_other_yet(path: Path) -> None:
    asked_again = threading.Event()
    calls: list[object] = []

    class Slow:
        def prepare(self) -> None:
            pass

        def reply(self, question: Question) -> ModelReply:
            calls.append(question)
            if len(calls) == 1:
                asked_again.wait(LONG)
                return ModelReply('{"actions": [{"name": "late"}]}')
            asked_again.set()
            threading.Event().wait(LONG)
            return ModelReply(WAVES)

    made = Llm(Slow(), Cassette(path), ACTIONS, llm=LlmSettings(timeout=0.1), pause=0.0)
    assert decide(made) == [Action("late", {})]
    assert [line["reply"] for line in recorded(path)] == ['{"actions": [{"name": "late"}]}']


def test_a_call_that_never_returns_does_not_keep_the_process(path: Path) -> None:
    code = """
import sys, threading
from random import Random
from agents.config.settings import LlmSettings
from agents.memory.records import Hits
from agents.simulation.policies.cassette import Cassette
from agents.simulation.policies.llm import Llm
from agents.simulation.protocols import Observation
class Never:
    def prepare(self): pass
    def reply(self, question): threading.Event().wait()
llm = LlmSettings(patience=0, on_failure="no_op", timeout=0.1)
made = Llm(Never(), Cassette(sys.argv[1]), {}, llm=llm)
print(made.decide(Observation("", agent_id="alice", tick=1), Hits(), Random(0))[0].name)
"""
    assert child(code, path) == NO_OP


def test_the_order_is_the_agents_whoever_answers_first(server: OpenAIServer, path: Path) -> None:
    agents = [f"a{n}" for n in range(12)]
    most = now = 0
    lock = threading.Lock()

    def reply(request: dict[str, Any]) -> str:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        name = request["messages"][1]["content"].split("You are ")[1].split(".")[0]
        time.sleep(0.02 * (12 - int(name[1:])))
        with lock:
            now -= 1
        return json.dumps({"actions": [{"name": name}]})

    server.reply = reply
    seen = [SEEN._replace(agent_id=agent) for agent in agents]
    made = policy(server, path, llm=LlmSettings(concurrency=4))
    answers = made.decide_all(seen, [Hits()] * 12, [Random(0)] * 12)
    assert [action.name for (action,) in answers] == agents
    assert 1 < most <= 4


def test_what_is_in_the_cassette_is_not_asked_again(server: OpenAIServer, path: Path) -> None:
    server.reply = one_after_the_other("no JSON", WAVES)
    first = decide(policy(server, path))
    assert decide(policy(server, path)) == first
    assert len(server.requests) == 2


def test_a_run_that_was_killed_between_two_attempts_goes_on_with_the_second(
    server: OpenAIServer, path: Path
) -> None:
    server.reply = lambda _: "no JSON"
    decide(policy(server, path, retries=0))
    server.reply = lambda _: WAVES
    assert decide(policy(server, path)) == [WAVE]
    assert [line["attempt"] for line in recorded(path)] == [0, 1]


def test_a_secret_reaches_neither_the_cassette_nor_an_error(
    server: OpenAIServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "from-the-environment")
    shown = f"{KEY}, from-the-environment, sk-abc***xyz, Bearer abc.def, http://me:pass@host/"
    server.reply = one_after_the_other(RuntimeError(f"wrong key: {shown}"))
    actions = decide(policy(server, path, llm=LlmSettings(on_failure="no_op")))
    with pytest.raises(ChatFailed) as caught:
        ChatModel(settings(server.url)).reply([{"role": "user", "content": "hello"}])
    for text in (path.read_text(), str(actions), str(caught.value)):
        assert "wrong key: ***, ***, ***, Bearer ***, http://***@host/" in text
        assert KEY not in text
    assert caught.value.__cause__ is None


def test_without_an_llm_the_error_says_what_to_set(path: Path) -> None:
    made = Llm(Mem0Model(ChatModel(LlmSettings(None, {}))), Cassette(path), ACTIONS)
    with pytest.raises(SimulationError, match=r"set llm\.base_url"):
        decide(made)
    assert not path.exists()


def test_a_key_of_openrouter_sends_nothing_there(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "x")
    config = {"openai_base_url": server.url, "api_key": KEY, "model": "m"}
    with pytest.raises(SimulationError, match="OPENROUTER_API_KEY is set"):
        ChatModel(LlmSettings(provider="openai", config=config)).prepare()


def test_a_client_that_cannot_be_made_ends_the_run_and_records_nothing(path: Path) -> None:
    model = Mem0Model(ChatModel(LlmSettings("openai", {"api_key": KEY, "modle": "m"})))
    with pytest.raises(SimulationError, match=r"LLM openai can't be set up: .*modle"):
        decide(Llm(model, Cassette(path), ACTIONS))
    assert not path.exists()


def test_a_bug_in_a_model_is_raised_where_it_was_asked(path: Path) -> None:
    class Broken:
        def prepare(self) -> None:
            pass

        def reply(self, question: Question) -> ModelReply:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        decide(Llm(Broken(), Cassette(path), ACTIONS))


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"pause": -1}])
def test_wrong_options_are_refused(path: Path, wrong: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        policy(NOBODY, path, **wrong)


class Street:
    """Every agent sees the number of waves."""

    actions = ACTIONS

    def setup(self, rng: Random, agent_ids: Sequence[str]) -> None:
        self.waves = 0

    def observe(self, agent_id: str) -> str:
        return f"{agent_id} saw {self.waves} waves"

    def apply(self, agent_id: str, action: Action) -> str:
        if action.name != "wave":
            raise InvalidAction("only waving is allowed here")
        self.waves += 1
        return f"waved to {action.arguments.get('to')}"

    def end_tick(self) -> None:
        pass

    def metrics(self) -> Mapping[str, float]:
        return {"waves": self.waves}

    def get_state(self) -> Any:
        return self.waves

    def set_state(self, state: Any) -> None:
        self.waves = state


def run(made: Llm, ticks: int = 4) -> list[str]:
    """The state hash after each tick."""
    with MemoryBank.ephemeral(embedder=Directions(), seed=7) as bank:
        loop = Loop(bank, Street(), made, ["alice", "bob", "carol"])
        loop.begin()
        return [loop.tick()["state_hash"] for _ in range(ticks)]


def moody() -> Reply:
    """Gives another reply each time, also to the same question; some attempts fail."""
    count = iter(range(1000))

    def reply(_: object) -> str:
        number = next(count)
        if number % 5 == 4:
            raise Fault
        if number % 7 == 5:
            return f"not JSON {number}"
        actions = [
            {"name": "wave", "arguments": {"to": f"number {number}"}},
            {"name": "store_memory", "arguments": {"content": f"thought {number}"}},
            {"name": "jump"},
        ]
        return json.dumps({"actions": actions[: number % 3 + 1]})

    return reply


def test_a_run_is_replayed_offline_from_its_cassette(server: OpenAIServer, path: Path) -> None:
    server.reply = moody()
    hashes = run(policy(server, path, retries=1))
    lines = recorded(path)
    assert {line["kind"] for line in lines} == {None}
    before = path.read_bytes()
    asked = len(server.requests)
    assert run(policy(NOBODY, path, replay=True, retries=1)) == hashes
    assert path.read_bytes() == before
    assert len(server.requests) == asked


def test_a_replay_of_more_ticks_than_were_recorded_diverges(
    server: OpenAIServer, path: Path
) -> None:
    run(policy(server, path), ticks=2)
    with pytest.raises(Diverged, match=r"tick 3, agent 'alice', .*nothing was recorded"):
        run(policy(NOBODY, path, replay=True), ticks=3)


def test_a_replay_with_another_prompt_diverges(server: OpenAIServer, path: Path) -> None:
    run(policy(server, path), ticks=1)
    with pytest.raises(Diverged, match=r"tick 1, agent 'alice', .*different when recorded"):
        run(policy(NOBODY, path, replay=True, system="Be kind."), ticks=1)
