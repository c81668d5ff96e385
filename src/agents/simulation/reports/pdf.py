"""A chart as PDF: what :mod:`.plots` draws, and no more of SVG, in the fonts that every reader has.

The same chart gives the same bytes. Letters that Helvetica lacks become question marks.
"""

import math
import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from ...errors import InvalidInput

_SVG = "{http://www.w3.org/2000/svg}"
_UNSEEN = ("style", "title")
_MOST_BYTES = 16 << 20
_STEP = re.compile(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?")
_MINUS, _CODE_OF_MINUS = "−", 0x81
_ROUND = 0.5523
"""How far a curve's handle is from its end, in radii, for a quarter of a circle."""
# The widths of Helvetica from the blank to the tilde, in thousandths of its size (Adobe's AFM).
_WIDTHS = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
]  # fmt: skip


def pdf(chart: str) -> bytes:
    """A chart of ours, one page of its size."""
    try:
        if len(chart) > _MOST_BYTES or "<!" in chart:  # no chart of ours has a declaration
            raise ValueError("it is not drawn by TierMem")
        root = ElementTree.fromstring(chart)  # noqa: S314 - without a declaration it is harmless
        width, height = (float(root.attrib[each]) for each in ("width", "height"))
        painted = "\n".join(_painted(root, _inherited(root, {})))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise InvalidInput(f"this is no chart that can be made a PDF: {error}") from None
    clear = sorted({float(each) for each in re.findall(r"/O([\d.]+) gs", painted)})
    states = " ".join(f"/O{each:g} << /ca {each:g} >>" for each in clear)
    encoding = (
        "<< /Type /Encoding /BaseEncoding /WinAnsiEncoding "
        f"/Differences [{_CODE_OF_MINUS} /minus] >>"
    )
    content = f"1 0 0 -1 0 {height:g} cm\n{painted}\n".encode("ascii")
    return _file(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:g} {height:g}] "
                f"/Contents 4 0 R /Resources << /ExtGState << {states} >> "
                "/Font << /F 5 0 R >> >> >>"
            ).encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
            f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding {encoding} >>".encode(),
        ]
    )


def _file(objects: Sequence[bytes]) -> bytes:
    """A PDF file of these objects, with the table of their places."""
    data, places = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count = len(objects) + 1
    end = (
        f"xref\n0 {count}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF\n"
    )
    return data + end.encode()


_Look = dict[str, str]
_PASSED_ON = ("fill", "font-size", "pointer-events")


def _inherited(element: ElementTree.Element, above: _Look) -> _Look:
    return above | {name: element.attrib[name] for name in _PASSED_ON if name in element.attrib}


def _painted(element: ElementTree.Element, above: _Look) -> Iterator[str]:
    """The operators that paint an element and what is in it."""
    look = _inherited(element, above)
    if look.get("pointer-events") == "all":  # the places under the pointer show nothing
        return
    kind = element.tag.removeprefix(_SVG)
    if kind in _UNSEEN:
        return
    moved = element.attrib.get("transform")
    if moved:
        yield f"q {_moved(moved)} cm"
    if kind == "text":
        yield from _text(element, look)
    elif kind in ("path", "rect", "circle"):
        yield from _shape(element, kind, look)
    elif kind not in ("svg", "g"):
        raise ValueError(f"it has a {kind}")
    if kind != "text":
        for child in element:
            yield from _painted(child, look)
    if moved:
        yield "Q"


def _moved(transform: str) -> str:
    """A matrix for the two transforms that charts have."""
    name, _, rest = transform.partition("(")
    values = [float(each) for each in re.findall(r"-?[\d.]+", rest)]
    if name == "translate" and len(values) == 2:
        return f"1 0 0 1 {values[0]:g} {values[1]:g}"
    if name == "rotate" and len(values) == 3:
        turn, x, y = math.radians(values[0]), values[1], values[2]
        cos, sin = math.cos(turn), math.sin(turn)
        right, down = x - x * cos + y * sin, y - x * sin - y * cos
        return f"{cos:.5f} {sin:.5f} {-sin:.5f} {cos:.5f} {right:.4f} {down:.4f}"
    raise ValueError(f"it has the transform {transform:.40}")


def _colour(value: str) -> str:
    red, green, blue = (int(value[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return f"{red:.3f} {green:.3f} {blue:.3f}"


def _shape(element: ElementTree.Element, kind: str, look: _Look) -> Iterator[str]:
    own = element.attrib
    fill, stroke = look.get("fill", "none"), own.get("stroke", "none")
    if fill == stroke == "none":
        return
    yield "q"
    if fill != "none":
        yield f"{_colour(fill)} rg"
    if "fill-opacity" in own:
        yield f"/O{float(own['fill-opacity']):g} gs"
    if stroke != "none":
        dashes = own.get("stroke-dasharray", "")
        yield f"{_colour(stroke)} RG {own.get('stroke-width', '1')} w 1 j [{dashes}] 0 d"
    yield from _outline(own, kind)
    yield {(True, True): "B", (True, False): "f", (False, True): "S"}[
        fill != "none", stroke != "none"
    ]
    yield "Q"


def _outline(own: dict[str, str], kind: str) -> Iterator[str]:
    if kind == "path":
        yield from _way(own["d"])
    elif kind == "circle":
        x, y, radius = (float(own[each]) for each in ("cx", "cy", "r"))
        yield f"{x - radius:g} {y:g} m"
        yield from _half_circle(x - radius, y, radius, 1)
        yield from _half_circle(x + radius, y, radius, -1)
    elif own["width"].endswith("%"):  # the paper, which is white without it
        yield "0 0 0 0 re"
    else:
        x, y, width, height = (float(own[each]) for each in ("x", "y", "width", "height"))
        yield f"{x:g} {y:g} {width:g} {height:g} re"


def _half_circle(x: float, y: float, radius: float, side: int) -> Iterator[str]:
    """From (x, y) to the opposite point, to the right for 1 and to the left for -1."""
    r, k = side * radius, side * radius * _ROUND
    yield f"{x:g} {y + k:.3f} {x + r - k:.3f} {y + r:.3f} {x + r:g} {y + r:g} c"
    yield f"{x + r + k:.3f} {y + r:.3f} {x + 2 * r:g} {y + k:.3f} {x + 2 * r:g} {y:g} c"


def _way(steps: str) -> Iterator[str]:
    """The steps of a path: lines, and the two halves of a circle."""
    words = _STEP.findall(steps)
    x = y = x0 = y0 = 0.0
    at, step = 0, ""
    while at < len(words):
        if words[at].isalpha():
            step, at = words[at], at + 1
            if step in "zZ":
                x, y = x0, y0
                yield "h"
                continue
        takes = {"h": 1, "v": 1, "m": 2, "l": 2, "a": 7}[step.lower()]
        values = [float(each) for each in words[at : at + takes]]
        at += takes
        dx, dy = (x, y) if step.islower() else (0.0, 0.0)
        if step in "aA":
            to, level = values[5] + dx, values[6] + dy
            if level != y or abs(abs(to - x) - 2 * values[0]) > 1e-6:
                raise ValueError("it has an arc that is no half of a circle")
            yield from _half_circle(x, y, values[0], 1 if to > x else -1)
            x = to
            continue
        if step in "hH":
            x = values[0] + dx
        elif step in "vV":
            y = values[0] + dy
        else:
            x, y = values[0] + dx, values[1] + dy
        yield f"{x:g} {y:g} {'m' if step in 'mM' else 'l'}"
        if step in "mM":
            x0, y0, step = x, y, "l" if step == "m" else "L"


def _text(element: ElementTree.Element, look: _Look) -> Iterator[str]:
    own, text = element.attrib, element.text or ""
    size = float(look.get("font-size", "10"))
    codes = b"".join(
        bytes([_CODE_OF_MINUS]) if each == _MINUS else each.encode("cp1252", "replace")
        for each in text
    )
    width = size * sum(_WIDTHS[c - 32] if 32 <= c <= 126 else 556 for c in codes) / 1000
    x, y = float(own["x"]), float(own["y"])
    x -= {"middle": width / 2, "end": width}.get(own.get("text-anchor", ""), 0.0)
    colour = _colour(look.get("fill", "#000000"))
    yield f"BT {colour} rg /F {size:g} Tf 1 0 0 -1 {x:.2f} {y:g} Tm <{codes.hex()}> Tj ET"
