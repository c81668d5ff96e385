"""Environments of other projects, their own tests in these, and a line about the outcome."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
_NEWER = ("3.12", "3.13", "3.14")


def newer_python() -> str:
    """A Python of 3.12 or later: this one, or one that PATH or pyenv has."""
    if sys.version_info >= (3, 12):
        return sys.executable
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    for version in _NEWER:
        pyenv = [path for root in roots for path in Path(root).glob(f"versions/{version}*/bin")]
        for folder in (None, *map(str, pyenv)):
            found = shutil.which(f"python{version}", path=folder)
            if found and _works(found):
                return found
    raise SystemExit("no Python 3.12 or later was found: put python3.12 on the PATH")


def _works(python: str) -> bool:
    """Whether it is a Python; a shim of pyenv may not be."""
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


def environment(
    work: Path, extra: str, packages: Iterable[str], *, constrained: bool = True
) -> Path:
    """The Python of an environment with TierMem, one of its extras, and other packages.

    ``constrained`` installs the versions of constraints.txt, where the framework allows them.
    """
    own, wanted = work / "venv", json.dumps([extra, *packages])
    python, stamp = own / "bin" / "python", own / "packages.json"
    if not stamp.exists() or stamp.read_text() != wanted:
        run(newer_python(), "-m", "venv", "--clear", own)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
        uv = (own / "bin" / "uv", "pip", "install", "--quiet", "--python", python)
        options = ["--index-strategy", "unsafe-best-match"]
        options += ["-c", str(ROOT / "constraints.txt")] if constrained else []
        run(*uv, *options, "-e", f"{ROOT}[{extra}]", *packages, "pytest", "hypothesis")
        stamp.write_text(wanted)
    return python


def source(work: Path, python: Path, package: str, installed: str) -> Path:
    """The folder of a source distribution, without the folder of the package, which is installed.

    ``package`` is a name with a version, such as ``mesa==3.5.1``.
    """
    folder = work / package.replace("-", "_").replace("==", "-")
    if not folder.exists():
        options = ("--quiet", "--no-deps", "--no-binary", ":all:", "-d", work)
        run(python, "-m", "pip", "download", *options, package)
        with tarfile.open(work / f"{folder.name}.tar.gz") as archive:
            archive.extractall(work, filter="data")
        shutil.rmtree(folder / installed)
    return folder


def run(*command: str | Path) -> None:
    """Run a command that has to succeed."""
    subprocess.run(list(map(str, command)), check=True)


def tried(
    python: Path, folder: Path, tests: Iterable[str | Path], *options: str, path: str = ""
) -> dict[str, str]:
    """What became of each test, by its name."""
    command = [python, "-m", "pytest", "-rA", "-q", "--tb=no", "-p", "no:cacheprovider"]
    told = subprocess.run(
        [*map(str, command), *options, *map(str, tests)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "plugins"), path])},
        capture_output=True,
        text=True,
    )
    outcome = r"^(PASSED|FAILED|ERROR|SKIPPED) (?:\[\d+\] )?(\S+)"
    lines = re.findall(outcome, told.stdout, re.MULTILINE)
    if not lines:
        raise SystemExit(f"{told.stdout}{told.stderr}no test ran; exit code {told.returncode}")
    return {name: outcome for outcome, name in lines}


def line(
    name: str, results: dict[str, str], expected: int | None, failing: Iterable[str] = ()
) -> bool:
    """Say what became of a suite; whether it is what was expected.

    ``expected`` is how many tests pass. None stands for our own tests: all but ``failing`` do.
    """
    failed = {test for test, outcome in results.items() if outcome != "PASSED"}
    passed = len(results) - len(failed)
    names = ", ".join(sorted(failed)) or "none"
    wanted = "" if expected is None else f", {expected} expected"
    print(f"{name}: {passed} passed{wanted}; failed or skipped: {names}", flush=True)
    return failed == set(failing) and expected in (None, passed)
