"""Processes that start warm: each is forked from a server that has made the imports already.

``tiermem`` spends a second on imports, and mem0 and Chroma take three more. A warm process is a
process of its own all the same, with its own id, files, signals and exit code; the process that
started it is its parent. What is asked of Python itself (an encoding, another program) and any
system but Linux get a process from scratch, and so does all with ``TIERMEM_PLAIN=1``. The hash
seed of the laws has a server of its own.
"""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path
from typing import Any

from agents.storage.mem0.package import import_mem0

PLAIN = os.environ.get("TIERMEM_PLAIN") == "1"
"""Whether the suite replaces nothing: see shortcuts.py."""
SCRIPT = str(Path(sys.executable).with_name("tiermem"))
MODULES = (
    "agents.bank.history",
    "agents.bank.memory_bank",
    "agents.config.messages",
    "agents.config.yaml_files",
    "agents.interfaces.cli.app",
    "agents.notes.agent_notes",
    "jsonschema",
    "numpy.ma",
    "tokenizers",
)
COMMANDS = {
    "mcp": ("agents.interfaces.mcp.http", "agents.interfaces.mcp.stdio"),
    "serve": ("agents.interfaces.http.server",),
    "tiermem.simulation": (
        "tiermem.simulation.runs.placement",
        "tiermem.simulation.workers.worker",
    ),
    "tiermem.interfaces": ("tiermem.interfaces.inspector.sorting", "scipy.sparse"),
    "tiermem.testing": (
        "hypothesis",
        "pytest",
        "tiermem.simulation.runs.run",
        "tiermem.testing.embedder_laws",
        "tiermem.testing.policy_laws",
        "tiermem.testing.processes",
        "tiermem.testing.strategies",
        "tiermem.testing.world_laws",
    ),
    "run": ("agents.simulation.runs.run", "agents.simulation.runs.outputs", "pyarrow.parquet"),
    "resume": ("agents.simulation.runs.run", "agents.simulation.runs.outputs", "pyarrow.parquet"),
    "tiermem": (
        "agents.interfaces.cli.commands.show",
        "agents.interfaces.cli.commands.memories",
        "pydantic",
        "rich.table",
    ),
}
"""By a word of what is run: what it imports as well."""
STORE = ("mem0.vector_stores.configs", "mem0.utils.factory", "mem0.vector_stores.chroma")
STORE_WORDS = ("tiermem.storage", "doctor", "rebuild", "sync()", "vacuum")
_OURS = ("tiermem.storage.", "tiermem.simulation.", "tiermem.interfaces.")
_HASH_SEED = "PYTHONHASHSEED"
_SEED_OF_LAWS = "1"
_BECOME_SUBREAPER = 36
_LONGEST = 1 << 20


class _Server:
    """The process that forks, and the socket on which it is asked to."""

    def __init__(self, hash_seed: str | None = None) -> None:
        self._environment = {} if hash_seed is None else {_HASH_SEED: hash_seed}
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0

    def start(self, request: dict[str, Any], files: list[int]) -> int:
        """The id of a new child of this process."""
        if self._owner != os.getpid():  # the first time, and after a fork
            self._begin()
        assert self._socket is not None
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)
        return int(self._socket.recv(64))

    def _begin(self) -> None:
        # The server's children end up as children of this process.
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
        self._socket, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its_end:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(its_end.fileno())],
                pass_fds=[its_end.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **self._environment},
            )
        self._owner = os.getpid()

    def leave_behind(self) -> None:
        """In a child of a server: fork a server of its own, which never has what the child has."""
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
        self._socket, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._owner = os.getpid()
        if os.fork() == 0:
            self._socket.close()
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            serve(its_end)
            os._exit(0)
        its_end.close()

    def close(self) -> None:
        if self._owner == os.getpid() and self._socket and self._process:
            self._socket.close()  # the server ends with it
            self._process.wait()
            self._owner = 0


_SERVER, _OF_LAWS = _Server(), _Server(_SEED_OF_LAWS)
_asked_for: list[str] = []


def import_first(*modules: str) -> None:
    """From now on, children have these modules of mem0 imported."""
    _asked_for.extend(modules)


def close() -> None:
    """End the servers."""
    _SERVER.close()
    _OF_LAWS.close()


def _has_seed_of_laws(environment: Any) -> bool:
    """Whether a process is to have the hash seed of the laws, and this one has another."""
    seeds = [each.get(_HASH_SEED) for each in (environment or os.environ, os.environ)]
    return seeds[0] == _SEED_OF_LAWS != seeds[1]


def _can_be_warm(arguments: list[str], options: dict[str, Any]) -> bool:
    own, environment = os.environ, options.get("env") or os.environ
    asked_of_python = {
        name
        for name in own.keys() | environment.keys()
        if name.startswith(("PYTHON", "LANG", "LC_", "MEM0", "HOME"))
        and name != "PYTHONPATH"
        and not (name == _HASH_SEED and _has_seed_of_laws(environment))
        and own.get(name) != environment.get(name)
    }
    simple = {"args", "stdin", "stdout", "stderr", "text", "env", "cwd", "start_new_session"}
    is_known = arguments[0] == SCRIPT or (
        arguments[0] == sys.executable
        and (arguments[1].startswith(("-c", "/")) or arguments[2].startswith(_OURS))
    )
    return sys.platform == "linux" and is_known and not asked_of_python and options.keys() <= simple


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """``subprocess.Popen``, forked from the server where ``tiermem`` or Python's code is run."""

    def __init__(self, args: Any, **options: Any) -> None:
        arguments = [str(part) for part in args]
        self._is_warm = not PLAIN and _can_be_warm(arguments, options)
        super().__init__(arguments, **options)

    def _execute_child(self, args: Any, *more: Any) -> None:
        """Called by ``subprocess.Popen`` with the files that it has made for the child."""
        if not self._is_warm:
            super()._execute_child(args, *more)  # type: ignore[misc]
            return
        cwd, env = more[4], more[5]
        read, _, _, out, _, err = pipes = more[9:15]
        request = {
            "arguments": args,
            "folder": os.fspath(cwd or os.getcwd()),
            "environment": dict(env or os.environ),
            "session": more[20],
        }
        files = [own if file == -1 else file for own, file in enumerate((read, out, err))]
        is_of_laws = _has_seed_of_laws(env)
        request["modules"] = [] if is_of_laws else _asked_for
        self.pid = (_OF_LAWS if is_of_laws else _SERVER).start(request, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def __exit__(self, kind: Any, *more: Any) -> None:
        if kind is not None:  # a test that fails does not wait for its process
            self.kill()
        super().__exit__(kind, *more)


def run(args: Any, **options: Any) -> "subprocess.CompletedProcess[Any]":
    """``subprocess.run`` of a process that starts warm."""
    given, timeout = options.pop("input", None), options.pop("timeout", None)
    check = options.pop("check", False)
    if given is not None:
        options["stdin"] = subprocess.PIPE
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(args, **options) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def use_stores_warm(children: Any) -> None:
    """Let a bank use its store in ``children``, which stand in for ``subprocess``.

    Workers of a run, and what laws ask of another process, are ``children`` too.
    """
    from agents.simulation.workers import carriers
    from agents.storage.mem0 import child_process
    from agents.testing import processes as processes_of_laws

    for module in (child_process, carriers, processes_of_laws):
        module.subprocess = children


def __getattr__(name: str) -> Any:
    """The rest of ``subprocess``: this module stands in for it."""
    return getattr(subprocess, name)


# The server


def _next_child(asked: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """In the server: fork for each request until there are no more; in a child: its request."""
    while True:
        data, files, _, _ = socket.recv_fds(asked, _LONGEST, 3)
        if not data:
            return None
        request = json.loads(data)
        _import_for(" ".join(request["arguments"]), request["modules"])
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                os.close(told)
                os.close(tell)
                return request, files
            os.write(tell, str(child).encode())
            os._exit(0)  # and so the child goes to the process that asked
        os.waitpid(between, 0)
        asked.send(os.read(told, 64))
        for file in (told, tell, *files):
            os.close(file)


def _take_over(request: dict[str, Any], files: list[int]) -> None:
    """Become the process that was asked for."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in set(files) - {0, 1, 2}:
        os.close(file)
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # that of the server's environment
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    atexit.unregister(shutil.rmtree)  # the server's folder of mem0
    sys.stdin = sys.__stdin__ = _text(0, "r", "strict")
    sys.stdout = sys.__stdout__ = _text(1, "w", "strict")
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace", line_buffering=True)


def _text(file: int, mode: str, errors: str, line_buffering: bool = False) -> Any:
    made = open(file, mode, errors=errors, closefd=False)  # noqa: SIM115 - open to the end
    if line_buffering and isinstance(made, io.TextIOWrapper):
        made.reconfigure(line_buffering=True)
    return made


def _run(arguments: list[str]) -> None:
    """What Python does with these arguments."""
    program, *rest = arguments
    if program == SCRIPT:
        sys.argv = arguments
        runpy.run_path(program, run_name="__main__")
    elif rest[0] in ("-m", "-Pm"):
        sys.argv = rest[1:]
        runpy.run_module(rest[1], run_name="__main__", alter_sys=True)
    elif rest[0] != "-c":
        sys.argv = rest
        sys.path.insert(0, str(Path(rest[0]).parent))
        runpy.run_path(rest[0], run_name="__main__")
    else:
        sys.argv = ["-c", *rest[2:]]
        sys.path.insert(0, "")
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[1], "<string>", "exec"), main.__dict__)


def _import_for(command: str, of_mem0: list[str]) -> None:
    """Import, once, what a command needs: each child has it then."""
    for word, modules in COMMANDS.items():
        for name in modules if word in command else ():
            importlib.import_module(name)
    for name in [*of_mem0, *(STORE if any(word in command for word in STORE_WORDS) else ())]:
        import_mem0(name)
    gc.freeze()


def serve(asked: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    found = _next_child(asked)
    asked.close()
    if found is not None:
        request, files = found
        _take_over(request, files)
        if "mem0" in sys.modules:
            _SERVER.leave_behind()
            use_stores_warm(sys.modules["__main__"])
        _run_and_end(request["arguments"])


def _run_and_end(arguments: list[str]) -> None:
    """End as Python does, but let the system take apart what was imported."""
    code: Any = 0
    try:
        _run(arguments)
    except SystemExit as end:
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code or 0)


def _use_a_bank() -> None:
    """Each child has then what a process reads for its first bank: settings, stems, weights."""
    from agents import MemoryBank
    from agents.config.load import load_settings

    with MemoryBank.ephemeral(load_settings({"seed": 1})) as bank:
        bank.agent("anybody").add("It is warm.")
        bank.agent("anybody").search("warm")


if __name__ == "__main__":
    for module in MODULES:
        importlib.import_module(module)
    _use_a_bank()
    del sys.path[0]  # the folder of this file
    serve(socket.socket(fileno=int(sys.argv[1])))
