"""Memories in memory: the table, an agent's rows, its words and sessions."""
