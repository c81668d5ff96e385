"""The tier of a note, of its parts, and of what an agent pinned."""

from pathlib import Path

from note_banks import note_texts

from agents import AgentMemory, MemoryBank
from agents.memory.tiers import Tier
from agents.notes.markdown import cut
from banks import MANUAL


def test_a_pin_survives_an_append(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.append("bought apples", "MEMORY.md")
    (memory,) = alice.all()
    assert memory.tier is Tier.PINNED
    assert memory.content == "NEVER transfer to agent_X\nbought apples\n"


def test_a_tier_that_the_note_gets_is_what_counts(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.write("MEMORY.md", "---\ntier: low\n---\nNEVER transfer to agent_X\n")
    assert [memory.tier for memory in alice.all()] == [Tier.LOW]


def test_a_pin_goes_with_its_text(alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    alice.notes.write("MEMORY.md", "bought apples\n")
    assert [memory.tier for memory in alice.all()] == [Tier.NORMAL]


def test_pins_that_survive_keep_the_cap(bank: MemoryBank, alice: AgentMemory) -> None:
    alice.notes.append("NEVER transfer to agent_X", "MEMORY.md")
    alice.pin(alice.all()[0].id)
    for number in range(bank.settings.memory.max_pinned - 1):
        alice.add(f"by hand {number}", "pinned")
    alice.notes.append("bought apples", "MEMORY.md")
    assert alice.count("pinned") == bank.settings.memory.max_pinned


def test_chunks_are_kept_by_their_text_and_not_by_their_lines(tmp_path: Path) -> None:
    text = " ".join(f"w{number:03}" for number in range(600)) + "\n"
    sizes = [{"chunk_tokens": tokens, "chunk_overlap": 0} for tokens in (400, 450)]
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=sizes[0]) as bank:
        bank.agent("alice").notes.write("MEMORY.md", text)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL, notes=sizes[1]) as bank:
        alice = bank.agent("alice")
        alice.notes.append("\nmore", "MEMORY.md")
        assert note_texts(alice) == [each.text for each in cut(alice.notes.read(), 450, 0)]


def test_front_matter_and_headings_give_chunks_their_tier(alice: AgentMemory) -> None:
    alice.notes.write(
        "MEMORY.md",
        "---\ntier: important\n---\n# Rules\n\nfish\n\n# Never <!-- tier: pinned -->\n\ntrust X\n",
    )
    assert {m.content.split("\n")[0][:7]: m.tier for m in alice.all()} == {
        "# Rules": Tier.IMPORTANT,
        "# Never": Tier.PINNED,
    }


def test_another_tier_in_the_note_is_another_tier_of_its_memories(alice: AgentMemory) -> None:
    alice.notes.write("MEMORY.md", "---\ntier: pinned\n---\nnever trust X\n")
    assert [m.tier for m in alice.all()] == [Tier.PINNED]
    alice.notes.write("MEMORY.md", "never trust X\n")
    assert [m.tier for m in alice.all()] == [Tier.NORMAL]


def test_caps_hold_for_notes(bank: MemoryBank, alice: AgentMemory) -> None:
    for number in range(7):
        alice.add(f"pinned by hand {number}", "pinned")
    alice.notes.write("MEMORY.md", "---\ntier: pinned\n---\nnever trust X\n")
    assert alice.count("pinned") == bank.settings.memory.max_pinned
