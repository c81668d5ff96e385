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
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
_NEWER = ("3.12", "3.13", "3.14")
NEWEST = bool(os.environ.get("TIERMEM_NEWEST"))
"""Whether the newest versions are tried that pyproject.toml allows. What is expected of a suite was
counted with the versions that are named in its script: here, no test may fail that passed then."""


class Results(NamedTuple):
    """What became of tests."""

    outcomes: dict[str, str]
    """The outcome of each test, by its name."""
    reached: frozenset[str] = frozenset()
    """The tests in which code of ours ran, if that was asked for."""


def newer_python() -> str:
    """A Python of 3.12 or later: this one, or one that PATH or pyenv has."""
    return sys.executable if sys.version_info >= (3, 12) else python_of(*_NEWER)


def python_of(*versions: str) -> str:
    """A Python of one of these versions, such as 3.12, that PATH or pyenv has."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    for version in versions:
        pyenv = [path for root in roots for path in Path(root).glob(f"versions/{version}*/bin")]
        for folder in (None, *map(str, pyenv)):
            found = shutil.which(f"python{version}", path=folder)
            if found and _works(found):
                return found
    raise SystemExit(f"no Python {' or '.join(versions)} was found: put it on the PATH")


def _works(python: str) -> bool:
    """Whether it is a Python; a shim of pyenv may not be."""
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


def environment(
    work: Path,
    extra: str,
    packages: Iterable[str],
    *,
    constrained: bool = True,
    python: str | None = None,
) -> Path:
    """The Python of an environment with TierMem, one of its extras, and other packages.

    It is made with ``python``, or with one of 3.12 or later. ``constrained`` installs the versions
    of constraints.txt, where the framework allows them.
    """
    packages = list(packages)
    named = [each.partition("==")[0].partition("[")[0] for each in packages if "==" in each]
    packages, constrained = list(map(unpinned, packages)), constrained and not NEWEST
    own, wanted = work / ("venv-newest" if NEWEST else "venv"), json.dumps([extra, *packages])
    made, stamp = own / "bin" / "python", own / "packages.json"
    if NEWEST or not stamp.exists() or stamp.read_text() != wanted:
        run(python or newer_python(), "-m", "venv", "--clear", own)
        run(made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
        uv = (own / "bin" / "uv", "pip", "install", "--quiet", "--python", made)
        options = ["--index-strategy", "unsafe-best-match"]
        options += ["-c", str(ROOT / "constraints.txt")] if constrained else []
        run(*uv, *options, "-e", f"{ROOT}[{extra}]", *packages, "pytest", "hypothesis")
        stamp.write_text(wanted)
    if NEWEST and named:
        print("newest:", ", ".join(f"{each} {version(made, each)}" for each in named), flush=True)
    return made


def unpinned(package: str) -> str:
    """A requirement as a script has it; without its version where the newest is tried."""
    return package.partition("==")[0] if NEWEST else package


def version(python: Path, package: str) -> str:
    """The version of a package that an environment has."""
    code = f"from importlib import metadata; print(metadata.version({package!r}))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def source(work: Path, python: Path, package: str, installed: str) -> Path:
    """The folder of a source distribution, without the folder of the package, which is installed.

    ``package`` is a name with a version, such as ``mesa==3.5.1``. Where the newest is tried, the
    source is that of the installed version.
    """
    if NEWEST:
        name = package.partition("==")[0]
        package = f"{name}=={version(python, name)}"
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
    python: Path,
    folder: Path,
    tests: Iterable[str | Path],
    *options: str,
    path: str = "",
    reaches: str = "",
) -> Results:
    """What became of the tests, and which of them ran code of the module ``reaches``."""
    command = [python, "-m", "pytest", "-rA", "-q", "--tb=no", "-p", "no:cacheprovider"]
    variables = {"PYTHONPATH": os.pathsep.join([str(HERE / "plugins"), path])}
    if reaches:
        command += ["-p", "reaches"]
        variables["TIERMEM_REACHES"] = reaches
    told = subprocess.run(
        [*map(str, command), *options, *map(str, tests)],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    outcome = r"^(PASSED|FAILED|ERROR|SKIPPED) (?:\[\d+\] )?(\S+)"
    lines = re.findall(outcome, told.stdout, re.MULTILINE)
    if not lines:
        raise SystemExit(f"{told.stdout}{told.stderr}no test ran; exit code {told.returncode}")
    reached = re.findall(r"^REACHED (\S+)", told.stdout, re.MULTILINE)
    return Results({name: outcome for outcome, name in lines}, frozenset(reached))


def line(
    name: str,
    results: Results,
    expected: int | None,
    failing: Iterable[str] = (),
    *,
    reaching: int | None = None,
) -> bool:
    """Say what became of a suite; whether it is what was expected.

    ``expected`` is how many tests pass. None stands for our own tests: all but ``failing`` do.
    ``reaching`` is how many of those that pass run our code: the rest proves nothing of it. Newer
    versions may have more tests and fewer: of them none may fail, and one has to reach our code.
    """
    failed = {test for test, outcome in results.outcomes.items() if outcome != "PASSED"}
    passed = len(results.outcomes) - len(failed)
    names = ", ".join(sorted(failed)) or "none"
    wanted = "" if expected is None else f", {expected} expected"
    told, is_good, reach = "", failed == set(failing) and expected in (None, passed), 0
    if reaching is not None:
        reach = len(results.reached & (results.outcomes.keys() - failed))
        told, is_good = (
            f"; {reach} reach our code, {reaching} expected",
            is_good and reach == reaching,
        )
    if NEWEST:
        broken = {test for test in failed if results.outcomes[test] in ("FAILED", "ERROR")}
        is_good = broken <= set(failing) and passed > 0 and (reaching is None or reach > 0)
    print(f"{name}: {passed} passed{wanted}{told}; failed or skipped: {names}", flush=True)
    return is_good
