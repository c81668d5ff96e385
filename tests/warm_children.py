"""A process that has imported mem0 and Chroma, and forks for each module it is asked to run.

A bank tries a local store in a child process, because a damaged one can crash whoever opens it.
Such a child spends seconds on imports and milliseconds on the store. Here every child is a process
of its own all the same; only the imports are made once.
"""

import contextlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from typing import Any, NoReturn

STORE_MODULES = (
    "mem0.vector_stores.configs",
    "mem0.utils.factory",
    "mem0.vector_stores.chroma",
)


class WarmChildren:
    """Stands in for the module ``subprocess`` where a store is tried."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def run(self, command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        """What ``subprocess.run`` would give for ``python -m module``."""
        executable, flag, module = command
        assert (executable, flag) == (sys.executable, "-m")
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"module": module, "input": options["input"], "folder": os.getcwd()}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code, out, err = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess(command, code, out, err)

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()  # it ends when its input does


def _be_the_child(request: dict[str, str], files: list[int]) -> NoReturn:
    """Run the module with these files as its standard streams, and end."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(request["folder"])
    code: Any = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def _answer(request: dict[str, str]) -> tuple[int, str, str]:
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        files[0].write(request["input"])
        files[0].seek(0)
        child = os.fork()
        if child == 0:
            _be_the_child(request, [file.fileno() for file in files])
        _, status = os.waitpid(child, 0)
        for file in files:
            file.seek(0)
        return os.waitstatus_to_exitcode(status), files[1].read(), files[2].read()


def main() -> None:
    from agents.storage.mem0.package import import_mem0

    for name in STORE_MODULES:
        import_mem0(name)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
