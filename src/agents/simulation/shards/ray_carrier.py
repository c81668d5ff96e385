"""Workers as Ray's actors, on this machine or on a cluster whose machines share the run's folder.

Ray writes into one temporary folder, which is deleted at the end, and sends no statistics. For a
cluster that is started here, the token is in the environment and in no file.
"""

import importlib
import logging
import os
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import ConfigError, RunError
from .carriers import WorkerLost

__all__ = ["Cluster", "RayLink"]

_HERE = "local"
_TOKEN = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


class Cluster:
    """A connection to Ray; ``address`` is ``local`` for a cluster of its own, or names one."""

    def __init__(self, address: str | None, workers: int) -> None:
        own: dict[str, str] = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        }
        address = address or _HERE
        if address == _HERE and not any(name in os.environ for name in _TOKEN):
            own["RAY_AUTH_TOKEN"] = _own_token()
        self._before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        self._folder: Path | None = None
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
        options: dict[str, Any] = {"address": address, "log_to_driver": False}
        if address == _HERE:
            self._folder = Path(tempfile.mkdtemp(prefix="tm-ray-"))
            options |= {
                "num_cpus": workers,
                "include_dashboard": False,
                "_temp_dir": str(self._folder),
            }
        try:
            self._ray.init(logging_level=logging.ERROR, **options)
        except Exception as error:
            raise RunError(
                f"Ray can't be reached at {address}: {error}",
                hint="start a cluster with: ray start --head, or use --address local",
            ) from error

    def start(self, module: str) -> "RayLink":
        """A new worker; ``module`` has ``make_worker``."""
        return RayLink(self._ray, module)

    def close(self) -> None:
        """End the connection, and the cluster if it is of this process."""
        ray = getattr(self, "_ray", None)
        if ray is not None and ray.is_initialized():
            ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@cache
def _own_token() -> str:
    """A token for clusters of this process. Ray reads it once, so it is one for all of them."""
    return secrets.token_hex(32)


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError(
            f"the engine ray needs Ray, which can't be imported: {error}",
            hint="install it with: pip install 'tiermem[ray]'",
        ) from error


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
