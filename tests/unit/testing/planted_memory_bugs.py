"""Memories of agents, each with one bug, and the laws for them."""

from pathlib import Path
from typing import Any, ClassVar

from agents import MemoryBank
from tiermem.testing import AgentMemoryLaws


class _Bank(AgentMemoryLaws):
    examples = 5

    def make(self, folder: Path) -> Any:
        return MemoryBank.open(folder, storage={"sync": "manual"})

    def restore(self, file: Path, folder: Path) -> Any:
        return MemoryBank.restore(file, folder, storage={"sync": "manual"})


class DropsRepeatedWordsLaws(_Bank):
    def add(self, made: Any, agent: str, text: str) -> None:
        if text != text[:1]:  # a text of one character is lost
            super().add(made, agent, text)


class FoldsNamesLaws(_Bank):
    def add(self, made: Any, agent: str, text: str) -> None:
        super().add(made, agent.lower(), text)

    def texts(self, made: Any, agent: str) -> list[str]:
        return super().texts(made, agent.lower())


class ShuffledSearchLaws(_Bank):
    def search(self, made: Any, agent: str, query: str, limit: int) -> list[str]:
        found = super().search(made, agent, query, limit)
        return sorted(found, key=hash)


class GivesItsOwnListLaws(_Bank):
    kept: Any = None

    def texts(self, made: Any, agent: str) -> list[str]:
        if GivesItsOwnListLaws.kept is None:
            GivesItsOwnListLaws.kept = super().texts(made, agent)
        return list.__iadd__(GivesItsOwnListLaws.kept, [])


class DeletesOfAllLaws(_Bank):
    def delete(self, made: Any, agent: str, text: str) -> None:
        for each in made.agents():
            super().delete(made, each, text)


class DropsWhatIsThereLaws(_Bank):
    def add(self, made: Any, agent: str, text: str) -> None:
        if text not in self.texts(made, agent):
            super().add(made, agent, text)


class DeletesForNowLaws(_Bank):
    hidden: ClassVar[set[tuple[str, str]]] = set()

    def delete(self, made: Any, agent: str, text: str) -> None:
        self.hidden.add((agent, text))

    def texts(self, made: Any, agent: str) -> list[str]:
        own = super().texts(made, agent)
        return [text for text in own if (agent, text) not in self.hidden]

    def close(self, made: Any) -> None:
        self.hidden.clear()
        super().close(made)


class CheckpointForgetsLaws(_Bank):
    def save(self, made: Any, file: Path) -> None:
        memory = made.agent("alice").all()[-1]
        made.agent("alice").delete(memory.id)
        super().save(made, file)
        made.agent("alice").update(memory.id, retention="active")


class SharedCopiesLaws(_Bank):
    banks: ClassVar[dict[Path, Any]] = {}

    def restore(self, file: Path, folder: Path) -> Any:
        if file not in self.banks:
            self.banks[file] = super().restore(file, folder)
        return self.banks[file]


class AcknowledgesTooEarlyLaws(_Bank):
    """Writes a text when the next one comes."""

    waiting: Any = None

    def add(self, made: Any, agent: str, text: str) -> None:
        last, AcknowledgesTooEarlyLaws.waiting = AcknowledgesTooEarlyLaws.waiting, text
        if last is not None:
            super().add(made, agent, last)


class TellsTooMuchLaws(_Bank):
    """Tells a memory, and the one before it."""

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        own = self.texts(made, teller)
        for each in own[max(0, own.index(text) - 1) : own.index(text) + 1]:
            super().tell(made, teller, listener, each)


class ReadsBackLaws(_Bank):
    """Who tells somebody something hears something in return."""

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        super().tell(made, teller, listener, text)
        super().tell(made, listener, teller, self.texts(made, listener)[0])


class MovesWhatIsToldLaws(_Bank):
    """A memory that is told is gone from its teller."""

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        super().tell(made, teller, listener, text)
        self.delete(made, teller, text)


class NeverTellsLaws(_Bank):
    def tell(self, made: Any, teller: str, listener: str, text: str) -> None: ...


class ForgetsWhoToldLaws(_Bank):
    """What somebody was told is as if it were its own."""

    def tell(self, made: Any, teller: str, listener: str, text: str) -> None:
        if text not in self.texts(made, listener):
            self.add(made, listener, text)


class SaysThatItWasTheFirstLaws(_Bank):
    """Names the teller, and not who told the teller."""

    def tellers(self, made: Any, agent: str, text: str) -> list[str]:
        return super().tellers(made, agent, text)[:2]
