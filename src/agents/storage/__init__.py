"""Where memories live: the journal records, the columns answer, mem0's store remembers."""
