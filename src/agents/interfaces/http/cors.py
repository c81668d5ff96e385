"""Pages of other origins that may ask from a browser (CORS)."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from .access import Names
from .problems import Problem

__all__ = ["Pages"]


class Pages(CORSMiddleware):
    """Tells browsers that the pages of ``names.origins`` may ask, and no others.

    Starlette would refuse a preflight in plain text, and knows no hosts. Whether a request itself
    is let in is for ``app`` to say, by the same names.
    """

    def __init__(
        self, app: ASGIApp, names: Names, methods: tuple[str, ...], headers: tuple[str, ...]
    ) -> None:
        super().__init__(app, names.origins, methods, headers)
        self._names = names

    def preflight_response(self, request_headers: Headers) -> Response:
        """What a browser asks first; it has no token yet, but it has a name."""
        try:
            self._names.check(request_headers)
        except Problem as problem:
            return problem.response()
        answer = super().preflight_response(request_headers)
        if answer.status_code == 200:
            return answer
        detail = "a page may not ask with this method, or send these headers"
        return Problem(403, "WrongPreflight", detail).response()
