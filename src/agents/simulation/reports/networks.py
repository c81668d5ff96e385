"""A society as SVG: agents where their ties or their space put them, in the colours of values."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ...memory.words import number
from ..society import Society
from .plots import AXIS, COLOURS, INK, Key, box_key, disc, drawing, legend, path, text_at

Value = str | float | None
"""Of an agent: a kind, or a number; None for one that has none."""

MOST = 500
"""Agents in a picture."""
_SIZE, _WIDTH, _MARGIN = 210.0, 630.0, 12.0
_STEPS = 80
_PARTS = ("#e8eef3", "#b3d1e6", "#6caad2", "#2279b5", "#084a80")
"""The colours of numbers, from the least fifth of their range to the most."""
_NOTHING = "#c8c8c8"


def layout(society: Society) -> list[tuple[float, float]]:
    """Where agents are in a square of side 1: in their space, or where ties pull them together.

    Fruchterman and Reingold's forces, from a circle in the order of the agents: nothing is drawn by
    chance, so the same society has the same picture.
    """
    count = len(society.agents)
    if not count:
        return []
    if society.positions is not None:
        points = np.array([[*each, 0.0][:2] for each in society.positions])
    else:
        points = _pulled(count, _numbers(society))
    low, high = points.min(axis=0), points.max(axis=0)
    scale = max(float((high - low).max()), 1e-9)
    centred = (points - (low + high) / 2) / scale + 0.5
    return [(round(x, 4), round(y, 4)) for x, y in centred.tolist()]


def _numbers(society: Society) -> NDArray[np.int64]:
    """Ties as pairs of numbers, each once."""
    place = {name: number for number, name in enumerate(society.agents)}
    pairs = {(*sorted((place[one], place[other])),) for one, other in society.edges}
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _pulled(count: int, ties: NDArray[np.int64]) -> NDArray[np.float64]:
    angles = 2 * np.pi * np.arange(count) / max(1, count)
    points = 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    room = 1 / math.sqrt(max(1, count))
    one, other = ties.T
    for step in range(_STEPS):
        apart = points[:, None, :] - points[None, :, :]
        square = (apart * apart).sum(axis=2) + 1e-9
        push = (apart * (room * room / square)[:, :, None]).sum(axis=1)
        along = points[one] - points[other]
        pull = along * (np.sqrt((along * along).sum(axis=1)) / room)[:, None]
        np.add.at(push, one, -pull)
        np.add.at(push, other, pull)
        push -= points * 0.3  # what no tie holds stays in the picture
        length = np.sqrt((push * push).sum(axis=1))[:, None] + 1e-9
        points = points + push / length * np.minimum(length, 0.12 * (1 - step / _STEPS))
    return points


def drawn(society: Society) -> dict[str, Any]:
    """A society for a page that draws it: agents, their places in a square, ties by number."""
    ties = _numbers(society).tolist()
    return {"agents": list(society.agents), "places": layout(society), "ties": ties}


def network(society: Society, panels: Mapping[str, Mapping[str, Value]], of: str = "") -> str:
    """Pictures of one society side by side, each with its title, coloured by values of agents.

    Kinds have a colour each, numbers that of their fifth of the range of all panels. ``of`` says
    what the values are.
    """
    agents = society.agents
    if len(agents) > MOST:
        raise InvalidInput(
            f"a society of {number(len(agents))} agents is not drawn",
            hint=f"draw one of up to {MOST}",
        )
    points, ties = layout(society), _numbers(society)
    values = [panel.get(agent) for panel in panels.values() for agent in agents]
    keys, colour_of = _colours([each for each in values if each is not None], None in values)
    columns = min(len(panels), 3) or 1
    parts, top = legend(keys, _WIDTH, 16 if of else 4)
    if of:
        parts.append(text_at(8, 12, of, room=_WIDTH - 16, colour=INK))
        top += 2
    size, side = _SIZE, _SIZE - 2 * _MARGIN
    radius = 5.5 if len(agents) <= 40 else 4 if len(agents) <= 120 else 2.5
    for place, (title, panel) in enumerate(panels.items()):
        left, above = size * (place % columns), top + (size + 14) * (place // columns)
        at = [(left + _MARGIN + x * side, above + 14 + _MARGIN + y * side) for x, y in points]
        parts.append(text_at(left + size / 2, above + 10, title, "middle", room=size))
        lines = [path([at[one], at[other]], AXIS, 0.5) for one, other in ties.tolist()]
        parts.append(f'<g opacity=".6">{"".join(lines)}</g>')
        for agent, (x, y) in zip(agents, at, strict=True):
            said = panel.get(agent)
            shown = number(said) if isinstance(said, int | float) else said or "–"
            parts.append(disc(x, y, radius, colour_of(said), f"{agent}: {shown}"))
    rows = math.ceil(len(panels) / columns)
    return drawing(max(size * columns, 2 * size), top + (size + 14) * rows, parts)


def _colours(
    known: Sequence[str | float], has_none: bool
) -> tuple[list[Key], Callable[[Value], str]]:
    """What stands for what, and the colour of a value."""
    rest = [Key("none", box_key(_NOTHING))] if has_none else []
    if known and all(isinstance(each, int | float) for each in known):
        least, most = float(min(known)), float(max(known))
        step = (most - least) / len(_PARTS)
        keys = [
            Key(f"from {number(round(least + step * part, 6))}", box_key(colour))
            for part, colour in enumerate(_PARTS if step else _PARTS[2:3])
        ]

        def of_number(value: Value) -> str:
            if not isinstance(value, int | float):
                return _NOTHING
            part = int((value - least) / step) if step else 2
            return _PARTS[min(part, len(_PARTS) - 1)]

        return [*keys, *rest], of_number
    kinds = list(dict.fromkeys(map(str, known)))
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(sorted(kinds))}
    keys = [Key(kind, box_key(colour)) for kind, colour in colours.items()]
    return [*keys, *rest], lambda value: _NOTHING if value is None else colours[str(value)]
