"""Embedders, stores, worlds, policies and memories, each with one bug, and the laws for them."""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from agents import MemoryBank
from agents.simulation import Action
from embedders import Noise
from tiermem.testing import AgentMemoryLaws, EmbedderLaws, PolicyLaws, StoreLaws, WorldLaws
from tiermem.testing.small_world import SmallPolicy, SmallWorld

# Embedders


class SaltedHash(Noise):
    def _vector(self, text: str) -> Any:
        return np.random.default_rng(abs(hash(text))).normal(size=self.dims)


class SumsByBatch(Noise):
    """Sums in float32, in another order in a larger batch."""

    def embed(self, texts: Sequence[str], /) -> Any:
        rows = super().embed(texts).astype(np.float32)
        if len(texts) > 4:
            return (rows.astype(np.float64) * 3.0000001 / 3).astype(np.float32)
        return rows


class Clocked(Noise):
    def embed(self, texts: Sequence[str], /) -> Any:
        time.monotonic()
        return super().embed(texts)


class SharesItsVectors(Noise):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, ...], Any] = {}

    def embed(self, texts: Sequence[str], /) -> Any:
        return self.kept.setdefault(tuple(texts), super().embed(texts))


class WrongShape(Noise):
    def embed(self, texts: Sequence[str], /) -> Any:
        return super().embed(list(dict.fromkeys(texts)))


class OtherName(Noise):
    def __init__(self) -> None:
        super().__init__()
        self.name = f"noise/{random.random()}"


class _Embedder(EmbedderLaws):
    examples = 30
    bug: Any = Noise

    def make(self) -> Any:
        return self.bug()


class SaltedHashLaws(_Embedder):
    bug = SaltedHash


class SumsByBatchLaws(_Embedder):
    bug = SumsByBatch


class ClockedLaws(_Embedder):
    bug = Clocked


class SharesItsVectorsLaws(_Embedder):
    bug = SharesItsVectors


class WrongShapeLaws(_Embedder):
    bug = WrongShape


class OtherNameLaws(_Embedder):
    bug = OtherName


class NotNormalisedLaws(_Embedder):
    normalised = True


# Stores


class PlainStore:
    """A sound store in one JSON file, with mem0's methods."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "rows.json"
        self.rows: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def _saved(self) -> None:
        self.file.write_text(json.dumps(self.rows))

    def insert(self, vectors: Any, payloads: Any, ids: Any) -> None:
        for identifier, vector, payload in zip(ids, vectors, payloads, strict=True):
            self.rows[identifier] = [vector, dict(payload)]
        self._saved()

    def update(self, identifier: str, vector: Any, payload: Any) -> None:
        self.insert([vector], [payload], [identifier])

    def delete(self, identifier: str) -> None:
        self.rows.pop(identifier, None)
        self._saved()

    def get(self, identifier: str) -> Any:
        return self._row(identifier) if identifier in self.rows else None

    def list(self, top_k: int) -> Any:
        return [[self._row(each) for each in self.rows][:top_k]]

    def search(self, query: str, vectors: Any, top_k: int, filters: Any) -> Any:
        near = sorted(self.rows, key=lambda each: -np.dot(self.rows[each][0], vectors))
        rows = [self._row(each) for each in near]
        return [row for row in rows if self._passes(row, filters)][:top_k]

    def _passes(self, row: Any, filters: Any) -> bool:
        return bool(filters.items() <= row.payload.items())

    def reset(self) -> None:
        self.rows = {}
        self._saved()

    def _row(self, identifier: str) -> Any:
        return SimpleNamespace(id=identifier, payload=dict(self.rows[identifier][1]))


class PlainStoreLaws(StoreLaws):
    bug: Any = PlainStore

    def make(self, folder: Path) -> Any:
        return self.bug(folder)


class LosesAWrite(PlainStore):
    def insert(self, vectors: Any, payloads: Any, ids: Any) -> None:
        super().insert(vectors[:250], payloads[:250], ids[:250])


class LosesAWriteLaws(PlainStoreLaws):
    bug = LosesAWrite


class NeverSaves(PlainStore):
    def _saved(self) -> None: ...


class NeverSavesLaws(PlainStoreLaws):
    bug = NeverSaves


class Leaks(PlainStore):
    def _passes(self, row: Any, filters: Any) -> bool:
        return True


class LeaksLaws(PlainStoreLaws):
    bug = Leaks


class UnstableOrder(PlainStore):
    def search(self, *given: Any, **named: Any) -> Any:
        first, *rest = super().search(*given, **named)
        random.shuffle(rest)
        return [first, *rest]


class UnstableOrderLaws(PlainStoreLaws):
    bug = UnstableOrder


class MutableRows(PlainStore):
    def _row(self, identifier: str) -> Any:
        return SimpleNamespace(id=identifier, payload=self.rows[identifier][1])


class MutableRowsLaws(PlainStoreLaws):
    bug = MutableRows


class TextOnly(PlainStore):
    def _row(self, identifier: str) -> Any:
        payload = {name: str(own) for name, own in self.rows[identifier][1].items()}
        return SimpleNamespace(id=identifier, payload=payload)


class TextOnlyLaws(PlainStoreLaws):
    bug = TextOnly


# Worlds


class _World(WorldLaws):
    ticks = 5
    bug: Any = SmallWorld

    def make(self) -> Any:
        return self.bug(words=["hello", "a well", "sand", "wind"], every=2, tier=1, most=99)


class GlobalRandom(SmallWorld):
    def observe(self, agent_id: str) -> Any:
        return super().observe(agent_id)._replace(text=f"noise {random.randrange(10**9)}")


class GlobalRandomLaws(_World):
    bug = GlobalRandom


class WallClock(SmallWorld):
    def metrics(self) -> Any:
        return {"load": super().metrics()["load"] + 0 * time.time()}


class WallClockLaws(_World):
    bug = WallClock


class OrderOfASet(SmallWorld):
    def observe(self, agent_id: str) -> Any:
        return super().observe(agent_id)._replace(text=" ".join(set(self._words)))


class OrderOfASetLaws(_World):
    bug = OrderOfASet


class StateLeftOut(SmallWorld):
    def get_state(self) -> Any:
        return {**super().get_state(), "tick": 1}


class StateLeftOutLaws(_World):
    bug = StateLeftOut


class StateInTheProcess(SmallWorld):
    kept: Any = None

    def get_state(self) -> Any:
        StateInTheProcess.kept = super().get_state()
        return {}

    def set_state(self, state: Any) -> None:
        if StateInTheProcess.kept is not None:
            super().set_state(StateInTheProcess.kept)


class StateInTheProcessLaws(_World):
    bug = StateInTheProcess


# Policies


class _Policy(PolicyLaws):
    ticks = 5
    bug: Any = SmallPolicy

    def make(self) -> Any:
        return self.bug()

    def make_world(self) -> Any:
        return SmallWorld(words=["hello"], every=2, tier=1, most=99)


class Counts(SmallPolicy):
    def __init__(self) -> None:
        self.calls = 0

    def decide(self, *given: Any) -> Any:
        self.calls += 1
        return [Action("carry", {"by": self.calls})]


class CountsLaws(_Policy):
    bug = Counts


class DrawsItsOwn(SmallPolicy):
    def decide(self, *given: Any) -> Any:
        return [Action("carry", {"by": random.randrange(10**6)})]


class DrawsItsOwnLaws(_Policy):
    bug = DrawsItsOwn


class SaltedChoice(SmallPolicy):
    def decide(self, observation: Any, memories: Any, rng: Any) -> Any:
        return [Action("carry", {"by": hash(observation.text) % 99})]


class SaltedChoiceLaws(_Policy):
    bug = SaltedChoice


class ChangesFacts(SmallPolicy):
    def decide(self, observation: Any, memories: Any, rng: Any) -> Any:
        observation.facts["loads"].clear()
        return super().decide(observation, memories, rng)


class ChangesFactsLaws(_Policy):
    bug = ChangesFacts


# Memories of agents


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


class DeletesForNowLaws(_Bank):
    hidden: ClassVar[dict[int, str]] = {}

    def delete(self, made: Any, agent: str, text: str) -> None:
        self.hidden[id(made)] = text

    def texts(self, made: Any, agent: str) -> list[str]:
        return [text for text in super().texts(made, agent) if text != self.hidden.get(id(made))]

    def close(self, made: Any) -> None:
        self.hidden.clear()
        super().close(made)


class CheckpointForgetsLaws(_Bank):
    def save(self, made: Any, file: Path) -> None:
        memory = made.agent("alice").all()[-1]
        made.agent("alice").delete(memory.id)
        super().save(made, file)
        made.agent("alice").restore(memory.id)


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
