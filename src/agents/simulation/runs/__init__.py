"""Runs: making, resuming, replaying, branching and comparing them."""
