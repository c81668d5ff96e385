"""The site: each page is in its navigation, the reference is whole, broken pages are found."""

import importlib
import re
import runpy
from pathlib import Path
from types import FunctionType

import pytest
import yaml

from agents.interfaces.cli import app
from banks import ROOT

MAKE = runpy.run_path(str(ROOT / "docs/make_reference.py"))
problems = runpy.run_path(str(ROOT / "docs/site_check.py"))["problems"]


def in_navigation(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    below = part.values() if isinstance(part, dict) else part
    return [page for each in below for page in in_navigation(each)]  # type: ignore[attr-defined]


def test_each_page_is_in_the_navigation_once() -> None:
    pages = in_navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    files = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {"reference/commands.md", "reference/settings.md"}
    made |= {f"reference/python/{name}.md" for name in MAKE["PYTHON"]}
    elsewhere = {"release-notes.md", "contributing.md", "security.md", "benchmarks.md"}
    assert sorted(pages) == sorted(files | made | elsewhere)


def test_the_page_of_commands_has_each_command_with_its_options() -> None:
    page = MAKE["commands"]()
    for entries in app.COMMANDS.values():
        for name, _, line in entries:
            assert f"](#tiermem-{name.replace(' ', '-')}) | {line} |" in page
            assert f"\n## tiermem {name}\n" in page
    (branch,) = re.findall(r"^## tiermem branch\n(.*?)^## ", page, re.M | re.S)
    assert "$ tiermem branch [OPTIONS] RUN" in branch
    assert "| `--at TICK` | The last tick that the two runs share. (required) |" in branch


def test_the_page_of_settings_has_each_setting_with_what_it_accepts() -> None:
    page = MAKE["settings"]()
    schema = yaml.safe_load((ROOT / "config/schema.yaml").read_text("utf-8"))
    for section, each in schema["properties"].items():
        for name in each.get("properties", [section]):
            assert re.search(rf"^\| `{name}(: .*)?`.* \| ", page, re.M), f"{section}.{name}"
    assert '| `on_tier_full: "demote"` | When a tier is full' in page
    assert "*`demote`, `reject`* |\n" in page
    assert "| `default_limit: 5` | Memories a search" in page
    assert "*integer; 0 to 10,000* |\n" in page


@pytest.mark.parametrize(
    "module", ["", ".simulation", ".simulation.effects", ".tools", ".testing", ".adapting"]
)
def test_each_public_name_is_on_a_page_of_the_reference(module: str) -> None:
    things = {thing for _, _, things in MAKE["PYTHON"].values() for thing in things}
    where = importlib.import_module(f"tiermem{module}")
    shown_whole = f"tiermem{module}" in things
    for thing in (getattr(where, name) for name in where.__all__):
        if isinstance(thing, type | FunctionType):  # not a constant, and not a module
            home = thing.__module__
            assert shown_whole or {home, f"{home}.{thing.__name__}"} & things, thing


def test_what_a_reference_page_shows_is_there() -> None:
    for _, _, things in MAKE["PYTHON"].values():
        for thing in things:
            path = ROOT / "src/agents" / thing.removeprefix("tiermem.").replace(".", "/")
            if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
                continue
            source = path.parent.with_suffix(".py").read_text("utf-8")
            assert re.search(rf"^(class|def) {path.name}\b", source, re.M), thing


# A built site


def site_of(folder: Path, body: str) -> list[str]:
    (folder / "below").mkdir(parents=True)
    (folder / "index.html").write_text(f'<html><body id="top">{body}</body></html>')
    (folder / "below/page.html").write_text('<h1 id="here">A page</h1><a href="../index.html#top">')
    (folder / "picture.png").touch()
    return list(problems(folder))


def test_a_whole_site_has_no_problem(tmp_path: Path) -> None:
    body = (
        '<a href="below/page.html#here"></a><a href="#top"></a><a href="https://example.org"></a>'
        '<img src="picture.png"><img src="data:,x"><link rel="canonical" href="https://me.org">'
    )
    assert site_of(tmp_path / "site", body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="gone.html">', "index.html links to gone.html, which is not there"),
        (
            '<a href="below/page.html#gone">',
            "index.html links to below/page.html#gone, which has no such anchor",
        ),
        ('<a href="#gone">', "index.html links to #gone, which has no such anchor"),
        ('<img src="gone.png">', "index.html loads gone.png, which is not there"),
        ('<script src="https://cdn.org/x.js">', "index.html loads https://cdn.org/x.js"),
        ('<img src="//cdn.org/x.png">', "index.html loads //cdn.org/x.png"),
        ('<link rel="stylesheet" href="https://f.org/f">', "index.html loads https://f.org/f"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, body: str, problem: str) -> None:
    assert site_of(tmp_path / "site", body) == [problem]


def test_a_style_that_loads_from_the_network_is_named(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.css").write_text("@font-face { src: url(https://fonts.org/a.woff2) }")
    assert problems(tmp_path / "site") == ["a.css loads https://fonts.org/a.woff2"]
