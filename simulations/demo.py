"""The same market twice: once with tiered memory, once with flat memory. Run it with `make demo`.

Each trader is cheated now and then, and keeps a warning against the scammer. With tiers the warning
is pinned; without, it is a memory like any other, and gossip buries it.
"""

from itertools import pairwise
from pathlib import Path

from tiermem.config.load import load_settings
from tiermem.simulation.runs.run import Run

HERE = Path(__file__).parent
RUNS = Path("runs")


def main() -> None:
    """Run both and print what the scammers took, in each quarter of the run."""
    losses = {}
    for name, tiers in (("flat", False), ("tiers", True)):
        options = {"simulation": {"policy_options": {"tiers": tiers}}}
        settings = load_settings(HERE / "market.yaml", overrides=options)
        folder = RUNS / f"demo-{name}"
        with Run.create(folder, settings, scenario=HERE, force=True) as run:
            losses[name] = [record["metrics"]["loss"] for record in run.advance(120)]
            print(
                f"{name:5}  {run.tick} ticks, {run.settings.simulation.agents} agents", flush=True
            )
            run.finish()

    print("\nwhat scammers took from the honest, in coins")
    print("            ticks 1–30     31–60     61–90    91–120     in all")
    for name, so_far in losses.items():
        marks = [0, *(so_far[tick - 1] for tick in (30, 60, 90, 120))]
        quarters = [after - before for before, after in pairwise(marks)]
        print(f"{name:>9}" + "".join(f"{coins:>11}" for coins in (*quarters, so_far[-1])))

    flat, tiers = RUNS / "demo-flat", RUNS / "demo-tiers"
    print("\nThe same traders and the same seed; the one difference is that a warning is pinned.")
    print(f"Reports: {flat / 'report.html'} and {tiers / 'report.html'}")
    print(f"Then try:  .venv/bin/tiermem diff {flat} {tiers}")
    query = "--agent agent_00 --query 'agent_03 offers a deal'"
    print(f"           .venv/bin/tiermem show {tiers} {query}")
    print(f"           .venv/bin/tiermem replay {tiers} --verify")


if __name__ == "__main__":
    main()
