"""What a release says of itself: its long description, its metadata, and what it carries."""

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import tiermem
from banks import ROOT
from tiermem.storage import formats

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = "https://example.org/we/ours"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z0-9-]+):", (ROOT / "Makefile").read_text()))


def program(name: str) -> ModuleType:
    """A file of the folder ``release``, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(ROOT / "release"))  # publish.py imports checks.py beside it
README, LICENCES = program("readme"), program("licences")
CHECKS, PUBLISH = program("checks"), program("publish")
sys.path.pop(0)


# The long description


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("[a](docs/a.md)", "[a](https://example.org/we/ours/blob/v2/docs/a.md)"),
        ("[a](./docs/a.md#b)", "[a](https://example.org/we/ours/blob/v2/docs/a.md#b)"),
        ("![a](docs/a.svg)", "![a](https://example.org/we/ours/raw/v2/docs/a.svg)"),
        ('[a]: tests/a.py "t"', '[a]: https://example.org/we/ours/blob/v2/tests/a.py "t"'),
        ('<img src="a/b.png">', '<img src="https://example.org/we/ours/raw/v2/a/b.png">'),
        ('<a href="a/b.md">', '<a href="https://example.org/we/ours/blob/v2/a/b.md">'),
        ("[`a`](b.md)", "[`a`](https://example.org/we/ours/blob/v2/b.md)"),
    ],
)
def test_a_relative_link_is_whole_on_the_package_index(written: str, whole: str) -> None:
    assert README.with_whole_links(written, REPOSITORY, "v2") == whole


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://example.org/b.md)",
        "[a](#b)",
        '<a href="#b">',
        "`[a](b.md)`",
        "```markdown\n[a](b.md)\n```",
        "```\n[a]: b.md\n```\n",
    ],
)
def test_whole_addresses_headings_and_code_stay_as_they_are(text: str) -> None:
    assert README.with_whole_links(text, REPOSITORY, "v2") == text


def test_every_link_of_the_readme_is_whole_and_leads_to_a_file() -> None:
    text = README.with_whole_links((ROOT / "README.md").read_text(), REPOSITORY, "v2")
    links = re.findall(r"\]\(([^)\s]+)|^\[[^\]]+\]: +(\S+)|(?:src|href)=\"([^\"]+)", text, re.M)
    links = [next(filter(None, each)) for each in links]
    assert len(links) >= 20
    prefix = re.compile(rf"{REPOSITORY}/(?:blob|raw)/v2/")
    for link in links:
        if path := prefix.match(link):
            assert (ROOT / link[path.end() :].partition("#")[0]).exists(), link
        else:
            assert link.startswith(("https://", "#")), link


# The metadata


def test_one_place_names_the_repository() -> None:
    source = PROJECT["urls"]["Source"]
    own = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert [path for path in own if source in path.read_text()] == []


def test_a_tested_python_is_a_classifier() -> None:
    said = {each.split(" :: ")[-1] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    assert said == {"3.11", "3.12", "3.13"}


def test_the_version_has_a_page_and_is_the_one_to_cite() -> None:
    version = tiermem.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    page = (ROOT / "docs" / "changelog" / f"{version}.md").read_text()
    assert page.startswith(f"# {version}\n")
    assert f"(docs/changelog/{version}.md)" in (ROOT / "CHANGELOG.md").read_text()
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source distribution has no history")
def test_the_source_distribution_has_all_that_is_kept() -> None:
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    kept = {path.partition("/")[0] for path in told.stdout.splitlines()}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    named = set(settings["targets"]["sdist"]["only-include"])
    assert kept - named == {".gitattributes", ".gitignore", "pyproject.toml"}
    assert named <= kept


def test_the_page_of_versions_has_the_formats_of_files() -> None:
    page = (ROOT / "docs/versions.md").read_text()
    shown = {name: int(number) for name, number in re.findall(r"(?m)^\| (\w+) \| (\d+) \|$", page)}
    assert shown == {name: formats.present(name) for name in shown}
    assert shown.keys() == {"journal", "checkpoint", "run", "cassette"}


# Licences


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the page has Linux's packages")
def test_each_package_of_a_plain_install_has_its_licence_on_the_page() -> None:
    """Versions may be others here; `make licences` writes those of constraints.txt."""
    page = LICENCES.PAGE.read_text()
    shown = dict(re.findall(r"(?m)^\| ([a-z0-9-]+) \| [0-9][^ ]* \| (.+) \|$", page))
    every = LICENCES.needed() | LICENCES.needed("simulation")
    assert shown.keys() == every.keys() or sys.version_info[:2] != (3, 11)
    assert "not said" not in shown.values()


def test_what_is_vendored_is_named_with_its_licence() -> None:
    vendor = ROOT / "src/agents/interfaces/inspector/page/vendor"
    table = (vendor / "VENDORED.md").read_text()
    rows = re.findall(r"(?m)^\| [^ ]+\.js \| (\w+), .*? \| ([\d.]+) \| (.*?) \|", table)
    notice = (ROOT / "NOTICE").read_text().lower()
    assert len(rows) == 2
    assert [(each["name"], each["version"]) for each in CHECKS.vendored()] == [
        (name, version) for name, version, _ in rows
    ]
    for name, version, _ in rows:
        assert f"{name} {version}" in notice
    for text in vendor.glob("LICENSE-*.txt"):
        assert text.name.lower() in notice


# Workflows and forms


def steps(workflow: Path) -> list[tuple[str, dict[str, Any]]]:
    """The steps of all jobs, each with the name of its job."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [(name, step) for name, job in jobs.items() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_step_of_a_workflow_is_one_make_target_that_exists(workflow: Path) -> None:
    commands = [step["run"] for _, step in steps(workflow) if "run" in step]
    assert commands
    for command in commands:
        value = r'(?:"[^"]*"|\$\{\{ matrix\.[a-z]+ \}\}|\S+)'
        found = re.fullmatch(rf"make ([a-z-]+)((?: [A-Z]+={value})*)", command)
        assert found, command
        assert found[1] in TARGETS, command
        for variable in re.findall(r" ([A-Z]+)=", found[2]):
            assert re.search(rf"\$\({variable}\)", (ROOT / "Makefile").read_text()), command


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_ends(workflow: Path) -> None:
    told = yaml.safe_load(workflow.read_text())
    assert told["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 300 for job in told["jobs"].values())
    others = {step["uses"] for _, step in steps(workflow) if "uses" in step}
    allowed = r"actions/(checkout|setup-python|upload-artifact|download-artifact)@v\d+"
    assert {each for each in others if not re.fullmatch(allowed, each)} <= {
        "pypa/gh-action-pypi-publish@release/v1"
    }


def test_the_one_job_that_may_publish_comes_after_all_checks() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    writing = {name for name, job in jobs.items() if "permissions" in job}
    assert writing == {"publish"}
    assert jobs["publish"]["needs"] == "build"
    run = [step.get("run") for step in jobs["build"]["steps"]]
    assert run.index("make release") < run.index("make publish ARGS=--check")


def test_tests_run_on_three_systems_and_every_python_of_the_classifiers() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    said = {each.split(" :: ")[-1] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    assert set(matrix["python"]) == said
    assert len(matrix["system"]) == 3
    tried = {each["system"] for each in matrix["include"] if each["python"] == "3.14"}
    assert tried == set(matrix["system"])


def test_each_framework_is_tried_every_week() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]
    scripts = {path.stem for path in (ROOT / "tests/adapters/upstream").glob("*.py")}
    no_scripts = {"every", "suites", "mutations"}
    assert set(jobs["adapters"]["strategy"]["matrix"]["framework"]) == scripts - no_scripts


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one_that_the_forge_takes(form: Path) -> None:
    told = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= told.keys()
    asked = [part for part in told["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked) >= 2
    assert all(part["attributes"]["label"] for part in asked)
    assert any(part["validations"]["required"] for part in asked if "validations" in part)


# Publishing


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a tag and files that `make release` built: all is as it has to be."""
    root = tmp_path / "repository"
    root.mkdir()
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (
        ["init", "--quiet"],
        ["remote", "add", "origin", f"{PROJECT['urls']['Source']}.git"],
        [*name, "commit", "--quiet", "--allow-empty", "-m", "one"],
        ["tag", f"v{tiermem.__version__}"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "a.whl").write_bytes(b"wheel")
    passed(tmp_path)
    return tmp_path


def passed(place: Path, **changed: str) -> None:
    """Write what `make release` found."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=place / "repository", capture_output=True, text=True
    ).stdout.strip()
    files = {"a.whl": hashlib.sha256(b"wheel").hexdigest()}
    found = {"version": tiermem.__version__, "commit": head, "files": files, **changed}
    (place / "found.json").write_text(json.dumps(found))


def reasons(place: Path) -> list[str]:
    return list(PUBLISH.in_the_way(place / "repository", place / "found.json", place / "dist"))


def git(place: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=place / "repository", check=True, capture_output=True)


def test_nothing_is_in_the_way_of_a_release(repository: Path) -> None:
    assert reasons(repository) == []
    ssh = PROJECT["urls"]["Source"].replace("https://github.com/", "git@github.com:")
    git(repository, "remote", "set-url", "origin", ssh)
    assert reasons(repository) == []


def test_another_repository_is_not_published(repository: Path) -> None:
    git(repository, "remote", "set-url", "origin", "https://github.com/somebody/tiermem")
    (reason,) = reasons(repository)
    assert "not the repository that the package names" in reason


def test_a_change_or_a_missing_tag_is_not_published(repository: Path) -> None:
    (repository / "repository" / "new").write_text("x")
    git(repository, "tag", "--delete", f"v{tiermem.__version__}")
    assert [reason[:9] for reason in reasons(repository)] == ["there are", "the last "]


def test_what_make_release_did_not_build_is_not_published(repository: Path) -> None:
    passed(repository, commit="0" * 40)
    assert "passed for" in reasons(repository)[0]
    passed(repository)
    (repository / "dist" / "a.whl").write_bytes(b"another")
    assert "is not what make release built" in reasons(repository)[0]
    (repository / "found.json").unlink()
    assert "did not pass here" in reasons(repository)[0]
