"""The settings of a bank, and that each is really used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agents import InvalidContent, MemoryBank, TierFull
from banks import MANUAL, MakeBank
from embedders import Counting, Directions


def test_a_bank_opened_without_a_config_uses_the_settings_it_was_made_with(folder: Path) -> None:
    made = {"memory": {"max_pinned": 2, "default_limit": 3}, "storage": MANUAL, "seed": 8}
    with MemoryBank.open(folder, made, embedder=Directions()) as bank:
        identifier = bank.agent("alice").add_many([(f"p{n}", 0) for n in range(3)])[0].id
    with MemoryBank.open(folder, embedder=Directions()) as bank:
        assert bank.settings.memory.max_pinned == 2
        assert bank.settings.storage.sync == "manual"
        assert bank.agent("alice").count("pinned") == 2
        bank.agent("alice").add_many([f"m{n}" for n in range(9)])
        assert len(bank.agent("alice").search("")) == 3
        assert bank.agent("alice").get(identifier).id == identifier


def test_overrides_go_on_top_of_the_stored_settings(folder: Path) -> None:
    with MemoryBank.open(folder, embedder=Directions(), storage=MANUAL, memory={"max_pinned": 2}):
        pass
    with MemoryBank.open(folder, embedder=Directions(), memory={"max_critical": 1}) as bank:
        assert (bank.settings.memory.max_pinned, bank.settings.memory.max_critical) == (2, 1)


def test_an_existing_bank_keeps_its_seed(open_bank: MakeBank) -> None:
    first = open_bank(seed=1).agent("alice").add("x")
    second = open_bank(seed=2).agent("alice").add("y")
    assert first.id[:24] == second.id[:24]
    assert len(open_bank().agent("alice").all()) == 2


def test_config_may_be_a_yaml_file(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("memory:\n  max_pinned: 1\n")
    with MemoryBank.ephemeral(tmp_path / "my.yaml", embedder=Directions()) as bank:
        bank.agent("alice").add_many([("a", 0), ("b", 0)])
        assert bank.agent("alice").count("pinned") == 1


def pinned_count(bank: MemoryBank) -> object:
    bank.agent("a").add_many([(f"p{n}", "pinned") for n in range(20)])
    return bank.agent("a").count("pinned")


def critical_count(bank: MemoryBank) -> object:
    bank.agent("a").add_many([(f"c{n}", "critical") for n in range(20)])
    return bank.agent("a").count("critical")


def when_full(bank: MemoryBank) -> object:
    try:
        bank.agent("a").add_many([(f"p{n}", "pinned") for n in range(6)])
    except TierFull:
        return "refused"
    return "demoted"


def boost_of(tier: str) -> Callable[[MemoryBank], object]:
    def shown(bank: MemoryBank) -> object:
        bank.agent("a").add("x <1 0>", tier)
        (hit,) = bank.agent("a").search("<1 0>")
        return hit.boosted_score

    return shown


def lifted(bank: MemoryBank) -> object:
    bank.agent("a").add("rule <1 0.5>", "critical")
    bank.agent("a").add_many([f"talk {n} <1 0.{n}>" for n in range(4)])
    return bank.agent("a").search("<1 0>", 1)[0].memory.content


def found(bank: MemoryBank) -> object:
    bank.agent("a").add_many([f"memory {n}" for n in range(20)])
    return len(bank.agent("a").search(""))


def longest(bank: MemoryBank) -> object:
    try:
        bank.agent("a").add("x" * 100)
    except InvalidContent:
        return "refused"
    return "stored"


def repeated(bank: MemoryBank) -> object:
    bank.agent("a").add_many(["Bob likes fish", " bob  LIKES fish"])
    return bank.agent("a").count()


KEYS: dict[str, tuple[Callable[[MemoryBank], object], object, object, object]] = {
    # key: what shows it, with the default, another value, and with that
    "memory.max_pinned": (pinned_count, 5, 3, 3),
    "memory.max_critical": (critical_count, 10, 4, 4),
    "memory.on_tier_full": (when_full, "demoted", "reject", "refused"),
    "memory.tier_boosts.pinned": (boost_of("pinned"), 2.0, 0.5, 1.5),
    "memory.tier_boosts.critical": (boost_of("critical"), 1.3, 0.5, 1.5),
    "memory.tier_boosts.important": (boost_of("important"), 1.15, 0.5, 1.5),
    "memory.tier_boosts.normal": (boost_of("normal"), 1.0, 0.5, 1.5),
    "memory.tier_boosts.low": (boost_of("low"), 0.9, 0.5, 1.5),
    "memory.candidate_multiplier": (lifted, "talk 0 <1 0.0>", 5, "rule <1 0.5>"),
    "memory.default_limit": (found, 5, 8, 8),
    "memory.context_tokens": (found, 5, 7, 2),
    "memory.max_content_bytes": (longest, "stored", 99, "refused"),
    "memory.merge_duplicates": (repeated, 2, True, 1),
}


@pytest.mark.parametrize("key", KEYS)
def test_every_memory_setting_is_really_used(make_bank: MakeBank, key: str) -> None:
    shown, usual, setting, changed = KEYS[key]
    assert shown(make_bank()) == usual
    assert shown(make_bank(**{key: setting})) == changed


def test_no_memory_setting_is_left_untested() -> None:
    from agents.config.load import load_settings

    memory = load_settings().to_dict()["memory"]
    assert isinstance(memory, dict)
    names = {f"memory.{name}" for name in memory if name != "tier_boosts"}
    names |= {f"memory.tier_boosts.{name}" for name in memory["tier_boosts"]}
    assert names == set(KEYS)


@pytest.mark.parametrize(("size", "calls"), [(65536, 2), (2, 2), (1, 3), (0, 3)])
def test_the_embedders_cache_size_is_really_used(size: int, calls: int) -> None:
    embedder = Counting()
    settings = {"embedder": {"cache_size": size}}
    with MemoryBank.ephemeral(settings, embedder=embedder) as bank:
        for query in ("x", "y", "x"):
            bank.agent("a").search(query)
    assert len(embedder.batches) == calls


def test_manual_sync_writes_no_store_when_the_bank_closes(
    open_bank: MakeBank, folder: Path
) -> None:
    open_bank().agent("alice").add("x")
    open_bank().close()
    names = {path.name for path in folder.iterdir()}
    journal = {f"journal.db{end}" for end in ("", "-wal", "-shm", "-head")}
    assert names <= journal | {"bank.lock", "bank.head"}


def test_a_key_that_a_bank_keeps_from_when_it_was_a_setting_means_nothing() -> None:
    from agents.config.load import load_settings

    kept = {"simulation": {"streams": 2, "ticks": 7}, "retrieval": {"fusion": "rrf"}}
    assert load_settings(base=kept).simulation.ticks == 7
