"""The inspector: a page over a run, a bank or a sweep, and the answers that it asks for."""
