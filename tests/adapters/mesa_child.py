"""A process that runs a town: FOLDER, how many steps, and in which step it is killed."""

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mesa_models import Town

folder, steps, killed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
town = Town(n=4, seed=9, folder=folder)
for number in range(1, steps + 1):
    if number == killed:
        with town.memories.step():
            town.memories.recall("Whom did I meet?")
            town.agents.shuffle_do("step")
            os.kill(os.getpid(), signal.SIGKILL)
    town.step()
print(town.memories.record["state_hash"])
