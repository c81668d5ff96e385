"""The profile fr-004: categories, tiers of temperature, compaction at the end of a session."""

from pathlib import Path
from typing import Any

import pytest

from agents import MemoryBank
from agents.config.load import load_settings
from banks import MANUAL

CONFIG = """\
memoryTiering:
  hotMaxTokens: 2000
  hotMaxFacts: 50
  inactivePreferenceDays: 7
  compactionOnSessionEnd: true
"""


@pytest.fixture
def alice(make_bank: Any) -> Any:
    return make_bank(profile="fr-004").agent("alice")


def texts(result: dict[str, Any]) -> set[str]:
    return {each["content"].split(" <")[0] for each in result["results"]}


def test_the_config_is_taken_as_written_and_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(CONFIG)
    loaded = load_settings(tmp_path / "my.yaml", overrides={"profile": "fr-004"})
    assert loaded == load_settings({"profile": "fr-004"})
    temperature = loaded.temperature
    assert (temperature.hot_max_tokens, temperature.hot_max_facts) == (2000, 50)
    assert (temperature.inactive_preference, temperature.compact_on_close) == ("7d", True)


def test_a_new_fact_is_warm_unless_a_tier_is_given(alice: Any) -> None:
    assert alice.call("memory_add", content="x")["tier"] == "warm"
    for tier in ("hot", "warm", "cold"):
        fact = alice.call("memory_add", content=tier, category="decision", tier=tier)
        assert (fact["tier"], fact["category"]) == (tier, "decision")


def test_a_recall_searches_hot_and_warm_and_cold_when_it_is_included(alice: Any) -> None:
    for tier in ("hot", "warm", "cold"):
        alice.add(f"{tier} <1 0>", tier=tier)
    assert texts(alice.call("memory_recall", query="<1 0>")) == {"hot", "warm"}
    found = alice.call("memory_recall", query="<1 0>", includeCold=True)
    assert texts(found) == {"hot", "warm", "cold"}
    assert found["promoted"] == []  # facts move by compaction alone
    assert texts(alice.call("memory_query", query="<1 0>", tier="cold")) == {"cold"}
    assert texts(alice.call("memory_query", query="<1 0>", tier=["hot", "cold"])) == {"hot", "cold"}


def test_the_four_rules_of_compaction(alice: Any) -> None:
    for name, tier, category, tags in (
        ("decided", "warm", "decision", ()),
        ("task", "hot", "fact", ("task",)),
        ("idle preference", "hot", "preference", ()),
        ("blocker", "warm", "fact", ("blocker",)),
        ("blocked task", "cold", "fact", ("task", "blocker")),
        ("small talk", "hot", "fact", ()),
    ):
        alice.add(name, tier=tier, category=category, tags=tags)
    alice.call("memory_advance", days=7)
    alice.add("fresh preference", tier="hot", category="preference")
    done = alice.call("memory_compact")
    assert {name: done[name] for name in ("hot", "warm", "cold")} == {
        "hot": 2,
        "warm": 2,
        "cold": 2,
    }
    tiers = {memory.content: memory.temperature.name.lower() for memory in alice.all()}
    assert tiers == {
        "decided": "cold", "task": "cold", "idle preference": "warm", "blocker": "hot",
        "blocked task": "hot", "small talk": "warm", "fresh preference": "hot",
    }  # fmt: skip


def test_the_end_of_a_session_compacts(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", profile="fr-004", storage=MANUAL) as bank:
        bank.agent("alice").call("memory_add", content="We build", category="decision")
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert [memory.temperature.name for memory in bank.agent("alice").all()] == ["COLD"]


def test_a_fact_keeps_its_tier_and_its_category_through_the_calls(alice: Any) -> None:
    fact = alice.call("memory_add", content="tea <1 0>", category="preference", tags=["kitchen"])
    pinned = alice.call("pin_memory", memory_id=fact["id"])
    assert (pinned["tier"], pinned["category"], pinned["priority"]) == (
        "hot",
        "preference",
        "pinned",
    )
    warm = alice.call("unpin_memory", memory_id=fact["id"])
    assert (warm["tier"], warm["tags"]) == ("warm", ["kitchen"])
    changed = alice.call("memory_update", memory_id=fact["id"], content="coffee <1 0>", tier="cold")
    versions = alice.call("memory_history", key=changed["id"])["results"]
    assert [each["content"] for each in versions] == ["tea <1 0>", "coffee <1 0>"]
