"""Records what today's code makes of fixed histories: ``python tests/golden/histories.py``.

A history is a seeded sequence of calls on a bank, or a shipped scenario run for some ticks. What
the calls return, each state hash and each journal hash are recorded in ``histories.json``; the test
in ``tests/unit/test_golden_histories.py`` plays the histories again and compares. Record anew only
for a change that means to change results, and say so in CHANGELOG.md.
"""

import hashlib
import json
import tempfile
from datetime import date
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from agents import MemoryBank, Temperature, Tier, TierMemError
from agents.config.load import load_settings
from agents.engine.status import Status
from agents.memory.records import Explanation, Hit, Recall
from agents.memory.tiers import Retention
from agents.notes import agent_notes
from agents.notes.search import Finding
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.run import Run
from asking import asked

__all__ = ["BANKS", "RECORDED", "SCENARIOS", "bank_history", "run_history"]

_, ARCHIVED, DELETED = Retention

RECORDED = Path(__file__).parent / "histories.json"
SIMULATIONS = Path(__file__).parent.parent.parent / "simulations"
SCENARIOS = (
    "market", "household", "rumor", "town",
    "market with any score", "household with any score", "rumor with any score",
)  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {"": {}, "with any score": {"temperature.min_score": 0.0}}
"""What is changed of a scenario's settings."""
TICKS = 12

SMALL_CAPS: dict[str, Any] = {
    "memory": {"max_pinned": 3, "max_critical": 4},
    "clock": {"ticks_per_day": 4},
    "retention": {"grace": "2d"},
}
BANKS: dict[str, dict[str, Any]] = {
    "tiers": SMALL_CAPS,
    "vector": SMALL_CAPS,
    "weighted-sum": SMALL_CAPS,
    "lifetime": {**SMALL_CAPS, "temperature": {"hot_max_facts": 6, "max_cold_items": 8}},
    "hot-cold-session": {**SMALL_CAPS, "temperature": {"hot_max_tokens": 150}},
    "hot-warm-cold": {**SMALL_CAPS, "temperature": {"hot_max_facts": 5, "max_cold_items": 5}},
}
NEWER = {
    Status: ("clock", "embedder", "store", "groups", "session"),
    Finding: ("match",),
    **dict.fromkeys((Hit, Explanation), ("match", "relevance_probability")),
    Recall: ("matches", "likenesses", "probabilities"),
}
"""Fields that results have got since the histories were recorded."""
STEPS = 400
AGENTS = ("alice", "bob", "carol")
NAMES = ("agent_05", "Dora", "Emil", "the guild", "Fay")
DEEDS = ("never delivers", "gave me coins", "asked for a loan", "moved to the mill", "likes tea")
ENDS = (".", "?", ", they say.", " again.", " on market day.")


def run_history(name: str, folder: Path) -> list[Any]:
    """The state hash of each tick of a shipped scenario, then what the run came to."""
    name, _, change = name.partition(" ")
    settings = load_settings(
        SIMULATIONS / f"{name}.yaml", overrides={"storage.sync": "manual", **CHANGES[change]}
    )
    with Run.create(folder, settings, scenario=SIMULATIONS) as run:
        hashes = [record["state_hash"] for record in run.advance(TICKS)]
        rows = ticks_of(run.bank).records()
        given = [hashlib.sha256(retrieved).hexdigest()[:16] for _, retrieved in rows]
        metrics = [record["metrics"] for record, _ in ticks_of(run.bank).records()]
        return [hashes, given, metrics, ticks_of(run.bank).hash()]


def bank_history(preset: str, folder: Path) -> list[Any]:
    """After every 20 steps, a hash over what the calls gave, the state hash, the journal hash.

    The name of a daily note has the date, so all is done on the day of the recording.
    """
    with patch.object(agent_notes, "date", _Day):
        return _bank_history(preset, folder)


class _Day(date):
    @classmethod
    def today(cls) -> "_Day":
        return cls(2026, 11, 16)


def _bank_history(preset: str, folder: Path) -> list[Any]:
    rng = Random(f"golden {preset}")
    recorded: list[Any] = []
    bank = MemoryBank.open(folder, BANKS[preset], preset=preset, storage={"sync": "manual"})
    try:
        log = hashlib.sha256()
        for step in range(1, STEPS + 1):
            if step == STEPS // 2:
                bank.close()
                bank = MemoryBank.open(folder)
            try:
                result = _step(bank, rng)
            except TierMemError as error:
                result = f"{type(error).__name__}: {error}"
            log.update(json.dumps(_plain(result), ensure_ascii=False).encode())
            if step % 20 == 0:
                recorded.append([log.hexdigest()[:16], bank.state_hash()])
        found = [bank.agent(agent).explain("who gave me coins?", 4) for agent in AGENTS]
        recorded.append(
            [[[row.memory.id, row.score.hex()] for row in rows if row.rank] for rows in found]
        )
        memories = json.dumps(_plain([bank.agent(agent).all() for agent in AGENTS]))
        recorded.append(hashlib.sha256(memories.encode()).hexdigest())
        recorded.append(ticks_of(bank).hash())
    finally:
        bank.close()
    return recorded


def _text(rng: Random) -> str:
    return rng.choice(NAMES) + " " + rng.choice(DEEDS) + rng.choice(ENDS)


def _step(bank: MemoryBank, rng: Random) -> Any:
    agent = bank.agent(rng.choice(AGENTS))
    kind = rng.choice(("add", "add", "add_many", "search", "search", "look", "change", "time"))
    if kind == "add":
        return agent.add(_text(rng), rng.choice([*Tier]), **_options(rng))
    if kind == "add_many":
        items = [
            (rng.choice(AGENTS), _text(rng), rng.choice([*Tier]), {"n": n}, _options(rng))
            for n in range(rng.randrange(1, 30))
        ]
        return list(bank.add_many(items))
    if kind == "search":
        pairs = [(name, _text(rng)) for name in rng.sample(AGENTS, rng.randrange(1, 4))]
        call = rng.choice((bank.search_many, bank.context_many, bank.relevant_many))
        return call(pairs, rng.randrange(1, 8), context_tokens=rng.choice((None, None, 60)))
    if kind == "look":
        query = rng.choice((_text(rng), " "))
        return rng.choice(
            (
                lambda: agent.search(query, 5, tier=rng.choice(("low", "normal"))),
                lambda: agent.search(query, 5, include_cold=True),
                lambda: agent.recall(query),
                lambda: agent.get_relevant_memories(query),
                lambda: agent.memory_search(query),
                agent.get_relevant_memories,
                agent.count,
                lambda: agent.all(temperature=rng.choice([*Temperature])),
                lambda: bank.status(agent.agent_id),
            )
        )()
    if kind == "change":
        return _change(bank, agent, rng)
    return rng.choice(
        (
            lambda: bank.advance(bank.tick + rng.randrange(1, 5)),
            bank.sweep,
            bank.compact,
            lambda: bank.compact(dry_run=True),
            bank.prune,
            agent.compact,
        )
    )()


def _options(rng: Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.3:
        options["kind"] = rng.choice(("decision", "preference", "message"))
    if rng.random() < 0.3:
        options["tags"] = rng.sample(("task", "blocker", "open"), 2)
    if rng.random() < 0.3:
        options["temperature"] = rng.choice([*Temperature])
    if rng.random() < 0.2:
        options["ttl"] = rng.randrange(1, 40)
    if rng.random() < 0.4:
        options.update(session=rng.randrange(3), speaker=rng.choice(NAMES))
    return options


def _change(bank: MemoryBank, agent: Any, rng: Random) -> Any:
    if rng.random() < 0.15:
        heading = rng.choice(NAMES)
        text = "".join(f"# {heading} {n}\n\n{_text(rng)}\n\n" for n in range(rng.randrange(4)))
        return rng.choice(
            (lambda: agent.notes.write("MEMORY.md", text), lambda: agent.notes.append(text))
        )()
    memories = agent.all()
    hidden = [each for kept in (ARCHIVED, DELETED) for each in agent.all(retention=kept)[::-1]]
    if hidden and rng.random() < 0.2:
        return asked(agent, "restore", rng.choice(hidden).id)
    if not memories:
        return None
    chosen = rng.choice(memories).id
    return rng.choice(
        (
            lambda: agent.pin(chosen),
            lambda: agent.unpin(chosen),
            lambda: agent.set_tier(chosen, rng.choice([*Tier])),
            lambda: asked(agent, "promote", chosen),
            lambda: asked(agent, "demote", chosen, rng.choice(("warm", "cold"))),
            lambda: asked(agent, "warm", chosen),
            lambda: agent.spill(rng.randrange(4)),
            lambda: asked(agent, "archive", chosen),
            lambda: agent.delete(chosen),
            lambda: agent.forget(chosen),
            lambda: agent.get(chosen),
        )
    )()


def _plain(value: Any) -> Any:
    """A result as JSON, with floats to their last bit."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if newer := NEWER.get(type(value)):
        value = [own for own, name in zip(value, value._fields, strict=True) if name not in newer]
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "items"):
        return {str(key): _plain(each) for key, each in value.items()}
    raise TypeError(f"{type(value).__name__} is not recorded")


def record() -> dict[str, Any]:
    """All histories, as JSON values."""
    recorded: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in SCENARIOS:
            recorded[name] = run_history(name, Path(scratch) / name)
        for preset in BANKS:
            recorded[preset] = bank_history(preset, Path(scratch) / preset)
    return recorded


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
