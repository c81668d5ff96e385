"""How a command fails, in three lines: what, why, what to do; and how signals stop it."""

import contextlib
import errno
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ...errors import TierMemError

Lines = tuple[str, str, str]
"""What happened, why, and what to do."""

NO_OUTPUT: Lines = (
    "nothing was done",
    "standard output is closed, and a result would have nowhere to go",
    "leave it open; >/dev/null drops what is printed",
)

_LONGEST = 1500
"""Characters of a line, which may quote a text of any length."""

_NO_BRACES = str.maketrans("", "", "{}")

_REMEDIES = {
    errno.ENOSPC: "make room on the disk, and run it again",
    errno.EDQUOT: "make room within your quota, and run it again",
    errno.EACCES: "let your user read and write it, or name another path",
    errno.EPERM: "let your user read and write it, or name another path",
    errno.EROFS: "name a path that can be written",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path: a part of it is a file",
    errno.EISDIR: "name a file, not a folder",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EMFILE: "allow more open files (ulimit -n), and run it again",
    errno.EADDRINUSE: "stop what listens there, or name another --port",
    errno.EBADF: "leave standard input open; </dev/null stands for nothing",
}


def of_error(error: TierMemError, command: str) -> Lines:
    """The lines for an error of TierMem."""
    return error.what, error.why, error.hint or f"see: {command} --help"


def of_system(error: OSError) -> Lines:
    """The lines for an error of the operating system."""
    remedy = _REMEDIES.get(error.errno or 0, "tiermem doctor may know more")
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return "the system refused", _of_copies(error.args[0]), "make room, or set TMPDIR elsewhere"
    return "the system refused", str(error), remedy


def _of_copies(failed: list[Any]) -> str:
    """The first of the files that shutil could not copy, and the number of the rest."""
    source, _, why = failed[0]
    more = f", and {len(failed) - 1:,} more" if len(failed) > 1 else ""
    return f"{source}{more} can't be copied: {why}"


def of_import(error: ImportError, command: str) -> Lines:
    """The lines for a package that is missing, or that can't be loaded."""
    from ...packages import install, purpose

    module = (error.name or "tiermem").partition(".")[0]
    if module == "tiermem":
        return "TierMem is not whole", str(error), "pip install --force-reinstall tiermem"
    needs = f"{command} needs {module}" + (f" for {purpose(module)}" if purpose(module) else "")
    if isinstance(error, ModuleNotFoundError):
        return "a package is missing", f"{needs}, and it is not installed", install(module)
    todo = install(module).replace("install", "install --force-reinstall", 1)
    return "a package is broken", f"{needs}, and it can't be loaded: {error}", todo


def of_usage(error: Any, command: str) -> Lines:
    """The lines for arguments that Typer refused."""
    what, why = f"that is not how {command} is used", error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return what, why, f"see: {command} --help"
    path = context.command_path
    return f"that is not how {path} is used", why, f"{path} {usage(context)}; see --help"


def usage(context: Any) -> str:
    """The arguments of a command, without the braces that newer versions of Typer write."""
    return " ".join(context.command.collect_usage_pieces(context)).translate(_NO_BRACES)


_WHEN_STOPPED = {"tiermem store export": "the export is not whole"}
"""The state that a stopped command leaves, unless the command itself tells it."""


def say_stopped(state: str, command: str) -> None:
    """Print one line about a stopped command, and the state that it leaves."""
    from ...memory.context import one_line

    state = one_line(state or _WHEN_STOPPED.get(command, ""))
    sys.stderr.write(f"tiermem: stopped; {state}\n" if state else "tiermem: stopped\n")
    sys.stderr.flush()


def report(lines: Lines) -> None:
    """Write the three lines to stderr; characters that could draw on a terminal are escaped."""
    from rich.console import Console
    from rich.text import Text

    from ...memory.context import one_line
    from ...memory.words import cut

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for label, style, text in zip(
        ("tiermem:", "    why:", "     do:"), ("bold red", "dim", "green"), lines, strict=True
    ):
        short = cut(text, _LONGEST)
        first, *more = map(one_line, short.split("\n"))  # one for each mistake in a file
        console.print(Text.assemble((label, style), " ", first))
        for line in more:
            console.print(Text(" " * (len(label) + 1) + line))
    sys.stderr.flush()


# Streams and signals


INTERRUPTED = 130
"""The exit code after Ctrl-C."""

PAUSED = 3
"""The exit code of a run that stands between two ticks: the same run may go on later."""

_TERMINATED = 143


class _Terminated(KeyboardInterrupt):
    """SIGTERM came; code that cleans up after Ctrl-C cleans up after it, too."""


class Stopped(Exception):
    """Ctrl-C or SIGTERM, with its exit code; Typer does not tell which it was."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        super().__init__(str(stop))
        self.code = _TERMINATED if isinstance(stop, _Terminated) else INTERRUPTED


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C, which removes temporary files; a second one kills.

    A command that has to finish something first, such as a tick, handles both signals itself.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def deaf_to_ctrl_c() -> None:
    """From now on, Ctrl-C changes nothing; while Python ends, it would be a traceback."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def telling(state: Callable[[], str]) -> Iterator[None]:
    """If Ctrl-C or SIGTERM ends the block, tell the user the state that it leaves."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if not stop.args:
            stop.args = (state(),)
        raise


def open_streams() -> bool:
    """Open the standard streams that the parent process closed; False without standard output.

    A command needs standard output from the start: after it has stored something, a missing output
    would come too late. Reading a closed input fails, and output to a closed standard error is
    dropped. If a stream stayed closed, a file of the bank could get its number, and its output.
    """
    has_output = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_WRONLY)  # the lowest free one: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115 - for good
    return has_output


def drop_output() -> None:
    """Drop output that can't be printed; else Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(device, sys.stdout.fileno())
            os.close(device)
