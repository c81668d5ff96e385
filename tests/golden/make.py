"""Makes a golden checkpoint and what is expected of it: ``python tests/golden/make.py``.

It is made once for each format of checkpoints, and never again: that old files keep loading is what
the test in ``tests/unit/test_golden.py`` is about. The file is packed, since most of it is zeros.
"""

import gzip
import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.kept_ticks import ticks_of
from agents.simulation.runs.run import Run

__all__ = ["CHECKPOINT", "EXPECTED", "FOLDER", "LAST", "TICK", "ending", "make", "state"]

FOLDER = Path(__file__).parent
CHECKPOINT = FOLDER / "checkpoint-3.tmck.gz"
EXPECTED = FOLDER / "checkpoint-3.json"
TICK = 6
LAST = 20


def state(bank: MemoryBank) -> dict[str, Any]:
    """All that a checkpoint holds of a bank, as JSON values."""
    agents = bank.agents()
    notes = [
        [agent, path, bank.agent(agent).notes.read(path)]
        for agent in agents
        for path in bank.agent(agent).notes.paths()
    ]
    found = [bank.agent(agent).explain("who gave me coins?", 4) for agent in agents]
    return {
        "tick": bank.tick,
        "state_hash": bank.state_hash(),
        "journal_hash": ticks_of(bank).hash(),
        "world": ticks_of(bank).state(),
        "records": [record for record, _ in ticks_of(bank).records()],
        "memories": [
            [
                m.id,
                m.agent_id,
                m.content,
                int(m.tier),
                m.created_tick,
                m.tier_tick,
                dict(m.metadata),
                *as_json(m[8:]),
            ]
            for agent in agents
            for m in bank.agent(agent).all()
        ],
        "found": [[[row.memory.id, row.score.hex()] for row in rows if row.rank] for rows in found],
        **({"notes": notes} if notes else {}),
    }


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def ending(run: Run) -> dict[str, Any]:
    """What becomes of a run, from where it is to tick 20."""
    hashes = [record["state_hash"] for record in run.advance(LAST)]
    return {"state_hashes": hashes, "journal_hash": ticks_of(run.bank).hash()}


def make(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """A checkpoint made in ``folder``, and what is expected of it."""
    settings = load_settings(FOLDER / "scenario.yaml")
    with Run.create(folder, settings, scenario=FOLDER) as run:
        for record in run.advance(TICK):
            if record["tick"] == 5:
                alice = run.bank.agent("alice")
                first, second, third, fourth, *_ = alice.all("normal")
                alice.delete(fourth.id)  # a gap among the numbers
                alice.update(third.id, retention="archived")
                alice.update(second.id, temperature="cold")
                alice.add("in a month", ttl=30, kind="decision", tags=["task"], temperature="cold")
                alice.recall("in a month", auto_promote=False)
                alice.update(first.id, temperature="hot")
                alice.forget(alice.add("a secret").id)
                alice.notes.write(
                    "MEMORY.md", "# Plan\n\nשלום 🐝\r\n\n# Never <!-- tier: 1 -->\nX\n"
                )
                alice.notes.append("Bob was kind.")
                alice.add("Where is it?", session="talk", speaker="Bob")
        data = run.checkpoint().read_bytes()
        return data, {"after": state(run.bank), "later": ending(run)}


def main() -> None:
    scratch = Path(tempfile.mkdtemp())
    try:
        data, expected = make(scratch / "run")
    finally:
        shutil.rmtree(scratch)
    CHECKPOINT.write_bytes(gzip.compress(data, mtime=0))
    EXPECTED.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    print("SHA256 in tests/unit/test_golden.py is to be", hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
