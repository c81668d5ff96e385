"""All that knows mem0 and Chroma."""
