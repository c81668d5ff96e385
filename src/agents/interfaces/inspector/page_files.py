"""The page's files, and what a browser may do with them."""

import base64
import hashlib
import importlib.resources
import re
from functools import cache
from typing import NamedTuple

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}
_NAME = re.compile(r"(?:(?:vendor|views)/)?[a-z0-9-]+\.(?P<kind>html|js|css)")
MAP = re.compile(r'<script type="importmap">(?P<map>.*?)</script>', re.DOTALL)


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
def policy() -> str:
    """The Content-Security-Policy of the page: its own files, and nothing else."""
    page = page_file("index.html")
    found = MAP.search(page.data.decode()) if page else None
    scripts = f" {hash_of(found['map'])}" if found else ""
    return (
        f"default-src 'none'; script-src 'self'{scripts}; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
