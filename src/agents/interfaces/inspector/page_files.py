"""The page's files, one by one or all in one HTML file, and what a browser may do with them.

The Content-Security-Policy of the one file names its script and its style sheets by their hashes: a
browser runs nothing else, wherever the file is opened from.
"""

import base64
import hashlib
import importlib.resources
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ...errors import RunError

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}
_NAME = re.compile(r"(?:(?:vendor|views)/)?[a-z0-9-]+\.(?P<kind>html|js|css)")
_MAP = re.compile(r'<script type="importmap">(?P<map>.*?)</script>', re.DOTALL)


class PageFile(NamedTuple):
    """A file of the page."""

    data: bytes
    media_type: str


@cache
def page_file(name: str) -> PageFile | None:
    """A file of the page by its name, such as ``views/agent.js``; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    place = importlib.resources.files(__package__) / "page"
    for part in name.split("/"):
        place = place / part
    if not place.is_file():
        return None
    return PageFile(place.read_bytes(), _TYPES[found["kind"]])


def hash_of(script: str) -> str:
    """The name of an inline script in a Content-Security-Policy."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def policy(*, framed: bool = False) -> str:
    """The Content-Security-Policy of the page: its own files, and nothing else.

    A ``framed`` page may be within any other.
    """
    page = page_file("index.html")
    found = _MAP.search(page.data.decode()) if page else None
    scripts = f" {hash_of(found['map'])}" if found else ""
    above = "" if framed else "; frame-ancestors 'none'"
    return (
        f"default-src 'none'; script-src 'self'{scripts}; style-src 'self'; connect-src 'self'; "
        f"img-src 'self' data: blob:; base-uri 'none'; form-action 'none'{above}"
    )


# All in one file

_STYLE = re.compile(r'<link rel="stylesheet" href="\./(?P<name>[^"]+)">')
_ENTRY = re.compile(r'<script type="module" src="\./(?P<name>[^"]+)"></script>')
_IMPORT = re.compile(r'^import (?P<what>[^;"]+?) from "(?P<source>#[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)
_NAMES = re.compile(r"\bexport ?\{(?P<names>[^}]*)\};?\s*$")
_LEFT = re.compile(r"^\s*(?:import|export)\b", re.MULTILINE)


def document(packed: str) -> str:
    """The page's HTML with everything in it; ``packed`` are the answers."""
    page = _text("index.html")
    found, entry = _MAP.search(page), _ENTRY.search(page)
    if found is None or entry is None:
        raise RunError("the page has no import map or no entry", hint="install TierMem again")
    styles = [f"\n{_text(each['name'])}" for each in _STYLE.finditer(page)]
    sheets = iter(styles)
    page = _STYLE.sub(lambda _: f"<style>{next(sheets)}</style>", page)
    places: Mapping[str, str] = json.loads(found["map"])["imports"]
    modules = {name: _text(place.removeprefix("./")) for name, place in places.items()}
    script = one_script({**modules, "#entry": _text(entry["name"])})
    policy = (
        f"default-src 'none'; script-src {hash_of(script)}; "
        f"style-src {' '.join(map(hash_of, styles))}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = f'<script type="text/plain" id="inspector-data">{packed}</script>'
    page = page.replace(found[0], data)
    page = page.replace(entry[0], f'<script type="module">{script}</script>')
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)


def _text(name: str) -> str:
    found = page_file(name)
    if found is None:
        raise RunError(f"the page lacks {name}", hint="install TierMem again")
    return found.data.decode()


def one_script(modules: Mapping[str, str]) -> str:
    """The modules as one: each is a function that is called once, after those that it needs."""
    parts = ["\nconst $modules = {};"]
    done: dict[str, bool] = {}

    def add(name: str) -> None:
        if done.setdefault(name, False):
            return
        for each in _IMPORT.finditer(modules[name]):
            if done.get(each["source"]) is False:
                raise RunError(f"the page's modules {name} and {each['source']} need each other")
            add(each["source"])
        done[name] = True
        parts.append(_part(name, modules[name]))

    for name in modules:
        add(name)
    return "\n".join(parts) + "\n"


def _part(name: str, module: str) -> str:
    """A module, whose exports are kept under its name; one without exports may wait."""
    text = _IMPORT.sub(_imported, module)
    listed = _NAMES.search(text)
    if listed is not None:  # as in libraries, whose comments may have exports of their own
        text = text[: listed.start()]
        pairs = [each.strip().partition(" as ") for each in listed["names"].split(",")]
        exports = [(outside or inside, inside) for inside, _, outside in pairs]
    else:
        exports = [(each["name"], each["name"]) for each in _EXPORT.finditer(text)]
        text = _EXPORT.sub("", text)
    is_left = listed is None and _LEFT.search(text) is not None
    if is_left or "</script" in text or "<!--" in text:
        raise RunError(f"the page's module {name} can't be a part of one script")
    if not exports:
        return f"{{\n{text}\n}}"
    kept = ", ".join(f"{outside}: {inside}" for outside, inside in exports)
    return f"{_place(name)} = (() => {{\n{text}\n;return {{ {kept} }};\n}})();"


def _place(name: str) -> str:
    return f"$modules[{json.dumps(name)}]"


def _imported(found: re.Match[str]) -> str:
    """An import as a declaration of its names."""
    what, source = found["what"].strip(), _place(found["source"])
    if not what.startswith("{"):
        return f"const {what} = {source}.default;"
    return f"const {what.replace(' as ', ': ')} = {source};"
