"""One portable file of a bank's state, and back."""
