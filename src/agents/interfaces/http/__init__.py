"""A bank over HTTP: ``server.serve`` answers requests until it is stopped."""
