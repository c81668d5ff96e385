"""What carries messages to workers."""

from typing import Protocol


class WorkerLost(Exception):
    """A worker gave no answer, because it ended; the text goes after "it"."""


class Link(Protocol):
    """The way to one worker. Messages are sent and answered one by one."""

    def send(self, message: bytes) -> None:
        """Send a message, and don't wait for its answer."""

    def receive(self) -> bytes:
        """The answer to the last message; :class:`WorkerLost` if there will be none."""

    def end(self) -> None:
        """End the worker at once."""
