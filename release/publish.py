"""Uploads what `make release` built, if it is the release that everybody can check.

With ``--check`` nothing is uploaded: the program only says what is in the way.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from checks import DIST, FOUND, ROOT, own_version, tool


def in_the_way(root: Path = ROOT, found: Path = FOUND, dist: Path = DIST) -> Iterator[str]:
    """Why this is not to be published: each reason with what to do about it."""
    version = own_version()
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    remotes = {_address(each) for each in _git(root, "remote", "-v").split() if "/" in each}
    if _address(source) not in remotes:
        yield f"no remote is {source}: this is not the repository that the package names"
    if _git(root, "status", "--porcelain"):
        yield "there are changes that are not committed: commit them, or undo them"
    head = _git(root, "rev-parse", "HEAD")
    tag = f"v{version}"
    if tag not in _git(root, "tag", "--points-at", "HEAD").split():
        yield f"the last commit has no tag {tag}: git tag -s {tag}"
    if not found.exists():
        yield "make release did not pass here: run it"
        return
    passed = json.loads(found.read_text())
    if (passed["version"], passed["commit"]) != (version, head):
        where = f"{passed['version']} at {passed['commit'][:12]}"
        yield f"make release passed for {where}, and not for this commit: run it again"
    for name, expected in passed["files"].items():
        path = dist / name
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            yield f"dist/{name} is not what make release built: run it again"


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _address(url: str) -> str:
    """An address in one form, whether git speaks HTTPS or SSH there."""
    for start in ("https://", "ssh://", "git@"):
        url = url.removeprefix(start)
    return url.replace(":", "/").removesuffix(".git").rstrip("/").lower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="upload nothing")
    only_check = parser.parse_args().check
    if reasons := list(in_the_way()):
        sys.exit("this is not to be published:\n" + "\n".join(f"- {each}" for each in reasons))
    files = [DIST / name for name in json.loads(FOUND.read_text())["files"]]
    print("to be published:", ", ".join(path.name for path in files), flush=True)
    if not only_check:
        sys.exit(subprocess.run([tool("twine"), "upload", *files]).returncode)


if __name__ == "__main__":
    main()
