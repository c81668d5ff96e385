"""A process that appends to notes for ever, and says so after each: ``note_writer.py FOLDER``."""

import sys

from agents import MemoryBank


def main() -> None:
    with MemoryBank.open(sys.argv[1], storage={"sync": "manual"}) as bank:
        notes = bank.agent("alice").notes
        number = notes.read("MEMORY.md").count("\n")
        print(number, flush=True)
        while True:
            number += 1
            with bank.transaction():
                notes.append(f"line {number}", "MEMORY.md")
                notes.append(f"line {number}", f"memory/{number % 3}.md")
            print(number, flush=True)


if __name__ == "__main__":
    main()
