"""Runs in folders: made, gone on with, replayed, branched, compared."""
