"""What commands on runs refuse: one error each; and the run is as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_command, write_scenario

CHECKPOINT = "run/checkpoints/tick-000012.tmck"
CHOICE = "--tier, --text and --last choose"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a finished run of 12 ticks, in which all commands here are run."""
    place = tmp_path_factory.mktemp("refused")
    done = run_command("run", write_scenario(place / "mine"), "--out", place / "run", "-q")
    assert done.code == 0
    (place / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        yield place


def stamps(place: Path) -> dict[Path, int]:
    """All files but the locks, which who looks at a bank may leave behind."""
    files = (path for path in place.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        ("show nowhere", 1, ["there is no run nowhere"]),
        ("show run -a zed", 1, ["no agent 'zed'"]),
        ("show run -t 13", 1, ["12 ticks", "no tick 13"]),
        (f"show {CHECKPOINT} --agent alice", 2, ["--agent", "checkpoint"]),
        (f"show {CHECKPOINT} --tier low", 2, ["--agent", "checkpoint"]),
        (f"show {CHECKPOINT} --text x", 2, ["--agent", "checkpoint"]),
        (f"show {CHECKPOINT} --last 1", 2, ["--agent", "checkpoint"]),
        ("show run --limit 3", 2, ["--limit belongs to --query", "--query TEXT"]),
        ("show run -a bob --limit 3", 2, ["--limit belongs to --query", "--query TEXT"]),
        ("show run --all", 2, ["--all belongs to --query", "--query TEXT"]),
        ("show run -a bob --all", 2, ["--all belongs to --query", "--query TEXT"]),
        ("show run --tier low", 2, [CHOICE, "--agent NAME"]),
        ("show run -a bob --text x --query x", 2, ["leave out --query"]),
        ("show run -a bob --tier shiny", 2, ["'shiny' is not a tier"]),
        ("show run -a bob --last 0", 2, ["--last"]),
        ("branch run --at 13 --out b", 1, ["0 to 12", "13"]),
        ("paper nowhere", 1, ["there is no run nowhere"]),
        ("paper empty", 1, ["not a run"]),
        ("paper run --out run", 1, ["is not a paper", "--out"]),
        ("diff run nowhere", 1, ["there is no run nowhere"]),
        ("diff nowhere run", 1, ["there is no run nowhere"]),
        ("diff run run --plot mine.png", 2, ["a plot is SVG, and mine.png", "--plot mine.svg"]),
        ("diff run run --plot nowhere/x.svg", 1, ["nowhere/x.svg can't be written"]),
        ("replay nowhere", 1, ["there is no run nowhere"]),
        ("replay run --from-tick 13", 1, ["no tick 13"]),
        ("resume nowhere", 1, ["there is no run nowhere"]),
        ("resume empty", 1, ["empty is not a run"]),
        ("resume run --from-tick 13", 1, ["12 ticks", "tick 13"]),
        ("run absent.yaml", 2, ["absent.yaml", "no such file"]),
        (f"run absent.yaml --seed {2**63}", 2, ["--seed", str(2**63 - 1)]),
    ],
)
def test_it_is_one_error_and_the_run_is_as_it_was(
    place: Path, arguments: str, code: int, parts: list[str]
) -> None:
    before = stamps(place)
    done = run_command(*arguments.split())
    assert done.is_one_error(code, *parts)
    assert ".tmp" not in done.err
    assert stamps(place) == before
