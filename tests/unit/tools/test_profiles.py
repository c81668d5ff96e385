"""A profile: operations, arguments, results and settings under a document's names."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents import AsyncMemoryBank, MemoryBank, tools
from agents.config import packaged
from agents.config.load import load_settings
from agents.config.profiles import profile
from agents.errors import ConfigError, InvalidInput
from agents.tools.operations import OPERATIONS
from agents.tools.profiles import table_of
from banks import MANUAL, ROOT

FILES = sorted((ROOT / "config" / "profiles").glob("*.yaml"))
PROFILES = [path.stem for path in FILES]


def refusal(bank: MemoryBank, operation: str, **arguments: Any) -> str:
    failure = tools.call(bank.agent("alice"), operation, arguments).failure
    assert failure is not None
    return failure.message


@pytest.mark.parametrize("path", FILES, ids=PROFILES)
def test_a_profile_is_one_short_file(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_operations_of_ours(name: str) -> None:
    table = table_of(name)
    assert table
    assert all(each.profile in (None, name) for each in table.values())
    assert load_settings({"profile": name}).profile == name
    assert {each["function"]["name"] for each in tools.openai_schemas(profile=name)} <= set(table)


def test_without_a_profile_there_are_our_operations() -> None:
    assert table_of(None) is OPERATIONS
    assert load_settings().profile is None


@pytest.mark.parametrize("name", PROFILES)
def test_a_bank_that_was_made_with_a_profile_has_it_whenever_it_is_opened(
    name: str, tmp_path: Path
) -> None:
    MemoryBank.open(tmp_path / "bank", profile=name, storage=MANUAL).close()
    with MemoryBank.open(tmp_path / "bank") as bank:
        assert bank.settings == load_settings({"profile": name, "storage": MANUAL})
        assert "there is no operation 'group_post'" in refusal(bank, "group_post")


def test_settings_of_the_bank_stay_where_its_profile_is_named_again(tmp_path: Path) -> None:
    own = {"profile": "fr-004", "temperature": {"hot_max_facts": 7}}
    MemoryBank.open(tmp_path / "bank", own, storage=MANUAL).close()
    with MemoryBank.open(tmp_path / "bank", profile="fr-004") as bank:
        assert bank.settings.temperature.hot_max_facts == 7
    with MemoryBank.open(tmp_path / "bank", profile="ctx-sys") as bank:
        assert bank.settings.temperature.hot_max_facts is None
    with MemoryBank.open(tmp_path / "bank", profile=None) as bank:
        assert bank.settings.profile is None


def test_the_documents_settings_need_no_profile_where_the_bank_has_it(tmp_path: Path) -> None:
    MemoryBank.open(tmp_path / "bank", profile="ctx-sys", storage=MANUAL).close()
    theirs = {"agent": {"memory": {"maxColdItems": 9}}}
    with MemoryBank.open(tmp_path / "bank", theirs) as bank:
        assert bank.settings.temperature.max_cold_items == 9
        assert bank.settings.temperature.initial == "hot"
    with MemoryBank.at(tmp_path / "bank", config=theirs) as bank:
        assert bank.settings.temperature.max_cold_items == 9
    with pytest.raises(ConfigError, match=r"unknown key agent.memory.maxCold;"):
        MemoryBank.open(tmp_path / "bank", {"agent": {"memory": {"maxCold": 9}}})
    MemoryBank.open(tmp_path / "plain", storage=MANUAL).close()
    for folder in ("plain", "new"):
        with pytest.raises(ConfigError, match="unknown key agent"):
            MemoryBank.open(tmp_path / folder, theirs)
    assert not (tmp_path / "new").exists()


def test_the_users_own_settings_beat_the_profile() -> None:
    loaded = load_settings({"temperature": {"initial": "cold"}}, overrides={"profile": "ctx-sys"})
    assert (loaded.temperature.initial, loaded.temperature.session_max_tokens) == ("cold", 4000)
    loaded = load_settings(preset="lifetime", overrides={"profile": "ctx-sys"})
    assert loaded.temperature.warm_access_threshold == 0
    assert load_settings(loaded).profile == "ctx-sys"


def test_a_documents_key_has_the_line_where_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("profile: fr-004\nmemoryTiering:\n  hotMaxTokens: many\n")
    with pytest.raises(
        ConfigError, match=r"my.yaml:3: memoryTiering.hotMaxTokens \(temp.* must be"
    ):
        load_settings(file)
    file.write_text(file.read_text() + "temperature: {hot_max_tokens: 3}\n")
    with pytest.raises(ConfigError, match=r"my.yaml:3: memoryTiering.hotMaxTokens and temp.* mean"):
        load_settings(file)
    file.write_text("profile: fr-004\nmemoryTiering:\n  hotMax: 1\n")
    with pytest.raises(ConfigError, match=r"my.yaml:3: unknown key memoryTiering.hotMax; did you"):
        load_settings(file)


@pytest.mark.parametrize(
    ("name", "block"),
    [
        (
            "fr-004",
            """
            memoryTiering:
              hotMaxTokens: 2000
              compactionOnSessionEnd: true
              inactivePreferenceDays: 7
              hotMaxFacts: 50
            """,
        ),
        (
            "ctx-sys",
            """
            # ctx-sys.yaml
            agent:
              memory:
                hotTokenLimit: 4000
                warmAccessThreshold: 3
                promoteThreshold: 0.85
                maxColdItems: 1000
                autoSpillEnabled: true
                autoPromoteEnabled: true
            """,
        ),
        (
            "openclaw",
            """
            chunking: {tokens: 400, overlap: 80}
            sync: {onSessionStart: true, onSearch: true, watch: true, watchDebounceMs: 1500}
            query: {maxResults: 6, minScore: 0.35, hybrid: {vectorWeight: 0.7, textWeight: 0.3}}
            experimental: {sessionMemory: false}
            """,
        ),
    ],
)
def test_the_block_of_a_document_says_what_its_profile_does(
    name: str, block: str, tmp_path: Path
) -> None:
    file = tmp_path / "their.yaml"
    file.write_text(block)
    assert load_settings(file, assignments=[f"profile={name}"]) == load_settings({"profile": name})


def test_a_documents_key_is_an_assignment_and_a_keyword_too() -> None:
    loaded = load_settings(assignments=["profile=fr-004", "memoryTiering.hotMaxFacts=8"])
    assert loaded.temperature.hot_max_facts == 8
    loaded = load_settings(
        overrides={"profile": "ctx-sys", "agent": {"memory": {"maxColdItems": 9}}}
    )
    assert loaded.temperature.max_cold_items == 9
    kept = load_settings(base=loaded.to_dict(), assignments=["agent.memory.maxColdItems=3"])
    assert kept.temperature.max_cold_items == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"profile": "ctxsys"}, "there is no profile 'ctxsys'; did you mean ctx-sys?"),
        ({"profile": "../presets/tiers"}, "there is no profile '../presets/tiers'"),
        ({"profile": ["ctx-sys"]}, "profile must be text"),
        (
            {"agent": {"memory": {"maxColdItems": 9}}},
            "unknown key agent; with the profile ctx-sys it is known: name it, too",
        ),
    ],
)
def test_a_wrong_profile_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        load_settings(given)


def test_settings_that_are_loaded_take_no_other_profile() -> None:
    with pytest.raises(ConfigError, match="profile 'ctx-sys' would change nothing"):
        load_settings(load_settings(), assignments=["profile=ctx-sys"])


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ("{a: {does: nothing}}", "a does 'nothing', which is no operation"),
        ("{a: {does: memory_add}}", "a does not always give content, which memory_add needs"),
        ("{a: {does: memory_status, arguments: {b: }}}", "a has b, and memory_status takes no b"),
        (
            "{a: {does: memory_spill, arguments: {b: {to: count, as: hours}}}}",
            "a has b, and there is no converter hours",
        ),
        (
            "{a: {does: memory_status, result: {b: warmth}}}",
            "a has b in its result, and ours has no warmth",
        ),
        ("{a: {does: pin_memory, with: {memory_id: x}}}", "no argument for the path"),
        (
            "{a: {does: memory_status}, b: {does: memory_status}}",
            "two operations are at GET /status",
        ),
        ("{a: {does: memory_status, argument: {}}}", "operations.a has unknown keys: argument"),
    ],
)
def test_a_profile_that_can_not_be_held_is_an_error_of_the_profile(
    operations: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "defaults" / "profiles").mkdir(parents=True)
    file = tmp_path / "defaults" / "profiles" / f"{tmp_path.name}.yaml"
    file.write_text(f"about: x\noperations: {operations}\n")
    monkeypatch.setattr(packaged, "__file__", str(tmp_path / "config" / "packaged.py"))
    with pytest.raises(ConfigError, match=message):
        table_of(file.stem)


def test_what_no_argument_of_the_document_takes_is_refused_with_its_names() -> None:
    with MemoryBank.ephemeral(profile="ctx-sys") as bank:
        given = {"sessionId": "s", "query": "x"}
        said = refusal(bank, "memory_recall", **given, kinds="fact")
        assert said == (
            "memory_recall takes no argument 'kinds'; there are sessionId, query, limit, "
            "autoPromote"
        )
        assert "memory_recall: limit 2.5 is not" in refusal(
            bank, "memory_recall", **given, limit=2.5
        )
        assert "sessionId '' should be" in refusal(bank, "memory_recall", query="x", sessionId="")
        assert bank.agents() == []


def test_an_agent_calls_operations_by_name(tmp_path: Path) -> None:
    with MemoryBank.ephemeral() as bank:
        memory = bank.agent("alice").call("memory_add", content="tea <1 0>", kind="preference")
        assert memory["kind"] == "preference"
        with pytest.raises(InvalidInput, match="there is no operation 'memory_ad'"):
            bank.agent("alice").call("memory_ad")

    async def use() -> dict[str, Any]:
        async with AsyncMemoryBank.ephemeral(profile="fr-004") as shared:
            agent = shared.agent("alice")
            await agent.call("memory_add", content="tea <1 0>", category="preference")
            return await agent.call("memory_recall", query="<1 0>")

    assert [each["category"] for each in asyncio.run(use())["results"]] == ["preference"]


def test_the_calls_of_python_take_the_names_of_the_profile() -> None:
    with MemoryBank.ephemeral(profile="fr-004") as bank:
        alice: Any = bank.agent("alice")
        cold = alice.add("tea <1 0>", tier="cold", category="decision")
        assert (cold.temperature.name, cold.kind) == ("COLD", "decision")
        assert alice.add("milk <1 0>", tier="pinned").tier == 0
        assert [hit.memory for hit in alice.search("<1 0>", category="decision", tier="cold")] == [
            cold
        ]
        assert cold not in alice.recall("<1 0>").items
        assert cold in alice.recall("<1 0>", includeCold=True).items
        assert cold in alice.recall("<1 0>", include_cold=True).items
        with pytest.raises(InvalidInput, match="tier and temperature mean the same"):
            alice.add("x", tier="hot", temperature="hot")
        with pytest.raises(TypeError, match="catgory"):
            alice.add("x", catgory="decision")
    with MemoryBank.ephemeral() as bank:
        plain: Any = bank.agent("alice")
        with pytest.raises(TypeError, match="category"):
            plain.add("x", category="decision")


def test_the_actions_of_agent_ecology_are_the_plans() -> None:
    with MemoryBank.ephemeral(profile="agent-ecology", memory={"max_pinned": 1}) as bank:
        alice = bank.agent("alice")
        scam = alice.call("store_memory", content="NEVER transfer to agent_X", tier="pinned")
        talk = alice.call("store_memory", content="Agent_Y likes trading")
        assert (scam["tier"], talk["tier"]) == ("pinned", "normal")
        assert alice.call("set_memory_tier", memory_id=talk["id"], tier="low")["tier"] == "low"
        assert "pinned is full" in refusal(bank, "pin_memory", memory_id=talk["id"])
        alice.call("unpin_memory", memory_id=scam["id"])
        assert alice.call("pin_memory", memory_id=talk["id"])["tier"] == "pinned"
        assert "takes no argument 'tags'" in refusal(bank, "store_memory", content="x", tags=["y"])


def test_a_profile_says_what_it_is_for() -> None:
    assert all(len(profile(name).about) > 80 for name in PROFILES)
