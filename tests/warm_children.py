"""A process that has imported mem0 and Chroma, and forks for each child that uses a store.

A child that uses a store spends seconds on imports and milliseconds on the store. Here every child
is a process of its own all the same; only the imports are made once.
"""

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from typing import Any, NoReturn

STORE_MODULES = (
    "mem0.vector_stores.configs",
    "mem0.utils.factory",
    "mem0.vector_stores.chroma",
)


class WarmProcess:
    """What ``subprocess.Popen`` would give for ``python -m module argument``."""

    def __init__(self, children: "WarmChildren", pid: int) -> None:
        self._children = children
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._wait(0)

    def wait(self, timeout: float = 600) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("store_child", timeout)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, seconds: float) -> int | None:
        if self.returncode is None:
            self.returncode = self._children.ask({"wait": self.pid, "seconds": seconds})
        return self.returncode


class WarmChildren:
    """Stands in for the module ``subprocess`` where a process for a store is started."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._turn = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(  # noqa: N802 - the name in subprocess
        self, command: list[str], *, pass_fds: list[int], stderr: Any, **_: Any
    ) -> WarmProcess:
        executable, flag, module, _fd = command
        assert (executable, flag) == (sys.executable, "-m")
        request = {"module": module, "folder": os.getcwd()}
        return WarmProcess(self, self.ask(request, [*pass_fds, stderr.fileno()]))

    def ask(self, request: dict[str, Any], files: list[int] | None = None) -> Any:
        with self._turn:
            if self._link is None:
                self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._server = subprocess.Popen(
                        [sys.executable, __file__, str(theirs.fileno())],
                        pass_fds=[theirs.fileno()],
                    )
            socket.send_fds(self._link, [json.dumps(request).encode()], files or [])
            return json.loads(self._link.recv(65536))

    def close(self) -> None:
        if self._server is not None and self._link is not None:
            self._link.close()  # the server ends with it
            self._server.wait()


def _be_the_child(request: dict[str, str], files: list[int]) -> NoReturn:
    """Run the module with the socket that was passed, and end."""
    link, complaints = files
    os.dup2(complaints, 2)
    os.chdir(request["folder"])
    sys.argv = ["store_child", str(link)]
    code = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=False)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        code = 1
    os._exit(code)


def _wait(pid: int, seconds: float) -> int | None:
    """The exit code of a child; None if it runs on."""
    if seconds == 0:
        ended, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    for _ in range(int(seconds * 100)):
        if (code := _wait(pid, 0)) is not None:
            return code
        time.sleep(0.01)
    return None


def main() -> None:
    from agents.storage.mem0.package import import_mem0

    for name in STORE_MODULES:
        import_mem0(name)
    link = socket.socket(fileno=int(sys.argv[1]))
    while True:
        text, files, _, _ = socket.recv_fds(link, 65536, 8)
        if not text:
            return
        request = json.loads(text)
        if "wait" in request:
            answer = _wait(request["wait"], request["seconds"])
        else:
            answer = os.fork()
            if answer == 0:
                link.close()
                _be_the_child(request, files)
            for file in files:
                os.close(file)
        link.send(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
