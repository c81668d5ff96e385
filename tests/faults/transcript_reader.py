"""A process that lets a transcript grow and indexes it for ever, and says so after each line:
``transcript_reader.py FOLDER``."""

import json
import sys
from pathlib import Path

from agents import MemoryBank


def main() -> None:
    folder = Path(sys.argv[1])
    notes = {"transcripts": True, "chunk_tokens": 40}
    with MemoryBank.open(folder, storage={"sync": "manual"}, notes=notes) as bank:
        file = folder / "notes/alice/sessions/talk.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        number = file.read_text().count("\n")
        print(number, flush=True)
        with file.open("a") as lines:
            while True:
                number += 1
                line = json.dumps({"role": "user", "content": f"line {number}"})
                for part in (line[:9], line[9:] + "\n"):  # another program writes it in two parts
                    lines.write(part)
                    lines.flush()
                    bank.agent("alice").notes.sync()
                print(number, flush=True)


if __name__ == "__main__":
    main()
