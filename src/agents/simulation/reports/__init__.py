"""What a run came to, as plots and one page."""
