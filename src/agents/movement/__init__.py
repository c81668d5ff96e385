"""What moves memories: lifetime, hot's limits, compaction, the sweep."""
