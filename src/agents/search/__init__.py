"""A query becomes hits: read, score, scope, rank, cut."""
