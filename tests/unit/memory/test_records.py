"""What a memory is, and what may become one: ids, agent ids, content, metadata."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from agents import (
    AgentMemory,
    InvalidAgentId,
    InvalidContent,
    InvalidInput,
    InvalidMetadata,
    MemoryBank,
    Retention,
    Temperature,
    Tier,
)

MakeBank = Callable[..., MemoryBank]

BAD_AGENT_IDS = [
    "*", "", ".", "..", ".hidden", "../x", "a/b", "a b", " a", "a ", "a\n", "a\x00", "\x1b[0m",
    "a*", "a?", "ü", "١", "a" * 129, "a\\b", "a:b", "a,b", 'a"b', "a'b", "a\u200b", "Ａ",
    None, 1, True, b"a", ["a"], "\ud800",
]  # fmt: skip
GOOD_AGENT_IDS = ["a", "Z", "0", "_", "-", "@", "a.b", "a..", "agent_X-1@home.org", "x" * 128]

KEPT_TEXTS = {
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 👍🏽",
    "right to left": "שלום עולם مرحبا",
    "bidi controls": "\u202eevil\u202c \u2066x\u2069",
    "quotes": """'"`´‘’“”„«»\\'\\" """,
    "sql": "'); DROP TABLE commits; --",
    "json": '{"tier": 0, "x": [null]}',
    "ten thousand characters": "abcde 789\n" * 1000,
    "line ends": "a\r\nb\nc\rd\x85e\u2028f\u2029g\x0bh\x0ci",
    "controls": "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "not normalised": "e\u0301 é ﬁ Å Å",
    "outside space": "  \t x \n ",
    "noncharacters": "\ufffe\uffff\U0010ffff\ufeff",
    "zero width": "a\u200b\u200c\u200d\u2060b",
    "template": "{0} %s ${HOME} {{x}}",
}


# Ids


def test_ids_are_valid_uuids(alice: AgentMemory) -> None:
    memory = alice.add("x")
    parsed = uuid.UUID(memory.id)
    assert str(parsed) == memory.id
    assert parsed.variant == uuid.RFC_4122


def test_ids_are_the_same_in_every_bank_with_the_same_seed(make_bank: MakeBank) -> None:
    first, second = (make_bank(seed=7).agent("alice") for _ in range(2))
    ids = [
        [agent.add(text).id for text in texts] for agent, texts in ((first, "ab"), (second, "xy"))
    ]
    assert ids[0] == ids[1]


def test_another_seed_gives_other_ids(make_bank: MakeBank) -> None:
    ids = {make_bank(seed=seed).agent("alice").add("x").id for seed in (0, 1, 2, 10)}
    assert len(ids) == 4


def test_an_agents_ids_do_not_depend_on_other_agents(make_bank: MakeBank) -> None:
    alone, crowded = make_bank(), make_bank()
    crowded.add_many([(f"agent{n}", "x") for n in range(20)])
    assert alone.agent("alice").add("x").id == crowded.agent("alice").add("x").id


def test_no_two_memories_of_a_bank_share_an_id(bank: MemoryBank) -> None:
    agents = [f"a{n}" for n in range(50)] + ["a", "1", "11", "a-1"]
    added = bank.add_many([(agent, "x") for agent in agents for _ in range(20)])
    assert len({memory.id for memory in added}) == len(added)


def test_sequence_counts_from_1_per_agent(bank: MemoryBank) -> None:
    added = bank.add_many([("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"), ("a", "3")])
    assert [memory.sequence for memory in added] == [1, 1, 2, 2, 3]


def test_an_id_is_never_given_twice_even_after_a_delete(alice: AgentMemory) -> None:
    gone = alice.add("x")
    alice.delete(gone.id)
    assert alice.add("x").id != gone.id


def test_an_id_is_never_given_twice_even_after_a_delete_and_reopening(open_bank: MakeBank) -> None:
    alice = open_bank().agent("alice")
    gone = alice.add("x")
    alice.delete(gone.id)
    again = open_bank().agent("alice").add("x")
    assert again.id != gone.id
    assert again.sequence == gone.sequence + 1


# The record


def test_a_memory_has_the_documented_fields(bank: MemoryBank) -> None:
    bank.advance(3)
    memory = bank.agent("alice").add("hello", "low", {"source": "gossip"})
    assert memory._asdict() == {
        "id": memory.id,
        "agent_id": "alice",
        "content": "hello",
        "tier": Tier.LOW,
        "created_tick": 3,
        "tier_tick": 3,
        "sequence": 1,
        "metadata": {"source": "gossip"},
        "kind": "fact",
        "tags": (),
        "temperature": Temperature.WARM,
        "retention": Retention.ACTIVE,
        "expires_tick": None,
        "access_count": 0,
        "last_access_tick": None,
        "relevance": 0.5,
    }


def test_use_is_no_part_of_equality(alice: AgentMemory) -> None:
    before = alice.add("x <1 0>")
    alice.search("<1 0>")
    after = alice.get(before.id)
    assert (before == after, before != after, hash(before) == hash(after)) == (True, False, True)
    assert tuple(before) != tuple(after)
    assert after != alice.pin(before.id)
    assert before != "x"


def test_a_memory_is_frozen(alice: AgentMemory) -> None:
    memory = alice.add("x", metadata={"a": 1})
    with pytest.raises(AttributeError):
        memory.tier = Tier.PINNED  # type: ignore[misc]
    with pytest.raises(TypeError):
        memory.metadata["a"] = 2  # type: ignore[index]


def test_a_memory_is_hashable_and_equal_to_itself_read_again(alice: AgentMemory) -> None:
    memory = alice.add("x", metadata={"a": 1})
    assert alice.get(memory.id) == memory
    assert len({memory, alice.get(memory.id)}) == 1


# Agent ids


@pytest.mark.parametrize("agent_id", GOOD_AGENT_IDS)
def test_a_good_agent_id_is_kept_as_it_is(bank: MemoryBank, agent_id: str) -> None:
    assert bank.agent(agent_id).add("x").agent_id == agent_id
    assert bank.agents() == [agent_id]


@pytest.mark.parametrize("agent_id", BAD_AGENT_IDS, ids=ascii)
def test_a_bad_agent_id_is_refused_by_every_method_before_anything_happens(
    bank: MemoryBank, agent_id: Any
) -> None:
    before = bank.state_hash()
    calls = [
        lambda: bank.agent(agent_id),
        lambda: bank.add_many([("alice", "fine"), (agent_id, "x")]),
        lambda: bank.search_many([(agent_id, "x")]),
        lambda: bank.relevant_many([("alice", "x"), (agent_id, "x")]),
    ]
    for call in calls:
        with pytest.raises(InvalidAgentId, match="not starting with a dot"):
            call()
    assert bank.agents() == []
    assert bank.state_hash() == before


def test_a_bad_agent_id_is_refused_before_bad_content(bank: MemoryBank) -> None:
    with pytest.raises(InvalidAgentId):
        bank.add_many([("*", "", "urgent", {"tier": 0})])


def test_the_message_about_a_long_agent_id_is_short(bank: MemoryBank) -> None:
    with pytest.raises(InvalidAgentId) as caught:
        bank.agent("x" * 100_000)
    assert len(str(caught.value)) < 400


def test_agent_ids_differ_by_case(bank: MemoryBank) -> None:
    bank.agent("Alice").add("x")
    assert bank.agent("alice").count() == 0


# Content


@pytest.mark.parametrize("text", KEPT_TEXTS.values(), ids=KEPT_TEXTS.keys())
def test_content_comes_back_byte_for_byte(alice: AgentMemory, text: str) -> None:
    memory = alice.add(text)
    assert memory.content == text
    assert alice.get(memory.id).content.encode() == text.encode()


def test_content_and_metadata_survive_reopening_byte_for_byte(open_bank: MakeBank) -> None:
    texts = list(KEPT_TEXTS.values())
    added = (
        open_bank().agent("alice").add_many([(text, "normal", {"text": text}) for text in texts])
    )
    again = open_bank().agent("alice").all()
    assert again == added
    assert [memory.content.encode() for memory in again] == [text.encode() for text in texts]
    assert [memory.metadata["text"] for memory in again] == texts


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u3000", "\x1c", "\x85\u2028"], ids=ascii)
def test_blank_content_is_refused(alice: AgentMemory, text: str) -> None:
    with pytest.raises(InvalidContent, match="blank"):
        alice.add(text)
    assert alice.count() == 0


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "👍\udc80"], ids=ascii)
def test_a_lone_surrogate_is_refused_with_its_place(alice: AgentMemory, text: str) -> None:
    with pytest.raises(InvalidContent, match=r"lone surrogate .*\(character \d+\)"):
        alice.add(text)
    assert alice.count() == 0


def test_nul_is_refused_with_its_place(alice: AgentMemory) -> None:
    with pytest.raises(InvalidContent, match=r"NUL \(character 2\)"):
        alice.add("ab\0c")
    assert alice.count() == 0


@pytest.mark.parametrize("content", [None, 5, b"bytes", ["x"], {"a": 1}], ids=repr)
def test_content_that_is_not_text_is_refused(alice: AgentMemory, content: Any) -> None:
    with pytest.raises(InvalidContent, match="text"):
        alice.add(content)
    assert alice.count() == 0


@pytest.mark.parametrize("letter", ["a", "é", "€", "👍"])
def test_content_may_have_16_kib_of_utf8_and_no_byte_more(alice: AgentMemory, letter: str) -> None:
    most = 16_384 // len(letter.encode())
    text = letter * most + "a" * (16_384 - most * len(letter.encode()))
    assert len(text.encode()) == 16_384
    assert alice.add(text).content == text
    with pytest.raises(InvalidContent, match="16,384"):
        alice.add(text + "a")
    assert alice.count() == 1


@pytest.mark.parametrize("query", ["a\0", "\ud800", None, 5, b"x"], ids=ascii)
def test_a_query_that_is_no_text_is_refused(alice: AgentMemory, query: Any) -> None:
    alice.add("x")
    methods: list[Any] = [alice.search, alice.explain]
    if query is not None:  # without a query, the context is that of a session's start
        methods.append(alice.get_relevant_memories)
    for method in methods:
        with pytest.raises(InvalidContent, match="query"):
            method(query)


# Metadata


def test_metadata_is_kept_with_its_types(open_bank: MakeBank) -> None:
    metadata = {
        "text": "x", "whole": 2**62, "negative": -(2**63), "real": 0.1, "tiny": 5e-324, "one": 1.0,
        "yes": True, "no": False, "nothing": None, "ключ": "значение", "spaced key": "",
    }  # fmt: skip
    memory = open_bank().agent("alice").add("x", metadata=metadata)
    again = open_bank().agent("alice").get(memory.id).metadata
    assert again == metadata
    assert {key: type(value) for key, value in again.items()} == {
        key: type(value) for key, value in metadata.items()
    }


def test_metadata_is_copied(alice: AgentMemory) -> None:
    metadata = {"a": 1}
    memory = alice.add("x", metadata=metadata)
    metadata["a"] = 2
    assert memory.metadata == {"a": 1}


def test_no_metadata_is_an_empty_mapping(alice: AgentMemory) -> None:
    assert alice.add("x").metadata == {}
    assert alice.add("x", metadata={}).metadata == {}
    assert alice.add("x", metadata=None).metadata == {}


@pytest.mark.parametrize(
    "key",
    ["tier", "user_id", "agent_id", "run_id", "data", "hash", "id", "created_at", "updated_at",
     "sequence", "created_tick", "tier_tick"],
)  # fmt: skip
def test_reserved_metadata_keys_are_refused(alice: AgentMemory, key: str) -> None:
    with pytest.raises(InvalidMetadata, match=f"'{key}' is reserved"):
        alice.add("x", metadata={"fine": 1, key: 0})
    assert alice.count() == 0


class Text(str):
    """A text that would come back as something else."""

    __slots__ = ()


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": [1]}, {"a": {"b": 1}}, {"a": (1,)}, {"a": {1}}, {"a": b"x"}, {"a": Ellipsis},
        {"a": float("nan")}, {"a": float("inf")}, {"a": 2**63}, {"a": -(2**63) - 1}, {"a": 1j},
        {"a": Tier.LOW}, {"a": Text("x")}, {1: "a"}, {None: "a"}, {"": "a"}, {True: 1},
        {"a": "\0"}, {"a": "\ud800"}, {"\ud800": 1}, {"a\0": 1}, {"$or": "a"}, {"a": "x" * 20_000},
        [("a", 1)], "a=1", 5,
    ],
    ids=ascii,
)  # fmt: skip
def test_metadata_that_is_not_flat_json_is_refused(alice: AgentMemory, metadata: Any) -> None:
    with pytest.raises(InvalidMetadata):
        alice.add("x", metadata=metadata)
    assert alice.count() == 0


# Limits


@pytest.mark.parametrize("limit", [-1, True, 2.0, "5", [5]], ids=repr)
def test_a_limit_is_a_whole_number_from_0_on(alice: AgentMemory, limit: Any) -> None:
    for method in (alice.search, alice.get_relevant_memories, alice.explain):
        with pytest.raises(InvalidInput, match="limit"):
            method("x", limit=limit)


@pytest.mark.parametrize("tokens", [0, -1, True, 2.0, "5"], ids=repr)
def test_a_token_budget_is_a_whole_number_from_1_on(alice: AgentMemory, tokens: Any) -> None:
    for method in (alice.search, alice.get_relevant_memories, alice.explain):
        with pytest.raises(InvalidInput, match="context_tokens"):
            method("x", context_tokens=tokens)


@pytest.mark.parametrize(
    "item", [(), ("alice",), ("alice", "x", 3, None, None, 1), "alice", 5, None]
)
def test_a_new_memory_is_a_tuple_of_two_to_five(bank: MemoryBank, item: Any) -> None:
    with pytest.raises(InvalidInput, match="tuple"):
        bank.add_many([("alice", "fine"), item])
    assert bank.agents() == []
