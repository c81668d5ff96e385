"""Reads the pages of a built site: each link leads somewhere, and none loads from the network."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class _Read(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag in ("a", "area"):
            self.links += [given["href"]] if "href" in given else []
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a built site, a line each."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses begin at the root of a server
            continue
        where = path.relative_to(site).as_posix()
        for target in page.loads:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                found.append(f"{where} loads {target}")
            elif not urlsplit(target).scheme and not _file(path, target).is_file():
                found.append(f"{where} loads {target}, which is not there")
        for target in page.links:
            if urlsplit(target).scheme or target.startswith("//"):
                continue
            file, fragment = _file(path, target), unquote(urldefrag(target)[1])
            if not file.is_file():
                found.append(f"{where} links to {target}, which is not there")
            elif fragment and file in pages and fragment not in pages[file].anchors:
                found.append(f"{where} links to {target}, which has no such anchor")
    for style in sorted(site.rglob("*.css")):
        text = style.read_text("utf-8")
        found += [
            f"{style.relative_to(site).as_posix()} loads {target}"
            for target in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", text)
        ]
    return found


def _read(path: Path) -> _Read:
    page = _Read()
    page.feed(path.read_text("utf-8"))
    return page


def _file(page: Path, target: str) -> Path:
    name = unquote(urlsplit(target).path)
    file = (page.parent / name).resolve() if name else page
    return file / "index.html" if file.is_dir() else file
