"""What MkDocs does for the site beside building it: `make docs`.

The documents are pages on a forge and pages of the site. A link of theirs to a file that is no page
leads to the repository; a file that does not exist ends the build. What was built is then checked.
"""

import re
import runpy
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial
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
_CHECK: Mapping[str, Any] = runpy.run_path(str(DOCS / "site_check.py"))
MADE: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": _MAKE["commands"],
    "reference/settings.md": _MAKE["settings"],
    **{
        f"reference/python/{name}.md": partial(_MAKE["python_page"], name)
        for name in _MAKE["PYTHON"]
    },
}
"""Pages of the site that are made of code, and are no files."""

_BOOSTS = {"howto": 1, "architecture": 0.5, "reference": 1, "release-notes.md": 0.3}
_BOOSTS |= {"changelog": 0.2, "licences.md": 0.2, "results.md": 0.5}
"""How much pages count in a search, by their folder: what to do comes before how it works, and what
everybody does before what users of one framework do. Pages that are not named count most."""
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r"\A( *```+\w+) (?:file=(?P<name>\S+)|[^\n{]*)$", re.MULTILINE)
_LIST = re.compile(r"^(?![-|>#\s]|\* )(.*\S)\n(?=- )", re.MULTILINE)
"""A line of text before the first line of a list: a forge shows a list, Markdown a paragraph."""
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
    page.meta.setdefault("search", {"boost": _BOOSTS.get(name.partition("/")[0], 4)})
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

    def read(text: str) -> str:
        return _LIST.sub(r"\1\n\n", _LINK.sub(led, text))

    return _apart(markdown, read, shown)


def on_post_build(config: MkDocsConfig) -> None:
    """Read what was built: a link that leads nowhere, or to the network, ends the build."""
    if broken := _CHECK["problems"](Path(config.site_dir)):
        raise PluginError("\n".join(["the site is not whole:", *broken]))


def _apart(markdown: str, of_text: Callable[[str], str], of_fence: Callable[[str], str]) -> str:
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
