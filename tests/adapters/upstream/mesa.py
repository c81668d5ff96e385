"""Run our own tests of Mesa with several versions of Mesa, and Mesa's own tests with memories.

Mesa's tests come from its source distributions. They know nothing of memory: each of their models
gets memories, and has to work as before. What fails are tests that pickle or copy agents, which a
model with memories refuses. All runs in an environment of its own, with Python 3.12 or later. Each
suite gets a line, and the exit code is 0 if all is as expected.
"""

import argparse
import sys
import tarfile
from pathlib import Path

import suites

PAGE = {"tests/adapters/test_mesa_page.py::test_solara_viz_takes_the_component"}
VERSIONS = {"3.3.1": PAGE, "3.4.2": set(), "3.5.1": set(), "4.0.0a0": set()}
"""By version: what fails, because SolaraViz of this Mesa does not work with this solara."""
SPACES_AND_PAGES = ("discrete_space", "visualization", "examples", "test_grid.py", "test_space.py")
"""Mesa's tests that are about no model, or about its pages."""
EXPECTED = {
    "3.4.2": (109, 75, "agent"),
    "3.5.1": (286, 162, "agentset"),
    "4.0.0a0": (372, 226, "agentset"),
}
"""By version: how many of Mesa's tests pass and reach our code, and which file copies agents."""
OURS = "tiermem.mesa"
OUR_OWN = [
    path
    for path in sorted((suites.ROOT / "tests/adapters").glob("test_mesa_*.py"))
    if not path.name.startswith("test_mesa_llm")
]


def downloaded(python: Path, work: Path, version: str) -> Path:
    """A folder that holds this version of Mesa, and nothing else."""
    folder = work / f"mesa-{version}"
    if not folder.is_dir():
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        suites.run(*pip, "--no-deps", "--target", folder, f"mesa=={version}")
    return folder


def their_tests(python: Path, work: Path, version: str) -> Path:
    """The folder of a source distribution of Mesa."""
    folder = work / "sources"
    source = folder / f"mesa-{version}"
    if not source.is_dir():
        pip = (python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        suites.run(*pip, "--no-deps", "--no-binary", "mesa", "-d", folder, f"mesa=={version}")
        with tarfile.open(folder / f"mesa-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    work = suites.ROOT / ".venv-upstream" / "mesa"
    parser.add_argument("--work", type=Path, default=work, help="where the environment is kept")
    work = parser.parse_args().work.resolve()
    packages = ["solara", "altair", "matplotlib", "pytest-mock", "ipython"]
    python = suites.environment(work, "mesa", packages)
    is_good, versions, counted = True, VERSIONS, EXPECTED
    if suites.NEWEST:
        newest = suites.version(python, "mesa")
        versions, counted = {newest: set()}, {newest: (0, 0, "agentset")}
    for version, failing in versions.items():
        path = str(downloaded(python, work, version))
        # Mesa 4 has no batch_run.
        options = ("-k", "not batch") if version.startswith("4") else ()
        results = suites.tried(python, suites.ROOT, OUR_OWN, *options, path=path)
        is_good &= suites.line(f"tiermem.mesa, mesa {version}", results, None, failing)
    for version, (expected, reaching, copying) in counted.items():
        source = their_tests(python, work, version)
        left_out = [f"--ignore=tests/{name}" for name in SPACES_AND_PAGES]
        options = ("-p", "memories_in_every_model", "-o", "addopts=", *left_out)
        path = str(downloaded(python, work, version))
        results = suites.tried(python, source, ["tests"], *options, path=path, reaches=OURS)
        copied = [f"tests/test_{copying}.py::test_agentset{end}" for end in ("", "_serialization")]
        name = f"mesa {version} with memories"
        is_good &= suites.line(name, results, expected, copied, reaching=reaching)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
