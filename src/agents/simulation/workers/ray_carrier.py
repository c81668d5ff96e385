"""Workers as Ray's actors, on this machine or on a cluster whose machines share the run's folder.

Ray writes into one temporary folder, which is deleted at the end, and sends no statistics. For a
cluster that is started here, the token is in the environment and in no file.
"""

import importlib
import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...errors import ConfigError, RunError
from ...packages import missing, needed
from ...storage.files import TemporaryFolder
from .carriers import WorkerLost

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_HERE = "local"
_NO_CLUSTER = "start a cluster with: ray start --head, or use --address local"
_OTHER_CLUSTER = (
    "all machines of the cluster need the same versions of Python, Ray and TierMem; or use "
    "--address local"
)
_MORE_SECONDS = "120"
"""How long Ray's server may take when it is started once more; Ray itself gives it 20 seconds."""
_SECONDS = 10
"""How long a cluster may take to take a connection."""
_TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


class Cluster:
    """A connection to Ray; ``address`` is ``local`` for a cluster of its own, or names one."""

    def __init__(self, address: str | None, workers: int) -> None:
        environment: dict[str, str] = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_task_oom_retries": "1",  # by default, a task that needs too much is tried forever
        }
        address = address or _HERE
        if address == _HERE and not any(name in os.environ for name in _TOKEN):
            environment["RAY_AUTH_TOKEN"] = _own_token()
        self._before: dict[str, str | None] = {}
        self._set(**environment)
        self._folder: TemporaryFolder | None = None
        try:
            self._ray = _ray()
            if self._ray.is_initialized():
                raise RunError(
                    "Ray is in use in this process already", hint="call ray.shutdown() first"
                )
            self._connect(address, workers)
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str, workers: int) -> None:
        check_ray(address)
        options: dict[str, Any] = {"address": address, "log_to_driver": False}
        if address == _HERE:
            self._folder = TemporaryFolder("ray", "tm-")  # a short path: it holds sockets
            options |= {
                "num_cpus": workers,
                "include_dashboard": False,
                "_temp_dir": self._folder.name,
            }
        try:
            self._init(options)
        except Exception as error:  # Ray raises Exception itself
            if address == _HERE:
                raise RunError(
                    f"Ray does not start on this machine: {error}",
                    hint="it was tried twice; see that the machine has memory, processors and room "
                    "on its disk to spare, or go without Ray: --engine local",
                ) from error
            is_there = address != "auto" or "RAY_ADDRESS" in os.environ  # it took a connection
            raise RunError(
                f"Ray can't be reached at {address}: {error}",
                hint=_OTHER_CLUSTER if is_there else _NO_CLUSTER,
            ) from error

    def _init(self, options: dict[str, Any]) -> None:
        """Connect; a cluster of its own that does not start is tried once more, with more time."""
        try:
            self._ray.init(logging_level=logging.ERROR, **options)
        except Exception as error:
            if self._folder is None or self._ray.is_initialized():
                raise
            logger.warning("Ray did not start, and is tried once more: %s", error)
            self._set(RAY_gcs_server_port_wait_time_s=_MORE_SECONDS)
            self._ray.init(logging_level=logging.ERROR, **options)

    def _set(self, **environment: str) -> None:
        """Set variables of the environment until the cluster is closed."""
        self._before |= {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)

    def start(self, module: str) -> "RayLink":
        """A new worker; ``module`` has ``make_worker``."""
        return RayLink(self._ray, module)

    def results(
        self, job: Callable[..., _Result], calls: Sequence[tuple[object, ...]], at_once: int
    ) -> Iterator[tuple[int, _Result | None]]:
        """The result of each call of ``job`` with its place, as they end; each is a task of Ray.

        A call whose process is killed is made once more; then its result is None.
        """
        task = self._ray.remote(job).options(num_cpus=1, max_retries=1)
        waiting = list(enumerate(calls))[::-1]
        running: dict[Any, int] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                place, call = waiting.pop()
                running[task.remote(*call)] = place
            for done in self._ray.wait(list(running))[0]:
                yield running.pop(done), self._result(done)

    def _result(self, done: Any) -> Any:
        """What a task gave; None if its process was killed."""
        lost = self._ray.exceptions
        try:
            return self._ray.get(done)
        except (lost.WorkerCrashedError, lost.NodeDiedError, lost.OutOfMemoryError):
            return None
        except lost.RayError as error:
            raise RunError(
                f"Ray can't run a task: {str(error).strip().splitlines()[-1]:.200}",
                hint="all machines of the cluster need the same versions of Python and TierMem",
            ) from error

    def close(self) -> None:
        """End the connection, and the cluster if it is of this process."""
        ray = getattr(self, "_ray", None)
        if ray is not None and ray.is_initialized():
            ray.shutdown()
        if self._folder is not None:
            self._folder.cleanup()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@cache
def _own_token() -> str:
    """A token for clusters of this process. Ray reads it once, so it is one for all of them."""
    return secrets.token_hex(32)


def check_ray(address: str | None) -> None:
    """Refuse to go on without Ray, and with an address at which nothing answers."""
    if find_spec("ray") is None:
        raise missing("the engine ray", "ray")
    if address == "auto":  # Ray looks there first, and for a cluster of this machine next
        address = os.environ.get("RAY_ADDRESS", "auto")
    if address not in (None, _HERE, "auto"):
        _check_answers(address)


def _check_answers(address: str) -> None:
    """Try a connection: where nothing answers, Ray itself would try for ever."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise ConfigError(
            f"{address!r:.100} is not an address of a Ray cluster",
            hint="use auto, local or an address such as 10.0.0.7:6379",
        )
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError as error:
        raise RunError(
            f"Ray can't be reached at {address:.100}: {error}", hint=_NO_CLUSTER
        ) from error


def _ray() -> Any:
    with needed("the engine ray", "ray"):
        return importlib.import_module("ray")


class _Host:
    """What runs in a process of Ray: a worker."""

    def __init__(self, module: str) -> None:
        self._worker = importlib.import_module(module).make_worker()

    def answer(self, message: bytes) -> bytes:
        """The worker's answer."""
        answer: bytes = self._worker.answer(message)
        return answer


class RayLink:
    """A worker that is an actor of Ray."""

    def __init__(self, ray: Any, module: str) -> None:
        self._ray = ray
        self._actor = ray.remote(_Host).options(num_cpus=1, max_restarts=0).remote(module)
        self._waiting: Any = None

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._waiting = self._actor.answer.remote(message)

    def receive(self) -> bytes:
        """Wait for the answer."""
        try:
            answer: bytes = self._ray.get(self._waiting)
        except self._ray.exceptions.RayError as error:
            raise WorkerLost(f"was lost: {str(error).splitlines()[0]:.200}") from error
        return answer

    def end(self) -> None:
        """End the actor; nothing that it acknowledged is lost."""
        self._ray.kill(self._actor)
