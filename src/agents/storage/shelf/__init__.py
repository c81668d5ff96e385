"""Memories that are not in memory: cold, archived, deleted."""
