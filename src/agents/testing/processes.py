"""Methods of laws in processes of their own, which can have another hash seed, and be killed.

The process imports the class of laws again, so the class is at the top of a module.
"""

import contextlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import SimulationError, TierMemError
from ..storage.files import TemporaryFolder

_CHILD = "from tiermem.testing.processes import main; main()"


def another_hash_seed() -> int:
    """A hash seed that this process does not have."""
    return 2 if os.environ.get("PYTHONHASHSEED") == "1" else 1


def elsewhere(laws: Any, method: str, hash_seed: int = 1, **arguments: Any) -> Any:
    """What a method of the laws returns in another process; it is a JSON value.

    An error of what is tested is :class:`SimulationError`, with the words of the error.
    """
    with TemporaryFolder("laws") as folder:
        with started(laws, method, Path(folder), hash_seed, **arguments) as child:
            child.communicate()
        return _result(Path(folder), method, child.returncode)


@contextlib.contextmanager
def started(
    laws: Any, method: str, folder: Path, hash_seed: int = 1, **arguments: Any
) -> "Iterator[subprocess.Popen[str]]":
    """The process in which a method of the laws runs; its input and output are pipes.

    After the block, an error of a process that was not killed is :class:`SimulationError`.
    """
    task = {
        "class": [type(laws).__module__, file_of(type(laws)), type(laws).__qualname__],
        "given": laws.given(),
        "method": method,
        "arguments": arguments,
        "path": sys.path,
        "result": str(folder / f"{method}.json"),
    }
    path = folder / f"{method}.task"
    path.write_text(json.dumps(task), encoding="utf-8")
    with (
        (folder / f"{method}.err").open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        ) as child,
    ):
        yield child
    if child.returncode > 0:
        _result(folder, method, child.returncode)


def _result(folder: Path, method: str, code: int) -> Any:
    path = folder / f"{method}.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if "value" in result:
        return result["value"]
    lines = (folder / f"{method}.err").read_text(errors="replace").strip().splitlines()
    last = lines[-1] if lines else "no word"
    raise SimulationError(result.get("error") or f"a process of the laws ended with {code}: {last}")


def file_of(laws: type) -> str:
    """The file that defines a class."""
    if "<locals>" in laws.__qualname__:
        raise SimulationError(
            f"{laws.__qualname__} is inside a function, and other processes can't import it",
            hint="define it at the top of a module",
        )
    try:
        return str(Path(inspect.getfile(laws)).absolute())
    except (OSError, TypeError) as error:
        raise SimulationError(
            f"{laws.__qualname__} has no file, and other processes can't import it",
            hint="define it in a file",
        ) from error


def main() -> None:
    """In the process: do the task in the file that the command line names."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:] = task["path"]
    # Standard output is for what the laws have to say: what a world prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            laws = _class(*task["class"])(**task["given"])
            result = {"value": getattr(laws, task["method"])(**task["arguments"])}
        except TierMemError as error:
            result = {"error": str(error)}
    Path(task["result"]).write_text(json.dumps(result), encoding="utf-8")


def _class(module_name: str, file: str, name: str) -> Any:
    found: Any = _module(module_name, file)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _module(name: str, file: str) -> ModuleType:
    """The module of that name, if it is the same file; else the file as a module of its own."""
    with contextlib.suppress(ImportError):
        module = importlib.import_module(name)
        if getattr(module, "__file__", None) and Path(str(module.__file__)).samefile(file):
            return module
    spec = importlib.util.spec_from_file_location("tiermem_laws", file)
    if spec is None or spec.loader is None:
        raise SimulationError(f"{file} can't be imported")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
