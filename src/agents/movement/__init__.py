"""Memories change temperature: lifetime, hot, compaction, sweep."""
