"""Runs over workers: agents live in cells, in processes of their own."""
