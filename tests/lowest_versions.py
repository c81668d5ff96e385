"""Checks that the lowest versions that ``pyproject.toml`` allows are installed: ``make lowest``.

A bound below the version that pip can install with all the other ones would be a promise that
nobody can try.
"""

import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

EXTRAS = ("simulation", "telemetry", "notes", "mcp", "http", "testing", "langgraph", "mesa")
_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest() -> dict[str, str]:
    """The lowest version of each dependency that a user may install."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    extras = [each for name in EXTRAS for each in project["optional-dependencies"][name]]
    bounds = {}
    for requirement in map(Requirement, (*project["dependencies"], *extras)):
        if requirement.name == project["name"]:  # an extra that brings another extra
            continue
        (bound,) = (each for each in requirement.specifier if each.operator in (">=", "=="))
        bounds[requirement.name] = bound.version
    return bounds


def main() -> None:
    wrong = [
        f"{name}: the lowest version is {bound}, and {version(name)} is installed"
        for name, bound in lowest().items()
        if Version(version(name)) != Version(bound)
    ]
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
