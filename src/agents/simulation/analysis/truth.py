"""Rumours against truth, where the world says what is true."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .columns import NOT_GONE, Columns, Numbers
from .overlap import beliefs

if TYPE_CHECKING:
    import pyarrow as pa

Facts = Mapping[str, Mapping[str, bool]]
"""By subject, sentences that go round, and whether each is true."""


def truth(columns: Columns, facts: Facts) -> "pa.Table":
    """For each subject and tick, how many agents believe what is true, and what is not.

    A memory says a sentence if the sentence is in its text. An agent believes what more of its
    memories say, where a memory that came through many hands weighs less: 1 / (1 + hands).
    """
    import pyarrow as pa

    ticks = np.arange(columns.last_tick + 1)
    found: dict[str, list[Any]] = {"subject": [], "tick": [], "true": [], "false": []}
    said = _sayings(columns, facts)
    for subject, signs in said.items():
        balance = _balance(columns, signs)
        found["subject"] += [subject] * len(ticks)
        found["tick"] += ticks.tolist()
        found["true"] += (balance > 0).sum(axis=1).tolist()
        found["false"] += (balance < 0).sum(axis=1).tolist()
    return pa.table(
        {
            name: pa.array(values, pa.string() if name == "subject" else pa.int64())
            for name, values in found.items()
        }
    )


def overtaking(curves: "pa.Table") -> "pa.Table":
    """For each subject the believers at the end, and the tick in which truth overtook the lie.

    That is the first tick from which on at least as many believe the truth as the lie, and more at
    the end; null if the lie was never ahead, or is not behind at the end.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = []
    for subject in dict.fromkeys(curves["subject"].to_pylist()):
        own = curves.filter(pc.equal(curves["subject"], subject))
        true, false = own["true"].to_numpy(), own["false"].to_numpy()
        ahead = np.flatnonzero(false > true)
        overtook = None
        if len(ahead) and true[-1] > false[-1]:
            overtook = int(own["tick"][int(ahead[-1]) + 1].as_py())
        rows.append(
            {
                "subject": subject,
                "true": int(true[-1]),
                "false": int(false[-1]),
                "most_false": int(false.max()),
                "overtook": overtook,
            }
        )
    numbers = {name: pa.int64() for name in ("true", "false", "most_false", "overtook")}
    return pa.Table.from_pylist(rows, pa.schema({"subject": pa.string(), **numbers}))


def _sayings(columns: Columns, facts: Facts) -> dict[str, Numbers]:
    """For each subject and memory 1 if it says what is true, -1 for what is false, else 0."""
    rows = np.flatnonzero(beliefs(columns))
    by_text: dict[str, list[int]] = {}
    for row in rows.tolist():
        text = columns.text[row]
        if text is not None:
            by_text.setdefault(text, []).append(row)
    found = {}
    for subject, sentences in facts.items():
        signs = np.zeros(len(columns), np.int64)
        for text, own in by_text.items():
            says = {is_true for sentence, is_true in sentences.items() if sentence in text}
            if len(says) == 1:
                signs[own] = 1 if says == {True} else -1
        found[subject] = signs
    return found


def _balance(columns: Columns, signs: Numbers) -> NDArray[np.float64]:
    """For each tick and agent, by how much its memories of the truth outweigh those of the lie."""
    rows = np.flatnonzero(signs)
    weights = signs / (1 + columns.hands)
    change = np.zeros((columns.last_tick + 2, len(columns.agents)))
    np.add.at(change, (columns.born[rows], columns.agent[rows]), weights[rows])
    gone = rows[columns.gone[rows] != NOT_GONE]
    np.add.at(change, (columns.gone[gone], columns.agent[gone]), -weights[gone])
    # What comes and goes again must leave nothing behind.
    return np.cumsum(change[:-1], axis=0).round(9)
