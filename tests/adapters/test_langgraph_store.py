"""A bank as LangGraph's store: items, searches, batches."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from agents import InvalidInput, MemoryBank, Tier
from agents.langgraph import TierMemStore
from banks import MANUAL
from embedders import Directions

NESTED = {"a": {"b": [1, 2.5, None, {"c": "d"}]}, "e": True, "": "empty"}
ANN = ("users", "ann")


@pytest.fixture
def store() -> Any:
    with MemoryBank.ephemeral() as bank:
        yield TierMemStore(bank)


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


# Items


def test_an_item_comes_back_as_it_was_put(store: TierMemStore) -> None:
    store.put(ANN, "k", NESTED)
    item = store.get(ANN, "k")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (ANN, "k", NESTED)
    assert store.get(ANN, "other") is None
    assert store.get(("users",), "k") is None


def test_keys_come_back_in_alphabetical_order_and_tuples_as_lists(store: TierMemStore) -> None:
    value = {"z": 1, "a": (1, {"y": 2, "b": 3})}
    store.put(ANN, "k", value)
    item = store.get(ANN, "k")
    assert item is not None
    assert repr(item.value) == "{'a': [1, {'b': 3, 'y': 2}], 'z': 1}"
    item.value["a"].append(2)
    assert repr(store.get(ANN, "k").value) != repr(item.value)  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["", " ", "lg:1:k", "k" * 2000, "a b\n*", "ключ", "@@names"])
@pytest.mark.parametrize("label", ["ann lee", "x" * 300, "*", "@", "/etc", "ключ", "a\nb"])
def test_namespaces_and_keys_may_be_any_text(store: TierMemStore, label: str, key: str) -> None:
    store.put(("users", label), key, {"n": 1})
    store.put(("users", label, "more"), key, {"n": 2})
    item = store.get(("users", label), key)
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", label), key, {"n": 1})
    found = store.search(("users", label), query="n")
    assert {(each.namespace, each.key) for each in found} == {
        (("users", label), key),
        (("users", label, "more"), key),
    }
    assert store.list_namespaces() == [("users", label), ("users", label, "more")]
    store.delete(("users", label), key)
    assert store.get(("users", label), key) is None
    assert store.list_namespaces() == [("users", label, "more")]


def test_long_names_of_forgotten_items_are_in_no_file_after_a_vacuum(tmp_path: Path) -> None:
    namespace, key = ("swordfish" * 40, "y"), "swordfish " * 40
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank)
        store.put(namespace, key, {"n": 1}, index=False)
        (agent,) = [bank.agent(each) for each in bank.agents() if each != "@@names"]
        (memory,) = agent.all()
        store.delete(namespace, key)
        bank.vacuum()
        agent.update(memory.id, retention="active")
        assert keys(store.search(namespace)) == [key]
        agent.forget(memory.id)
        assert bank.vacuum() == []
        assert (store.search(()), store.list_namespaces()) == ([], [])
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in files if b"swordfish" in path.read_bytes()]
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank)
        store.put(namespace, key, {"n": 2})
        assert keys(store.search(namespace)) == [key]


def test_all_is_there_after_reopening(tmp_path: Path) -> None:
    long = ("x" * 300, "y")
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank, fields=["title", "body"])
        store.put(long, "k" * 500, {"title": "a harbour", "body": "a bay"})
        store.put(long, "plain", NESTED, index=False)
        before = store.search((), query="bay")
        hashed = bank.state_hash()
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank)
        assert bank.state_hash() == hashed
        assert store.search((), query="bay") == before
        assert store.get(long, "k" * 500) is not None
        assert store.list_namespaces() == [long]


def test_a_put_supersedes_and_the_history_is_kept(store: TierMemStore) -> None:
    store.put(ANN, "diet", {"text": "eats meat"})
    store.bank.pass_time(24)
    store.put(ANN, "diet", {"text": "eats no meat"})
    item = store.get(ANN, "diet")
    assert item is not None
    assert item.value == {"text": "eats no meat"}
    versions = store.bank.agent("users.ann").history("diet")
    assert [each.value["text"] for each in versions] == ["eats meat", "eats no meat"]
    assert keys(store.search(ANN, query="meat")) == ["diet"]


def test_the_same_text_with_another_value_is_another_version() -> None:
    with MemoryBank.ephemeral(memory={"merge_duplicates": True}) as bank:
        store = TierMemStore(bank, fields=["text"])
        store.put(ANN, "k", {"text": "same", "n": 1})
        store.put(ANN, "k", {"text": "same", "n": 2})
        item = store.get(ANN, "k")
        assert item is not None
        assert item.value["n"] == 2


def test_a_deleted_item_leaves_no_version_and_can_be_restored(store: TierMemStore) -> None:
    agent = store.bank.agent("users.ann")
    store.put(ANN, "k", {"n": 1})
    store.put(ANN, "k", {"n": 2})
    newest = agent.history("k")[-1]
    store.delete(ANN, "k")
    store.delete(ANN, "never there")
    assert agent.history("k") == []
    assert store.search(ANN) == []
    agent.update(newest.id, retention="active")
    item = store.get(ANN, "k")
    assert item is not None
    assert item.value == {"n": 2}


def test_memories_that_other_code_stored_are_items(store: TierMemStore) -> None:
    agent = store.bank.agent("users.ann")
    plain = agent.add("likes tea")
    agent.add("a list", key="list", value=[1, 2])
    assert {item.key: item.value for item in store.search(ANN)} == {
        plain.id: {"content": "likes tea"},
        "list": {"content": "a list", "value": [1, 2]},
    }
    store.put(ANN, plain.id, {"content": "likes coffee"})
    assert agent.history(plain.id)[0].content == "likes tea"
    assert len(store.search(ANN)) == 2


@pytest.mark.parametrize(
    "key", ["lg:", "lg:5", "lg:k:", "lg:x", "lg:1:", "lg:k:@@" + "a" * 64, "lg:\u0661:x"]
)
def test_a_key_of_other_code_may_look_like_ours(store: TierMemStore, key: str) -> None:
    store.put(ANN, "k", {"text": "tea"})
    store.bank.agent("users.ann").add("hello", key=key)
    for query in (None, "hello"):
        found = {item.key: item.value for item in store.search(ANN, query=query)}
        assert found == {"k": {"text": "tea"}, key: {"content": "hello"}}


@pytest.mark.parametrize(
    "value", [{"x": {1, 2}}, {"x": float("nan")}, {1: "x"}, {"x": "a\0b"}, {"x": "y" * (1 << 20)}]
)
def test_a_value_that_can_not_be_kept_is_refused(store: TierMemStore, value: Any) -> None:
    with pytest.raises(InvalidInput):
        store.batch([PutOp(ANN, "good", {"n": 1}), PutOp(ANN, "k", value)])
    assert store.search(()) == []


def test_a_large_value_is_kept_whole(store: TierMemStore) -> None:
    value = {"text": "é" * 400_000, "list": [{"n": n} for n in range(1000)]}
    store.put(ANN, "k", value)
    item = store.get(ANN, "k")
    assert item is not None
    assert item.value == value


# Batches


def test_reads_see_the_state_before_the_batch_and_the_last_put_wins(store: TierMemStore) -> None:
    store.put(ANN, "k", {"n": 0})
    results = store.batch(
        [
            PutOp(ANN, "k", {"n": 1}),
            GetOp(ANN, "k"),
            PutOp(ANN, "new", {"n": 5}),
            SearchOp(ANN, query="n"),
            SearchOp((), filter={"n": {"$gte": 1}}),
            PutOp(("other",), "k", {"n": 3}),
            ListNamespacesOp(),
            PutOp(ANN, "k", {"n": 2}),
            PutOp(ANN, "new", None),
        ]
    )
    assert results[1].value == {"n": 0}  # type: ignore[union-attr]
    assert keys(results[3]) == ["k"]
    assert results[4] == []
    assert results[6] == [ANN]
    assert [results[at] for at in (0, 2, 5, 7, 8)] == [None] * 5
    assert {(each.key, each.value["n"]) for each in store.search(())} == {("k", 2), ("k", 3)}
    assert [each.value for each in store.bank.agent("users.ann").history("k")] == [
        {"n": 0},
        {"n": 2},
    ]


def test_a_batch_is_one_commit_and_one_search(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank, fields=["a", "b"])
        journal = bank.engine.journal
        before = journal.head
        puts = [PutOp((f"user{n}",), "k", {"a": f"tea {n}", "b": f"cup {n}"}) for n in range(50)]
        store.batch([*puts, PutOp(("x" * 200,), "k" * 300, {"a": "long"})])
        assert journal.head == before + 1
        store.batch([SearchOp((f"user{n}",), query="tea") for n in range(50)])
        assert journal.head == before + 1


def test_if_one_operation_is_wrong_nothing_happens(store: TierMemStore) -> None:
    for wrong, error in [
        (PutOp(("a.b",), "k", {}), InvalidNamespaceError),
        (PutOp((), "k", {}), InvalidInput),
        (PutOp(ANN, "k", {}, ttl=-1), InvalidInput),
        (PutOp(ANN, "k", {}, index="text"), InvalidInput),  # type: ignore[arg-type]
        (PutOp(ANN, "k", {}, index=True), InvalidInput),  # type: ignore[arg-type]
        (PutOp(ANN, "\ud800", {}, index=False), ValueError),
        (GetOp(ANN, "a\0b"), ValueError),
        (SearchOp(ANN, filter={"n": {"$like": 1}}), ValueError),
        (SearchOp(ANN, limit=-1), InvalidInput),
        (SearchOp(ANN, limit=None), InvalidInput),  # type: ignore[arg-type]
        (SearchOp(ANN, offset=1.5), InvalidInput),  # type: ignore[arg-type]
        (SearchOp(ANN, query=5), InvalidInput),  # type: ignore[arg-type]
        (ListNamespacesOp(limit="5"), InvalidInput),  # type: ignore[arg-type]
        ("put", InvalidInput),
    ]:
        with pytest.raises(error):
            store.batch([PutOp(ANN, "good", {"n": 1}), wrong])  # type: ignore[list-item]
    assert store.search(()) == []


def test_a_long_name_is_known_though_the_batch_before_was_undone(store: TierMemStore) -> None:
    long = ("x" * 300,)
    with pytest.raises(InvalidInput):
        store.batch([PutOp(long, "k" * 300, {"n": 1}), PutOp(ANN, "k", {"n": {1}})])
    store.put(long, "k" * 300, {"n": 1})
    assert store.list_namespaces() == [long]
    assert keys(store.search(())) == ["k" * 300]


# Searches


def test_pages_are_the_whole_in_pieces(store: TierMemStore) -> None:
    for n in range(23):
        store.put(("users", f"u{n % 3}"), f"k{n}", {"text": f"tea number {n}"}, index=["text"])
    for query in (None, "tea"):
        whole = keys(store.search((), query=query, limit=100))
        pages = [store.search((), query=query, limit=5, offset=at) for at in range(0, 25, 5)]
        assert [key for page in pages for key in keys(page)] == whole
        assert len(set(whole)) == 23
    assert store.search((), query="tea", limit=0) == []
    for most in (2**62, 2**63, 2**200):
        assert len(store.search((), query="tea", limit=most)) == 23
        assert store.search((), query="tea", offset=most) == []


def test_each_field_is_compared_and_an_item_is_found_once() -> None:
    with MemoryBank.ephemeral(preset="vector", embedder=Directions()) as bank:
        store = TierMemStore(bank, fields=["title", "tags[*]"])
        tags = ["ship <0 1 0>", "sea <0 0 1>"]
        store.put(ANN, "one", {"title": "harbour <1 0 0>", "tags": tags, "unseen": "<0 0 0 1>"})
        store.put(ANN, "two", {"title": "moon <0 0 0 1>"})
        for query in ("<1 0 0>", "<0 1 0>", "<0 0 1>"):
            found = store.search(ANN, query=query)
            assert [(each.key, each.score) for each in found] == [("one", 1.0), ("two", 0.0)]
        assert keys(store.search(ANN, query="<0 0 0 1>")) == ["two", "one"]
        store.put(ANN, "one", {"title": "harbour <1 0 0>"})
        assert bank.agent("users.ann").count() == 2
        assert {each.score for each in store.search(ANN, query="<0 1 0>")} == {0.0}
        store.delete(ANN, "one")
        assert bank.agent("users.ann").count() == 1


def test_what_is_not_indexed_has_no_score_and_comes_last(store: TierMemStore) -> None:
    store.put(ANN, "hidden", {"text": "tea"}, index=False)
    store.put(ANN, "nothing there", {"text": "tea"}, index=["missing"])
    store.put(ANN, "far", {"text": "granite"})
    found = store.search(ANN, query="tea")
    assert keys(found)[0] == "far"
    assert [each.score is None for each in found] == [False, True, True]
    assert keys(store.search(ANN, query="tea", limit=1)) == ["far"]
    assert "tea" not in "".join(each.content for each in store.bank.agent("users.ann").all()[:2])


def test_scores_are_cosines_below_zero_too() -> None:
    with MemoryBank.ephemeral(preset="vector", embedder=Directions()) as bank:
        store = TierMemStore(bank, fields=["text"])
        for key, text in [
            ("far", "<-1 0>"),
            ("none", "<0 1>"),
            ("near", "<1 0>"),
            ("less", "<-1 1>"),
        ]:
            store.put(("users", key), key, {"text": text})
        found = store.search((), query="<1 0>")
        assert keys(found) == ["near", "none", "less", "far"]
        assert [each.score for each in found] == pytest.approx([1.0, 0.0, -(0.5**0.5), -1.0])


def test_the_nearest_of_unrelated_items_comes_first_whatever_the_limit() -> None:
    with MemoryBank.ephemeral(retrieval={"mode": "vector"}, embedder=Directions()) as bank:
        store = TierMemStore(bank, fields=["text"])
        for key, text in [("far", "<-4 3>"), ("near", "<-3 4>"), ("farthest", "<-1 0>")]:
            store.put(ANN, key, {"text": text})
        for limit in (1, 2, 3):
            found = store.search(ANN, query="<1 0>", limit=limit)
            assert keys(found) == ["near", "far", "farthest"][:limit]
        assert keys(store.search(ANN, query="<1 0>", limit=1, offset=1)) == ["far"]


@pytest.mark.parametrize("texts", [("<-3 4>", "<-1 0>"), ("<-1 0>", "<-3 4>")])
def test_an_unrelated_item_has_the_best_score_of_its_texts(texts: tuple[str, str]) -> None:
    with MemoryBank.ephemeral(preset="vector", embedder=Directions()) as bank:
        store = TierMemStore(bank, fields=["a", "b"])
        store.put(ANN, "k", {"a": texts[0], "b": texts[1]})
        (found,) = store.search(ANN, query="<1 0>")
        assert found.score == pytest.approx(-0.6, abs=0.01)


def test_cold_items_are_found_and_read(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        store = TierMemStore(bank, fields=["text"])
        store.put(ANN, "k", {"text": "the harbour opens at dawn"})
        agent = bank.agent("users.ann")
        assert agent.update(agent.history("k")[0].id, temperature="cold")
        assert keys(store.search(ANN, query="harbour")) == ["k"]
        assert keys(store.search(ANN)) == ["k"]
        assert store.get(ANN, "k") is not None


def test_the_parts_of_notes_are_no_items(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path, storage=MANUAL) as bank:
        bank.agent("users.ann").notes.append("the harbour opens at dawn")
        store = TierMemStore(bank)
        store.put(ANN, "k", {"text": "harbour"})
        assert keys(store.search(ANN, query="harbour")) == ["k"] == keys(store.search(ANN))


def test_namespaces_by_conditions_and_depth(store: TierMemStore) -> None:
    for labels in ("a b c", "a b d e", "a b d i", "a c f", "b a f"):
        store.put(tuple(labels.split()), "k", {"n": 1})
    assert store.list_namespaces(prefix=("a", "b"), max_depth=3) == [
        ("a", "b", "c"),
        ("a", "b", "d"),
    ]
    assert store.list_namespaces(prefix=("a", "*"), suffix=("f",)) == [("a", "c", "f")]
    assert store.list_namespaces(limit=2, offset=3) == [("a", "c", "f"), ("b", "a", "f")]
    wrong = MatchCondition("middle", ("a",))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        store.batch([ListNamespacesOp((wrong,))])


# Tiers


def test_a_function_says_the_tier_of_an_item() -> None:
    def tier(namespace: tuple[str, ...], key: str, value: Any) -> str | None:
        return "pinned" if namespace[-1] == "rules" else value.get("tier")

    with MemoryBank.ephemeral() as bank:
        store = TierMemStore(bank, fields=["text", "why"], tier=tier, ttl={"default_ttl": 60})
        store.put(("ann", "rules"), "r", {"text": "never pay twice", "why": "scams"})
        store.put(("ann", "facts"), "f", {"text": "coffee is on the shelf", "tier": "low"})
        store.put(("ann", "facts"), "f", {"text": "coffee is gone"})
        assert bank.agent("ann.facts").history("f")[-1].tier is Tier.LOW
        rule = bank.agent("ann.rules").history("r")[-1]
        assert (rule.tier, rule.expires_tick) == (Tier.PINNED, None)
        assert len(bank.agent("ann.rules").get_pinned_memories()) == 1
        assert keys(store.search(("ann",), query="where is the coffee?")) == ["r", "f"]
        assert keys(store.search(("ann",), query="where is the coffee?", limit=1)) == ["r"]


def test_a_pinned_item_can_be_deleted() -> None:
    with MemoryBank.ephemeral() as bank:
        store = TierMemStore(bank, tier=lambda *_: "pinned")
        store.put(ANN, "k", {"text": "never pay twice"})
        store.put(ANN, "k", {"text": "never pay"})
        store.delete(ANN, "k")
        assert store.get(ANN, "k") is None
        assert bank.agent("users.ann").get_pinned_memories() == []
