"""The page's files: what it carries, how large it is, and what its modules may not do."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agents.interfaces import inspector
from waiting import LONG

PAGE = Path(inspector.__file__).parent / "page"
MODULES = sorted(path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*.js"))
OWN = [name for name in MODULES if not name.startswith("vendor/")]
FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "https://",
    "http://",
    "dangerouslySetInnerHTML",
)
LICENCES = ("MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0")
MOST_SCRIPT = 300_000


def test_carried_libraries_are_those_that_are_named() -> None:
    table = (PAGE / "vendor" / "VENDORED.md").read_text()
    named = dict(re.findall(r"^\| ([a-z-]+\.(?:js|css)) \|.*\| ([0-9a-f]{64}) \|$", table, re.M))
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (PAGE / "vendor").iterdir()
        if path.suffix in (".js", ".css")
    }
    assert named == there
    assert {"LICENSE-htm.txt", "LICENSE-preact.txt", "LICENSE-uplot.txt"} <= {
        path.name for path in (PAGE / "vendor").iterdir()
    }


def test_carried_libraries_may_be_carried() -> None:
    table = (PAGE / "vendor" / "VENDORED.md").read_text()
    cells = re.findall(r"^\| [a-z-]+\.(?:js|css) \|.*\| ([^|]+) \| [0-9a-f]{64} \|$", table, re.M)
    assert len(cells) == sum(path.suffix in (".js", ".css") for path in (PAGE / "vendor").iterdir())
    for cell in cells:
        for licence in cell.split(", "):
            assert licence.partition(" (")[0] in LICENCES


def test_the_import_map_names_each_module_once() -> None:
    page = (PAGE / "index.html").read_text()
    found = re.search(r'<script type="importmap">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    named = json.loads(found[1])["imports"]
    assert named == {
        f"#{name.removesuffix('.js')}": f"./{name}" for name in MODULES if name != "main.js"
    }


def test_modules_import_what_the_map_names() -> None:
    for name in OWN:
        for source in re.findall(r'from "([^"]+)"', (PAGE / name).read_text()):
            assert source.startswith("#"), f"{name} imports {source}"
            assert f"{source[1:]}.js" in MODULES, f"{name} imports {source}"


def test_scripts_are_small() -> None:
    sizes = [len(gzip.compress((PAGE / name).read_bytes())) for name in MODULES]
    assert sum(sizes) <= MOST_SCRIPT


@pytest.mark.parametrize("name", OWN)
def test_modules_write_texts_and_never_markup(name: str) -> None:
    text = (PAGE / name).read_text()
    assert [each for each in FORBIDDEN if each in text] == []
    assert text.count("\n") < 400


def test_the_document_has_no_script_or_style_of_its_own() -> None:
    page = (PAGE / "index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", page) == []
    assert len(re.findall(r"<script(?! type=\"importmap\"| type=\"module\" src=)", page)) == 0


@pytest.mark.skipif(shutil.which("tsc") is None, reason="tsc checks the modules' types where it is")
def test_types_of_the_modules_hold() -> None:
    done = subprocess.run(
        ["tsc", "-p", str(PAGE / "jsconfig.json")], capture_output=True, text=True, timeout=LONG
    )
    assert done.stdout == ""
    assert done.returncode == 0
