"""Journal and resident columns together: events in, state out."""
