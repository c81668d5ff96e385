"""Free text as agent ids."""

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents import InvalidInput, MemoryBank
from agents.adapting import DIRECTORY, Names, agent_id_of, text_of
from agents.memory.requests import check_agent_id

MANUAL = {"sync": "manual"}
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ODD = st.text(st.sampled_from("@@@@240AFaf.-é /"), max_size=12)
LONG = st.builds(lambda text, times: text * times, TEXTS, st.integers(100, 200))


@given(TEXTS | ODD | LONG)
@example("")
@example("@")
@example("@@")
@example("@@names")
@example("@@" + "0" * 64)
@example("@ " + "0" * 62)
@example("@2")
@example("@20")
@example("@é")
@example(".hidden")
@example("é" * 43)
def test_any_text_has_an_agent_id_that_gives_it_back(text: str) -> None:
    name = agent_id_of(text)
    assert check_agent_id(name) == name
    assert name != DIRECTORY
    found = text_of(name)
    assert found == text or (found, name) == (None, f"@@{sha256(text.encode()).hexdigest()}")


@given(st.lists(TEXTS | ODD | LONG, unique=True))
def test_nothing_collides(texts: list[str]) -> None:
    assert len(set(map(agent_id_of, texts))) == len(texts)


@pytest.mark.parametrize("name", ["alice", "agent_007", "a.b-c", "ann@example.com", "A@b", "@x"])
def test_an_agent_id_stays_as_it_is(name: str) -> None:
    assert agent_id_of(name) == name


def test_an_id_that_stands_for_no_text_is_its_own_text() -> None:
    assert [text_of(name) for name in ("x@FF", "@C3", "a@C3@20")] == ["x@FF", "@C3", "a@C3@20"]


@pytest.mark.parametrize(
    ("text", "name"), [("Ann Lee", "Ann@20Lee"), ("a/b", "a@2Fb"), ("ü", "@C3@BC")]
)
def test_other_text_is_readable(text: str, name: str) -> None:
    assert agent_id_of(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("x" * 128, "x" * 128), ("é" * 21 + "xx", "@C3@A9" * 21 + "xx")],
    ids=["plain", "escaped"],
)
def test_a_text_is_hashed_where_its_id_would_have_more_than_128_letters(
    text: str, name: str
) -> None:
    assert len(name) == 128
    assert agent_id_of(text) == name
    longer = f"{text}x"
    assert agent_id_of(longer) == f"@@{sha256(longer.encode()).hexdigest()}"


def test_a_long_text_is_kept_in_the_bank(tmp_path: Path) -> None:
    long = "Ann Lee of " + "Nowhere " * 5000
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        names = Names(bank)
        name = names.agent_id(long)
        assert bank.agents() == []
        with pytest.raises(InvalidInput, match="does not know"):
            names.text(name)
        names.keep(long, "short")
        bank.agent(name).add("A memory of hers")
        names.keep(long)
        assert bank.agent(DIRECTORY).count() == 1
    with MemoryBank.open(tmp_path / "bank") as bank:
        Names(bank).keep(long)
        assert bank.agent(DIRECTORY).count() == 1
        assert Names(bank).text(name) == long
        assert Names(bank).texts() == [long]


LONG_ONE, LONG_TWO = "Ann Lee of swordfish " * 20, "Bob Ray of swordfish " * 20


def files_with_the_texts(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if b"swordfish" in path.read_bytes()]


@pytest.mark.parametrize("is_key", [False, True])
def test_a_vacuum_forgets_a_long_text_that_nothing_uses(tmp_path: Path, is_key: bool) -> None:
    """An agent or a memory's key has the name of the text."""
    name = agent_id_of(LONG_ONE)
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        Names(bank).keep(LONG_ONE)
        agent = bank.agent("ann" if is_key else name)
        key = f"x:{name}" if is_key else None
        memories = [agent.add(f"memory {number}", key=key) for number in range(2)]
        memories.append(agent.add("cold", key=key, temperature="cold"))
        agent.delete(memories[0].id)
        for memory in memories:  # deleted, archived or active, cold or not: it is there
            bank.vacuum()
            assert Names(bank).text(name) == LONG_ONE
            agent.forget(memory.id)
        assert bank.vacuum() == []
        assert files_with_the_texts(tmp_path) == []
        assert bank.agent(DIRECTORY).count() == 0
        Names(bank).keep(LONG_ONE)
        assert Names(bank).text(name) == LONG_ONE
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        assert bank.vacuum() == []
    assert files_with_the_texts(tmp_path) == []


def test_a_vacuum_leaves_what_it_does_not_know(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        Names(bank).keep(LONG_ONE, LONG_TWO)
        directory = bank.agent(DIRECTORY)
        directory.add("a memory of somebody else's")
        directory.add("under a key", key="mine")
        directory.pin(directory.history(agent_id_of(LONG_ONE))[0].id)
        bank.agent(agent_id_of(LONG_TWO)).notes.write("MEMORY.md", "a note")
        bank.vacuum()
        assert directory.count() == 4


def test_a_vacuum_changes_nothing_where_all_texts_are_in_use(tmp_path: Path) -> None:
    with MemoryBank.open(tmp_path / "bank", storage=MANUAL) as bank:
        Names(bank).keep(LONG_ONE)
        bank.agent(agent_id_of(LONG_ONE)).add("A memory of hers")
        before = bank.state_hash()
        bank.vacuum()
        assert bank.state_hash() == before


def test_texts_of_agents_that_the_bank_does_not_know_are_left_out() -> None:
    with MemoryBank.ephemeral() as bank:
        bank.agent(agent_id_of(LONG_ONE)).add("A memory of hers")
        bank.agent("ann").add("A memory of Ann's")
        assert Names(bank).texts() == ["ann"]
