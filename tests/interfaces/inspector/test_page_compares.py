"""The view Compare: all metrics, names that are told apart, and the same in an exported file."""

from pathlib import Path

import pytest
from browsers import Browser, served
from inspected_sites import ask, looked_at, make_run

from agents.errors import RunError
from agents.interfaces.inspector.export import write_export
from agents.interfaces.inspector.parameters import NotThere
from waiting import until

pytestmark = pytest.mark.slow

AGENT = "agent_01"
NAME = "scenario_max-pinned-3_seed-5"
_CLIPPED = """
return [...document.querySelectorAll(arguments[0])].filter((one) => {
  const own = one.querySelector(".tail").getBoundingClientRect();
  const room = one.getBoundingClientRect();
  return own.right > room.right + 0.5 || own.left < room.left - 0.5;
}).length
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and another one whose names begin alike."""
    place = tmp_path_factory.mktemp("compares")
    one = make_run(place / NAME, "market", 9, world_options={"scammers": 2})
    other = make_run(place / f"{NAME}-branch-5", "market", 9, world_options={"scammers": 1})
    return one, other


def test_all_metrics_of_two_runs_are_shown_on_demand(
    browser: Browser, runs: tuple[Path, Path]
) -> None:
    with looked_at(*runs) as site:
        names = set(ask(site, "series", run=0)["metrics"])
    assert len(names) > 3
    strips = "return [...document.querySelectorAll('.strip')].map((one) => one.dataset.strip)"
    with served(*runs) as address:
        browser.open(address, f"#/compare/{AGENT}?t=8")
        browser.shows(".strip .num")
        assert len(browser.run(strips)) == 3
        browser.click("main .more-curves")
        until("all are shown", lambda: set(browser.run(strips)) == names)
        browser.click("main .more-curves")
        until("three are shown", lambda: len(browser.run(strips)) == 3)


def test_one_run_lists_the_runs_beside_it_and_opens_them(
    browser: Browser, runs: tuple[Path, Path], rumor: Path
) -> None:
    one, other = runs
    (one.parent / "notes").mkdir(exist_ok=True)
    with looked_at(one) as site:
        found = ask(site, "beside")
        assert found == {
            "total": 1,
            "runs": [{"name": other.name, "command": f"tiermem inspect {one} {other}"}],
        }
        for name in ("notes", "", "..", one.name, "nothing"):
            with pytest.raises(NotThere, match="there is no run"):
                ask(site, "with", name=name)
    with served(one) as address:
        browser.open(address, f"#/compare/{AGENT}?t=8")
        browser.shows("#beside", other.name)
        browser.click(f"#beside [data-run='{other.name}']")
        browser.shows("#parted")
        browser.shows("[data-side='1'] h2", other.name)
        browser.shows("#other option", other.name)
        assert browser.hash.startswith(f"#/compare/{AGENT}")
    with served(rumor) as address:
        browser.open(address, "#/compare?t=8")
        browser.shows(".hint")
        assert browser.all("#beside") == []
        assert browser.complaints() == []


def test_a_run_that_can_not_be_opened_leaves_the_comparison_as_it_was(tmp_path: Path) -> None:
    one, other = (make_run(tmp_path / name, "market", 3) for name in ("one", "other"))
    (tmp_path / "broken" / "bank").mkdir(parents=True)
    (tmp_path / "broken" / "run.json").write_text("{}")
    with looked_at(one, other) as site:
        assert [each["name"] for each in ask(site, "beside")["runs"]] == ["broken", "other"]
        before = ask(site, "compare", agent=AGENT, tick=3)
        with pytest.raises(RunError):
            ask(site, "with", name="broken")
        assert ask(site, "compare", agent=AGENT, tick=3) == before


def test_names_that_begin_alike_are_cut_in_the_middle(
    browser: Browser, runs: tuple[Path, Path]
) -> None:
    with served(*runs) as address:
        browser.open(address, f"#/compare/{AGENT}?t=8")
        for place in (".strip:first-of-type .curve", ".runs button"):
            browser.shows(f"{place} .tail")
            assert browser.all(place) == [NAME, f"{NAME}-branch-5"]
            assert browser.all(f"{place} .tail") == [NAME[-9:], "-branch-5"]
            assert browser.run(_CLIPPED, place) == 0


def test_an_exported_file_compares_as_the_server_does(
    browser: Browser, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    with looked_at(*runs) as site:
        found = ask(site, "compare", agent=AGENT, tick=8)
        write_export(site, tmp_path / "two.html")
    browser.open((tmp_path / "two.html").as_uri(), f"#/compare/{AGENT}?t=8")
    browser.shows("#parted")
    assert browser.attribute("#parted", "data-tick") == str(found["first_difference"]["tick"])
    for side, name in enumerate(("left", "right")):
        browser.shows(f"[data-side='{side}'] .decision[data-tick='8']")
        given = browser.all(f"[data-side='{side}'] [data-part=given] .memory")
        assert given == [each["text"] for each in found[name]["given"]]
        only = browser.all(f"[data-side='{side}'] .only .memory")
        assert only == [row["text"] for row in found[f"only_{name}"]][:100]
    assert browser.complaints() == []
