"""Each law fails on a bug that was made for it, and says which law it is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import planted_bugs
import planted_memory_bugs
import pytest
from hypothesis import Phase, settings

from banks import ROOT, TESTS
from examples import PROFILE
from tiermem.testing import BrokenLaw, broken_laws

BUGS = [
    ("SaltedHashLaws", "another process gives the same vectors", "PYTHONHASHSEED"),
    ("SumsByBatchLaws", "a vector does not depend on its batch", "has another vector"),
    ("ClockedLaws", "no line reads a clock or draws unseeded numbers", "time.monotonic()"),
    ("SharesItsVectorsLaws", "what it gives belongs to the caller", "changes the next"),
    ("ReusesItsArrayLaws", "what it gives belongs to the caller", "changes what it gave before"),
    ("OneVectorForAllLaws", "a bank finds a text by itself", "all texts have the same vector"),
    ("KnowsNoWordLaws", "a bank finds a text by itself", "all texts have the same vector"),
    ("WrongShapeLaws", "a batch has a finite row of dims numbers for each text", "the shape is"),
    ("OtherNameLaws", "a new embedder has the same name and dims", "it is called"),
    ("NotNormalisedLaws", "a normalised vector has length one", "has the length"),
    ("LosesAWriteLaws", "what was written survives a new opening", "50 of 300 rows are lost"),
    ("NeverSavesLaws", "what was written is there and nothing else", "after reopen"),
    ("LeaksLaws", "a search gives only the rows of its agent", "['alice', 'bob']"),
    ("UnstableOrderLaws", "the nearest is first and the order stays", "another order"),
    ("MutableRowsLaws", "what it gives belongs to the caller", "a reader changes"),
    ("TextOnlyLaws", "a value keeps its type", "tier was 3, and is '3'"),
    ("GlobalRandomLaws", "the same seed gives the same run", "tick 1: memory of alice"),
    ("GlobalRandomLaws", "no line reads a clock or draws unseeded numbers", "random.randrange()"),
    ("WallClockLaws", "no line reads a clock or draws unseeded numbers", "time.time() reads"),
    ("OrderOfASetLaws", "another hash seed gives the same run", "the order of a set"),
    ("StateLeftOutLaws", "a world made anew from its state goes on alike", "leave something out"),
    ("StateInTheProcessLaws", "a run that was killed goes on alike", "SIGKILL after tick"),
    ("CountsLaws", "a new policy decides alike", "does it keep something to itself?"),
    ("DrawsItsOwnLaws", "the same seed gives the same decisions", "tick 1, alice"),
    ("SaltedChoiceLaws", "another hash seed gives the same decisions", "PYTHONHASHSEED"),
    (
        "ChangesFactsLaws",
        "a decision changes nothing that the policy was given",
        "alice in tick 1 changes the observation",
    ),
    ("DropsRepeatedWordsLaws", "nothing that was added is lost", "], and not ["),
    ("FoldsNamesLaws", "agents are isolated", "sees"),
    ("ShuffledSearchLaws", "a search has one order", "in another process"),
    ("GivesItsOwnListLaws", "what it gives belongs to the caller", "alice has []"),
    ("DeletesOfAllLaws", "what was deleted is gone", "bob has ["),
    ("DropsWhatIsThereLaws", "a text that comes twice is there twice", "alice has ["),
    ("DeletesForNowLaws", "what was deleted is gone", "it is there again"),
    ("CheckpointForgetsLaws", "a copy has everything and shares nothing", "the copy has"),
    ("SharedCopiesLaws", "a copy has everything and shares nothing", "copies share memories"),
    ("AcknowledgesTooEarlyLaws", "what was acknowledged survives a kill", "after a kill, alice"),
    ("TellsTooMuchLaws", "what is told crosses and nothing else", "has ["),
    ("ReadsBackLaws", "what is told crosses and nothing else", "and not ["),
    ("MovesWhatIsToldLaws", "what is told crosses and nothing else", "has ["),
    ("NeverTellsLaws", "what is told crosses and nothing else", "has ["),
    ("ForgetsWhoToldLaws", "what was told leads back to its origin", "began with"),
    ("SaysThatItWasTheFirstLaws", "what was told leads back to its origin", "began with"),
]
IN_PROCESSES = {  # these laws start processes, which takes seconds
    "SaltedHashLaws", "GlobalRandomLaws", "WallClockLaws", "StateLeftOutLaws",
    "StateInTheProcessLaws", "DrawsItsOwnLaws", "SaltedChoiceLaws", "ChangesFactsLaws",
    "ShuffledSearchLaws", "AcknowledgesTooEarlyLaws",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _first_example() -> Iterator[None]:
    """A bug is shown by the first example that Hypothesis finds; to look for a smaller one is slow.

    What the laws do not set comes from the profile.
    """
    settings.register_profile("first", settings(), phases=[Phase.explicit, Phase.generate])
    settings.load_profile("first")
    yield
    settings.load_profile(PROFILE)


def _cases(bugs: list[tuple[str, str, str]]) -> list[object]:
    return [pytest.param(*each, id=f"{each[0]}-{each[1].replace(' ', '_')}") for each in bugs]


def broken(laws: str, law: str) -> BrokenLaw:
    """The law, tried on the bug, which breaks it."""
    made = {**vars(planted_bugs), **vars(planted_memory_bugs)}[laws]()
    with pytest.raises(BrokenLaw) as caught:
        getattr(made, f"test_{law.replace(' ', '_')}")()
    return caught.value


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("laws", "law", "words"), _cases([each for each in BUGS if each[0] not in IN_PROCESSES])
)
def test_a_bug_breaks_a_law_that_the_message_names(laws: str, law: str, words: str) -> None:
    message = str(broken(laws, law))
    assert message.startswith(f"{laws}: {law}: ")
    assert words in message


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize(
    ("laws", "law", "words"), _cases([each for each in BUGS if each[0] in IN_PROCESSES])
)
def test_a_bug_that_other_processes_show_breaks_a_law(laws: str, law: str, words: str) -> None:
    message = str(broken(laws, law))
    assert message.startswith(f"{laws}: {law}: ")
    assert words in message


def test_a_store_without_a_bug_breaks_no_law() -> None:
    assert broken_laws(planted_bugs.PlainStoreLaws()) == []


def test_broken_laws_are_listed_without_pytest() -> None:
    found = broken_laws(planted_bugs.LeaksLaws())
    assert [each.name for each in found] == ["a search gives only the rows of its agent"]


def test_a_law_that_breaks_shows_the_example_that_hypothesis_found() -> None:
    error = broken("SumsByBatchLaws", "a vector does not depend on its batch")
    assert any("texts=[" in note and "more=" in note for note in error.__notes__)


MINE = """
from planted_bugs import Leaks
from tiermem.testing import StoreLaws

class TestMine(StoreLaws):
    def make(self, folder):
        return Leaks(folder)
"""


@pytest.mark.long
def test_pytest_finds_the_laws_and_names_the_broken_one(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(MINE)
    paths = f"{TESTS / 'unit' / 'testing'}:{TESTS}:{ROOT / 'src'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"},
    )
    assert "1 failed, 7 passed" in done.stdout, done.stdout + done.stderr
    assert "TestMine: a search gives only the rows of its agent: the search of alice" in done.stdout


def test_laws_inside_a_function_are_told_that_they_can_not_be_imported() -> None:
    class Inside(planted_bugs.SaltedHashLaws):
        pass

    with pytest.raises(BrokenLaw, match="is inside a function, and other processes can't import"):
        Inside().test_another_process_gives_the_same_vectors()
