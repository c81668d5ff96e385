"""Runs whose agents are spread over processes."""
