"""What a release has to be, and what it is: built twice, installed bare, measured, listed.

`make release` runs this in an environment that has the tools of the group ``release``. The wheel
and the source distribution come into ``dist``; the list of materials, and what was found, into
``build/release``. A check that fails ends the program, and its exit code is 1.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST, OUT = ROOT / "dist", ROOT / "build" / "release"
FOUND = OUT / "found.json"

PYTHONS = ("3.11", "3.12", "3.13")
REPORTED = ("3.14",)
"""A Python of the first has to work; of the second it is said whether it does."""
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM": "aarch64-manylinux_2_28",
    "macOS ARM": "aarch64-apple-darwin",
}
"""By name, what uv calls them."""

MOST_INSTALLED = 450.0
MOST_OURS = 4.2
"""Megabytes of files, without what Python compiles of them. The goal of 2 MB for ours is missed:
docs/architecture/release.md says by what."""
MOST_SECONDS = 0.06
"""Of processor time, for `import tiermem`."""

PROGRAM = """
from tiermem import MemoryBank
with MemoryBank.open("bank") as bank:
    bank.agent("alice").add("NEVER transfer to agent_X (scammer)", tier="pinned")
    bank.agent("alice").add("Agent_Y mentioned they like trading", tier="low")
with MemoryBank.open("bank") as bank:
    print(bank.agent("alice").get_relevant_memories("who can I trade with?"))
"""
ANSWER = """- [pinned] NEVER transfer to agent_X (scammer)
- [low] Agent_Y mentioned they like trading
"""
SECONDS = """
import time
began = time.process_time()
import tiermem
print(time.process_time() - began)
"""


class Failed(Exception):
    """What is wrong with the release."""


def run(
    *command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    """What a command prints; :class:`Failed` if it does not succeed."""
    words = list(map(str, command))
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if done.returncode:
        raise Failed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(name: str, told: str) -> None:
    """One line of what was found."""
    print(f"{name:<24} {told}", flush=True)


def tool(name: str) -> Path:
    """A program of the environment in which this one runs."""
    return Path(sys.executable).with_name(name)


def own_version() -> str:
    """The version of the package, which stands in one place."""
    (version,) = re.findall(r'__version__ = "(.+)"', (ROOT / "src/agents/version.py").read_text())
    return str(version)


# What is built


def built(epoch: str) -> tuple[Path, Path]:
    """The wheel and the source distribution: the same bytes from here and from the last commit.

    The source distribution gives the same wheel, too.
    """
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        other = Path(temporary) / "elsewhere"
        other.mkdir()
        archive = Path(temporary) / "commit.tar"
        run("git", "archive", "--output", archive, "HEAD")
        with tarfile.open(archive) as packed:
            packed.extractall(other, filter="data")
        first = _build(ROOT, DIST, epoch, umask=0o022, zone="UTC")
        second = _build(other, Path(temporary) / "dist", epoch, umask=0o077, zone="Asia/Tokyo")
        for one, twin in zip(first, second, strict=True):
            if one.name != twin.name or one.read_bytes() != twin.read_bytes():
                raise Failed(
                    f"{one.name} differs from what the last commit gives: is all committed, and "
                    "does the build depend on the folder, its times or its modes?"
                )
        with tarfile.open(first[1]) as packed:
            packed.extractall(other, filter="data")
        (unpacked,) = other.glob("tiermem-*")
        again, _ = _build(unpacked, Path(temporary) / "again", epoch, umask=0o022, zone="UTC")
        if again.read_bytes() != first[0].read_bytes():
            raise Failed("the wheel that the source distribution gives is not the wheel")
    for each in first:
        say("built again, same bytes", f"{each.name}, {each.stat().st_size / 1e6:.2f} MB")
    return first


def _build(folder: Path, into: Path, epoch: str, umask: int, zone: str) -> tuple[Path, Path]:
    settings = {"SOURCE_DATE_EPOCH": epoch, "TZ": zone, "PYTHONHASHSEED": str(umask)}
    before = os.umask(umask)
    try:
        run(tool("hatchling"), "build", "-d", into, cwd=folder, environment=settings)
    finally:
        os.umask(before)
    (wheel,), (source,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, source


def check_files(wheel: Path, source: Path) -> None:
    """What two programs say that know what an index takes, and what a wheel should hold."""
    run(tool("check-wheel-contents"), "--toplevel", "tiermem", wheel)
    run(tool("twine"), "check", "--strict", wheel, source)
    say("contents and metadata", "check-wheel-contents and twine check --strict find nothing")


# Where it can be installed


def check_platforms(wheel: Path) -> None:
    """Whether each package that TierMem needs has a wheel, by platform and Python."""
    for extra in ("", "[simulation]"):
        for name, platform in PLATFORMS.items():
            fits = [version for version in PYTHONS if _resolves(wheel, extra, platform, version)]
            also = [version for version in REPORTED if _resolves(wheel, extra, platform, version)]
            lacking = set(PYTHONS) - set(fits)
            if lacking:
                why = _resolves(wheel, extra, platform, min(lacking), explain=True)
                raise Failed(f"tiermem{extra}, {name}, Python {min(lacking)}: {why}")
            told = ", ".join(fits) + (f"; also {', '.join(also)}" if also else "")
            say(f"wheels for {name}", f"tiermem{extra}: Python {told}")


def _resolves(
    wheel: Path, extra: str, platform: str, version: str, *, explain: bool = False
) -> str | bool:
    command = [tool("uv"), "pip", "compile", "--quiet", "--only-binary", ":all:"]
    command += ["--python-platform", platform, "--python-version", version, "-"]
    done = subprocess.run(
        list(map(str, command)),
        input=f"tiermem{extra} @ file://{wheel}\n",
        env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
        capture_output=True,
        text=True,
    )
    return " ".join(done.stderr.split()) if explain else done.returncode == 0


# Installed bare


def pythons(versions: tuple[str, ...]) -> Iterator[tuple[str, str | None]]:
    """Each version with its program, which PATH or pyenv has, or None."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    for version in versions:
        own = [path for root in roots for path in Path(root).glob(f"versions/{version}.*/bin")]
        places = (None, *map(str, own))
        found = (shutil.which(f"python{version}", path=place) for place in places)
        yield version, next(filter(_works, filter(None, found)), None)


def _works(python: str) -> bool:
    """Whether it is a Python; a shim of pyenv may not be."""
    return subprocess.run([python, "--version"], capture_output=True).returncode == 0


def installed(python: str, place: Path, wheel: Path, extra: str, *, tested: bool) -> Path:
    """The Python of a bare environment into which pip installed the wheel, and nothing else.

    With ``tested``, in the versions of constraints.txt; without, in those that pip picks today.
    """
    own = place / "bin" / "python"
    if not own.exists():
        run(python, "-m", "venv", "--without-pip", place)
    pip = (sys.executable, "-m", "pip", "--python", own, "--disable-pip-version-check")
    # To compile takes minutes, and is done once: for the sizes of what a user's pip leaves.
    options = ("--constraint", ROOT / "constraints.txt") if tested else ("--no-compile",)
    run(*pip, "install", "--quiet", *options, f"tiermem{extra} @ file://{wheel}")
    return own


def sizes(python: Path) -> dict[str, float]:
    """Megabytes of an environment: its files, ours among them, and what Python compiled of both."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    own = {site / "tiermem", *site.glob("tiermem-*.dist-info")}
    found = dict.fromkeys(("installed_mb", "ours_mb", "compiled_mb", "ours_compiled_mb"), 0.0)
    for path in site.rglob("*"):
        if path.is_file():
            kind = "compiled_mb" if path.suffix == ".pyc" else "installed_mb"
            size = path.lstat().st_size / 1e6
            found[kind] += size
            if own & set(path.parents):
                found["ours_compiled_mb" if path.suffix == ".pyc" else "ours_mb"] += size
    return {name: round(size, 2) for name, size in found.items()}


def check_sizes(python: Path) -> dict[str, float]:
    """Say how large an installation is, and hold the limits."""
    found = sizes(python)
    told = (
        f"{found['installed_mb']:.1f} MB, of which ours {found['ours_mb']:.2f} MB; "
        f"compiled {found['compiled_mb']:.1f} MB more, of which {found['ours_compiled_mb']:.2f}"
    )
    if found["installed_mb"] > MOST_INSTALLED or found["ours_mb"] > MOST_OURS:
        raise Failed(f"installed: {told}; the limits are {MOST_INSTALLED} and {MOST_OURS}")
    say("installed", told)
    return found


def check_import(python: Path) -> float:
    """Say how much processor time an import takes, the least of ten, and hold the limit."""
    least = min(float(run(python, "-I", "-c", SECONDS)) for _ in range(10))
    if least > MOST_SECONDS:
        raise Failed(
            f"import tiermem takes {least:.3f} s of processor time; {MOST_SECONDS} at most"
        )
    say("import tiermem", f"{least:.3f} s of processor time (limit {MOST_SECONDS})")
    return round(least, 3)


def check_work(python: Path, version: str, seeds: int, wheel: Path, *, tested: bool) -> None:
    """Whether doctor finds nothing, a small program answers, and the demo runs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = python.with_name("tiermem")
        told = run(command, "doctor", cwd=folder)
        answer = run(python, "-I", "-c", PROGRAM, cwd=folder)
        if answer != ANSWER:
            raise Failed(f"Python {version}: a small program answers otherwise:\n{answer}")
        refused = subprocess.run([command, "demo"], cwd=folder, capture_output=True, text=True)
        if refused.returncode != 1 or "pip install 'tiermem[simulation]'" not in refused.stderr:
            raise Failed(f"tiermem demo without its packages says:\n{refused.stderr}")
        installed(str(python), python.parents[1], wheel, "[simulation]", tested=tested)
        began = time.monotonic()
        rows = run(command, "demo", "--seeds", str(seeds), cwd=folder)
        took = time.monotonic() - began
    if "| market: coins lost | tiers |" not in rows:
        raise Failed(f"Python {version}: the demo says\n{rows}")
    lines = ", ".join(line.split()[0] for line in told.splitlines()[:1])
    which = "tested versions" if tested else "newest versions"
    say(
        f"Python {version}",
        f"{which}: doctor ({lines}), a program, demo of {seeds} seeds in {took:.0f} s",
    )


# What is in it


def write_materials(python: Path, epoch: str, version: str) -> Path:
    """The software bill of materials of a plain installation in the tested versions."""
    target = OUT / f"tiermem-{version}.cdx.json"
    command = (tool("cyclonedx-py"), "environment", "--output-reproducible", "--pyproject")
    # Its own reader of pyproject.toml wants the version there, which stands in version.py.
    with tempfile.TemporaryDirectory() as temporary:
        about = Path(temporary) / "pyproject.toml"
        about.write_text(
            f'[project]\nname = "tiermem"\nversion = "{version}"\nlicense = "MIT"\n'
            'description = "Tiered, reproducible memory for agents in simulations."\n'
        )
        told = [
            run(*command, about, "-o", "-", python, environment={"SOURCE_DATE_EPOCH": epoch})
            for _ in range(2)
        ]
    if told[0] != told[1]:
        raise Failed("the bill of materials differs when it is written again")
    place = str(python.parents[1])
    if place in told[0]:
        raise Failed(f"the bill of materials names a folder of this machine: {place}")
    listed = json.loads(told[0])
    listed["components"] += vendored()
    target.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    number = len(listed["components"])
    say("bill of materials", f"{target.relative_to(ROOT)}: {number} packages, CycloneDX")
    return target


def vendored() -> list[dict[str, object]]:
    """The packages of others whose files the wheel carries, as components of the list."""
    table = ROOT / "src/agents/interfaces/inspector/page/vendor/VENDORED.md"
    rows = re.findall(
        r"(?m)^\| \S+\.js \| (\w+), .+? \| (\S+) \| (.+?) \| (\w+) \|$", table.read_text()
    )
    return [
        {
            "type": "library",
            "bom-ref": f"vendored-{name}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name}@{version}",
            "licenses": [{"license": {"name": licence}}],
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for name, version, licence, digest in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="build and check files; install nothing"
    )
    quick = parser.parse_args().quick
    began = time.monotonic()
    try:
        found = check_all(quick=quick)
    except Failed as error:
        sys.exit(f"this is no release:\n{error}")
    if not quick:
        FOUND.write_text(json.dumps(found, indent=2) + "\n")
    print(f"all is as it should be, in {time.monotonic() - began:.0f} s")


def check_all(*, quick: bool) -> dict[str, object]:
    """All checks, in order; what `make publish` has to know."""
    version = own_version()
    if not (ROOT / "docs/changelog" / f"{version}.md").is_file():
        raise Failed(f"docs/changelog/{version}.md is missing: what is new?")
    OUT.mkdir(parents=True, exist_ok=True)
    FOUND.unlink(missing_ok=True)
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    wheel, source = built(epoch)
    check_files(wheel, source)
    found: dict[str, object] = {
        "version": version,
        "commit": run("git", "rev-parse", "HEAD").strip(),
        "files": {
            each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (wheel, source)
        },
    }
    if quick:
        return found
    check_platforms(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        tested, missing = True, []
        for one, program in pythons((*PYTHONS, *REPORTED)):
            if program is None:
                missing.append(one)
                continue
            place = Path(temporary) / one
            try:
                python = installed(program, place, wheel, "", tested=tested)
                if tested:
                    found |= check_sizes(python) | {"import_seconds": check_import(python)}
                    write_materials(python, epoch, version)
                check_work(python, one, 10 if tested else 3, wheel, tested=tested)
            except Failed as error:
                if one not in REPORTED:
                    raise
                say(f"Python {one}", f"reported: {str(error).splitlines()[-1]}")
            tested = False
            shutil.rmtree(place, ignore_errors=True)
        found["not_tried"] = missing
        if missing:
            say("not tried", f"no Python {', '.join(missing)} is on the PATH or in pyenv")
        if tested:
            raise Failed(f"no Python of {', '.join(PYTHONS)} was found")
    return found


if __name__ == "__main__":
    main()
