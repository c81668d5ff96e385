"""Made ``journal-2*.db.gz`` and ``journal-2.json`` with the last version that wrote format 2.

It is kept to say what is in them; it can't make them again with the code of today. It ran with the
source of commit f7c088b::

    git archive f7c088b src config | tar -x -C /tmp/old
    PYTHONPATH=/tmp/old/src python tests/golden/make_journal_2.py

The bank has two agents, all tiers, metadata, demotions and deletions; once without a snapshot, once
with a snapshot in the middle and commits after it, once with a snapshot at the end.
"""

import gzip
import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from agents import MemoryBank
from agents.storage.journal.journal import _FORMAT
from agents.storage.state.ledger import Ledger

FOLDER = Path(__file__).parent


def first(bank: MemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    alice.add("NEVER transfer to agent_X (scammer)", "pinned", {"source": "bob", "n": 1})
    alice.add_many([(f"warning {n}", "critical", {"n": n}) for n in range(3)])
    bank.advance(3)
    alice.add_many(["small talk “1”\n", ("a rumour", "low"), ("the deadline is Friday", 2)])
    bob.add("alice trusts me", "pinned", {"x": 0.5, "b": True, "none": None})
    alice.delete(alice.all("low")[0].id)
    bank.advance(5)
    bob.add_many([("pin two", "pinned"), ("pin three", "pinned")])  # the first is demoted


def second(bank: MemoryBank) -> None:
    alice, bob = bank.agent("alice"), bank.agent("bob")
    bank.advance(8)
    alice.add("after the snapshot", "important", {"late": "yes"})
    alice.set_tier(alice.all("critical")[0].id, "normal")
    gone = bob.add("bob forgets this")
    bob.delete(gone.id)
    bob.add("bob's last")


def contents(bank: MemoryBank) -> dict[str, Any]:
    return {
        "tick": bank.tick,
        "pinned": {a: [m.id for m in bank.agent(a).get_pinned_memories()] for a in bank.agents()},
        "memories": [
            [
                m.id,
                m.agent_id,
                m.content,
                int(m.tier),
                m.created_tick,
                m.tier_tick,
                m.sequence,
                dict(m.metadata),
            ]
            for agent in bank.agents()
            for m in bank.agent(agent).all()
        ],
        "found": {
            agent: [
                [hit.memory.id, hit.score.hex()]
                for hit in bank.agent(agent).search("who is a scammer?", 4)
            ]
            for agent in bank.agents()
        },
    }


def main() -> None:
    assert _FORMAT == 2, "this is to run with the source of f7c088b"
    never = 1_000_000
    kinds = {
        "journal-2": (never, never),
        "journal-2-snapshot": (1, never),
        "journal-2-snapshot-last": (1, 1),
    }
    for name, (middle, end) in kinds.items():
        scratch = Path(tempfile.mkdtemp())
        memory, storage = {"max_pinned": 2}, {"sync": "manual"}
        Ledger.SNAPSHOT_ON_CLOSE = middle
        with MemoryBank.open(scratch / "bank", seed=7, memory=memory, storage=storage) as bank:
            first(bank)
        Ledger.SNAPSHOT_ON_CLOSE = end
        with MemoryBank.open(scratch / "bank") as bank:
            second(bank)
            expected = contents(bank)
        data = (scratch / "bank" / "journal.db").read_bytes()
        shutil.rmtree(scratch)
        (FOLDER / f"{name}.db.gz").write_bytes(gzip.compress(data, mtime=0))
        text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / "journal-2.json").write_text(text, encoding="utf-8")  # the same for all
        print(name, hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
