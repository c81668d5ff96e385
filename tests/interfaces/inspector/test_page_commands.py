"""The command that branches a run, in an export: as the server gives it."""

import re
import shutil
from pathlib import Path

import pytest
from browsers import Browser, served
from commands import Command
from inspected_sites import ask, looked_at

from agents.interfaces.inspector.export import write_export
from waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.long_after(1)
@pytest.mark.parametrize(
    ("where", "typed", "paths"),
    [
        (".", "runs/rumor", "runs/rumor --at 6 --out runs/rumor-branch-6"),
        ("runs", "./rumor/", "rumor --at 6 --out rumor-branch-6"),
        ("runs/rumor", ".", ". --at 6 --out ../rumor-branch-6"),
        ("runs/rumor/bank", "..", ".. --at 6 --out ../../rumor-branch-6"),
    ],
)
def test_an_export_names_the_run_as_it_was_typed(
    browser: Browser,
    rumor: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    typed: str,
    paths: str,
) -> None:
    shutil.copytree(rumor, tmp_path / "runs" / "rumor")
    monkeypatch.chdir(tmp_path / where)
    with looked_at(Path(typed)) as site:
        expected = ask(site, "branch", tick=6)["command"]
        write_export(site, tmp_path / "run.html")
    assert expected == f"tiermem branch {paths}"
    browser.open((tmp_path / "run.html").as_uri(), "#/branch/agent_01?t=6")
    browser.shows("#command", expected)
    browser.shows("#command-note", "in the folder in which the file was made")
    data = browser.run(
        "const text = document.getElementById('inspector-data').textContent;"
        "const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));"
        "const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));"
        "return new Response(plain).text()"
    )
    assert str(tmp_path) not in data
    assert browser.complaints() == []


def test_a_whole_path_that_was_typed_is_kept(browser: Browser, rumor: Path, tmp_path: Path) -> None:
    with looked_at(rumor) as site:
        expected = ask(site, "branch", tick=6)["command"]
        write_export(site, tmp_path / "run.html")
    browser.open((tmp_path / "run.html").as_uri(), "#/branch/agent_01?t=6")
    browser.shows("#command", expected)
    assert browser.all("#command-note") == ["The paths are those of tiermem inspect --export."]
    browser.write("#new-memory", "I trust nobody")
    browser.click("#add-memory")
    browser.shows("#command", "--edit rumor-branch-6-edits.yaml")


OF_THE_TERMINAL = {"at", "edit", "force", "quiet", "json", "help"}
"""The page gives the tick and the file of edits itself; the others are about files and output."""


def test_the_page_offers_every_option_of_the_command(
    browser: Browser, rumor: Path, command: Command
) -> None:
    told = re.findall(r"^│ --([a-z-]+)", command("branch", "--help").out, re.M)
    assert {"set", "never-heard", "make-only", *OF_THE_TERMINAL} <= {*told}
    with served(rumor) as address:
        browser.open(address, "#/branch/agent_01?t=6")
        browser.shows("#option option")
        assert {*browser.all("#option option")} == {
            f"--{name}" for name in told if name not in OF_THE_TERMINAL
        }


def test_options_of_a_branch_are_chosen_refused_and_taken_back(
    browser: Browser, rumor: Path, tmp_path: Path
) -> None:
    with looked_at(rumor) as site:
        write_export(site, tmp_path / "run.html")
    commands = []
    with served(rumor) as address:
        for place in (address, (tmp_path / "run.html").as_uri()):
            browser.open(place, "#/branch/agent_01?t=6")
            for name, value in (
                ("set", "memory.max_pinned=3"),
                ("block", "agent_00→agent_01"),
                ("out", "my branch"),
                ("make-only", ""),
            ):
                browser.choose("#option", name)
                if value:
                    browser.write("#option-value", value)
                browser.click("#add-option")
            browser.shows("#command", "--make-only")
            commands.append(browser.all("#command")[0])
            browser.click("#options li:first-child button")
            until("it is taken back", lambda: "max_pinned" not in browser.all("#command")[0])
        browser.open(address, "#/branch/agent_01?t=6")
        browser.choose("#option", "set")
        browser.write("#option-value", "memory.max_pins=3\n")
        browser.shows(".branch .failed", "max_pins")
        browser.click("#options li button")
        browser.shows("#command", "--at 6")
    assert (
        commands
        == [
            f"tiermem branch {rumor} --at 6 --out '{rumor.with_name('my branch')}' "
            "--set memory.max_pinned=3 --block 'agent_00→agent_01' --make-only"
        ]
        * 2
    )


@pytest.mark.parametrize("view", ["agent", "branch"])
def test_an_address_with_a_wrong_agent_says_so_once(
    browser: Browser, market: Path, view: str
) -> None:
    with served(market) as address:
        browser.open(address, f"#/{view}/nobody?t=3")
        browser.shows(".failed", "market has no agent nobody")
        assert len(browser.all(".failed")) == 1
        assert "api/" not in browser.all(".failed")[0]
        browser.choose("#agent", "agent_02")
        browser.shows(f".frame[data-view={view}] main .columns")
        assert browser.all(".failed") == []


def test_an_address_with_a_wrong_token_is_answered_in_words(browser: Browser, rumor: Path) -> None:
    with served(rumor) as address:
        browser.driver.get(address.rstrip("/") + "x/")
        browser.shows("h1", "The inspector can't show this")
        browser.shows("p", "the address needs the token that tiermem inspect printed")
