"""Records ``simulations/recorded/market_llm`` anew: ``make record-llm``.

Four agents of a small real model trade for six ticks in the market of ``market_llm.yaml``. The
folder is a run without what can be made from the rest: checkpoints, tables, report, seal.
"""

import shutil
import tempfile
from pathlib import Path

from tiermem.config.load import load_settings
from tiermem.simulation.runs.run import Run

SIMULATIONS = Path(__file__).parent
RECORDED = SIMULATIONS / "recorded" / "market_llm"
SCALE = {"simulation.agents": 4, "simulation.ticks": 6, "llm.threads": 1, "llm.timeout": 3600}
KEPT = (
    *("run.json", "config.yaml", "summary.json", "cassette.jsonl"),
    *("bank/bank.head", "bank/journal.db", "bank/journal.db-head"),
)


def main() -> None:
    settings = load_settings(SIMULATIONS / "market_llm.yaml", overrides=SCALE)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "run"
        # No scenario: its folder would be one of this machine.
        with Run.create(made, settings, say=print) as run:
            for record in run.advance(settings.simulation.ticks):
                print(f"tick {record['tick']}", flush=True)
            run.finish()
        shutil.rmtree(RECORDED, ignore_errors=True)
        for name in KEPT:
            (RECORDED / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(made / name, RECORDED / name)
    size = sum((RECORDED / name).stat().st_size for name in KEPT)
    print(f"wrote {RECORDED}: {size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
