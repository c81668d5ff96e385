"""How long memories last: the survival curves of Kaplan and Meier."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...memory.tiers import TIER_NAMES
from .columns import NOT_GONE, Columns, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

_NORMAL = 1.959963984540054
"""The 97.5 % point of the normal distribution, for intervals of 95 %."""


def survival(columns: Columns) -> "pa.Table":
    """Curves for each tier with which memories began, and for memories of one's own or told ones.

    A row for each age at which memories were gone: ``survived`` is the share that lasted longer,
    with its interval of 95 %. Memories that are there at the end count up to their age then.
    """
    import pyarrow as pa

    is_gone = columns.gone != NOT_GONE
    ages = np.where(is_gone, columns.gone, columns.last_tick) - columns.born
    found: dict[str, list[object]] = {name: [] for name in _FIELDS}
    for by, group, chosen in _groups(columns):
        curve = kaplan_meier(ages[chosen], is_gone[chosen])
        found["by"] += [by] * len(curve[0])
        found["group"] += [group] * len(curve[0])
        for name, column in zip(_FIELDS[2:], curve, strict=True):
            found[name] += column.tolist()
    types = (pa.string(), pa.string(), *[pa.int64()] * 3, *[pa.float64()] * 3)
    return pa.table(
        {name: pa.array(found[name], kind) for name, kind in zip(_FIELDS, types, strict=True)}
    )


_FIELDS = ("by", "group", "age", "at_risk", "gone", "survived", "low", "high")


def kaplan_meier(ages: Numbers, is_gone: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    """Ages with losses, at risk, lost, the share that survived, and the bounds of its interval.

    The interval is Greenwood's, on the scale log(-log): it stays between 0 and 1.
    """
    lost_at, lost = np.unique(ages[is_gone], return_counts=True)
    in_order = np.sort(ages)
    at_risk = len(ages) - np.searchsorted(in_order, lost_at, side="left")
    share = np.cumprod(1 - lost / at_risk) if len(lost_at) else np.zeros(0)
    left = at_risk - lost
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(np.cumsum(lost / (at_risk * left))) / np.log(share)
        low, high = share ** np.exp(-_NORMAL * spread), share ** np.exp(_NORMAL * spread)
    # At 0 the curve has ended, and the formula has nothing to say.
    return (
        lost_at,
        at_risk,
        lost,
        share,
        np.where(left > 0, low, 0.0),
        np.where(left > 0, high, 0.0),
    )


def _groups(columns: Columns) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    yield "all", "all", np.ones(len(columns), np.bool_)
    for tier, name in TIER_NAMES.items():
        if (chosen := columns.tier == tier).any():
            yield "tier", name, chosen
    told = np.zeros(len(columns), np.bool_)
    told[columns.told.row[columns.told.is_new]] = True
    for name, chosen in (("own", ~told), ("told", told)):
        if chosen.any():
            yield "source", name, chosen
