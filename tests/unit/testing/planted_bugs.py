"""Embedders, stores, worlds and policies, each with one bug, and the laws for them."""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from agents.simulation import Action
from embedders import Noise
from tiermem.testing import EmbedderLaws, PolicyLaws, StoreLaws, WorldLaws
from tiermem.testing.small import SmallPolicy, SmallWorld

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


class ReusesItsArray(Noise):
    def __init__(self) -> None:
        super().__init__()
        self.rows = np.empty((1000, self.dims))

    def embed(self, texts: Sequence[str], /) -> Any:
        self.rows[: len(texts)] = super().embed(texts)
        return self.rows[: len(texts)]


class OneVectorForAll(Noise):
    def embed(self, texts: Sequence[str], /) -> Any:
        return np.ones((len(texts), self.dims))


class KnowsNoWord(Noise):
    def embed(self, texts: Sequence[str], /) -> Any:
        return np.zeros((len(texts), self.dims))


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


class ReusesItsArrayLaws(_Embedder):
    bug = ReusesItsArray


class OneVectorForAllLaws(_Embedder):
    bug = OneVectorForAll


class KnowsNoWordLaws(_Embedder):
    bug = KnowsNoWord


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
