"""A worker's process: it makes the policy of the run, and answers the driver."""

from pathlib import Path

from ...config.settings import Settings
from ..policies.cassette import Cassette
from ..protocols import Policy
from ..workers.carriers import serve
from ..workers.worker import Worker
from .folder import read_folder
from .placement import policy_of


def make_worker() -> Worker:
    """A worker that has no cells yet."""
    return Worker(_policy)


def _policy(folder: Path, settings: Settings, cassette: Cassette) -> Policy:
    return policy_of(folder, settings, cassette, read_folder(folder)[1])


def main() -> None:
    """Serve the driver that started this process."""
    serve(make_worker().answer)


if __name__ == "__main__":
    main()
