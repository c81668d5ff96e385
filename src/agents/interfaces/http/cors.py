"""Pages of other origins that may ask from a browser (CORS)."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .access import Names, origin_form
from .problems import Problem

__all__ = ["Pages"]


class Pages(CORSMiddleware):
    """Tells browsers that the pages of ``names.origins`` may ask, and no others.

    Whether a request itself is let in is for ``app`` to say, by the same names.
    """

    def __init__(
        self, app: ASGIApp, names: Names, methods: tuple[str, ...], headers: tuple[str, ...]
    ) -> None:
        super().__init__(
            app, allow_origins=names.origins, allow_methods=methods, allow_headers=headers
        )
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(origin_form(scope), receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return origin.lower() in self.allow_origins

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
