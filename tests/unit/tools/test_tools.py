"""The operations: every one works as its table says, and no call of it can do harm."""

import doctest
import importlib
import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import agents
from agents import AgentMemory, InvalidInput, InvalidMetadata, MemoryBank, Retention, tools
from agents.tools import OPERATIONS
from agents.tools.calling import run
from agents.tools.checking import _MOST_ITEMS

NAMES = sorted(OPERATIONS)
FOR_AGENTS = [n for n, each in OPERATIONS.items() if each.permission in ("read", "write")]
Json = dict[str, Any]
MakeBank = Callable[..., MemoryBank]


def fits(schema: Json, value: object) -> bool:
    Draft202012Validator(schema).validate(value)
    return True


def done(memory: AgentMemory, name: str, **arguments: Any) -> Json:
    """The result of an operation that must succeed, and fit its schema."""
    outcome = tools.call(memory, name, arguments, "advance")
    assert outcome.failure is None, outcome.failure
    assert outcome.result is not None
    assert fits(OPERATIONS[name].result, outcome.result)
    return json_of(outcome)


def refused(memory: AgentMemory, name: str, arguments: object) -> tools.Failure:
    """Why an operation was not done."""
    outcome = tools.call(memory, name, arguments, "advance")
    assert outcome.is_error
    assert outcome.result is None
    assert outcome.failure is not None
    assert json_of(outcome) == {"error": outcome.failure._asdict()}
    assert fits(tools.ERROR, outcome.to_dict())
    return outcome.failure


def json_of(outcome: tools.Outcome) -> Json:
    """An outcome as it goes over a wire."""
    text = json.dumps(outcome.to_dict(), allow_nan=False, ensure_ascii=False)
    again: Json = json.loads(text.encode())
    assert again == outcome.to_dict()
    return again


def example(name: str, memory: AgentMemory) -> Json:
    """The example of an operation, about a memory that there is."""
    given = dict(OPERATIONS[name].example)
    if "memory_id" in given:
        given["memory_id"] = memory.add("NEVER transfer to agent_X <1 0>").id
    if "old" in given:
        memory.notes.write(given["path"], given["old"])
    if "to" in given and name == "memory_tell":
        MemoryBank(memory.engine).agent("bob").add("bob's own")
    if "group" in given:
        MemoryBank(memory.engine).group(given["group"], [memory.agent_id])
    return given


# The table


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_is_described_whole(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.name == name
    assert operation.permission in ("read", "write", "tell", "advance")
    assert operation.description.endswith(".")
    for each in operation.arguments["properties"].values():
        assert each["description"].endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_are_json_schema_of_2020_12(name: str) -> None:
    operation = OPERATIONS[name]
    for schema in (operation.arguments, operation.result):
        Draft202012Validator.check_schema(schema)
        assert json.loads(json.dumps(schema)) == schema
    assert operation.arguments["type"] == "object"
    assert operation.arguments["additionalProperties"] is False


@pytest.mark.parametrize("name", NAMES)
def test_what_is_in_the_path_of_a_route_is_a_required_argument(name: str) -> None:
    operation = OPERATIONS[name]
    in_path = [part[1:-1] for part in operation.route.path.split("/") if part.startswith("{")]
    assert set(in_path) <= set(operation.arguments.get("required", ()))


def test_no_argument_takes_a_longer_list_than_is_looked_at() -> None:
    for operation in OPERATIONS.values():
        for schema in operation.arguments["properties"].values():
            for each in (schema, *schema.get("anyOf", ())):
                assert each.get("type") != "array" or each["maxItems"] <= _MOST_ITEMS


def test_no_two_operations_have_the_same_route() -> None:
    routes = {(each.route.method, each.route.path) for each in OPERATIONS.values()}
    assert len(routes) == len(OPERATIONS)


# Calling


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_an_operation_works(name: str, alice: AgentMemory) -> None:
    given = example(name, alice)
    assert fits(OPERATIONS[name].arguments, given)
    done(alice, name, **given)


@pytest.mark.parametrize("name", NAMES)
def test_null_for_what_is_optional_means_that_it_is_not_given(
    name: str, make_bank: MakeBank
) -> None:
    operation = OPERATIONS[name]
    optional = operation.arguments["properties"].keys() - set(
        operation.arguments.get("required", ())
    )
    one, other = make_bank().agent("alice"), make_bank().agent("alice")
    given = example(name, one)
    assert example(name, other) == given  # ids are the same in equal banks
    nulls = dict.fromkeys(optional - given.keys())
    assert done(one, name, **given, **nulls) == done(other, name, **given)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "required" in OPERATIONS[name].arguments]
)
def test_null_for_what_is_required_is_refused(name: str, alice: AgentMemory) -> None:
    given = example(name, alice)
    for each in OPERATIONS[name].arguments["required"]:
        assert refused(alice, name, {**given, each: None}).type == "InvalidInput"
        without = {key: value for key, value in given.items() if key != each}
        assert each in refused(alice, name, without).message


@pytest.mark.parametrize("name", ["memory_status", "memory_compact", "memory_spill"])
@pytest.mark.parametrize("arguments", [None, {}])
def test_arguments_may_be_left_out(name: str, arguments: object, alice: AgentMemory) -> None:
    assert not tools.call(alice, name, arguments).is_error


@pytest.mark.parametrize("arguments", [[], "text", 3, True, [["content", "x"]]])
def test_arguments_are_an_object(arguments: object, alice: AgentMemory) -> None:
    failure = refused(alice, "store_memory", arguments)
    assert failure.type == "InvalidInput"
    assert "object" in failure.message


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("store_memories", "store_memory"),
        ("memory_serch", "memory_search"),
        ("MEMORY_GET", None),
        ("rm -rf", None),
    ],
)
def test_an_unknown_operation_suggests_the_near_one(
    wrong: str, right: str | None, alice: AgentMemory
) -> None:
    failure = refused(alice, wrong, {})
    assert failure.type == "InvalidInput"
    assert wrong in failure.message
    for name in [right] if right else NAMES:
        assert name in failure.message


def test_an_error_says_which_argument_is_wrong_and_what_is_allowed(alice: AgentMemory) -> None:
    failure = refused(alice, "store_memory", {"content": "x", "tier": "vital"})
    assert failure.message.startswith("store_memory: tier 'vital' is not one of ['pinned',")


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("store_memory", "teir", "did you mean tier?"),
        ("store_memory", "contents", "did you mean content?"),
        ("memory_search", "max_result", "did you mean max_results?"),
        ("store_memory", "xyz", "there are content, tier, key"),
        ("memory_status", "agent", "there are session"),
    ],
)
def test_an_unknown_argument_suggests_the_near_one(
    name: str, wrong: str, hint: str, alice: AgentMemory
) -> None:
    failure = refused(alice, name, {wrong: "low"})
    assert failure.type == "InvalidInput"
    assert failure.message == f"{name} takes no argument '{wrong}'; {hint}"


def test_a_long_value_is_not_repeated_whole(alice: AgentMemory) -> None:
    failure = refused(alice, "store_memory", {"content": "x", "tier": "y" * 100_000})
    assert len(failure.message) <= 1000
    assert "is not one of" in failure.message


def test_whole_numbers_are_whole(alice: AgentMemory) -> None:
    ids = [alice.add(f"fact {n}", temperature="hot").id for n in range(3)]
    assert len(done(alice, "memory_query", limit=2.0)["results"]) == 2  # which JSON calls whole
    assert list(done(alice, "memory_spill", count=1.0)["moved"]) == [ids[0]]
    added = done(alice, "memory_add", content="x", ttl=5.0, metadata={"n": 3.0})
    assert (added["expires_tick"], added["metadata"]) == (5, {"n": 3.0})
    assert type(alice.get(added["id"]).metadata["n"]) is float  # it is the caller's own
    for limit in (2.5, True, "3", 0, 1001, 1001.0):
        assert refused(alice, "memory_recall", {"query": "x", "limit": limit})


@pytest.mark.parametrize("name", ["memory_search", "memory_recall", "memory_query"])
def test_a_query_that_is_too_long_is_told_so(name: str, alice: AgentMemory) -> None:
    done(alice, name, query="x" * 16_384)
    failure = refused(alice, name, {"query": "x" * 16_385})
    assert failure.message == f"{name}: query has 16,385 characters, of at most 16,384"


def test_a_recall_shows_how_hot_each_memory_is_and_may_leave_out_the_cold(
    alice: AgentMemory,
) -> None:
    for heat in ("hot", "warm", "cold"):
        done(alice, "memory_add", content=f"{heat} <1 1>", temperature=heat)
    given = {"query": "<1 0>", "auto_promote": False}
    found = done(alice, "memory_recall", **given)["results"]
    assert {each["temperature"] for each in found} == {"hot", "warm", "cold"}
    found = done(alice, "memory_recall", **given, include_cold=False)["results"]
    assert {each["temperature"] for each in found} == {"hot", "warm"}
    assert [each["usage_count"] for each in found] == [2, 2]
    assert [each["decay_score"] for each in found] == [1.0, 1.0]


def test_a_spill_frees_one_memory_or_as_many_tokens(alice: AgentMemory) -> None:
    for number in range(3):
        done(alice, "memory_add", content=f"{number} <1 0>", temperature="hot")
    assert len(done(alice, "memory_spill")["moved"]) == 1
    assert len(done(alice, "memory_spill", tokens=4)["moved"]) == 2
    assert refused(alice, "memory_spill", {"tokens": 1, "count": 1}).type == "InvalidInput"


def test_how_long_a_text_may_be_is_for_the_bank_to_say(make_bank: MakeBank) -> None:
    most = OPERATIONS["store_memory"].arguments["properties"]["content"]["maxLength"]
    large = make_bank(memory={"max_content_bytes": most}).agent("alice")  # as many as there may be
    assert len(done(large, "store_memory", content="x" * most)["content"]) == most
    failure = refused(make_bank().agent("alice"), "store_memory", {"content": "x" * 16_385})
    assert failure.type == "InvalidContent"
    assert "16,384" in failure.message


@pytest.mark.parametrize("tag", ["a,b", " a", "a ", "\ta", ",", " ", ""])
def test_a_tag_that_is_refused_does_not_fit_the_schema(tag: str, alice: AgentMemory) -> None:
    tags = OPERATIONS["memory_add"].arguments["properties"]["tags"]
    assert not Draft202012Validator(tags).is_valid([tag])
    assert refused(alice, "memory_add", {"content": "x", "tags": [tag]}).type == "InvalidInput"
    for right in ("a", "a b", "ü-1"):
        assert fits(tags, [right])
        assert done(alice, "memory_add", content="x", tags=[right])["tags"] == [right]


def test_a_number_too_long_to_show_is_refused_in_words(
    alice: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    failure = refused(alice, "memory_add", {"content": "x", "metadata": {"n": 10**5000}})
    assert failure.type == "InvalidMetadata"
    assert "whole ones of 64 bits" in failure.message
    assert caplog.records == []


def test_session_and_speaker_are_said_once_or_alike(alice: AgentMemory) -> None:
    for name in ("session", "speaker"):
        given = {"content": "x", name: "a"}
        failure = refused(alice, "memory_add", {**given, "metadata": {name: "b"}})
        assert failure.type == "InvalidMetadata"
        assert failure.message == f"metadata says another {name} than the option {name}; " + (
            "give it once"
        )
        same = done(alice, "memory_add", **given, metadata={name: "a", "n": 1})
        assert same["metadata"] == {"n": 1, name: "a"}
        with pytest.raises(InvalidMetadata):
            alice.add("x", metadata={name: "b"}, **{name: "a"})
        with pytest.raises(InvalidMetadata):
            alice.add_many([("x", "normal", {name: None}, {name: "a"})])


def test_no_error_or_suggestion_names_a_method_of_python(make_bank: MakeBank) -> None:
    alice = make_bank(status={"spill_above": 0.0}).agent("alice")
    pinned = alice.add("north", "pinned").id
    archived = alice.update(alice.add("south").id, retention="archived").id
    deleted = alice.add("east").id
    alice.delete(deleted)
    said = [
        refused(alice, name, arguments).message
        for name, arguments in (
            ("memory_forget", {"memory_id": pinned}),
            ("memory_spill", {"ids": [pinned]}),
            ("memory_spill", {"ids": [], "count": 1}),
            ("memory_update", {"memory_id": pinned, "temperature": "cold"}),
            ("memory_update", {"memory_id": archived, "temperature": "cold"}),
            ("memory_get", {"memory_id": deleted}),
            ("memory_query", {"query": "x", "retention": "deleted"}),
        )
    ]
    full = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"}).agent("alice")
    full.add("north", "pinned")
    said.append(refused(full, "store_memory", {"content": "south", "tier": "pinned"}).message)
    suggestions = done(alice, "memory_status")["suggestions"]
    assert suggestions
    for text in (*said, *(each["reason"] for each in suggestions)):
        assert not re.search(r"\w\(", text), text


def test_the_errors_of_the_bank_are_told_by_their_names(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_pinned": 1, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    pinned = done(alice, "store_memory", content="a", tier="pinned")["id"]
    assert refused(alice, "store_memory", {"content": "b", "tier": "pinned"}).type == "TierFull"
    assert refused(alice, "memory_forget", {"memory_id": pinned}).type == "MemoryPinned"
    assert refused(alice, "store_memory", {"content": " "}).type == "InvalidContent"
    failure = refused(alice, "append_note", {"text": "x", "path": "../bob/MEMORY.md"})
    assert failure.type == "NoteRefused"
    bank.close()
    assert refused(alice, "memory_status", {}).type == "BankClosed"


def test_what_goes_wrong_inside_is_logged_and_told_without_details(
    alice: AgentMemory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(memory: AgentMemory, arguments: Json) -> Json:
        raise ZeroDivisionError("secret")

    broken = OPERATIONS["memory_status"]._replace(run=fail)
    monkeypatch.setitem(OPERATIONS, "memory_status", broken)
    failure = refused(alice, "memory_status", {})
    assert failure.type == "InternalError"
    assert "secret" not in failure.message
    assert "secret" in caplog.text


def test_run_raises_what_call_tells(alice: AgentMemory) -> None:
    assert run(alice, "store_memory", {"content": "x"})["content"] == "x"
    with pytest.raises(InvalidInput):
        run(alice, "store_memory", {})


def test_the_examples_in_docstrings_run() -> None:
    failed, tried = doctest.testmod(importlib.import_module("agents.tools"))
    assert (failed, tried > 0) == (0, True)


# Hostile calls


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = wrap(value)
    return value


DEEP_LIST = nested(100_000, lambda inner: [inner])
DEEP_OBJECT = nested(100_000, lambda inner: {"a": inner})

NEVER_RIGHT = {
    "bytes": b"x",
    "object": object(),
    "tuple": ("x",),
    "set": {"x"},
    "nan": float("nan"),
    "infinity": float("inf"),
    "beyond 64 bits": 2**64,
    "too long to show": 10**5000,
    "negative": -1,
    "deep list": DEEP_LIST,
    "deep object": DEEP_OBJECT,
    "list of lists": [["x"]],
    "list of nulls": [None],
    "keys that are not text": {1: 2},
    "object of objects": {"a": {"b": 1}},
    "deep inside": {"a": DEEP_OBJECT},
    "function": len,
}
PERHAPS_RIGHT = {
    "empty": "",
    "blank": " \n",
    "nul": "a\0b",
    "lone surrogate": "a\ud800b",
    "huge": "x" * 2_000_000,
    "another tier": "PINNED",
    "every agent": "*",
    "outside": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "sql": "'; DROP TABLE memories; --",
    "template": "{0.__class__}",
    "an id": "1c5a9a4e-7d0f-8c11-9b7c-000000000001",
    "zero": 0,
    "minus zero": -0.0,
    "fraction": 0.5,
    "large": 2**53,
    "true": True,
    "empty list": [],
    "empty object": {},
    "reserved key": {"tier": "pinned"},
    "surrogate in a key": {"\ud800": 1},
    "many": ["x"] * 100_000,
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NAMES)
def test_hostile_arguments_are_told_and_never_raised(
    name: str, alice: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    given = example(name, alice)
    operation = OPERATIONS[name]
    for argument in operation.arguments["properties"]:
        for value in PERHAPS_RIGHT.values():
            outcome = tools.call(alice, name, {**given, argument: value}, "advance")
            json_of(outcome)
            assert outcome.is_error or fits(operation.result, outcome.result)
    assert caplog.records == []  # none was an error inside


@pytest.mark.parametrize("name", NAMES)
def test_values_that_no_argument_takes_are_refused(
    name: str, alice: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    given = example(name, alice)
    before = MemoryBank(alice.engine).state_hash()
    for argument in [*OPERATIONS[name].arguments["properties"], "one too many", "\ud800"]:
        for what, value in NEVER_RIGHT.items():
            if (argument, what) == ("value", "object of objects"):
                continue  # the one argument that is nested
            failure = refused(alice, name, {**given, argument: value})
            assert issubclass(getattr(agents, failure.type), InvalidInput), what
            assert len(failure.message) <= 1000
    assert MemoryBank(alice.engine).state_hash() == before
    assert caplog.records == []


@pytest.mark.parametrize("what", NEVER_RIGHT)
def test_hostile_names_and_arguments_are_told_and_never_raised(
    what: str, alice: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    value: Any = NEVER_RIGHT[what]
    assert refused(alice, value, {}).type == "InvalidInput"
    for name in NAMES:
        assert refused(alice, name, value).type == "InvalidInput"
    assert caplog.records == []


def test_a_key_that_is_no_text_is_refused(alice: AgentMemory) -> None:
    arguments: dict[Any, Any] = {"content": "x", 3: "y", None: "z"}
    assert refused(alice, "store_memory", arguments).type == "InvalidInput"


def test_no_argument_reaches_another_parameter_of_the_method(alice: AgentMemory) -> None:
    for name, argument in [
        ("memory_recall", "self"),
        ("memory_search", "agent_id"),
        ("memory_query", "context_tokens"),
        ("memory_query", "include_cold"),
        ("memory_add", "expires_tick"),
    ]:
        given = {**example(name, alice), argument: 1}
        assert "takes no argument" in refused(alice, name, given).message


def test_a_model_can_not_move_the_clock(bank: MemoryBank) -> None:
    refused = tools.call(bank.agent("alice"), "memory_advance", {"by": 3})
    assert refused.failure is not None
    assert refused.failure.type == "NotAllowed"
    assert bank.tick == 0
    allowed = tools.call(bank.agent("alice"), "memory_advance", {"by": 3}, "advance")
    assert allowed.result is not None
    assert allowed.result["tick"] == bank.tick == 3


# Agents are apart

WITH_IDS = [
    *((name, "memory_id") for name in NAMES if "memory_id" in OPERATIONS[name].example),
    ("memory_get", "memory_id"),
    ("memory_spill", "ids"),
]


@pytest.mark.parametrize(("name", "argument"), WITH_IDS)
def test_the_id_of_another_agents_memory_is_not_found(
    name: str, argument: str, bank: MemoryBank
) -> None:
    bob = bank.agent("bob")
    theirs = bob.add("bob's secret", temperature="hot")
    mine = {} if name in ("memory_get", "memory_spill") else dict(OPERATIONS[name].example)
    wanted = [theirs.id] if argument == "ids" else theirs.id
    before = bank.state_hash()
    alice = bank.agent("alice")
    failure = refused(alice, name, {**mine, argument: wanted})
    assert failure.type == "MemoryNotFound"
    assert "secret" not in failure.message
    unknown = theirs.id[:-1] + "9"
    nobodys = [unknown] if argument == "ids" else unknown
    same = refused(alice, name, {**mine, argument: nobodys})
    assert same.message.replace(unknown, theirs.id) == failure.message  # it tells nothing
    assert bank.state_hash() == before


def test_every_argument_for_ids_is_tried_above() -> None:
    taking = {
        (name, argument)
        for name in NAMES
        for argument in OPERATIONS[name].arguments["properties"]
        if argument in ("memory_id", "ids")
    }
    assert taking == set(WITH_IDS)


@pytest.mark.parametrize("name", ["memory_search", "memory_recall", "memory_query"])
def test_searches_find_nothing_of_another_agent(name: str, bank: MemoryBank) -> None:
    bank.agent("bob").add("the secret <1 0>", "pinned")
    bank.agent("bob").notes.write("MEMORY.md", "the secret note <1 0>\n")
    assert done(bank.agent("alice"), name, query="the secret <1 0>")["results"] == []
    alice = bank.agent("alice")
    assert done(alice, "memory_get", path="MEMORY.md")["text"] == ""


# What each does


def test_storing_gives_the_memory_byte_for_byte(alice: AgentMemory) -> None:
    text = "  “Zoë” \r\n\t🦊 e\u0301  "
    stored = done(alice, "store_memory", content=text)
    assert (stored["content"], stored["tier"], stored["kind"]) == (text, "normal", "fact")
    assert alice.get(stored["id"]).content == text


def test_adding_takes_all_that_can_be_said(alice: AgentMemory) -> None:
    added = done(
        alice, "memory_add", content="x", tier="critical", kind="decision", tags=["b", "a"],
        temperature="hot", ttl=5, session="talk", speaker="Bob", metadata={"n": 1, "f": 0.5},
    )  # fmt: skip
    assert added["tags"] == ["a", "b"]
    assert added["metadata"] == {"f": 0.5, "n": 1, "session": "talk", "speaker": "Bob"}
    assert (added["temperature"], added["expires_tick"]) == ("hot", 5)
    wrong: list[Json] = [{"tier": "low"}, {"agent_id": "bob"}, {"a": []}, {"n": float("nan")}]
    for metadata in wrong:
        arguments = {"content": "x", "metadata": metadata}
        assert refused(alice, "memory_add", arguments).type in ("InvalidMetadata", "InvalidInput")
    assert alice.count() == 1


def test_tiers_are_set_pinned_and_unpinned(alice: AgentMemory) -> None:
    memory_id = done(alice, "store_memory", content="x")["id"]
    assert done(alice, "set_memory_tier", memory_id=memory_id, tier="low")["tier"] == "low"
    assert done(alice, "pin_memory", memory_id=memory_id)["temperature"] == "hot"
    unpinned = done(alice, "unpin_memory", memory_id=memory_id)
    assert (unpinned["tier"], unpinned["temperature"]) == ("normal", "warm")


def test_recall_says_what_it_promoted(alice: AgentMemory) -> None:
    memory = alice.add("the bridge <1 0>", kind="decision", temperature="cold")
    plain = done(alice, "memory_recall", query="the bridge <1 0>", auto_promote=False)
    assert [each["id"] for each in plain["results"]] == [memory.id]
    assert plain["promoted"] == []
    assert done(alice, "memory_recall", query="the bridge <1 0>")["promoted"] == [memory.id]
    others = done(alice, "memory_recall", query="the bridge <1 0>", kinds=["fact", "action"])
    assert others["results"] == []


def test_spilling_takes_a_count_or_ids(alice: AgentMemory) -> None:
    ids = [alice.add(f"{n}", temperature="hot").id for n in range(3)]
    moved = done(alice, "memory_spill", ids=ids[:1])["moved"]
    assert list(moved) == ids[:1]
    assert len(done(alice, "memory_spill", count=1)["moved"]) == 1
    assert refused(alice, "memory_spill", {"count": 1, "ids": ids}).type == "InvalidInput"


def test_status_is_plain_json(alice: AgentMemory) -> None:
    alice.add("x", "pinned")
    status = done(alice, "memory_status")
    assert (status["agent_id"], status["tiers"]["pinned"]["items"]) == ("alice", 1)


def test_a_note_is_written_found_and_read(alice: AgentMemory) -> None:
    lines = "# The dragon\n\nIt sleeps at noon. <1 0>\n"
    assert done(alice, "append_note", text=lines, path="MEMORY.md") == {"path": "MEMORY.md"}
    (found,) = done(alice, "memory_search", query="<1 0>")["results"]
    assert (found["citation"], found["kind"]) == ("MEMORY.md#L1-L3", "note")
    (hidden,) = done(alice, "memory_search", query="<1 0>", group=True)["results"]
    assert hidden["citation"] is None
    place = {"source": "note", "path": "MEMORY.md", "from": 1, "to": 3}
    assert [{key: each[key] for key in place} for each in (found, hidden)] == [place] * 2
    alice.add("<1 0.1>")
    (fact,) = done(alice, "memory_search", query="<1 0>", kind="fact")["results"]
    assert fact["source"] == "memory"
    assert [fact[key] for key in ("path", "from", "to", "citation")] == [None] * 4
    read = done(alice, "memory_get", path="MEMORY.md", **{"from": 3, "lines": 1})
    assert read == {"path": "MEMORY.md", "from": 3, "to": 3, "text": "It sleeps at noon. <1 0>\n"}
    assert done(alice, "append_note", text="today")["path"].startswith("memory/")


def test_a_note_is_replaced_and_edited(alice: AgentMemory) -> None:
    path = "memory/plans/trade.md"
    assert done(alice, "write_note", path=path, text="salt is dear\n") == {"path": path}
    assert done(alice, "edit_note", path=path, old="salt", new="fish") == {"path": path}
    assert done(alice, "memory_get", path=path)["text"] == "fish is dear\n"
    failure = refused(alice, "edit_note", {"path": path, "old": "gold", "new": "x"})
    assert failure.type == "InvalidInput"
    assert "exactly once" in failure.message
    for name, more in (("write_note", {"text": "x"}), ("edit_note", {"old": "x", "new": "y"})):
        failure = refused(alice, name, {"path": "../bob/MEMORY.md", **more})
        assert failure.type == "NoteRefused"
    assert done(alice, "write_note", path=path, text="")
    assert done(alice, "memory_get", path=path)["text"] == ""


def test_getting_takes_a_path_or_an_id(alice: AgentMemory) -> None:
    memory = alice.add("x")
    assert done(alice, "memory_get", memory_id=memory.id)["memory"]["content"] == "x"
    for wrong in (
        {},
        {"path": "MEMORY.md", "memory_id": memory.id},
        {"memory_id": memory.id, "lines": 3},
    ):
        assert refused(alice, "memory_get", wrong).type == "InvalidInput"


def test_a_dry_run_of_compacting_says_what_would_move(make_bank: MakeBank) -> None:
    rule = {"name": "done", "when": {"tag": "done"}, "to": "cold"}
    alice = make_bank(temperature={"rules": [rule]}).agent("alice")
    memory = alice.add("x", tags=["done"])
    would = done(alice, "memory_compact", dry_run=True)
    assert would["moves"] == [{"memory_id": memory.id, "to": "cold", "rule": "done"}]
    assert alice.get(memory.id).temperature.name == "WARM"
    assert done(alice, "memory_compact")["cold"] == 1


def test_forgetting_can_be_undone_unless_it_purges(alice: AgentMemory) -> None:
    one, other = alice.add("one"), alice.add("other")
    assert done(alice, "memory_forget", memory_id=one.id)["purged"] is False
    back = done(alice, "memory_update", memory_id=one.id, retention="active")
    assert back["retention"] == "active"
    assert done(alice, "memory_forget", memory_id=other.id, purge=True)["purged"] is True
    arguments = {"memory_id": other.id, "retention": "active"}
    assert refused(alice, "memory_update", arguments).type == "MemoryNotFound"


# Querying


@pytest.fixture
def varied(bank: MemoryBank) -> AgentMemory:
    alice = bank.agent("alice")
    alice.add("pin <1 0>", "pinned", tags=["x"])
    alice.add("fact <1 0.1>", "critical", kind="decision", tags=["x", "y"])
    alice.add("cold <1 0.2>", temperature="cold", kind="action")
    bank.advance(5)
    alice.add("late <1 3>", "low", temperature="hot", tags=["z"])
    alice.update(alice.add("archived <1 0>", "critical", tags=["x"]).id, retention="archived")
    alice.delete(alice.add("deleted <1 0>", kind="action").id)
    return alice


def found(memory: AgentMemory, **arguments: Any) -> list[str]:
    results = done(memory, "memory_query", **arguments)["results"]
    return [each["content"].split()[0] for each in results]


@pytest.mark.parametrize(
    ("filters", "newest", "best"),
    [
        ({}, ["late", "fact", "pin"], ["pin", "fact", "late"]),
        ({"tier": "critical"}, ["fact"], ["fact"]),
        ({"tier": ["pinned", "low"]}, ["late", "pin"], ["pin", "late"]),
        ({"temperature": "hot"}, ["late", "pin"], ["pin", "late"]),
        ({"temperature": "cold"}, ["cold"], ["cold"]),
        ({"temperature": ["warm", "cold"]}, ["cold", "fact"], ["fact", "cold"]),
        ({"kind": "action"}, [], []),
        ({"kind": ["decision", "action"]}, ["fact"], ["fact"]),
        ({"tags": "x"}, ["fact", "pin"], ["pin", "fact"]),
        ({"tags": ["y", "z"]}, ["late", "fact"], ["fact", "late"]),
        ({"since_tick": 5}, ["late"], ["late"]),
        ({"min_score": 0}, ["late", "fact", "pin"], ["pin", "fact", "late"]),
        ({"limit": 1}, ["late"], ["pin"]),
        ({"tier": "critical", "tags": "z"}, [], []),
        ({"retention": "active", "tags": "y"}, ["fact"], ["fact"]),
    ],
)
def test_a_filter_holds_with_a_query_and_without(
    filters: Json, newest: list[str], best: list[str], varied: AgentMemory
) -> None:
    assert found(varied, **filters) == newest
    assert found(varied, query=" ", **filters) == newest
    assert found(varied, query="<1 0>", **filters) == best


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"retention": "archived"}, ["archived"]),
        ({"retention": "deleted"}, ["deleted"]),
        ({"retention": "archived", "tags": "x", "tier": "critical"}, ["archived"]),
        ({"retention": "archived", "kind": "action"}, []),
        ({"retention": "deleted", "kind": "action", "since_tick": 5}, ["deleted"]),
    ],
)
def test_archived_and_deleted_memories_are_listed(
    filters: Json, names: list[str], varied: AgentMemory
) -> None:
    assert found(varied, **filters) == names
    failure = refused(varied, "memory_query", {**filters, "query": "<1 0>"})
    assert "listed, not searched" in failure.message


def test_what_is_purged_is_listed_nowhere(varied: AgentMemory) -> None:
    for retention in ("archived", "deleted"):
        (each,) = done(varied, "memory_query", retention=retention)["results"]
        done(varied, "memory_forget", memory_id=each["id"], purge=True)
        assert found(varied, retention=retention) == []


def test_listing_counts_as_no_use_and_searching_does(varied: AgentMemory) -> None:
    found(varied)
    assert all(memory.access_count == 0 for memory in varied.all())
    found(varied, query="<1 0>", tier="critical")
    assert [memory.access_count for memory in varied.all("critical")] == [1]


# Updating


def test_an_update_changes_all_that_is_given(alice: AgentMemory) -> None:
    memory = alice.add("x", temperature="hot")
    changed = done(
        alice, "memory_update", memory_id=memory.id, tier="critical", temperature="cold",
        retention="archived",
    )  # fmt: skip
    state = changed["tier"], changed["temperature"], changed["retention"]
    assert state == ("critical", "cold", "archived")
    changed = done(
        alice, "memory_update", memory_id=memory.id, tier="low", temperature="warm",
        retention="active",
    )  # fmt: skip
    state = changed["tier"], changed["temperature"], changed["retention"]
    assert state == ("low", "warm", "active")


def test_an_update_gives_a_new_value_with_a_new_text(alice: AgentMemory) -> None:
    memory = alice.add("x", value={"n": 1})
    changed = done(alice, "memory_update", memory_id=memory.id, content="y", value={"n": [2]})
    assert changed["value"] == {"n": [2]}
    failure = refused(alice, "memory_update", {"memory_id": changed["id"], "value": {}})
    assert "content" in failure.message
    assert alice.get(changed["id"]).value == {"n": [2]}


@pytest.mark.parametrize("before", ["hot", "warm", "cold"])
@pytest.mark.parametrize("after", ["hot", "warm", "cold"])
def test_an_update_reaches_every_temperature(before: str, after: str, alice: AgentMemory) -> None:
    memory = alice.add("x", temperature=before)
    changed = done(alice, "memory_update", memory_id=memory.id, temperature=after)
    assert changed["temperature"] == after


@pytest.mark.parametrize("before", ["active", "archived", "deleted"])
def test_an_update_can_delete_and_says_what_became_of_it(before: str, alice: AgentMemory) -> None:
    memory = alice.add("x")
    if before != "active":
        done(alice, "memory_update", memory_id=memory.id, retention=before)
    arguments = {"memory_id": memory.id, "retention": "deleted"}
    outcome = tools.call(alice, "memory_update", arguments)
    assert outcome.to_dict().get("retention", "deleted") == "deleted"
    assert [each.id for each in alice.all(retention=Retention.DELETED)] == [memory.id]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"tier": "pinned", "retention": "archived"}, "InvalidInput"),
        ({"tier": "pinned", "temperature": "cold"}, "InvalidInput"),
        ({"temperature": "hot", "tier": "pinned", "retention": "deleted"}, "InvalidInput"),
        ({}, "InvalidInput"),
        ({"tier": None}, "InvalidInput"),
    ],
)
def test_an_update_that_fails_changes_nothing(
    changes: Json, error: str, alice: AgentMemory
) -> None:
    memory = alice.add("x")
    before = MemoryBank(alice.engine).state_hash()
    failure = refused(alice, "memory_update", {"memory_id": memory.id, **changes})
    assert failure.type == error
    assert MemoryBank(alice.engine).state_hash() == before


@pytest.mark.parametrize("tier", ["normal", "pinned"])
@pytest.mark.parametrize(
    "changes", [{"temperature": "cold"}, {"temperature": "warm"}, {"retention": "archived"}]
)
def test_an_update_to_pinned_and_away_from_hot_is_refused_as_a_contradiction(
    changes: Json, tier: str, alice: AgentMemory
) -> None:
    memory = alice.add("x", tier)
    arguments = {"memory_id": memory.id, "tier": "pinned", **changes}
    failure = refused(alice, "memory_update", arguments)
    ((name, value),) = changes.items()
    assert failure.message == (
        f"a pinned memory is active and hot; got {name} {value}; "
        f"leave the {name} out, or use another tier"
    )


def test_an_update_of_a_restored_memory_is_undone_with_the_rest(make_bank: MakeBank) -> None:
    bank = make_bank(memory={"max_critical": 1, "on_tier_full": "reject"})
    alice = bank.agent("alice")
    alice.add("critical", "critical")
    memory = alice.update(alice.add("x").id, retention="archived")
    before = bank.state_hash()
    changes = {"memory_id": memory.id, "retention": "active", "tier": "critical"}
    assert refused(alice, "memory_update", changes).type == "TierFull"
    assert bank.state_hash() == before


# For models


def test_openai_gets_functions() -> None:
    schemas = tools.openai_schemas()
    assert [each["function"]["name"] for each in schemas] == FOR_AGENTS
    for each in schemas:
        assert each.keys() == {"type", "function"}
        assert each["type"] == "function"
        assert each["function"].keys() == {"name", "description", "parameters"}
        operation = OPERATIONS[each["function"]["name"]]
        wanted = {**operation.arguments, "examples": [operation.example]}
        assert each["function"]["parameters"] == wanted
    assert json.loads(json.dumps(schemas)) == schemas


def test_anthropic_gets_tools() -> None:
    schemas = tools.anthropic_schemas()
    assert [each["name"] for each in schemas] == FOR_AGENTS
    for each in schemas:
        assert each.keys() == {"name", "description", "input_schema"}
        assert each["input_schema"]["type"] == "object"
        (example,) = each["input_schema"]["examples"]
        assert fits(each["input_schema"], example)
    assert json.loads(json.dumps(schemas)) == schemas


@pytest.mark.parametrize("schemas", [tools.openai_schemas, tools.anthropic_schemas])
def test_a_choice_of_operations_has_the_wanted_order(schemas: Callable[..., list[Json]]) -> None:
    some = schemas(["memory_search", "store_memory"])
    names = [each.get("name") or each["function"]["name"] for each in some]
    assert names == ["memory_search", "store_memory"]
    with pytest.raises(InvalidInput, match="did you mean store_memory"):
        schemas(["store_memry"])


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_that_models_can_call(name: str) -> None:
    assert len(name) <= 64
    assert name.replace("_", "").isalnum()
    assert name.isascii()


def test_nothing_of_a_call_is_logged(alice: AgentMemory, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        done(alice, "store_memory", content="a secret")
        refused(alice, "store_memory", {"content": "a secret", "x": 1})
    assert "secret" not in caplog.text


# Keys, and conditions on metadata


def test_a_key_supersedes_and_history_tells(alice: AgentMemory) -> None:
    first = done(alice, "store_memory", content="I eat meat", tier="pinned", key="diet")
    second = done(alice, "memory_add", content="I am vegan", key="diet")
    assert (second["tier"], second["metadata"]) == ("pinned", {"memory_key": "diet"})
    third = done(alice, "memory_update", memory_id=second["id"], content="I eat fish", tier="low")
    assert (third["content"], third["tier"], alice.count()) == ("I eat fish", "low", 1)
    told = done(alice, "memory_history", key="diet")["results"]
    assert [each["id"] for each in told] == [first["id"], second["id"], third["id"]]
    assert [each["retention"] for each in told] == ["archived", "archived", "active"]
    assert done(alice, "memory_history", key=third["id"])["results"] == told
    assert done(alice, "memory_history", key="other")["results"] == []
    failure = refused(alice, "memory_update", {"memory_id": first["id"], "content": "x"})
    assert third["id"] in failure.message


def test_an_update_changes_all_that_is_given_or_nothing(alice: AgentMemory) -> None:
    memory = alice.add("a", "pinned")
    arguments = {"memory_id": memory.id, "content": "b", "temperature": "cold"}
    assert refused(alice, "memory_update", arguments).type == "MemoryPinned"
    assert alice.all() == [memory]
    cold = done(alice, "memory_update", **arguments, tier="normal")
    assert (cold["content"], cold["tier"], cold["temperature"]) == ("b", "normal", "cold")


def test_filters_choose_by_metadata(alice: AgentMemory) -> None:
    alice.add("bay <1 0>", metadata={"place": "bay"})
    alice.add("sea <1 0>", metadata={"place": "sea"})
    filters = {"metadata.place": {"$in": ["bay"]}}
    for arguments in ({"query": "<1 0>"}, {}, {"temperature": ["warm", "cold"]}):
        found = done(alice, "memory_query", filters=filters, **arguments)["results"]
        assert [each["content"] for each in found] == ["bay <1 0>"]
    alice.update(alice.all()[0].id, retention="archived")
    found = done(alice, "memory_query", filters=filters, retention="archived")["results"]
    assert [each["content"] for each in found] == ["bay <1 0>"]
    sea = {"$not": filters}
    recalled = done(alice, "memory_recall", query="<1 0>", filters=sea)["results"]
    assert [each["content"] for each in recalled] == ["sea <1 0>"]


@pytest.mark.parametrize("name", ["memory_query", "memory_recall"])
def test_a_hostile_filter_is_refused(alice: AgentMemory, name: str) -> None:
    deep: Json = {"metadata.x": 1}
    for _ in range(300):
        deep = {"$and": [deep]}
    wide = {"$or": [{"metadata.x": n} for n in range(5000)]}
    for filters in (deep, wide, {"metadata.x": {"$where": "1"}}, {"x": 1}, {"metadata.x": [1]}):
        failure = refused(alice, name, {"query": "x", "filters": filters})
        assert failure.type == "InvalidInput"
        assert "filters" in failure.message
    for other in ("x", 5, [deep]):
        assert refused(alice, name, {"query": "x", "filters": other}).type == "InvalidInput"
