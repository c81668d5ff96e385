"""What ``tiermem --help`` says, and that it needs little for it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.interfaces.cli.app import _REPLACED, COMMANDS, _command

Command = Callable[..., Any]

NAMES = [name for entries in COMMANDS.values() for name, _, _ in entries]
GROUPS = sorted({name.split()[0] for name in NAMES if " " in name})
TIERMEM = str(Path(sys.executable).with_name("tiermem"))


def shown(**environment: str) -> str:
    done = subprocess.run(
        [TIERMEM, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80", **environment},
    )
    return done.stdout


def test_every_command_and_every_group_has_a_line_in_a_panel() -> None:
    lines = shown().splitlines()
    for panel, entries in COMMANDS.items():
        if entries:
            start = next(i for i, line in enumerate(lines) if line.startswith(f"╭─ {panel} ─"))
            end = next(i for i, line in enumerate(lines) if i > start and line.startswith("╰─"))
            rows = [line[2:].split()[0] for line in lines[start + 1 : end] if line[2] != " "]
            assert rows == list(dict.fromkeys(name.split()[0] for name, _, _ in entries))


def test_it_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, shown().splitlines())) <= 80


def test_it_says_how_to_begin_and_what_exit_codes_mean() -> None:
    text = shown()
    assert "tiermem init crew" in text
    assert "0 done, 1 it could not be done, 2 wrong use or wrong settings, 3 a run is" in text


def test_it_has_no_colours_off_a_terminal() -> None:
    assert "\x1b" not in shown()


def test_it_imports_nothing_heavy() -> None:
    code = """
import sys
sys.argv = ["tiermem", "--help"]
from agents.interfaces.cli.app import main
try:
    main()
finally:
    heavy = {"numpy", "mem0", "chromadb", "yaml", "pyarrow", "sqlite3", "jsonschema", "mcp",
             "starlette", "uvicorn", "markdown_it"}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(tiermem: Command, name: str) -> None:
    done = tiermem(*name.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert re.search(rf"Usage: tiermem {name}\b", done.out)


@pytest.mark.parametrize("name", ["", *NAMES, *GROUPS])
def test_the_help_of_a_command_names_values_and_fits_80_columns(
    tiermem: Command, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = tiermem(*name.split(), "--help").out
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"<\w+|\bINTEGER\b|\bTEXT\b \[|list\[|x[<>]=|[{]\w+[}]", shown)
    assert "`" not in shown


@pytest.mark.parametrize("name", NAMES)
def test_every_argument_and_option_is_explained_in_a_sentence(name: str) -> None:
    below = [_command(name.split()[0])]
    for command in below:
        below += getattr(command, "commands", {}).values()
        assert command.help.split("\n\n")[0].endswith((".", "?"))
        for parameter in command.params:
            assert parameter.help.endswith("."), parameter.name


def test_the_help_shows_defaults_and_what_is_required(tiermem: Command) -> None:
    lines = tiermem("add", "--help").out.splitlines()
    (agent,) = (line for line in lines if "--agent" in line)
    assert re.search(r"--agent, -a +AGENT .*\(required\)", agent)
    (tier,) = (line for line in lines if "--tier" in line)
    assert re.search(r"--tier +TIER +pinned, critical", tier)
    assert "(default: normal)" in " ".join(tiermem("unpin", "--help").out.splitlines())


def test_the_help_of_no_command_imports_the_engine() -> None:
    code = """
import sys
from agents.interfaces.cli.app import COMMANDS, main
for name in [each[0] for entries in COMMANDS.values() for each in entries]:
    sys.argv = ["tiermem", *name.split(), "--help"]
    try:
        main()
    except SystemExit:
        pass
heavy = {"numpy", "mem0", "chromadb", "pyarrow", "mcp", "uvicorn", "rich.markdown"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_a_typing_error_gets_a_suggestion(tiermem: Command) -> None:
    done = tiermem("serach")
    assert done.code == 2
    assert "Did you mean 'search'" in done.err


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_its_commands(tiermem: Command, name: str) -> None:
    below = [each.split()[1] for each in NAMES if each.startswith(f"{name} ")]
    for done in (tiermem(name), tiermem(name, "--help")):
        assert f"Usage: tiermem {name} " in done.out
        assert [each for each in below if f"│ {each} " not in done.out] == []


@pytest.mark.parametrize("word", sorted(_REPLACED))
def test_a_word_that_is_gone_says_what_does_it_now(tiermem: Command, word: str) -> None:
    done = tiermem(word, "crew")
    assert done.is_one_error(2, f"tiermem has no command {word}; use {_REPLACED[word]}")
    named = _REPLACED[word].removeprefix("tiermem ")
    assert word == "bench" or any(f"{named} ".startswith(f"{name} ") for name in NAMES)


def test_analyze_is_spelled_in_both_ways(tiermem: Command) -> None:
    assert tiermem("analyze", "--help").out == tiermem("analyse", "--help").out


def test_no_command_at_all_shows_the_help(tiermem: Command) -> None:
    done = tiermem()
    assert done.code == 2
    assert "tiermem init crew" in done.out


@pytest.mark.parametrize(
    ("typed", "offered"), [("se", "search"), ("sto", "store"), ("store imp", "import")]
)
def test_a_shell_completes_commands(typed: str, offered: str) -> None:
    done = subprocess.run(
        [TIERMEM],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_TIERMEM_COMPLETE": "complete_bash",
            "COMP_WORDS": f"tiermem {typed}",
            "COMP_CWORD": str(len(typed.split())),
        },
    )
    assert offered in done.stdout.split()


def test_a_shell_completes_options() -> None:
    done = subprocess.run(
        [TIERMEM],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_TIERMEM_COMPLETE": "complete_bash",
            "COMP_WORDS": "tiermem search --incl",
            "COMP_CWORD": "2",
        },
    )
    assert done.stdout.split() == ["--include-cold"]
