"""A bank over HTTP. ``server.serve`` is the way in; what it is made of needs starlette."""
