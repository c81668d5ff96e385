"""What the inspector keeps in memory while it reads a journal."""

import tracemalloc

from agents.interfaces.inspector.slices import Item, Slices


def test_what_waits_to_be_written_takes_little_more_than_its_bytes() -> None:
    slices = Slices()
    item = Item(1, 1, [["tick", 1], ["touch", "alice", [1, 2, 3]]], None)
    tracemalloc.start()
    try:
        for agent in range(500):
            slices.put(agent, item, bytes(64))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        slices.close()
    assert taken < 500 * 600, "an item has some 60 bytes and 64 of vectors, beside Python's objects"
