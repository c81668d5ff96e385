"""Makes the golden files of a release: ``python tests/golden/release.py``.

They are kept for ever. Each later version has to read them, by the tests in
``tests/unit/storage/test_formats.py``: files of users are like these. Never make one anew for a
format that was released; a new format gets files of its own, with its number in their names. What
searches find (``found`` in ``release.json``) may be written anew after a change that means to
change it; nothing else of that file may.

A journal and a checkpoint hold all kinds of memories, a note and a board. Of the two runs, one has
asked a language model, and a cassette has what was answered.
"""

import gzip
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import rehearsal
from agents import MemoryBank
from agents.config.load import load_settings
from agents.simulation.policies.cassette import Cassette
from agents.simulation.runs.run import Run
from agents.storage import formats

__all__ = ["EXPECTED", "FOLDER", "held", "state_hashes"]

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "release.json"
SETTINGS = {"clock": {"ticks_per_day": 4}, "storage": {"sync": "manual"}}
MARKET = {"world": "market", "world_options": {"scammers": 2}, "agents": 4, "ticks": 8}
RUN: dict[str, Any] = {
    "seed": 7, "checkpoint": {"every": 4, "keep": 1}, "storage": {"sync": "manual"},
    "simulation": MARKET,
}  # fmt: skip
_LEFT_OUT = ("bank.lock", "run.seal", "report.html")


def held(bank: MemoryBank) -> dict[str, Any]:
    """What a bank holds and answers, as JSON values."""
    found: dict[str, Any] = json.loads(json.dumps(rehearsal.held(bank)))
    return found


def state_hashes(run: Path) -> list[str]:
    """The state hash of a run's bank after each tick."""
    found = []
    for tick in range(1, MARKET["ticks"] + 1):
        with MemoryBank.at(run / "bank", tick) as bank:
            found.append(bank.state_hash())
    return found


def make(scratch: Path) -> dict[str, bytes]:
    """The files by their names, and what is expected of them under the name of EXPECTED."""
    files: dict[str, bytes] = {}
    with MemoryBank.open(scratch / "bank", SETTINGS, preset="hot-cold-session") as bank:
        rehearsal.fill(bank)
        bank.checkpoint(scratch / "checkpoint.tmck")
        expected: dict[str, Any] = {"bank": held(bank)}
    files[f"journal-{formats.JOURNAL}-full.db.gz"] = (scratch / "bank/journal.db").read_bytes()
    files[f"checkpoint-{formats.CHECKPOINT}-full.tmck.gz"] = (
        scratch / "checkpoint.tmck"
    ).read_bytes()
    with rehearsal.model() as url:
        llm = {"provider": "openai", "config": {"model": "m", "openai_base_url": url}}
        asking = {**RUN, "llm": llm, "simulation": {**MARKET, "policy": "llm"}}
        for name, settings in (("market", RUN), ("asking", asking)):
            run(scratch / name, settings)
            expected[name] = state_hashes(scratch / name)
            files[f"run-{formats.RUN}-{name}.tar.gz"] = packed(scratch / name)
    cassette = scratch / "asking/cassette.jsonl"
    files[f"cassette-{formats.CASSETTE}-asking.jsonl.gz"] = cassette.read_bytes()
    expected["asked"] = [
        [each.tick, each.agent, each.prompt_hash, each.attempt, each.reply]
        for each in Cassette(cassette, replay=True)
    ]
    text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
    packed_files = {name: gzip.compress(data, mtime=0) for name, data in files.items()}
    return {**packed_files, EXPECTED.name: text.encode()}


def run(folder: Path, settings: Mapping[str, Any]) -> None:
    with Run.create(folder, load_settings(settings)) as made:
        for _ in made.advance(MARKET["ticks"]):
            pass
        made.checkpoint()
        made.finish()


def packed(folder: Path) -> bytes:
    """A tar of the files that a run needs, the same for the same files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith(_LEFT_OUT):
                info = tarfile.TarInfo(str(path.relative_to(folder)))
                info.size = path.stat().st_size
                tar.addfile(info, io.BytesIO(path.read_bytes()))
    return data.getvalue()


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch))
    for name in made:
        if (FOLDER / name).exists():
            sys.exit(f"{name} was made already, and is kept as it is")
    for name, data in made.items():
        (FOLDER / name).write_bytes(data)
        print(f"{len(data):>8,} bytes  {name}")


if __name__ == "__main__":
    main()
