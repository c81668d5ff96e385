"""Memories change temperature: start, hot, expiry, compaction, sweep."""
