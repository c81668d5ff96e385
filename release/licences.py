"""Writes the tables of docs/licences.md: the packages that TierMem needs, and their licences.

The packages are those that are installed here for ``pip install tiermem``, and what the extra
``simulation`` adds. Their own metadata say the licence; nothing is guessed.
"""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

PAGE = Path(__file__).parents[1] / "docs" / "licences.md"

# What metadata say in other words than SPDX does.
_SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "The MIT License (MIT)": "MIT",
}

_TABLES = "## Packages of a plain install"
"""Where the part of the page begins that is written here."""


def spdx(package: metadata.Distribution) -> str:
    """The licence of a package by its metadata, in SPDX's words where they are known."""
    told: Any = package.metadata  # a message, which has get
    if expression := told.get("License-Expression"):
        return str(expression)
    line = str(told.get("License") or "").strip().split("\n")[0].strip()
    if line and len(line) <= 40:
        return _SPDX.get(line, line)
    classifiers = [
        each.split(" :: ")[-1]
        for each in told.get_all("Classifier") or ()
        if each.startswith("License :: OSI Approved ::")
    ]
    return ", ".join(_SPDX.get(each, each) for each in classifiers) or "not said"


def needed(extra: str = "") -> dict[str, metadata.Distribution]:
    """The packages that TierMem needs with an extra, directly or not, by name."""
    found: dict[tuple[str, str], metadata.Distribution] = {}
    own = metadata.requires("tiermem") or []
    wanted = [*_asked(own, ""), *(_asked(own, extra) if extra else ())]
    while wanted:
        one = wanted.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        for each in ("", *one.extras):
            if (name, each) not in found:
                found[name, each] = metadata.distribution(name)
                wanted += _asked(found[name, each].requires or [], each)
    return {name: package for (name, _), package in sorted(found.items()) if name != "tiermem"}


def _asked(requirements: list[str], extra: str) -> Iterator[Requirement]:
    for each in map(Requirement, requirements):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            yield each


def page() -> str:
    """The whole page: its text as it is, and the tables anew."""
    core = needed()
    more = {name: each for name, each in needed("simulation").items() if name not in core}
    text, found, _ = PAGE.read_text(encoding="utf-8").partition(_TABLES)
    if not found:
        sys.exit(f"{PAGE} has no heading that begins with {_TABLES}")
    lines = [text.rstrip("\n") + "\n"]
    for head, packages in (
        (f"{_TABLES[3:]}: {len(core)}", core),
        (f"What the extra `simulation` adds: {len(more)}", more),
    ):
        lines += [f"## {head}\n", "| package | version | licence |", "|---|---|---|"]
        lines += [f"| {name} | {each.version} | {spdx(each)} |" for name, each in packages.items()]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    if not sys.platform.startswith("linux"):
        sys.exit("docs/licences.md has the packages that are installed on Linux: run this there")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
