"""The inspector's page in a notebook's cell: served by this process, or all in one page."""

import os
import sys
import threading
import weakref
from base64 import b64encode
from html import escape
from typing import final
from weakref import WeakKeyDictionary

from ...errors import NotInstalled
from ...packages import needed
from ...simulation.runs.run import Run
from ..cli.output import say
from ..cli.progress import is_notebook
from ..inspector.export import exported
from ..inspector.inspection import Inspection

_HOST = "127.0.0.1"
_SECONDS_TO_END = 5
_addresses = WeakKeyDictionary[Run, str]()
"""Of the runs whose pages this process serves."""


@final
class Page:
    """The inspector's page about a run; a notebook shows it below the cell."""

    def __init__(self, run: Run, address: str, height: int) -> None:
        self.address = address
        """Where the page is served; empty for a page that is all in itself."""
        self._run = run  # its folder stays as long as the page does
        self._height = height

    def _repr_html_(self) -> str:
        look = f'width="100%" height="{self._height}" style="border: 1px solid #8888"'
        if self.address:
            where = escape(self.address)
            below = f'<a href="{where}" target="_blank">in a window of its own</a>'
            return f'<iframe src="{where}" {look}></iframe><div>{below}</div>'
        with Inspection([self._run.folder]) as inspection:
            page = b64encode(exported(inspection)).decode()
        # Not `srcdoc`: the page's links would lead to the notebook.
        return f'<iframe src="data:text/html;base64,{page}" {look}></iframe>'

    def __repr__(self) -> str:
        return f"<the inspector's page: {self.address or 'all in itself'}>"


def inspect(run: Run, height: int, export: bool | None) -> Page | None:
    """The page of a run; outside a notebook, its address is printed.

    With ``export``, the page is all in itself; so it is where no server can be, or where the
    browser can't reach this machine.
    """
    if not is_notebook():
        say(_served(run))
        return None
    if export is None:
        export = "google.colab" in sys.modules or "JUPYTERHUB_SERVICE_PREFIX" in os.environ
    if not export:
        try:
            return Page(run, _served(run), height)
        except NotInstalled:
            pass
    return Page(run, "", height)


def _served(run: Run) -> str:
    """The address at which a thread serves the page, as long as there is the run."""
    if run in _addresses:
        return _addresses[run]
    with needed("to serve the page", "starlette", "uvicorn"):
        from ..http import server as http
        from ..inspector import server
    inspection, stop = Inspection([run.folder]), threading.Event()
    sock, token = http.listen(_HOST, 0), server.new_token()
    inspector = server.Inspector(inspection, token, _HOST, framed=True)

    def work() -> None:
        with sock, inspection:
            server.serve(inspector, sock, stop.is_set)

    thread = threading.Thread(target=work, name="inspector", daemon=True)
    thread.start()
    weakref.finalize(run, _end, stop, thread)
    _addresses[run] = where = f"{http.address(_HOST, sock)}/{token}/"
    return where


def _end(stop: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    thread.join(_SECONDS_TO_END)
