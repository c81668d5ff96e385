"""What MkDocs does for the site beside building it: `make docs`.

The documents are pages on a forge and pages of the site. A link of theirs to a file that is no page
leads to the repository; a file that does not exist ends the build. The built pages are then read:
each link leads somewhere, and none loads anything from the network.
"""

import re
import runpy
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
from html.parser import HTMLParser
from os.path import relpath
from pathlib import Path
from posixpath import dirname
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "release-notes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "benchmarks.md": "benchmarks/README.md",
}
"""Pages of the site whose text is a file elsewhere."""
_MAKE: Mapping[str, Any] = runpy.run_path(str(DOCS / "make_reference.py"))
MADE: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": _MAKE["commands"],
    "reference/settings.md": _MAKE["settings"],
    **{f"reference/python/{name}.md": partial(_MAKE["python_page"], name) for name in _MAKE["PYTHON"]},
}
"""Pages of the site that are made of code, and are no files."""

_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r"\A( *```+\w+) (?:file=(?P<name>\S+)|[^\n{]*)$", re.MULTILINE)
_LINK = re.compile(
    r"`[^`\n]+`|(?P<before>\]\(|^\[[^\]\n]+\]: |(?:src|href)=\")(?P<to>[^)\s\"]+)", re.MULTILINE
)


# The package under the name of a wheel. It is there before mkdocstrings looks for its folders.
_PACKAGE = ROOT / "build/api/tiermem"
_PACKAGE.parent.mkdir(parents=True, exist_ok=True)
if not _PACKAGE.is_symlink():
    _PACKAGE.symlink_to(ROOT / "src/agents", target_is_directory=True)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make anchors as a forge makes them."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    config.extra["repository"] = _repository()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose text is elsewhere, and those that are made of code."""
    for name, page in MADE.items():
        files.append(File.generated(config, name, content=page()))
    for name, source in ELSEWHERE.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to what is no page into addresses in the repository."""
    name = page.file.src_uri
    source = ROOT / ELSEWHERE[name] if name in ELSEWHERE else DOCS / name
    pages = {(ROOT / at).resolve(): uri for uri, at in ELSEWHERE.items()}

    def led(link: re.Match[str]) -> str:
        if link["to"] is None:  # code
            return link[0]
        target, fragment = urldefrag(link["to"])
        if not target or urlsplit(target).scheme:
            return link[0]
        path = (source.parent / unquote(target)).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            raise PluginError(f"{source.relative_to(ROOT)} links to {target}, which is not there")
        uri = pages.get(path)
        if uri is None and path.is_relative_to(DOCS):
            uri = path.relative_to(DOCS).as_posix()
        if uri is not None and files.get_file_from_path(uri) is not None:
            address = relpath(uri, dirname(name) or ".")
        else:
            kind = "tree" if path.is_dir() else "blob"
            address = f"{_repository()}/{kind}/main/{path.relative_to(ROOT).as_posix()}"
        return link["before"] + address + (f"#{fragment}" if fragment else "")

    def shown(fence: str) -> str:
        return _INFO.sub(
            lambda info: info[1] + (f' title="{info["name"]}"' if info["name"] else ""), fence
        )

    return _apart(markdown, lambda text: _LINK.sub(led, text), shown)


def on_post_build(config: MkDocsConfig) -> None:
    """Read what was built: a link that leads nowhere, or to the network, ends the build."""
    if broken := problems(Path(config.site_dir)):
        raise PluginError("\n".join(["the site is not whole:", *broken]))


def _apart(
    markdown: str, of_text: Callable[[str], str], of_fence: Callable[[str], str]
) -> str:
    """The page, whose text is changed by one function and whose blocks of code by another."""
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [of_text(markdown[end : fence.start()]), of_fence(fence[0])]
        end = fence.end()
    return "".join([*parts, of_text(markdown[end:])])


@cache
def _repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["urls"]["Source"]).rstrip("/")


# What was built


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


def _read(path: Path) -> Any:
    page = _Read()
    page.feed(path.read_text("utf-8"))
    return page


def _file(page: Path, target: str) -> Path:
    name = unquote(urlsplit(target).path)
    file = (page.parent / name).resolve() if name else page
    return file / "index.html" if file.is_dir() else file
