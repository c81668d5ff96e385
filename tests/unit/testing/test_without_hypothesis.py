"""Without Hypothesis and pytest, worlds can be checked, and the rest says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = "import sys\nsys.modules['hypothesis'] = sys.modules['pytest'] = None\n"


def without_hypothesis(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", BEGIN + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_needs_hypothesis_says_how_to_install_it() -> None:
    said = without_hypothesis(
        "from tiermem.testing import PolicyLaws, SmallEmbedder, WorldLaws\n"
        "import tiermem.testing\n"
        "for name in ('EmbedderLaws', 'StoreLaws', 'AgentMemoryLaws', 'strategies'):\n"
        "    try:\n"
        "        getattr(tiermem.testing, name)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    lines = said.splitlines()
    assert len(lines) == 4
    assert all(line.endswith("pip install 'tiermem[testing]'") for line in lines)


@pytest.mark.slow
def test_check_world_needs_neither(tmp_path: Path) -> None:
    said = without_hypothesis(
        "from tiermem.config.load import load_settings\n"
        "from tiermem.testing import scenario_laws, world_laws\n"
        "from tiermem.interfaces.cli.commands import runs\n"
        "settings = load_settings({'simulation': {'world': 'household', 'agents': 2}})\n"
        "laws = scenario_laws.ScenarioLaws(settings.to_dict(), sys.argv[1])\n"
        "laws.ticks = 2\n"
        "print(laws.story() == laws.story())\n",
        str(tmp_path),
    )
    assert said == "True\n"
