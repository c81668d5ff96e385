"""The parts of a report's page: HTML without scripts, in which all text is data."""

import base64
import hashlib
import html
import importlib.resources
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ...memory.context import one_line
from ...memory.words import counted, number
from .plots import STYLE

_MOST_CHARACTERS = 600


def escape(text: str) -> str:
    """HTML that shows all of ``text`` and does nothing."""
    return html.escape(one_line(text))


def clipped(text: str) -> str:
    """HTML that shows a text; of a long text only the beginning, and how much is missing."""
    more = len(text) - _MOST_CHARACTERS
    if more <= 0:
        return escape(text)
    left = f'<span class="range">({counted(more, "more character")})</span>'
    return f"{escape(text[:_MOST_CHARACTERS])}… {left}"


def shown(value: object) -> str:
    """A setting as text. Whole numbers have no commas, because people type them again."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, float) or value is None else str(value)


def document(title: str, body: Iterable[str]) -> str:
    """The whole page. Its policy lets it load nothing and run nothing."""
    css = importlib.resources.files(__package__).joinpath("report.css").read_text("utf-8") + STYLE
    # The policy names the style sheet by its hash, so that the page takes no other style.
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)} · TierMem</title>\n<style>{css}</style>\n</head>\n"
        f"<body>\n<main>\n{chr(10).join(filter(None, body))}\n</main>\n</body>\n</html>\n"
    )


def headline(kind: str, name: str) -> str:
    """The heading of the page."""
    return f'<p class="kind">{kind}</p>\n<h1>{escape(name)}</h1>'


def link(path: str, text: str, view: str = "") -> str:
    """A link to a file beside the page; ``view`` is the part of the address behind ``#``."""
    place = quote(path, errors="replace") + (f"#{view}" if view else "")
    return f'<a href="{html.escape(place)}">{escape(text)}</a>'


def definitions(facts: Mapping[str, object], *, code: bool = False) -> str:
    """Small facts side by side, or below each other as ``code``."""
    items = []
    for name, value in facts.items():
        said = escape(shown(value))
        content = f"<code>{said}</code>" if code else said
        head = escape(name.replace("_", " ").capitalize())
        items.append(f"<div><dt>{head}</dt><dd>{content}</dd></div>")
    return f'<dl class="{"wide" if code else "facts"}">{"".join(items)}</dl>'


def details(summary: str, inside: str) -> str:
    """A part that a reader opens; ``inside`` is HTML."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def charts(figures: Iterable[str]) -> str:
    """Figures side by side, if the page is wide enough."""
    return f'<div class="charts">{"".join(figures)}</div>'


def figure(title: str, chart: str, caption: str, *, alt: str = "") -> str:
    """A chart, which is SVG, with its title and caption, also for readers who can't see it."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    label = escape(f"Chart of {alt or title}. {caption}")
    return (
        f'<figure>{head}<div class="chart" role="img" aria-label="{label}">{chart}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """A table. The cells are HTML; the last ``numbers`` columns are numbers."""
    kinds = ["text"] * (len(heads) - numbers) + ["number"] * numbers

    def line(cell: str, texts: Sequence[str]) -> str:
        cells = (
            f'<{cell} class="{kind}">{text}</{cell[:2]}>'
            for kind, text in zip(kinds, texts, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    top = line('th scope="col"', heads)
    lines = "".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table><thead>{top}</thead><tbody>{lines}</tbody></table></div>'


def settings(values: Mapping[str, Any]) -> str:
    """The settings as YAML."""
    from ...config.yaml_files import to_yaml

    written = to_yaml(dict(values), width=100)
    return f"<pre>{chr(10).join(escape(line) for line in written.split(chr(10)))}</pre>"
