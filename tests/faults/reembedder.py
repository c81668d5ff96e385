"""Gives a bank another embedder, slowly; the test kills it.

It prints a line for each batch that is embedded, and one when all is done.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from agents import MemoryBank
from embedders import Noise


class Telling(Noise):
    """Says when it embeds."""

    def embed(self, texts: Sequence[str], /) -> Any:
        time.sleep(0.01)
        sys.stdout.write(f"{len(texts)}\n")
        sys.stdout.flush()
        return super().embed(texts)


if __name__ == "__main__":
    MemoryBank.reembed(sys.argv[1], Telling())
    sys.stdout.write("done\n")
