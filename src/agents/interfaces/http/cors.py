"""Web pages of other origins that may use the service (CORS)."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from .access import Names
from .problems import Problem


class Pages(CORSMiddleware):
    """Tells browsers that only the pages of ``names.origins`` may send requests.

    Starlette refuses a preflight in plain text, and does not check the host. ``app`` checks the
    request itself, by the same names.
    """

    def __init__(
        self, app: ASGIApp, names: Names, methods: tuple[str, ...], headers: tuple[str, ...]
    ) -> None:
        super().__init__(app, names.origins, methods, headers)
        self._names = names

    def preflight_response(self, request_headers: Headers) -> Response:
        """The answer to a preflight, which has no token, but has a host and an origin."""
        try:
            self._names.check(request_headers)
        except Problem as problem:
            return problem.response()
        answer = super().preflight_response(request_headers)
        if answer.status_code == 200:
            return answer
        detail = "a page may not ask with this method, or send these headers"
        return Problem(403, "WrongPreflight", detail).response()
