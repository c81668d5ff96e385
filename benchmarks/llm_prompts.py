"""A small model in this process: usable replies, seconds, and the share of cached tokens.

``make bench WHAT=llm_prompts`` after ``make llm``, which installs the model. The market with six
agents is run twice: with prompts that go from what never changes to what is new, and with the
tick and what is seen in front of the memories.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tiermem import MemoryBank
from tiermem.config.load import load_settings
from tiermem.simulation.policies import clients, llm
from tiermem.simulation.policies.cassette import Cassette
from tiermem.simulation.policies.model import Model, Question, Reply
from tiermem.simulation.runs.scenario import own_actions
from tiermem.simulation.tick.loop import Loop
from tiermem.simulation.worlds.market import Market


class Counting:
    """A model that keeps what each call took; ``turned`` puts what is new in front."""

    def __init__(self, model: Model, turned: bool) -> None:
        self._model = model
        self._turned = turned
        self.calls: list[tuple[Reply, float, float]] = []

    def prepare(self) -> None:
        self._model.prepare()

    def reply(self, question: Question) -> Reply:
        if self._turned:
            system, user = question.messages
            kept, mark, new = user["content"].partition("\n\nTick ")
            turned = {**user, "content": f"Tick {new}\n\n{kept}"} if mark else user
            question = question._replace(messages=[system, turned])
        began, used = time.perf_counter(), time.process_time()
        reply = self._model.reply(question)
        self.calls.append((reply, time.perf_counter() - began, time.process_time() - used))
        return reply


def measured(agents: int, ticks: int, threads: int | None, turned: bool) -> dict[str, Any]:
    names = [f"agent_{number:02}" for number in range(agents)]
    own = {"provider": "local", "threads": threads, "timeout": 3600}
    simulation = {"world": "market", "agents": names}
    settings = load_settings({"seed": 7, "llm": own, "simulation": simulation})
    model = Counting(clients.model_of(settings.llm, names), turned)
    world = Market(scammers=1)
    with tempfile.TemporaryDirectory() as folder, MemoryBank.ephemeral(seed=7) as bank:
        policy = llm.Llm(
            model,
            Cassette(Path(folder) / "cassette.jsonl"),
            Market.actions,
            own_actions(settings, world),
            llm=settings.llm,
            arguments=Market.action_arguments,
            system="You are a careful trader.",
        )
        loop = Loop(bank, world, policy, names)
        loop.begin()
        records = [loop.tick() for _ in range(ticks)]
    lost = sum(record["no_ops"] for record in records)
    later = [reply for reply, _, _ in model.calls[agents:]]
    return {
        "order": "what is new first" if turned else "what is new last",
        "decisions": agents * ticks,
        "usable": 1 - lost / (agents * ticks),
        "calls": len(model.calls),
        "median_s": statistics.median(seconds for _, seconds, _ in model.calls),
        "median_cpu_s": statistics.median(cpu for _, _, cpu in model.calls),
        "tokens_read": statistics.median(reply.read or 0 for reply in later),
        "tokens_written": statistics.median(reply.written or 0 for reply in later),
        "cached": sum(r.cached or 0 for r in later) / sum(r.read or 1 for r in later),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=6)
    parser.add_argument("--ticks", type=int, default=10)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    for turned in (False, True):
        found = measured(arguments.agents, arguments.ticks, arguments.threads, turned)
        print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}))


if __name__ == "__main__":
    main()
