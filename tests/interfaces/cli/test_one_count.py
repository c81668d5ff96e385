"""Every view of a run counts the same memories: cold ones too, and none that has expired."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents import MemoryBank
from agents.memory.tiers import TIER_NAMES
from agents.telling.groups import agent_counts

Command = Callable[..., Any]
Write = Callable[..., Path]

TIERS = tuple(TIER_NAMES.values())
FADING = ("--set", "decay.enabled=true", "--set", "decay.every=1",
          "--set", "decay.half_life={critical: 40, important: 20, normal: 3, low: 2}")  # fmt: skip


@pytest.fixture
def faded(tiermem: Command, scenario: Write) -> Path:
    """A run of 24 ticks with cold memories, in which one memory expired."""
    run = Path("faded")
    assert tiermem("run", scenario(ticks=12), "--out", run, "-q", *FADING).code == 0
    assert tiermem("add", run / "bank", "bread until tick 15", "-a", "alice", "--ttl", 3).code == 0
    assert tiermem("add", run / "bank", "a long promise", "-a", "bob", "--ttl", 900).code == 0
    assert tiermem("resume", run, "--ticks", 24, "-q").code == 0
    return run


def by_view(tiermem: Command, run: Path) -> dict[str, int]:
    """How many memories each view says there are."""
    tiers = tiermem("status", run / "bank", "--tiers", "--json").json["agents"]
    status = tiermem("status", run / "bank", "--json").json
    last = pq.read_table(run / "ticks.parquet").to_pylist()[-1]
    shown = tiermem("show", run, "--json").json
    (told,) = re.findall(r"At the end there were ([\d,]+) memories", report_of(run))
    (line,) = re.findall(r"([\d,]+) memories", tiermem("resume", run).err)
    return {
        "summary": json.loads((run / "summary.json").read_text())["memories"],
        "last line": int(line),
        "report": int(told),
        "ticks.parquet, tiers": sum(last[name] for name in TIERS),
        "ticks.parquet, temperatures": last["hot"] + last["warm"] + last["cold"],
        "tiers": sum(sum(own.values()) for own in tiers.values()),
        "show": sum(row["memories"] for row in shown),
        "show --agent": sum(
            len(tiermem("show", run, "--agent", row["agent"], "--json").json) for row in shown
        ),
        "status, tiers": sum(each["items"] for each in status["tiers"].values()),
        "status, temperatures": sum(each["items"] for each in status["temperatures"].values()),
        "status, active": status["retention"]["active"],
    }


def report_of(run: Path) -> str:
    return (run / "report.html").read_text()


@pytest.mark.slow
def test_every_view_counts_the_same_memories(tiermem: Command, faded: Path) -> None:
    counts = by_view(tiermem, faded)

    assert len(set(counts.values())) == 1, counts
    status = tiermem("status", faded / "bank", "--json").json
    assert status["temperatures"]["cold"]["items"] > 5
    assert pq.read_table(faded / "ticks.parquet").to_pylist()[15]["expired"] == 1
    last = pq.read_table(faded / "ticks.parquet").to_pylist()[-1]
    tiers = tiermem("status", faded / "bank", "--tiers", "--json").json["agents"]
    for name in TIERS:
        assert last[name] == sum(own[name] for own in tiers.values())
        assert last[name] == status["tiers"][name]["items"]


def test_an_expired_memory_that_waits_for_the_sweep_is_counted_nowhere(
    tiermem: Command, faded: Path
) -> None:
    bank = faded / "bank"
    before = tiermem("status", bank, "--tiers", "--json").json["agents"]
    with MemoryBank.open(bank) as opened:
        alice = opened.agent("alice")
        alice.add("warm for a while", ttl=2)
        alice.add("important for a while", "important", ttl=2)
        cold = alice.add("cold for a while", ttl=2)
        alice.update(cold.id, temperature="cold")
        hot = alice.add("hot for a while", ttl=2)
        alice.update(hot.id, temperature="hot")
        opened.advance(opened.tick + 2)
        assert sum(agent_counts(opened.engine)[0].values()) == sum(
            sum(own.values()) for own in before.values()
        )

    assert tiermem("status", bank, "--tiers", "--json").json["agents"] == before
    everything = {name: sum(own[name] for own in before.values()) for name in TIERS}
    status = tiermem("status", bank, "--json").json
    assert {name: each["items"] for name, each in status["tiers"].items()} == everything
    total = sum(everything.values())
    assert sum(each["items"] for each in status["temperatures"].values()) == total
    assert status["retention"]["active"] == total
    shown = {row["agent"]: row["memories"] for row in tiermem("show", bank, "--json").json}
    assert shown == {agent: sum(own.values()) for agent, own in before.items()}


def test_the_memories_retrieved_most_include_pinned_and_deleted_ones(
    tiermem: Command, scenario: Write
) -> None:
    memories = [{"content": "the quarry is closed on Sundays", "tier": "pinned"}]
    file = scenario(ticks=6, memories=memories)
    assert tiermem("run", file, "--out", "r", "-q").code == 0
    page = report_of(Path("r"))
    most = page[page.index("Retrieved most") : page.index("Pinned longest")]
    assert "the quarry is closed on Sundays" in most
    with MemoryBank.open("r/bank") as bank:
        for memory in bank.agent("alice").all():
            bank.agent("alice").set_tier(memory.id, "normal")
            bank.agent("alice").delete(memory.id)
    assert tiermem("report", "r").code == 0
    page = report_of(Path("r"))
    assert "· deleted</span>" in page[page.index("Retrieved most") : page.index("Pinned longest")]
    assert "Pinned longest, of those pinned at the end" in page
