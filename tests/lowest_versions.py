"""Prints the lowest versions that ``pyproject.toml`` allows, as constraints for pip."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

EXTRAS = ("telemetry", "notes", "mcp", "http")
_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(requirement: str) -> str:
    """``numpy==2.0`` for ``numpy>=2.0``."""
    parsed = Requirement(requirement)
    (version,) = (each.version for each in parsed.specifier if each.operator in (">=", "=="))
    return f"{parsed.name}=={version}"


def constraints() -> list[str]:
    """The lowest version of each dependency that a user may install."""
    project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
    extras = [each for name in EXTRAS for each in project["optional-dependencies"][name]]
    return [lowest(each) for each in (*project["dependencies"], *extras)]


if __name__ == "__main__":
    print("\n".join(constraints()))
