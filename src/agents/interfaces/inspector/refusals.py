"""A refusal as a browser shows it: a page with a sentence, where JSON would be shown raw."""

from html import escape

import orjson
from starlette.requests import Request
from starlette.responses import Response

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TierMem inspector</title></head>
<body><h1>The inspector can't show this</h1><p>{message}.</p>{hint}</body></html>
"""
_NEW_ADDRESS = "each start of tiermem inspect has a new address: open the one that it printed last"


def readable(request: Request, response: Response) -> Response:
    """The response, as a page if it is a refusal and somebody typed the address."""
    if response.status_code < 400 or "text/html" not in request.headers.get("accept", ""):
        return response
    error = orjson.loads(response.body)["error"]
    hint = error["hint"] or (_NEW_ADDRESS if error["type"] == "NoToken" else "")
    text = _PAGE.format(
        message=escape(error["message"]), hint=f"<p>{escape(hint)}.</p>" if hint else ""
    )
    return Response(text, response.status_code, media_type="text/html")
