"""Text to vectors of whole numbers."""
